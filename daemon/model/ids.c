/* Trace and span ids; see ids.h. */
#include "model/ids.h"

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

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool ids_from_hex(const char *hex, unsigned int n, uint8_t *ret_bytes)
{
	for (unsigned int i = 0; i < 2 * n; i++)
		if (hex_value(hex[i]) < 0)
			return false;
	for (unsigned int i = 0; i < n; i++)
		ret_bytes[i] = (uint8_t)(hex_value(hex[2 * i]) << 4 | hex_value(hex[2 * i + 1]));
	return true;
}

/* xoshiro256** (Blackman and Vigna), seeded once from the kernel: ids need no secrecy, only spread. */
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
