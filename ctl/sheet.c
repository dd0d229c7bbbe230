/* Aligned columns; see sheet.h. */
#include "sheet.h"

#include <stdarg.h>

#include "base/util.h"

void sheet_clean_text(char *text, bool keeps_newlines)
{
	for (unsigned char *c = (unsigned char *)text; *c; c++) {
		if (*c == '\n' && keeps_newlines)
			continue;
		if (*c < ' ' || *c == 0x7f)
			*c = '?';
		/* U+0080 to U+009F are control characters too. */
		if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
			c[0] = c[1] = '?';
	}
}

/* Takes the text. */
static void add_cell(struct sheet *sheet, char *text)
{
	if (sheet->n_cells == sheet->n_allocated) {
		size_t n = sheet->n_allocated ? sheet->n_allocated * 2 : 64;
		char **cells = reallocarray(sheet->cells, n, sizeof(*cells));

		if (!cells) {
			free(text);
			return;
		}
		sheet->cells = cells;
		sheet->n_allocated = n;
	}
	if (text)
		sheet_clean_text(text, false);
	sheet->cells[sheet->n_cells++] = text;
}

void sheet_add(struct sheet *sheet, const char *text)
{
	add_cell(sheet, strdup(text && *text ? text : "-"));
}

void sheet_addf(struct sheet *sheet, const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	add_cell(sheet, text);
}

/* Characters, not bytes. */
static size_t width_of(const char *text)
{
	size_t n = 0;

	for (; text && *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void print_row(const struct sheet *sheet, const size_t *widths, size_t row, FILE *out)
{
	for (size_t i = 0; i < sheet->n_columns; i++) {
		size_t at = row * sheet->n_columns + i;
		const char *text = at < sheet->n_cells && sheet->cells[at] ? sheet->cells[at] : "";
		int pad = (int)(widths[i] - width_of(text));
		bool is_last = i + 1 == sheet->n_columns;

		if (sheet->right & 1U << i)
			fprintf(out, "%*s%s", pad, "", text);
		else
			fprintf(out, "%s%*s", text, is_last ? 0 : pad, "");
		fputs(is_last ? "\n" : "  ", out);
	}
}

void sheet_print(const struct sheet *sheet, FILE *out)
{
	size_t widths[SHEET_COLUMNS_MAX] = {0};

	assert(sheet->n_columns && sheet->n_columns <= SHEET_COLUMNS_MAX);
	for (size_t i = 0; i < sheet->n_cells; i++) {
		size_t column = i % sheet->n_columns;

		widths[column] = MAX(widths[column], width_of(sheet->cells[i]));
	}
	for (size_t row = 0; row * sheet->n_columns < sheet->n_cells; row++)
		print_row(sheet, widths, row, out);
}

void sheet_done(struct sheet *sheet)
{
	for (size_t i = 0; i < sheet->n_cells; i++)
		free(sheet->cells[i]);
	free(sheet->cells);
	*sheet = (struct sheet){0};
}
