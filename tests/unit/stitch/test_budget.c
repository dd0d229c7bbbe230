/*
 * Tests of stitch/: what connections and what is open on them may take is bounded in bytes. The
 * newest is refused and counted once, what is open keeps its span, and all is given back.
 */
#include <inttypes.h>

#include "events.h"

#define GET       "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
#define OK_LENGTH "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
#define BUDGET    65536

static const char *long_request(uint64_t n)
{
	static char text[2048];
	int used = snprintf(text, sizeof(text), "GET /%" PRIu64 "/", n);

	memset(text + used, 'a', 1000);
	strcpy(text + used + 1000, " HTTP/1.1\r\nHost: a\r\n\r\n");
	return text;
}

static void assert_path(const struct span *s, uint64_t n)
{
	char start[24];
	int used = snprintf(start, sizeof(start), "/%" PRIu64 "/", n);
	const struct attribute *path = span_get(s, ATTR_URL_PATH);

	assert_non_null(path);
	assert_int_equal(path->s.n, used + 1000);
	assert_memory_equal(path->s.p, start, (size_t)used);
}

/* Requests that nobody answers, pipelined and on many connections. */
static void test_open_requests(void **state)
{
	struct scene *sc = *state;
	uint64_t lost, open;

	scene_new_stitch(sc, 1024, BUDGET);
	for (uint64_t i = 0; i < 200; i++) {
		sc->connection = 1 + i / 4;
		scene_request(sc, (uint32_t)(i % 4 + 1), long_request(i));
		assert_true(stitch_bytes(sc->stitch) <= BUDGET);
	}
	lost = scene_metric(sc, METRIC_OPEN_BYTES_FULL);
	open = 200 - lost;
	assert_in_range(open, 35, 60);
	assert_int_equal(sc->n_revoked, lost);
	assert_int_equal(scene_metric(sc, METRIC_CONNECTIONS_FULL), 0);

	/* The ones that were first are open still, and true. */
	for (uint64_t i = 0; i < 200; i++) {
		sc->connection = 1 + i / 4;
		scene_response_whole(sc, (uint32_t)(i % 4 + 1), OK_LENGTH);
	}
	assert_int_equal(sc->n_spans, open);
	for (uint64_t i = 0; i < open; i++) {
		assert_path(sc->spans[i], i);
		assert_result(sc->spans[i], 200, NULL);
	}

	/* What was lost made room for nobody for good. */
	scene_clear(sc);
	sc->connection = 1000;
	scene_request(sc, 1, long_request(1000));
	scene_response_whole(sc, 1, OK_LENGTH);
	assert_int_equal(sc->n_spans, 1);
	assert_path(sc->spans[0], 1000);
	for (sc->connection = 1; sc->connection <= 1000; sc->connection++)
		scene_close(sc, EVENT_CLOSE_DONE, 0);
	assert_int_equal(stitch_connections(sc->stitch), 0);
	assert_int_equal(stitch_bytes(sc->stitch), 0);
}

static void head_part(struct scene *sc, bool is_start, bool is_end, struct str bytes)
{
	struct event e = scene_head(sc, true, 1, bytes);

	e.head.is_start = is_start;
	e.head.is_end = is_end;
	stitch_event(sc->stitch, &e);
}

/* Heads that come slowly, or never to an end, make room for requests that have come. */
static void test_slow_heads(void **state)
{
	struct scene *sc = *state;

	scene_new_stitch(sc, 1024, BUDGET);
	for (sc->connection = 1; sc->connection <= 300; sc->connection++) {
		sc->offset = 0;
		head_part(sc, true, false, STR("GET /slow HT"));
		assert_true(stitch_bytes(sc->stitch) <= BUDGET);
	}
	assert_in_range(stitch_connections(sc->stitch), 30, 60);
	assert_int_equal(scene_metric(sc, METRIC_HEADS_UNFINISHED),
			 300 - stitch_connections(sc->stitch));

	for (sc->connection = 400; sc->connection < 420; sc->connection++)
		scene_request(sc, 1, long_request(sc->connection));
	for (sc->connection = 400; sc->connection < 420; sc->connection++)
		scene_response_whole(sc, 1, OK_LENGTH);
	assert_int_equal(sc->n_spans, 20);
	assert_int_equal(scene_metric(sc, METRIC_OPEN_BYTES_FULL), 0);

	/* All of the slow ones come to their end: each is a span or counted, once. */
	for (sc->connection = 1; sc->connection <= 300; sc->connection++) {
		sc->offset = 12;
		head_part(sc, false, true, STR("TP/1.1\r\n\r\n"));
		scene_response_whole(sc, 1, OK_LENGTH);
		scene_close(sc, EVENT_CLOSE_DONE, 0);
	}
	assert_in_range(sc->n_spans, 30, 80);
	assert_int_equal(sc->n_spans - 20 + scene_metric(sc, METRIC_HEADS_PARTIAL), 300);
	for (size_t i = 20; i < sc->n_spans; i++)
		assert_text(sc->spans[i], ATTR_URL_PATH, "/slow");
}

/* A head that finds no more room in its middle: counted when it ends, and its response is its own. */
static void test_head_without_room(void **state)
{
	static const char filler[2000];
	struct scene *sc = *state;
	struct str half = {.p = filler, .n = sizeof(filler)};

	scene_new_stitch(sc, 1024, 4096);
	sc->connection = 1;
	scene_request(sc, 1, long_request(1));

	sc->connection = 2;
	sc->offset = 0;
	head_part(sc, true, false, STR("GET /y HTTP/1.1\r\nCookie: "));
	head_part(sc, false, false, half);
	assert_int_equal(scene_metric(sc, METRIC_OPEN_BYTES_FULL), 0);
	head_part(sc, false, true, STR("\r\n\r\n"));
	assert_int_equal(scene_metric(sc, METRIC_OPEN_BYTES_FULL), 1);
	assert_int_equal(sc->n_revoked, 1);
	assert_int_equal(sc->revoked_connection, 2);
	scene_response_whole(sc, 1, OK_LENGTH);
	assert_int_equal(sc->n_spans, 0);

	/* The next one fits, and stays open. */
	scene_request(sc, 2, GET);

	/* The same of a response: the request has its span, and nothing is invented. */
	sc->connection = 1;
	{
		struct event e = scene_head(sc, false, 1, STR("HTTP/1.1 200 OK\r\nX: "));

		e.head.is_end = false;
		stitch_event(sc->stitch, &e);
		e = scene_head(sc, false, 1, half);
		e.head.is_start = e.head.is_end = false;
		stitch_event(sc->stitch, &e);
		e = scene_head(sc, false, 1, STR("\r\n\r\n"));
		e.head.is_start = false;
		e.head.is_complete = true;
		stitch_event(sc->stitch, &e);
	}
	assert_int_equal(sc->n_spans, 1);
	assert_path(sc->spans[0], 1);
	assert_result(sc->spans[0], 0, "not_observed");

	sc->connection = 2;
	scene_response_whole(sc, 2, OK_LENGTH);
	assert_int_equal(sc->n_spans, 2);
	assert_text(sc->spans[1], ATTR_URL_PATH, "/x");
	assert_result(sc->spans[1], 200, NULL);
}

/* Connections without an open request count, and make room. */
static void test_idle_connections(void **state)
{
	struct scene *sc = *state;

	scene_new_stitch(sc, 100000, BUDGET);
	for (sc->connection = 1; sc->connection <= 2000; sc->connection++) {
		scene_request(sc, 1, GET);
		scene_response_whole(sc, 1, OK_LENGTH);
		scene_clear(sc);
		assert_true(stitch_bytes(sc->stitch) <= BUDGET);
	}
	assert_in_range(stitch_connections(sc->stitch), 100, 300);
	assert_int_equal(scene_metric(sc, METRIC_SPANS_SERVER), 2000);
	assert_int_equal(scene_metric(sc, METRIC_OPEN_BYTES_FULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_open_requests),
		SCENE_TEST(test_slow_heads),
		SCENE_TEST(test_head_without_room),
		SCENE_TEST(test_idle_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
