/* Terminal lines; see pen.h. */
#include "export/pen.h"

#include <stdarg.h>

#include "base/util.h"
#include "export/utf8.h"

struct range {
	uint32_t first, last;
};

static bool ranges_have(const struct range *ranges, size_t n, uint32_t rune)
{
	for (size_t i = 0; i < n; i++)
		if (rune >= ranges[i].first && rune <= ranges[i].last)
			return true;
	return false;
}

/* Two columns: the blocks that are East Asian Wide as a whole (Unicode, UAX #11). */
static bool rune_is_wide(uint32_t rune)
{
	static const struct range wide[] = {
		{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xAC00, 0xD7A3},
		{0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},
		{0x1F300, 0x1F64F}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
	};

	return rune >= wide[0].first && ranges_have(wide, ARRAY_SIZE(wide), rune);
}

/*
 * C1 controls, zero width, bidirectional and line controls, tags: they would change how other text
 * is read.
 */
static bool rune_is_hidden(uint32_t rune)
{
	static const struct range hidden[] = {
		{0x7F, 0x9F},     {0xAD, 0xAD},     {0x300, 0x36F},   {0x61C, 0x61C},
		{0x180E, 0x180E}, {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},
		{0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF}, {0xFFF0, 0xFFFB}, {0xE0000, 0xE0FFF},
	};

	return rune >= hidden[0].first && ranges_have(hidden, ARRAY_SIZE(hidden), rune);
}

static uint32_t rune_visible(uint32_t rune)
{
	if (rune < 0x20)
		return 0x2400 + rune;
	if (rune == 0x7F)
		return 0x2421;
	return rune_is_hidden(rune) ? UTF8_REPLACEMENT : rune;
}

static unsigned int rune_columns(uint32_t rune)
{
	return rune_is_wide(rune) ? 2 : 1;
}

unsigned int pen_columns(struct str s)
{
	unsigned int columns = 0;

	while (s.n) {
		uint32_t rune;

		s = str_skip(s, utf8_decode(s, &rune));
		columns += rune_columns(rune_visible(rune));
	}
	return columns;
}

static void rune_write(struct pen *p, uint32_t rune)
{
	char bytes[4];

	fwrite(bytes, 1, utf8_encode(rune, bytes), p->out);
	p->column += rune_columns(rune);
}

static void text_write(struct pen *p, struct str s)
{
	bool fits = p->column + pen_columns(s) <= p->limit;

	while (s.n) {
		uint32_t rune;

		s = str_skip(s, utf8_decode(s, &rune));
		rune = rune_visible(rune);
		if (!fits && p->column + rune_columns(rune) >= p->limit) {
			rune_write(p, 0x2026);
			return;
		}
		rune_write(p, rune);
	}
}

void pen_text(struct pen *p, const char *style, struct str s)
{
	bool styled = p->colour && style;

	if (!s.n || p->column >= p->limit)
		return;
	if (styled)
		fprintf(p->out, "\033[%sm", style);
	text_write(p, s);
	if (styled)
		fputs("\033[0m", p->out);
}

void pen_format(struct pen *p, const char *style, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	pen_text(p, style, str_from(text));
}

void pen_move(struct pen *p, unsigned int column)
{
	for (; p->column < column; p->column++)
		fputc(' ', p->out);
}

void pen_newline(struct pen *p)
{
	fputc('\n', p->out);
	p->column = 0;
}
