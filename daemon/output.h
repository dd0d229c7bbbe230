/*
 * Standard output that nobody has to read: what `--print` writes goes through a bounded buffer and
 * leaves only as far as it can without waiting. A pipe that is not read, or a terminal that is
 * stopped, costs the newest items, whole ones, each counted (METRIC_PRINT_FULL); never the event
 * loop. Used by daemon.c.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "base/util.h"

struct output;

/* The descriptor stays the caller's. Returns 0 or a negative errno. */
int output_new(int fd, size_t bytes_max, struct output **ret);
void output_free(struct output *o); /* NULL is allowed; drops what is left */
DEFINE_CLEANUP(struct output *, output_free)

/*
 * The stream to write one item to, a span or a trace; output_end() then keeps it whole or drops it
 * whole.
 */
FILE *output_begin(struct output *o);
void output_end(struct output *o);

/*
 * Writes what can be written at once, or, with a time, within 'wait_ms'. Returns 0, also when
 * something is left, or a negative errno of write(2): nobody will ever read, or the disk is full.
 */
int output_flush(struct output *o, int wait_ms);
