/* Trace and span ids; see ids.h. */
#include "model/ids.h"

#include <assert.h>
#include <stddef.h>
#include <sys/random.h>

void ids_to_hex(const uint8_t *bytes, unsigned int n, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (unsigned int i = 0; i < n; i++) {
		out[2 * i] = digits[bytes[i] >> 4];
		out[2 * i + 1] = digits[bytes[i] & 15];
	}
	out[2 * n] = '\0';
}

/* A digit's value and one; 0: no hex digit. */
static const uint8_t hex_values[256] = {
	['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
	['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
	['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
	['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

bool ids_from_hex(const char *hex, unsigned int n, uint8_t *ret_bytes)
{
	bool is_hex = true;
	uint8_t bytes[16];

	assert(n <= sizeof(bytes));
	for (unsigned int i = 0; i < n; i++) {
		uint8_t high = hex_values[(uint8_t)hex[2 * i]];
		uint8_t low = hex_values[(uint8_t)hex[2 * i + 1]];

		is_hex &= high && low;
		bytes[i] = (uint8_t)((high - 1u) << 4 | (low - 1u));
	}
	if (is_hex)
		memcpy(ret_bytes, bytes, n);
	return is_hex;
}

/*
 * xoshiro256** (Blackman and Vigna), seeded once from the kernel: ids need no secrecy, only spread.
 */
static uint64_t random_next(void)
{
	static uint64_t s[4];
	uint64_t result, t;

	while (!(s[0] | s[1] | s[2] | s[3]))
		if (getrandom(s, sizeof(s), 0) != sizeof(s))
			s[0] = 0;
	result = s[1] * 5;
	result = (result << 7 | result >> 57) * 9;
	t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = s[3] << 45 | s[3] >> 19;
	return result;
}

struct span_id span_id_new(void)
{
	struct span_id id;
	uint64_t v;

	do
		v = random_next();
	while (!v);
	memcpy(&id, &v, sizeof(id));
	return id;
}

struct trace_id trace_id_new(void)
{
	struct trace_id id;
	uint64_t v[2];

	do {
		v[0] = random_next();
		v[1] = random_next();
	} while (!v[0] && !v[1]);
	memcpy(&id, v, sizeof(id));
	return id;
}
