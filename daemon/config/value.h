/*
 * What a single value of the configuration means: durations, sizes, numbers, ports, URLs. Pure
 * functions on text; apply.c calls them and words the complaint.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* The text is not of that kind, or out of range for any use. */
enum { VALUE_BAD = 1 };

/*
 * Decimal digits without sign or leading zero (YAML 1.1 reads 010 as eight). Returns 0 or
 * VALUE_BAD.
 */
int value_parse_count(struct str text, uint64_t *ret);

/* A whole number with its unit: 500ms, 1s, 10m, 1h. Returns 0 or VALUE_BAD. */
int value_parse_duration_ms(struct str text, uint64_t *ret_ms);

/*
 * Bytes, or a number of K, M or G with B or iB behind it, always by 1024. Returns 0 or VALUE_BAD.
 */
int value_parse_size(struct str text, uint64_t *ret_bytes);

/* 8080 or 8080-8090. Returns 0 or VALUE_BAD. */
int value_parse_ports(struct str text, uint16_t *ret_first, uint16_t *ret_last);

/*
 * What is wrong with the base URL of a collector, in a few words that never quote it; NULL:
 * nothing.
 */
const char *value_check_url(struct str text);

/*
 * What is wrong with a pattern for fnmatch(3), which would take it as it is and match nothing, or
 * something else than was meant; NULL: nothing.
 */
const char *value_check_pattern(struct str text);

/* The user part of a URL (before '@'), password included; empty when there is none. */
struct str value_url_user(struct str url);

/* The shortest text that the parser would read as that value. */
struct value_text {
	char text[32];
};
struct value_text value_format_count(uint64_t count);
struct value_text value_format_duration(uint64_t ms);
struct value_text value_format_size(uint64_t bytes);
