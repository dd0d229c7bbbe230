/*
 * Tests of stitch/stitch.c: which heads become which spans, and when they end. Closes:
 * test_close.c.
 */
#include "events.h"

#define GET        "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
#define OK_EMPTY   "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
#define OK_LENGTH  "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
#define OK_CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define MS(n)      ((n)*NSEC_PER_MSEC)

static void test_keep_alive(void **state)
{
	struct scene *sc = *state;

	for (uint32_t i = 1; i <= 3; i++) {
		scene_request(sc, i, GET);
		sc->now_ns += MS(10);
		scene_response(sc, i, OK_LENGTH);
		assert_int_equal(sc->n_spans, i - 1);
		sc->now_ns += MS(5);
		scene_end(sc, i);
		assert_int_equal(sc->n_spans, i);
		assert_result(sc->spans[i - 1], 200, NULL);
		assert_int_equal(duration_ms(sc->spans[i - 1]), 15);
		sc->now_ns += MS(100);
	}
	assert_int_equal(stitch_connections(sc->stitch), 1);
	scene_close(sc, EVENT_CLOSE_DONE, 0);
	assert_int_equal(stitch_connections(sc->stitch), 0);
	assert_int_equal(sc->n_spans, 3);
	assert_int_equal(scene_metric(sc, METRIC_SPANS_SERVER), 3);
	assert_memory_not_equal(&sc->spans[0]->span_id, &sc->spans[1]->span_id,
				sizeof(struct span_id));
}

/* The span begins with the head's first byte, not with its last part. */
static void test_start(void **state)
{
	struct scene *sc = *state;
	struct event e = scene_head(sc, true, 1, str_from(GET));

	e.head.head_start_ns = sc->now_ns - MS(30);
	stitch_event(sc->stitch, &e);
	scene_response_whole(sc, 1, OK_LENGTH);
	assert_int_equal(sc->n_spans, 1);
	assert_int_equal(duration_ms(sc->spans[0]), 30);
	assert_int_equal(sc->spans[0]->start_unix_ns,
			 SCENE_START_NS - MS(30) + (uint64_t)SCENE_WALL_OFFSET_NS);
}

static void test_pipelining(void **state)
{
	struct scene *sc = *state;

	for (uint32_t i = 1; i <= 3; i++) {
		char text[64];

		snprintf(text, sizeof(text), "GET /%u HTTP/1.1\r\nHost: a\r\n\r\n", i);
		scene_request(sc, i, text);
	}
	for (uint32_t i = 1; i <= 3; i++) {
		char text[64], path[8];

		snprintf(text, sizeof(text), "HTTP/1.1 20%u OK\r\nContent-Length: 3\r\n\r\n", i);
		snprintf(path, sizeof(path), "/%u", i);
		scene_response_whole(sc, i, text);
		assert_int_equal(sc->n_spans, i);
		assert_result(sc->spans[i - 1], 200 + i, NULL);
		assert_text(sc->spans[i - 1], ATTR_URL_PATH, path);
	}
}

/*
 * Interim responses end nothing (100, 102, 103), alone or before the final one in the same bytes.
 */
static void test_interim(void **state)
{
	struct scene *sc = *state;

	scene_request(sc, 1, GET);
	scene_response_whole(sc, 1, "HTTP/1.1 100 Continue\r\n\r\n");
	scene_response_whole(sc, 1, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
	scene_response_whole(sc, 1, "HTTP/1.1 102 P\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n");
	assert_int_equal(sc->n_spans, 0);
	sc->now_ns += MS(20);
	scene_response_whole(sc, 1, "HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\n");
	assert_int_equal(sc->n_spans, 1);
	assert_result(sc->spans[0], 201, NULL);
	assert_int_equal(duration_ms(sc->spans[0]), 20);

	scene_request(sc, 2, GET);
	scene_response_whole(sc, 2, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 A\r\n\r\n");
	assert_int_equal(sc->n_spans, 2);
	assert_result(sc->spans[1], 202, NULL);
	assert_int_equal(scene_metric(sc, METRIC_RESPONSES_ORPHAN), 0);
}

/*
 * Responses that have no body end with their head, whatever the kernel side made of their headers.
 */
static void test_no_body(void **state)
{
	struct scene *sc = *state;

	scene_request(sc, 1, "HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n");
	scene_response(sc, 1, OK_LENGTH);
	assert_int_equal(sc->n_spans, 1);
	scene_request(sc, 2, GET);
	scene_response(sc, 2, "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n");
	scene_request(sc, 3, GET);
	scene_response(sc, 3, "HTTP/1.1 204 No Content\r\n\r\n");
	scene_request(sc, 4, GET);
	scene_response(sc, 4, OK_EMPTY);
	scene_request(sc, 5, GET);
	scene_response(sc, 5, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n");
	scene_request(sc, 6, "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n");
	scene_response(sc, 6, "HTTP/1.1 200 Connected\r\n\r\n");
	assert_int_equal(sc->n_spans, 6);
	assert_result(sc->spans[4], 101, NULL);
	assert_text(sc->spans[5], ATTR_URL_PATH, NULL);
	assert_text(sc->spans[5], ATTR_SERVER_ADDRESS, "h");
	assert_number(sc->spans[5], ATTR_SERVER_PORT, 443);
}

/* Request and response cut in two at every byte, and byte by byte. */
static void test_split_heads(void **state)
{
	static const char request[] = "GET /split/abc HTTP/1.1\r\nHost: a\r\n\r\n";
	static const char response[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n";
	struct scene *sc = *state;
	size_t every[sizeof(request) + sizeof(response)] = {0};
	uint32_t number = 0;

	for (size_t i = 1; i < sizeof(request) - 1; i++) {
		scene_parts(sc, true, ++number, request, (const size_t[]){i, 0});
		scene_response_whole(sc, number, response);
	}
	for (size_t i = 1; i < sizeof(response) - 1; i++) {
		scene_request(sc, ++number, request);
		scene_parts(sc, false, number, response, (const size_t[]){i, 0});
		scene_end(sc, number);
	}
	for (size_t i = 0; i + 2 < sizeof(request); i++)
		every[i] = i + 1;
	scene_parts(sc, true, ++number, request, every);
	memset(every, 0, sizeof(every));
	for (size_t i = 0; i + 2 < sizeof(response); i++)
		every[i] = i + 1;
	scene_parts(sc, false, number, response, every);
	scene_end(sc, number);

	assert_int_equal(sc->n_spans, number);
	for (uint32_t i = 0; i < number; i++) {
		assert_text(sc->spans[i], ATTR_URL_PATH, "/split/abc");
		assert_text(sc->spans[i], ATTR_SERVER_ADDRESS, "a");
		assert_result(sc->spans[i], 200, NULL);
	}
	assert_int_equal(scene_metric(sc, METRIC_HEADS_PARTIAL), 0);
	assert_int_equal(sc->n_revoked, 0);
}

/*
 * A part that is missing: the head is counted once, its response is an orphan, the next request is
 * fine.
 */
static void test_lost_part(void **state)
{
	static const char text[] = "GET /split/abc HTTP/1.1\r\nHost: a\r\n\r\n";
	struct scene *sc = *state;

	for (int lost = 0; lost < 3; lost++) {
		uint32_t number = (uint32_t)lost * 2 + 1;

		for (int part = 0; part < 4; part++) {
			size_t from = (size_t)part * 8;
			struct str bytes = {.p = text + from,
					    .n = part == 3 ? strlen(text) - from : 8};
			struct event e = scene_head(sc, true, number, bytes);

			e.head.is_start = part == 0;
			e.head.is_end = part == 3;
			if (part != lost)
				stitch_event(sc->stitch, &e);
		}
		assert_int_equal(scene_metric(sc, METRIC_HEADS_PARTIAL), lost + 1);
		assert_int_equal(sc->n_revoked, lost + 1);
		scene_response_whole(sc, number, OK_LENGTH);
		assert_int_equal(scene_metric(sc, METRIC_RESPONSES_ORPHAN), lost + 1);
		scene_request(sc, number + 1, GET);
		scene_response_whole(sc, number + 1, OK_LENGTH);
	}
	assert_int_equal(sc->n_spans, 3);
}

/* The last part is missing: known when the next head begins, or when the connection ends. */
static void test_lost_last_part(void **state)
{
	struct scene *sc = *state;
	struct event e = scene_head(sc, true, 1, STR("GET /x HT"));

	e.head.is_end = false;
	stitch_event(sc->stitch, &e);
	scene_request(sc, 2, GET);
	assert_int_equal(scene_metric(sc, METRIC_HEADS_UNFINISHED), 1);
	scene_response_whole(sc, 2, OK_LENGTH);
	assert_int_equal(sc->n_spans, 1);

	e = scene_head(sc, true, 3, STR("GET /x HT"));
	e.head.is_end = false;
	stitch_event(sc->stitch, &e);
	scene_close(sc, EVENT_CLOSE_DONE, 0);
	assert_int_equal(scene_metric(sc, METRIC_HEADS_UNFINISHED), 2);
	assert_int_equal(scene_metric(sc, METRIC_HEADS_PARTIAL), 0);
	assert_int_equal(sc->n_spans, 1);
}

static void test_lost_response_part(void **state)
{
	struct scene *sc = *state;
	struct event e;

	scene_request(sc, 1, GET);
	e = scene_head(sc, false, 1, STR("200 OK\r\n\r\n"));
	e.head.is_start = false;
	stitch_event(sc->stitch, &e);
	assert_int_equal(scene_metric(sc, METRIC_RESPONSES_BAD), 1);
	scene_response(sc, 1, "HTTP/2 200\r\n\r\n");
	assert_int_equal(scene_metric(sc, METRIC_RESPONSES_BAD), 2);
	assert_int_equal(sc->n_spans, 0);
	scene_end(sc, 1);
	assert_int_equal(sc->n_spans, 1);
	assert_result(sc->spans[0], 0, "not_observed");
}

/* A response of a later request: those before it are over, and of them no more is known. */
static void test_missing_response(void **state)
{
	struct scene *sc = *state;

	scene_request(sc, 1, GET);
	scene_request(sc, 2, GET);
	sc->now_ns += MS(5000);
	scene_request(sc, 3, GET);
	scene_response_whole(sc, 3, OK_LENGTH);
	assert_int_equal(sc->n_spans, 3);
	for (int i = 0; i < 2; i++) {
		assert_result(sc->spans[i], 0, "not_observed");
		assert_int_equal(duration_ms(sc->spans[i]), 0);
	}
	assert_result(sc->spans[2], 200, NULL);
	assert_int_equal(scene_metric(sc, METRIC_EXCHANGES_NOT_OBSERVED), 2);
}

/* The response was seen, its end was not: the next response shows that it is over. */
static void test_missing_end(void **state)
{
	struct scene *sc = *state;

	scene_request(sc, 1, GET);
	sc->now_ns += MS(10);
	scene_response(sc, 1, OK_CHUNKED);
	sc->now_ns += MS(5000);
	scene_request(sc, 2, GET);
	assert_int_equal(sc->n_spans, 0);
	scene_response_whole(sc, 2, OK_LENGTH);
	assert_int_equal(sc->n_spans, 2);
	assert_result(sc->spans[0], 200,
		      "not_observed"); /* the status is true, the duration is not */
	assert_int_equal(duration_ms(sc->spans[0]), 10);
	assert_int_equal(scene_metric(sc, METRIC_EXCHANGES_NO_RESPONSE_END), 1);
}

static void test_orphan_response(void **state)
{
	struct scene *sc = *state;

	scene_response_whole(sc, 1, "HTTP/1.1 100 Continue\r\n\r\n");
	assert_int_equal(scene_metric(sc, METRIC_RESPONSES_ORPHAN), 0);
	scene_response_whole(sc, 1, OK_LENGTH);
	scene_end(sc, 1);
	assert_int_equal(scene_metric(sc, METRIC_RESPONSES_ORPHAN), 1);
	assert_int_equal(sc->n_spans, 0);
	assert_int_equal(stitch_connections(sc->stitch), 0);
}

/*
 * A slow body: the span ends with its last byte, for each framing (the close-delimited one:
 * test_close.c).
 */
static void test_slow_body(void **state)
{
	struct scene *sc = *state;

	scene_request(sc, 1, GET);
	scene_response(sc, 1, OK_LENGTH);
	sc->now_ns += MS(5000);
	scene_end(sc, 1);
	scene_request(sc, 2, GET);
	scene_response(sc, 2, OK_CHUNKED);
	sc->now_ns += MS(5000);
	scene_end(sc, 2);
	assert_int_equal(sc->n_spans, 2);
	assert_int_equal(duration_ms(sc->spans[0]), 5000);
	assert_int_equal(duration_ms(sc->spans[1]), 5000);
	assert_int_equal(scene_metric(sc, METRIC_EXCHANGES_NO_RESPONSE_END), 0);
}

/* What the kernel side takes for a head and is none gets no span, and its context is taken back. */
static void test_bad_heads(void **state)
{
	static const char *const texts[] = {
		"GETX\x01\x02",
		"GET ready to go\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"HTTP/1.1 404 in text\r\n\r\n",
		"GET /half HTTP/1.1\r\nHost: a\r\n",
		"",
	};
	struct scene *sc = *state;

	for (uint32_t i = 0; i < ARRAY_SIZE(texts); i++) {
		scene_request(sc, i + 1, texts[i]);
		assert_int_equal(sc->n_revoked, i + 1);
		assert_int_equal(sc->revoked_connection, sc->connection);
		assert_int_equal(sc->revoked_exchange, i + 1);
	}
	assert_int_equal(scene_metric(sc, METRIC_HEADS_BAD), ARRAY_SIZE(texts));
	assert_int_equal(scene_metric(sc, METRIC_CONTEXTS_REVOKED), ARRAY_SIZE(texts));
	stitch_finish(sc->stitch, sc->now_ns);
	assert_int_equal(sc->n_spans, 0);
}

/* Text in a body that looks like a status line: the first response alone counts. */
static void test_second_response(void **state)
{
	struct scene *sc = *state;

	scene_request(sc, 1, GET);
	scene_response(sc, 1, OK_CHUNKED);
	scene_response(sc, 1, "HTTP/1.1 404 in text\r\n\r\n");
	assert_int_equal(scene_metric(sc, METRIC_RECORDS_BAD), 1);
	scene_end(sc, 1);
	assert_int_equal(sc->n_spans, 1);
	assert_result(sc->spans[0], 200, NULL);
}

/* The same exchange twice, an older one, and number 0: no second span. */
static void test_same_exchange_twice(void **state)
{
	struct scene *sc = *state;

	scene_request(sc, 5, GET);
	scene_request(sc, 5, GET);
	scene_request(sc, 4, GET);
	scene_request(sc, 0, GET);
	scene_response_whole(sc, 5, OK_LENGTH);
	scene_response_whole(sc, 5, OK_LENGTH);
	scene_request(sc, 5, GET);
	scene_close(sc, EVENT_CLOSE_DONE, 0);
	assert_int_equal(sc->n_spans, 1);
	assert_int_equal(scene_metric(sc, METRIC_RECORDS_BAD), 4);
}

static void test_truncated(void **state)
{
	struct scene *sc = *state;
	struct event e =
		scene_head(sc, true, 1, STR("GET /big HTTP/1.1\r\nHost: a\r\nCookie: xxxx"));

	e.head.is_end = false;
	e.head.is_truncated = true;
	stitch_event(sc->stitch, &e);
	scene_response_whole(sc, 1, OK_LENGTH);
	assert_int_equal(sc->n_spans, 1);
	assert_text(sc->spans[0], ATTR_URL_PATH, "/big");
	assert_text(sc->spans[0], ATTR_SERVER_ADDRESS, "a");
	assert_text(sc->spans[0], ATTR_TSUNAGI_TRUNCATED, "head");
	assert_int_equal(scene_metric(sc, METRIC_HEADS_TRUNCATED), 1);

	/* A response whose head is too long still has its status. */
	scene_request(sc, 2, GET);
	e = scene_head(sc, false, 2, STR("HTTP/1.1 500 Oops\r\nX: yyyy"));
	e.head.is_end = false;
	e.head.is_truncated = true;
	stitch_event(sc->stitch, &e);
	scene_end(sc, 2);
	assert_result(sc->spans[1], 500, "500");

	e = scene_head(sc, true, 3, STR("GE"));
	e.head.is_end = false;
	e.head.is_truncated = true;
	stitch_event(sc->stitch, &e);
	assert_int_equal(scene_metric(sc, METRIC_HEADS_BAD), 1);
	assert_int_equal(sc->n_revoked, 1);
}

/* More parts than head_bytes_max allows are as good as a truncated head. */
static void test_parts_bounded(void **state)
{
	struct scene *sc = *state;
	char chunk[1000];
	struct event e;

	memset(chunk, 'c', sizeof(chunk));
	e = scene_head(sc, true, 1, STR("GET /big HTTP/1.1\r\nHost: a\r\nCookie: "));
	e.head.is_end = false;
	stitch_event(sc->stitch, &e);
	for (int i = 0; i < 6; i++) {
		e = scene_head(sc, true, 1, (struct str){.p = chunk, .n = sizeof(chunk)});
		e.head.is_start = e.head.is_end = false;
		stitch_event(sc->stitch, &e);
	}
	e = scene_head(sc, true, 1, STR("\r\nUser-Agent: late\r\n\r\n"));
	e.head.is_start = false;
	stitch_event(sc->stitch, &e);
	scene_response_whole(sc, 1, OK_LENGTH);
	assert_int_equal(sc->n_spans, 1);
	assert_text(sc->spans[0], ATTR_TSUNAGI_TRUNCATED, "head");
	assert_text(sc->spans[0], ATTR_USER_AGENT_ORIGINAL, NULL);
	assert_int_equal(scene_metric(sc, METRIC_HEADS_TRUNCATED), 1);
}

/*
 * The system clock is set by an hour in mid-request: the duration stays, the date is the new one.
 */
static void test_clock_step(void **state)
{
	struct scene *sc = *state;
	int64_t offset = SCENE_WALL_OFFSET_NS + 3600 * (int64_t)NSEC_PER_SEC;

	scene_request(sc, 1, GET);
	sc->now_ns += MS(250);
	stitch_set_clock(sc->stitch, offset);
	scene_response_whole(sc, 1, OK_LENGTH);
	assert_int_equal(sc->n_spans, 1);
	assert_int_equal(duration_ms(sc->spans[0]), 250);
	assert_int_equal(sc->spans[0]->end_unix_ns, sc->now_ns + (uint64_t)offset);

	scene_request(sc, 2, GET);
	stitch_set_clock(sc->stitch, -offset);
	scene_response_whole(sc, 2, OK_LENGTH);
	assert_int_equal(sc->spans[1]->start_unix_ns, 0);
}

static void test_unknown_process(void **state)
{
	struct scene *sc = *state;

	sc->proc_id = 0;
	scene_request(sc, 1, GET);
	scene_response_whole(sc, 1, OK_LENGTH);
	assert_int_equal(sc->n_spans, 0);
	assert_int_equal(scene_metric(sc, METRIC_SPANS_NO_PROCESS), 1);
}

/* The table of connections: an idle one makes room, open ones never do. */
static void test_connections_bounded(void **state)
{
	struct scene *sc = *state;

	scene_new_stitch(sc, 2, SIZE_MAX);
	sc->connection = 1;
	scene_request(sc, 1, GET);
	sc->connection = 2;
	scene_request(sc, 1, GET);
	scene_response_whole(sc, 1, OK_LENGTH);
	sc->connection = 3; /* in the place of 2 */
	scene_request(sc, 1, GET);
	assert_int_equal(stitch_connections(sc->stitch), 2);
	assert_int_equal(scene_metric(sc, METRIC_CONNECTIONS_FULL), 0);

	sc->connection = 4;
	scene_parts(sc, true, 1, GET, (const size_t[]){3, 6, 0});
	assert_int_equal(scene_metric(sc, METRIC_CONNECTIONS_FULL), 1);
	assert_int_equal(sc->n_revoked, 1);
	assert_int_equal(sc->revoked_connection, 4);

	sc->connection = 1;
	scene_response_whole(sc, 1, OK_LENGTH);
	sc->connection = 3;
	scene_response_whole(sc, 1, OK_LENGTH);
	assert_int_equal(sc->n_spans, 3);
	assert_int_equal(stitch_connections(sc->stitch), 2);
}

/*
 * A server that never answers: the connection is given up, counted, and nothing on it is paired
 * again.
 */
static void test_pipeline_bounded(void **state)
{
	struct scene *sc = *state;

	for (uint32_t i = 1; i <= 70; i++)
		scene_request(sc, i, GET);
	assert_int_equal(sc->n_spans, 64);
	for (size_t i = 0; i < 64; i++)
		assert_result(sc->spans[i], 0, "not_observed");
	assert_int_equal(scene_metric(sc, METRIC_PIPELINE_FULL), 6);
	assert_int_equal(sc->n_revoked, 6);
	scene_response_whole(sc, 66, OK_LENGTH);
	scene_request(sc, 71, GET);
	scene_response_whole(sc, 71, OK_LENGTH);
	scene_close(sc, EVENT_CLOSE_DONE, 0);
	assert_int_equal(sc->n_spans, 64);
	assert_int_equal(scene_metric(sc, METRIC_PIPELINE_FULL), 7);

	sc->connection++;
	scene_request(sc, 1, GET);
	scene_response_whole(sc, 1, OK_LENGTH);
	assert_int_equal(sc->n_spans, 65);
}

/* Every third request of a connection is ignored: nobody else gets its response. */
static void test_ignored_requests(void **state)
{
	struct scene *sc = *state;

	for (uint32_t i = 1; i <= 90; i++) {
		char text[64];

		snprintf(text, sizeof(text), "GET /%u HTTP/1.1\r\nHost: a\r\n\r\n", i);
		scene_request(sc, i, text);
		snprintf(text, sizeof(text), "HTTP/1.1 %u X\r\nContent-Length: 1\r\n\r\n", 200 + i);
		if (i % 3)
			scene_response_whole(sc, i, text);
	}
	stitch_finish(sc->stitch, sc->now_ns);
	assert_int_equal(sc->n_spans, 90);
	for (uint32_t i = 1; i <= 90; i++) {
		char path[8];

		snprintf(path, sizeof(path), "/%u", i);
		assert_text(sc->spans[i - 1], ATTR_URL_PATH, path);
		assert_result(sc->spans[i - 1], i % 3 ? 200 + i : 0, i % 3 ? NULL : "not_observed");
	}
}

static void test_idle(void **state)
{
	struct scene *sc = *state;

	sc->connection = 1;
	scene_request(sc, 1, GET); /* never answered */
	sc->connection = 2;
	scene_request(sc, 1, GET); /* its body takes for ever */
	scene_response(sc, 1, OK_CHUNKED);
	sc->connection = 3;
	scene_request(sc, 1, GET);
	scene_response_whole(sc, 1, OK_LENGTH);
	scene_clear(sc);

	sc->now_ns += SCENE_IDLE_NS - 1;
	stitch_tick(sc->stitch, sc->now_ns);
	assert_int_equal(sc->n_spans, 0);
	assert_int_equal(stitch_connections(sc->stitch), 3);
	sc->now_ns += 1;
	stitch_tick(sc->stitch, sc->now_ns);
	assert_int_equal(sc->n_spans, 1);
	assert_result(sc->spans[0], 0, "not_observed");
	assert_int_equal(duration_ms(sc->spans[0]), 0);
	assert_int_equal(scene_metric(sc, METRIC_EXCHANGES_IDLE), 1);

	sc->now_ns += MS(1000);
	sc->connection = 2;
	scene_end(sc, 1);
	assert_int_equal(sc->n_spans, 2);
	assert_result(sc->spans[1], 200, NULL);
	assert_int_equal(duration_ms(sc->spans[1]), 601000);

	for (int i = 0; i < 3; i++) {
		sc->now_ns += SCENE_IDLE_NS;
		stitch_tick(sc->stitch, sc->now_ns);
	}
	assert_int_equal(stitch_connections(sc->stitch), 0);
}

static void test_finish(void **state)
{
	struct scene *sc = *state;

	sc->connection = 1;
	scene_request(sc, 1, GET);
	sc->connection = 2;
	scene_request(sc, 1, GET);
	scene_response(sc, 1, OK_CHUNKED);
	sc->now_ns += MS(40);
	stitch_finish(sc->stitch, sc->now_ns);
	stitch_finish(sc->stitch, sc->now_ns);
	assert_int_equal(sc->n_spans, 2);
	assert_result(sc->spans[0], 0, "not_observed");
	assert_int_equal(duration_ms(sc->spans[0]), 40);
	assert_result(sc->spans[1], 200, "not_observed");
}

/*
 * Freeing with exchanges, parts of heads and idle connections open leaks nothing (teardown checks).
 */
static void test_free_open(void **state)
{
	struct scene *sc = *state;
	struct event e;

	scene_request(sc, 1, GET);
	e = scene_head(sc, true, 2, STR("GET /x HT"));
	e.head.is_end = false;
	stitch_event(sc->stitch, &e);
	e = scene_head(sc, false, 1, STR("HTTP/1."));
	e.head.is_end = false;
	stitch_event(sc->stitch, &e);
	sc->connection++;
	scene_request(sc, 1, GET);
	scene_response_whole(sc, 1, OK_LENGTH);
	assert_int_equal(sc->n_spans, 1);
	assert_int_equal(stitch_connections(sc->stitch), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_keep_alive),
		SCENE_TEST(test_start),
		SCENE_TEST(test_pipelining),
		SCENE_TEST(test_interim),
		SCENE_TEST(test_no_body),
		SCENE_TEST(test_split_heads),
		SCENE_TEST(test_lost_part),
		SCENE_TEST(test_lost_last_part),
		SCENE_TEST(test_lost_response_part),
		SCENE_TEST(test_missing_response),
		SCENE_TEST(test_missing_end),
		SCENE_TEST(test_orphan_response),
		SCENE_TEST(test_slow_body),
		SCENE_TEST(test_bad_heads),
		SCENE_TEST(test_second_response),
		SCENE_TEST(test_same_exchange_twice),
		SCENE_TEST(test_truncated),
		SCENE_TEST(test_parts_bounded),
		SCENE_TEST(test_clock_step),
		SCENE_TEST(test_unknown_process),
		SCENE_TEST(test_connections_bounded),
		SCENE_TEST(test_pipeline_bounded),
		SCENE_TEST(test_ignored_requests),
		SCENE_TEST(test_idle),
		SCENE_TEST(test_finish),
		SCENE_TEST(test_free_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
