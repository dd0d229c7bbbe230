/*
 * A span as one flat JSON object on a line: what `--print=json` writes and the control socket
 * answers. Keys, in this order:
 *
 *	trace_id span_id        hex
 *	parent_span_id          hex, "" when there is none
 *	kind                    "server", "client" or "internal"
 *	name
 *	start_unix_nano end_unix_nano  integers, exact to the nanosecond: more than a double holds
 *	status                  "unset", "ok" or "error"
 *	service pid             of the span's resource
 *	attributes              object, keyed by attribute name
 *	links                   array
 */
#pragma once

#include <stdio.h>

#include "model/span.h"

/*
 * Writes the object and a newline; does not flush. Returns 0, or -EIO when the stream is in error.
 */
int json_write_span(FILE *out, const struct span *span);

/* The object alone, terminated, for the caller to free(3). Returns 0 or -ENOMEM. */
int json_format_span(const struct span *span, char **ret);
