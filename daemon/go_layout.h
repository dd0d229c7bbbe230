/*
 * What the kernel side needs to know of a Go program, out of what the program says of itself. Used by
 * go_units.c.
 */
#pragma once

#include <stdbool.h>

#include "image/go_program.h"
#include "probe/go_probe.h"

/* Whether goroutines can be told: nothing goes without. */
bool go_layout_has_goroutines(const struct go_program *program);

/* Whether the fields are known that lead from a context to the one it was derived from. */
bool go_layout_has_contexts(const struct go_program *program);

struct go_probe_layout go_layout_of(const struct go_program *program);

/* But for has_contexts, which is a matter of what has been probed. */
bool go_layout_is_same(const struct go_probe_layout *a, const struct go_probe_layout *b);
