/*
 * Text in aligned columns for a terminal. Cells come from outside (process names, paths): control
 * characters in them are replaced, so that nothing but text reaches the terminal. Used by print.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define SHEET_COLUMNS_MAX 12

struct sheet {
	size_t n_columns;
	size_t n_cells, n_allocated;
	char **cells;       /* row by row */
	unsigned int right; /* bit i: column i is aligned to the right */
};

/* Appends a cell; NULL or an empty text shows as "-". Without memory the table has holes. */
void sheet_add(struct sheet *sheet, const char *text);
__attribute__((format(printf, 2, 3))) void sheet_addf(struct sheet *sheet, const char *format, ...);

/* Prints all rows, two blanks between columns and none at the end of a line. */
void sheet_print(const struct sheet *sheet, FILE *out);

void sheet_done(struct sheet *sheet);

/* Replaces control characters in place, newlines only on demand. */
void sheet_clean_text(char *text, bool keeps_newlines);
