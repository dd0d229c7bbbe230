/*
 * What a collector answered: outside bytes, judged here and nowhere else. Called by the exporter
 * for each answer that came whole or was cut at RESPONSE_BYTES_MAX.
 */
#pragma once

#include <stdint.h>

#include "base/str.h"

/* More of an answer is not read. */
#define RESPONSE_BYTES_MAX ((size_t)64 << 10)

enum response_verdict {
	RESPONSE_ACCEPTED, /* all spans but 'rejected_spans' were taken */
	RESPONSE_REFUSED,  /* none: an HTTP error, a redirect, or 2xx from what speaks no OTLP */
};

struct response {
	enum response_verdict verdict;
	uint64_t rejected_spans; /* never more than were sent */
	char message[256];       /* the collector's reason, printable, terminated; empty: none */
};

/*
 * Judges an answer to 'n_spans' spans by its HTTP status and body: ExportTraceServiceResponse when
 * accepted, google.rpc.Status when not (OTLP specification, "OTLP/HTTP Response").
 */
void response_judge(long http_status, struct str body, uint64_t n_spans, struct response *ret);
