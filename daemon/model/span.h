/*
 * A finished span: made once by stitch, then constant and reference-counted, because the exporter's
 * thread and the main thread may both hold it. One allocation: the attributes and the bytes they
 * point to lie behind it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/util.h"
#include "model/attribute.h"
#include "model/ids.h"
#include "model/resource.h"

/* Values of OTLP's Span.SpanKind and Status.StatusCode. */
enum span_kind { SPAN_KIND_INTERNAL = 1, SPAN_KIND_SERVER = 2, SPAN_KIND_CLIENT = 3 };
enum span_status { SPAN_STATUS_UNSET = 0, SPAN_STATUS_OK = 1, SPAN_STATUS_ERROR = 2 };

#define SPAN_ATTRIBUTES_MAX 24

struct span {
	unsigned int refs; /* atomic */
	enum span_kind kind;
	enum span_status status;
	uint8_t trace_flags;
	struct trace_id trace_id;
	struct span_id span_id;
	struct span_id parent_span_id; /* invalid: a root */
	bool has_local_parent;         /* whose span is made on this host, now or later */
	uint64_t start_unix_ns;
	uint64_t end_unix_ns;      /* never before the start */
	struct resource *resource; /* a reference */
	struct str name;
	struct str tracestate; /* as it came in; empty: none */
	size_t size_bytes;     /* of this allocation */
	size_t n_attributes;
	struct attribute attributes[]; /* n_attributes, then the bytes of all strings */
};

/* What span_new() copies: views and values of the caller's. */
struct span_options {
	enum span_kind kind;
	enum span_status status;
	uint8_t trace_flags;
	struct trace_id trace_id;
	struct span_id span_id;
	struct span_id parent_span_id;
	bool has_local_parent;
	uint64_t start_unix_ns;
	uint64_t end_unix_ns;
	struct resource *resource; /* span_new takes a reference of its own */
	struct str name;
	struct str tracestate;
	size_t n_attributes;
	struct attribute attributes[SPAN_ATTRIBUTES_MAX];
};

/* Appends to the options; a full table is a bug of ours (SPAN_ATTRIBUTES_MAX). */
static inline void span_add_text(struct span_options *o, enum attribute_key key, struct str s)
{
	assert(o->n_attributes < SPAN_ATTRIBUTES_MAX);
	o->attributes[o->n_attributes++] = (struct attribute){.key = key, .s = s};
}

static inline void span_add_int(struct span_options *o, enum attribute_key key, int64_t i)
{
	assert(o->n_attributes < SPAN_ATTRIBUTES_MAX);
	o->attributes[o->n_attributes++] = (struct attribute){.key = key, .i = i};
}

/* With one reference. Returns 0 or -ENOMEM. */
int span_new(const struct span_options *options, struct span **ret);
/*
 * The same span as a root, which says why it has no parent (ATTR_TSUNAGI_PARENT_REASON). Returns 0
 * or -ENOMEM.
 */
int span_new_root(const struct span *s, const char *reason, struct span **ret);
struct span *span_ref(struct span *s);
void span_unref(struct span *s); /* NULL is allowed */
DEFINE_CLEANUP(struct span *, span_unref)

/* The attribute, or NULL. */
const struct attribute *span_get(const struct span *s, enum attribute_key key);
