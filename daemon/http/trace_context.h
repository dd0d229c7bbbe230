/*
 * The value of a traceparent header, by W3C Trace Context (level 2, section 3.2): stitch checks
 * with it what the kernel side read, tests check what was sent.
 */
#pragma once

#include <stdint.h>

#include "base/str.h"
#include "model/ids.h"

struct trace_context {
	uint8_t version;
	uint8_t flags;
	struct trace_id trace_id;
	struct span_id span_id; /* the "parent-id" field: the sender's span */
};

/*
 * Returns 0, or TRACE_CONTEXT_INVALID: then the header counts as absent. Blanks and tabs around the
 * value are no part of it. Of a version after 00 the first four fields are taken, whatever follows
 * them.
 */
enum { TRACE_CONTEXT_INVALID = 1 };
int trace_context_parse(struct str value, struct trace_context *ret);
