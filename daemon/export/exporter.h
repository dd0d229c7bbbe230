/*
 * Sends spans to an OTLP/HTTP collector, on a thread of its own. Made by the daemon when
 * `endpoint:` is set; the event loop hands spans over and never waits. At most one request is in
 * flight; behind it stands the bounded queue. A collector that is dead, slow or answers garbage
 * costs the spans, each with a counter, and nothing else. Proxy variables of the environment are
 * ignored: the endpoint is where the connection goes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "model/span.h"

struct exporter;

struct exporter_options {
	const char *endpoint; /* see endpoint.h */
	uint32_t timeout_ms;  /* of one request, from connecting to the last byte of the answer */
	uint32_t batch_spans; /* send when so many are there ... */
	uint32_t batch_delay_ms; /* ... or when the oldest has waited so long */
	uint32_t queue_spans;    /* rounded up to a power of two */
};

/*
 * Starts the thread, with all signals blocked. Returns 0, EXPORTER_ENDPOINT_INVALID when the
 * endpoint is no http or https URL, or a negative errno.
 */
enum { EXPORTER_ENDPOINT_INVALID = 1 };
int exporter_new(const struct exporter_options *options, struct exporter **ret);

/*
 * Takes the reference in any case, never blocks. False: the span is lost and counted
 * (METRIC_QUEUE_FULL, after exporter_stop METRIC_SPANS_SHUTDOWN). Always the same thread.
 */
bool exporter_push(struct exporter *e, struct span *span);

/*
 * Sends what is queued and ends the thread, within about 'timeout_ms'; what could not be sent by
 * then is counted as METRIC_SPANS_SHUTDOWN. Returns 0, or EXPORTER_UNSENT when there was such. The
 * second call does nothing.
 */
enum { EXPORTER_UNSENT = 1 };
int exporter_stop(struct exporter *e, uint32_t timeout_ms);

/* Stops at once if it was not stopped before; NULL is allowed. */
void exporter_free(struct exporter *e);
DEFINE_CLEANUP(struct exporter *, exporter_free)
