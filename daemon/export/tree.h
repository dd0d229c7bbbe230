/*
 * Draws a trace for a terminal: a headline, then a line for each span with its place in the tree,
 * service, kind, name and path, status, duration, and a bar of where it lies in the trace's time
 * (server spans heavy, client spans light). What `--print` and `tsunagictl trace` show.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "model/span.h"

struct tree_options {
	unsigned int width; /* columns; 0: tree_terminal_width() of 'out' */
	bool colour;
	unsigned int lines_max; /* spans drawn, the rest is counted in the last line; 0: 500 */
};

/*
 * Draws the 'n' spans of one trace, in any order and with any parents. Strings of spans can not
 * steer the terminal. Start times are shown in the local time zone. Returns 0, -ENOMEM, or -EIO
 * when the stream is in error.
 */
int tree_draw(FILE *out, struct span *const *spans, size_t n, const struct tree_options *options);

/* Of the terminal, else of the variable COLUMNS, else 100. */
unsigned int tree_terminal_width(int fd);
