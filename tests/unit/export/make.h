/*
 * Spans for the tests of export/: short ids from small numbers, times in microseconds after a fixed
 * instant.
 */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/span.h"

/* A test's head, for cmocka_unit_test(). */
#define TEST(name) static void name(__attribute__((unused)) void **state)

#define MAKE_EPOCH_NS 1767614401234000000ULL /* 2026-01-05 12:00:01.234 UTC */

static inline struct trace_id make_trace_id(uint32_t n)
{
	return (struct trace_id){.b = {[0] = 0x4b, [1] = 0xf9, [12] = n >> 24, n >> 16, n >> 8, n}};
}

static inline struct span_id make_span_id(uint32_t n)
{
	return (struct span_id){.b = {[4] = n >> 24, n >> 16, n >> 8, n}};
}

static inline struct resource *make_resource(const char *service, uint32_t pid)
{
	struct resource *r;

	assert_int_equal(resource_new(pid, &r), 0);
	assert_int_equal(resource_set(r, "service.name", str_from(service)), 0);
	assert_int_equal(resource_set_number(r, "process.pid", pid), 0);
	return r;
}

struct make_options {
	uint32_t trace, id, parent; /* parent 0: none */
	enum span_kind kind;
	uint32_t start_us, end_us;
	int status; /* HTTP; 0: none. From 500 on the span is an error */
	bool has_local_parent;
	const char *name, *path, *url, *query, *error;
};

static inline struct span *make_span(struct resource *resource, const struct make_options *m)
{
	struct span_options o = {
		.kind = m->kind,
		.status = m->status >= 500 || m->error ? SPAN_STATUS_ERROR : SPAN_STATUS_UNSET,
		.trace_flags = TRACE_FLAG_SAMPLED | TRACE_FLAG_RANDOM,
		.trace_id = make_trace_id(m->trace),
		.span_id = make_span_id(m->id),
		.parent_span_id = make_span_id(m->parent),
		.has_local_parent = m->has_local_parent || m->kind == SPAN_KIND_CLIENT,
		.start_unix_ns = MAKE_EPOCH_NS + m->start_us * NSEC_PER_USEC,
		.end_unix_ns = MAKE_EPOCH_NS + m->end_us * NSEC_PER_USEC,
		.resource = resource,
		.name = str_from(m->name ? m->name : "GET"),
	};
	struct span *span;

	span_add_text(&o, ATTR_HTTP_REQUEST_METHOD, STR("GET"));
	if (m->status)
		span_add_int(&o, ATTR_HTTP_RESPONSE_STATUS_CODE, m->status);
	if (m->path)
		span_add_text(&o, ATTR_URL_PATH, str_from(m->path));
	if (m->url)
		span_add_text(&o, ATTR_URL_FULL, str_from(m->url));
	if (m->query)
		span_add_text(&o, ATTR_URL_QUERY, str_from(m->query));
	if (m->error)
		span_add_text(&o, ATTR_ERROR_TYPE, str_from(m->error));
	assert_int_equal(span_new(&o, &span), 0);
	return span;
}
