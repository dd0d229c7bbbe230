/*
 * Views of bytes: a pointer and a length, never a terminator, never owned. Everything that is cut
 * out of somebody else's buffer is passed on as a struct str.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct str {
	const char *p;
	size_t n;
};

#define STR(literal) ((struct str){.p = (literal), .n = sizeof(literal) - 1})
#define STR_NONE     ((struct str){0})

/* For printf: `printf("%.*s", STR_ARG(s))`. */
#define STR_ARG(s) (int)(s).n, (s).p ? (s).p : ""

static inline struct str str_from(const char *c_string)
{
	return (struct str){.p = c_string, .n = c_string ? strlen(c_string) : 0};
}

static inline bool str_equal(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* ASCII case is ignored. */
static inline bool str_equal_nocase(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || strncasecmp(a.p, b.p, a.n) == 0);
}

static inline bool str_starts_with(struct str s, struct str prefix)
{
	return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

/* The view from 'from' on; empty when there is nothing there. */
static inline struct str str_skip(struct str s, size_t from)
{
	return from >= s.n ? (struct str){.p = s.p + s.n, .n = 0}
			   : (struct str){.p = s.p + from, .n = s.n - from};
}

/* Index of the first 'c', or -1. */
static inline ptrdiff_t str_find(struct str s, char c)
{
	const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

	return at ? at - s.p : -1;
}
