/*
 * Whether a JVM listens for tools already, whatever has become of its socket's file: those who tidy /tmp
 * remove it, and a tool may have made it listen a moment ago. A JVM that listens takes the signal that
 * would ask it to for an order to dump its threads. Used by jvm_attach.c.
 */
#pragma once

#include <stdbool.h>

#include "probe/jvm_target.h"

/* Returns 0 or a negative errno: -E2BIG, there are more sockets or files than are looked at. */
int jvm_listener_find(const struct jvm_target *t, bool *ret);
