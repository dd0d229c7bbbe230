/*
 * UTF-8 at the way out: request heads hold any bytes, yet OTLP, JSON and a terminal want valid
 * text. Used by the encoders of this folder. A byte that starts no valid sequence (RFC 3629:
 * overlong forms, surrogates and values above U+10FFFF are invalid too) stands for one U+FFFD.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define UTF8_REPLACEMENT 0xFFFDu

/* Bytes of the longest valid beginning of 's'; s.n when all of it is valid. */
size_t utf8_valid_bytes(struct str s);

/* The first code point of 's', which is not empty. Returns the bytes it takes, 1 to 4. */
size_t utf8_decode(struct str s, uint32_t *ret_rune);

/* Writes a code point of at most U+10FFFF. Returns its bytes, 1 to 4. */
size_t utf8_encode(uint32_t rune, char out[4]);

/* Bytes that utf8_repair() may need for 'n' bytes: U+FFFD takes three. */
static inline size_t utf8_repair_bytes_max(size_t n)
{
	return n * 3;
}

/* Copies 's' with every invalid byte as U+FFFD; 'out' has room for utf8_repair_bytes_max(s.n). */
size_t utf8_repair(struct str s, char *out);
