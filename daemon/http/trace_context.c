/* traceparent; see trace_context.h. */
#include "http/trace_context.h"

#include "base/util.h"

/* version "-" trace-id "-" parent-id "-" flags */
#define VERSION_AT        0
#define TRACE_ID_AT       3
#define SPAN_ID_AT        36
#define FLAGS_AT          53
#define TRACEPARENT_BYTES 55

/* ids_from_hex() takes either case; the header has lower case alone. */
static bool parse_hex(struct str s, size_t at, unsigned int n, uint8_t *ret)
{
	for (size_t i = at; i < at + 2 * n; i++)
		if (s.p[i] >= 'A' && s.p[i] <= 'F')
			return false;
	return ids_from_hex(s.p + at, n, ret);
}

int trace_context_parse(struct str s, struct trace_context *ret)
{
	struct trace_context c;

	while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
		s = str_skip(s, 1);
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;

	if (s.n < TRACEPARENT_BYTES)
		return TRACE_CONTEXT_INVALID;
	if (s.p[TRACE_ID_AT - 1] != '-' || s.p[SPAN_ID_AT - 1] != '-' || s.p[FLAGS_AT - 1] != '-')
		return TRACE_CONTEXT_INVALID;
	if (!parse_hex(s, VERSION_AT, sizeof(c.version), &c.version) ||
	    !parse_hex(s, TRACE_ID_AT, sizeof(c.trace_id.b), c.trace_id.b) ||
	    !parse_hex(s, SPAN_ID_AT, sizeof(c.span_id.b), c.span_id.b) ||
	    !parse_hex(s, FLAGS_AT, sizeof(c.flags), &c.flags))
		return TRACE_CONTEXT_INVALID;

	if (c.version == 0xff || !trace_id_is_valid(&c.trace_id) || !span_id_is_valid(&c.span_id))
		return TRACE_CONTEXT_INVALID;
	if (s.n > TRACEPARENT_BYTES && (c.version == 0 || s.p[TRACEPARENT_BYTES] != '-'))
		return TRACE_CONTEXT_INVALID;
	*ret = c;
	return 0;
}
