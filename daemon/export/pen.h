/*
 * Writes a line for a terminal by columns: text from outside is made harmless, its width counted,
 * and cut with an ellipsis where its column ends. Used by tree.c.
 *
 * Harmless: control characters appear as their pictures (U+2400 and following), and invalid bytes
 * and characters that reorder or hide text (bidirectional controls, zero width) as U+FFFD.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/str.h"

/* Styles, as parameters of SGR (ECMA-48): `ESC [ style m`. */
#define PEN_BOLD "1"
#define PEN_DIM  "2"
#define PEN_RED  "31"

struct pen {
	FILE *out;
	bool colour;         /* else styles are ignored */
	unsigned int column; /* where the next character goes */
	unsigned int limit;  /* text may fill the columns before it */
};

/* Columns that 's' takes when pen_text() writes all of it. */
unsigned int pen_columns(struct str s);

/*
 * As much as fits before the limit, the last column an ellipsis when that is not all. 'style' may
 * be NULL.
 */
void pen_text(struct pen *p, const char *style, struct str s);

__attribute__((format(printf, 3, 4))) void pen_format(struct pen *p, const char *style,
						      const char *format, ...);

/* Blanks up to a column. */
void pen_move(struct pen *p, unsigned int column);
void pen_newline(struct pen *p);
