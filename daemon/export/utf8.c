/* UTF-8; see utf8.h. */
#include "export/utf8.h"

#include <string.h>

/* Heads are ASCII almost always: look at eight bytes at once. */
static size_t ascii_bytes(const char *p, size_t n)
{
	size_t i = 0;
	uint64_t word;

	for (; i + sizeof(word) <= n; i += sizeof(word)) {
		memcpy(&word, p + i, sizeof(word));
		if (word & 0x8080808080808080ULL)
			break;
	}
	while (i < n && !(p[i] & 0x80))
		i++;
	return i;
}

/* Length of the valid sequence of two bytes or more at 'p', or 0. */
static size_t sequence_decode(const uint8_t *p, size_t n, uint32_t *ret_rune)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
	uint32_t rune;

	if (p[0] < 0xC2 || p[0] > 0xF4 || length > n)
		return 0;

	rune = p[0] & (0xFFu >> (length + 1));
	for (size_t i = 1; i < length; i++) {
		if ((p[i] & 0xC0) != 0x80)
			return 0;
		rune = rune << 6 | (p[i] & 0x3F);
	}
	if (rune < smallest[length] || rune > 0x10FFFF || (rune >= 0xD800 && rune <= 0xDFFF))
		return 0;

	*ret_rune = rune;
	return length;
}

size_t utf8_valid_bytes(struct str s)
{
	size_t i = 0;

	for (;;) {
		uint32_t rune;
		size_t length;

		i += ascii_bytes(s.p + i, s.n - i);
		if (i == s.n)
			return i;
		length = sequence_decode((const uint8_t *)s.p + i, s.n - i, &rune);
		if (!length)
			return i;
		i += length;
	}
}

size_t utf8_decode(struct str s, uint32_t *ret_rune)
{
	uint8_t first = (uint8_t)s.p[0];
	size_t length;

	if (first < 0x80) {
		*ret_rune = first;
		return 1;
	}
	length = sequence_decode((const uint8_t *)s.p, s.n, ret_rune);
	if (length)
		return length;
	*ret_rune = UTF8_REPLACEMENT;
	return 1;
}

size_t utf8_encode(uint32_t rune, char out[4])
{
	if (rune < 0x80) {
		out[0] = (char)rune;
		return 1;
	}
	if (rune < 0x800) {
		out[0] = (char)(0xC0 | rune >> 6);
		out[1] = (char)(0x80 | (rune & 0x3F));
		return 2;
	}
	if (rune < 0x10000) {
		out[0] = (char)(0xE0 | rune >> 12);
		out[1] = (char)(0x80 | (rune >> 6 & 0x3F));
		out[2] = (char)(0x80 | (rune & 0x3F));
		return 3;
	}
	out[0] = (char)(0xF0 | rune >> 18);
	out[1] = (char)(0x80 | (rune >> 12 & 0x3F));
	out[2] = (char)(0x80 | (rune >> 6 & 0x3F));
	out[3] = (char)(0x80 | (rune & 0x3F));
	return 4;
}

size_t utf8_repair(struct str s, char *out)
{
	size_t n = 0;

	while (s.n) {
		size_t valid = utf8_valid_bytes(s);

		if (valid)
			memcpy(out + n, s.p, valid);
		n += valid;
		s = str_skip(s, valid);
		if (!s.n)
			break;
		n += utf8_encode(UTF8_REPLACEMENT, out + n);
		s = str_skip(s, 1);
	}
	return n;
}
