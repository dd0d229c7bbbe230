/*
 * Encodes finished spans as the body of an OTLP/HTTP request: an ExportTraceServiceRequest in
 * protobuf, the spans grouped by resource, all under the instrumentation scope "tsunagi". Called by
 * the exporter's thread for each batch; a pure function of its spans but for the memory it reuses.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "model/span.h"

struct otlp_group;

/* What a batch needs, in one piece; parts are taken from its front and never given back. */
struct otlp_arena {
	char *bytes;
	size_t size, used;
};

/* Starts as all zero; belongs to one thread. Holds what the largest batch so far needed. */
struct otlp_encoder {
	struct otlp_group *groups; /* room for spans_max */
	uint32_t *slots;           /* a hash table of resources: index of the group + 1, or 0 */
	uint32_t *next;            /* for each span the one after it in its group + 1, or 0 */
	size_t spans_max;
	struct otlp_arena arena; /* messages, then repaired texts, then the body */
	struct str key_names[_ATTR_MAX];
	size_t key_bytes_max;
};

/*
 * Encodes all 'n' spans; a resource's spans stay in order, resources come in the order of their
 * first span. 'ret_body' is a view of the encoder's memory, valid until the next call. Text that is
 * not valid UTF-8 is repaired (utf8.h). Returns 0 or -ENOMEM.
 */
int otlp_encode(struct otlp_encoder *e, struct span *const *spans, size_t n, struct str *ret_body);

void otlp_encoder_done(struct otlp_encoder *e);
