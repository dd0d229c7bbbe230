/*
 * Trace ids and span ids as W3C Trace Context and OTLP have them: 16 and 8 bytes in network order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TRACE_ID_HEX 32
#define SPAN_ID_HEX  16

struct trace_id {
	uint8_t b[16];
};

struct span_id {
	uint8_t b[8];
};

/* Trace flags (W3C Trace Context level 2). */
enum {
	TRACE_FLAG_SAMPLED = 0x01,
	TRACE_FLAG_RANDOM = 0x02,
};

/*
 * An invalid id is all-zero: "none" where it is a parent, never exported where it is a span's own.
 */
static inline bool trace_id_is_valid(const struct trace_id *id)
{
	static const struct trace_id none;

	return memcmp(id, &none, sizeof(none)) != 0;
}

static inline bool span_id_is_valid(const struct span_id *id)
{
	static const struct span_id none;

	return memcmp(id, &none, sizeof(none)) != 0;
}

/* Lower-case hex of 'n' bytes and a terminator: 'out' has room for 2 * n + 1. */
void ids_to_hex(const uint8_t *bytes, unsigned int n, char *out);

/* The reverse of exactly 2 * n hex digits, either case; false when a character is none. */
bool ids_from_hex(const char *hex, unsigned int n, uint8_t *ret_bytes);

/* New random valid ids, from getrandom(2) through a per-process generator. Main thread only. */
struct trace_id trace_id_new(void);
struct span_id span_id_new(void);
