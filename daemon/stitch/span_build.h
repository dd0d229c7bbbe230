/*
 * The span of an exchange that has ended, by OpenTelemetry's semantic conventions for HTTP spans;
 * for stitch.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/span.h"
#include "stitch/conn.h"

struct span_ending {
	const char *error_type;    /* NULL: it ended as it should */
	bool is_unseen;            /* it may have ended as it should */
	uint64_t end_ns;           /* CLOCK_MONOTONIC */
	int64_t clock_offset_ns;   /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	struct resource *resource; /* borrowed */
};

/* Returns 0 or -ENOMEM. */
int span_build(const struct conn *c, const struct exchange *x, const struct span_ending *ending,
	       struct span **ret);
