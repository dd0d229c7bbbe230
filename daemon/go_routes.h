/*
 * How the kernel side finds the routes of a Go program's servers: from what image/ has read of the
 * program to what probe/ is told. Used by go_units.c. What is not known in every part is left out:
 * its requests have no route.
 */
#pragma once

#include "image/go_program.h"
#include "probe/go_probe.h"

struct go_probe_routes go_routes_of(const struct go_program *program);

/* Where in the file a router is probed that go_routes_of() has found. */
uint64_t go_routes_site(const struct go_program *program, enum go_probe_router router);
