/*
 * A scene for tests of stitch: one stitcher, one connection at a time, events built from plain
 * text, and what came out of it. Time stands still until a test moves 'now_ns'.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>

#include "base/util.h"
#include "metrics/metrics.h"
#include "stitch/stitch.h"

#define SCENE_SPANS_MAX      256
#define SCENE_PROC           7
#define SCENE_IDLE_NS        (600 * NSEC_PER_SEC)
#define SCENE_HEAD_BYTES_MAX 4096
#define SCENE_START_NS       (1000 * NSEC_PER_SEC)
#define SCENE_WALL_OFFSET_NS (1700000000LL * 1000000000LL)

struct scene {
	struct stitch *stitch;
	struct resource *resource; /* NULL: the process is not known */
	struct span *spans[SCENE_SPANS_MAX];
	size_t n_spans;
	size_t n_revoked;
	uint64_t revoked_connection;
	uint32_t revoked_exchange;
	uint64_t metrics[_METRIC_MAX];

	/* Of the events that follow. */
	uint64_t now_ns;
	uint64_t connection;
	uint64_t offset;
	enum event_role role;
	uint32_t proc_id;
	struct event_endpoint local, remote;
};

static inline struct resource *scene_resource_of(void *userdata, uint32_t proc_id, uint32_t pid)
{
	struct scene *sc = userdata;

	assert_int_equal(pid, 4242);
	return proc_id ? sc->resource : NULL;
}

static inline void scene_take_span(void *userdata, struct span *span)
{
	struct scene *sc = userdata;

	assert_true(sc->n_spans < SCENE_SPANS_MAX);
	assert_true(span_id_is_valid(&span->span_id));
	assert_true(trace_id_is_valid(&span->trace_id));
	assert_true(span->end_unix_ns >= span->start_unix_ns);
	sc->spans[sc->n_spans++] = span;
}

static inline void scene_revoke(void *userdata, uint64_t connection, uint32_t exchange)
{
	struct scene *sc = userdata;

	sc->n_revoked++;
	sc->revoked_connection = connection;
	sc->revoked_exchange = exchange;
}

static inline struct event_endpoint scene_endpoint(const char *address, uint16_t port)
{
	struct event_endpoint e = {.port = port};

	e.family = strchr(address, ':') ? AF_INET6 : AF_INET;
	assert_int_equal(inet_pton(e.family, address, e.address), 1);
	return e;
}

static inline void scene_new_stitch(struct scene *sc, size_t connections_max, size_t bytes_max)
{
	stitch_free(sc->stitch);
	assert_int_equal(stitch_new(
				 &(struct stitch_options){
					 .connections_max = connections_max,
					 .bytes_max = bytes_max,
					 .head_bytes_max = SCENE_HEAD_BYTES_MAX,
					 .exchange_idle_ns = SCENE_IDLE_NS,
					 .resource = scene_resource_of,
					 .emit = scene_take_span,
					 .revoke = scene_revoke,
					 .userdata = sc,
				 },
				 &sc->stitch),
			 0);
	stitch_set_clock(sc->stitch, SCENE_WALL_OFFSET_NS);
}

static inline int scene_setup(void **state)
{
	struct scene *sc = calloc(1, sizeof(*sc));

	assert_non_null(sc);
	assert_int_equal(resource_new(4242, &sc->resource), 0);
	assert_int_equal(resource_set(sc->resource, "service.name", STR("test")), 0);
	for (enum metric m = 0; m < _METRIC_MAX; m++)
		sc->metrics[m] = metrics_get(m);
	sc->now_ns = SCENE_START_NS;
	sc->connection = 99;
	sc->role = EVENT_ROLE_SERVER;
	sc->proc_id = SCENE_PROC;
	sc->local = scene_endpoint("127.0.0.1", 8080);
	sc->remote = scene_endpoint("192.0.2.7", 40000);
	scene_new_stitch(sc, 1024, SIZE_MAX);
	*state = sc;
	return 0;
}

/* Forgets the spans so far. */
static inline void scene_clear(struct scene *sc)
{
	for (size_t i = 0; i < sc->n_spans; i++)
		span_unref(sc->spans[i]);
	sc->n_spans = 0;
}

static inline int scene_teardown(void **state)
{
	struct scene *sc = *state;

	stitch_free(sc->stitch);
	scene_clear(sc);
	assert_int_equal(sc->resource->refs, 1);
	resource_unref(sc->resource);
	free(sc);
	return 0;
}

static inline uint64_t scene_metric(const struct scene *sc, enum metric m)
{
	return metrics_get(m) - sc->metrics[m];
}

/* A whole head in one event, with the fields every head has; change them before stitch_event(). */
static inline struct event scene_head(struct scene *sc, bool is_request, uint32_t exchange,
				      struct str bytes)
{
	struct event e = {
		.type = EVENT_HEAD,
		.time_ns = sc->now_ns,
		.pid = 4242,
		.tid = 4243,
		.proc_id = sc->proc_id,
		.connection = sc->connection,
		.role = sc->role,
		.exchange = exchange,
		.head =
			{
				.is_request = is_request,
				.is_start = true,
				.is_end = true,
				.offset = sc->offset,
				.head_start_ns = sc->now_ns,
				.local = sc->local,
				.remote = sc->remote,
				.bytes = bytes,
			},
	};

	sc->offset += bytes.n;
	return e;
}

static inline void scene_request(struct scene *sc, uint32_t exchange, const char *text)
{
	struct event e = scene_head(sc, true, exchange, str_from(text));

	stitch_event(sc->stitch, &e);
}

static inline void scene_response(struct scene *sc, uint32_t exchange, const char *text)
{
	struct event e = scene_head(sc, false, exchange, str_from(text));

	stitch_event(sc->stitch, &e);
}

/* A response that ended in the call that sent its head. */
static inline void scene_response_whole(struct scene *sc, uint32_t exchange, const char *text)
{
	struct event e = scene_head(sc, false, exchange, str_from(text));

	e.head.is_complete = true;
	stitch_event(sc->stitch, &e);
}

/* A head in parts, cut before the bytes at 'cuts' (ascending, ended by 0). */
static inline void scene_parts(struct scene *sc, bool is_request, uint32_t exchange,
			       const char *text, const size_t *cuts)
{
	size_t from = 0, n = strlen(text);

	while (from < n) {
		size_t to = *cuts ? *cuts++ : n;
		char *copy = malloc(to - from);
		struct event e;

		assert_non_null(copy);
		memcpy(copy, text + from, to - from);
		e = scene_head(sc, is_request, exchange, (struct str){.p = copy, .n = to - from});
		e.head.is_start = from == 0;
		e.head.is_end = to == n;
		stitch_event(sc->stitch, &e);
		free(copy);
		from = to;
	}
}

static inline void scene_end(struct scene *sc, uint32_t exchange)
{
	stitch_event(sc->stitch, &(struct event){
					 .type = EVENT_END,
					 .time_ns = sc->now_ns,
					 .connection = sc->connection,
					 .role = sc->role,
					 .exchange = exchange,
				 });
}

static inline void scene_close(struct scene *sc, enum event_close what, uint32_t error)
{
	stitch_event(sc->stitch, &(struct event){
					 .type = EVENT_CLOSE,
					 .time_ns = sc->now_ns,
					 .connection = sc->connection,
					 .role = sc->role,
					 .close = {.what = what, .error = error},
				 });
}

static inline void assert_text(const struct span *s, enum attribute_key key, const char *text)
{
	const struct attribute *a = span_get(s, key);

	if (!text) {
		assert_null(a);
		return;
	}
	assert_non_null(a);
	assert_int_equal(a->s.n, strlen(text));
	assert_memory_equal(a->s.p, text, a->s.n);
}

static inline void assert_number(const struct span *s, enum attribute_key key, int64_t number)
{
	const struct attribute *a = span_get(s, key);

	assert_non_null(a);
	assert_int_equal(a->i, number);
}

/* 'status' 0: no status code at all; 'error_type' NULL: no error. What was not seen is none. */
static inline void assert_result(const struct span *s, int64_t status, const char *error_type)
{
	bool is_error = error_type && (status >= 400 || strcmp(error_type, "not_observed") != 0);

	if (status)
		assert_number(s, ATTR_HTTP_RESPONSE_STATUS_CODE, status);
	else
		assert_null(span_get(s, ATTR_HTTP_RESPONSE_STATUS_CODE));
	assert_text(s, ATTR_ERROR_TYPE, error_type);
	assert_int_equal(s->status, is_error ? SPAN_STATUS_ERROR : SPAN_STATUS_UNSET);
}

static inline uint64_t duration_ms(const struct span *s)
{
	return (s->end_unix_ns - s->start_unix_ns) / NSEC_PER_MSEC;
}

#define SCENE_TEST(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)
