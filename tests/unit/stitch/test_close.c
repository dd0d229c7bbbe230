/*
 * Tests of stitch/stitch.c: what the end of a connection or a process says of its exchanges, from
 * either end.
 */
#include "events.h"

#define GET        "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
#define OK_LENGTH  "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
#define OK_CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define OK_CLOSE   "HTTP/1.0 200 OK\r\n\r\n"
#define MS(n)      ((n)*NSEC_PER_MSEC)

struct close_step {
	unsigned int after_ms;
	enum event_close what;
	uint32_t error;
	bool has_unseen;
};

struct close_case {
	enum event_role role;
	const char *response;       /* NULL: none; else it comes at 100 ms */
	struct close_step steps[4]; /* ended by one after 0 ms */
	int64_t status;
	const char *error_type;
	unsigned int duration_ms;
	enum metric metric; /* _METRIC_MAX: none of the exchange counters */
};

#define SERVER EVENT_ROLE_SERVER
#define CLIENT EVENT_ROLE_CLIENT
#define PEER   EVENT_CLOSE_PEER_FIN
#define LOCAL  EVENT_CLOSE_LOCAL_FIN
#define READ   EVENT_CLOSE_READ_END
#define DONE   EVENT_CLOSE_DONE

static const struct close_case cases[] = {
	/* Close-delimited: the end is the FIN, not the head and not the socket's end. */
	{SERVER,
	 OK_CLOSE,
	 {{5000, LOCAL, 0, false}, {100, DONE, 0, false}},
	 200,
	 NULL,
	 5100,
	 _METRIC_MAX},
	{CLIENT,
	 OK_CLOSE,
	 {{5000, PEER, 0, false}, {100, READ, 0, false}, {1, DONE, 0, false}},
	 200,
	 NULL,
	 5100,
	 _METRIC_MAX},
	{CLIENT,
	 OK_CLOSE,
	 {{5000, READ, 0, false}, {100, DONE, 0, false}},
	 200,
	 NULL,
	 5100,
	 _METRIC_MAX},
	{CLIENT, OK_CLOSE, {{5000, DONE, 0, false}}, 200, NULL, 5100, _METRIC_MAX},
	{CLIENT,
	 OK_CLOSE,
	 {{5000, DONE, ECONNRESET, false}},
	 200,
	 "connection_reset",
	 5100,
	 METRIC_EXCHANGES_RESET},
	{SERVER,
	 OK_CLOSE,
	 {{1000, PEER, 0, false}, {4000, LOCAL, 0, false}},
	 200,
	 NULL,
	 5100,
	 _METRIC_MAX},

	/* Cut in the body. */
	{SERVER,
	 OK_LENGTH,
	 {{50, LOCAL, 0, false}, {100, DONE, 0, false}},
	 200,
	 "connection_reset",
	 150,
	 METRIC_EXCHANGES_RESET},
	{SERVER,
	 OK_LENGTH,
	 {{50, DONE, EPIPE, false}},
	 200,
	 "connection_reset",
	 150,
	 METRIC_EXCHANGES_RESET},
	{CLIENT,
	 OK_LENGTH,
	 {{50, PEER, 0, false}, {20, READ, 0, false}, {1, DONE, 0, false}},
	 200,
	 "connection_reset",
	 170,
	 METRIC_EXCHANGES_RESET},
	{CLIENT,
	 OK_CHUNKED,
	 {{50, DONE, ECONNRESET, false}},
	 200,
	 "connection_reset",
	 150,
	 METRIC_EXCHANGES_RESET},

	/* Not cut, as far as anybody can tell: its end was only not seen. */
	{CLIENT,
	 OK_CHUNKED,
	 {{5000, LOCAL, 0, false}, {1, DONE, 0, false}},
	 200,
	 "not_observed",
	 100,
	 METRIC_EXCHANGES_NO_RESPONSE_END},
	{CLIENT,
	 OK_LENGTH,
	 {{5000, LOCAL, 0, false}, {1, DONE, 0, true}},
	 200,
	 "not_observed",
	 100,
	 METRIC_EXCHANGES_NO_RESPONSE_END},
	{SERVER,
	 "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
	 {{5000, LOCAL, 0, false}},
	 200,
	 "not_observed",
	 5100,
	 METRIC_EXCHANGES_NO_RESPONSE_END},

	/* No response: who gave up, and when. */
	{SERVER,
	 NULL,
	 {{200, DONE, ECONNRESET, false}},
	 0,
	 "connection_reset",
	 200,
	 METRIC_EXCHANGES_RESET},
	{SERVER,
	 NULL,
	 {{200, PEER, 0, false}, {30000, LOCAL, 0, false}, {1, DONE, 0, false}},
	 0,
	 "connection_reset",
	 200,
	 METRIC_EXCHANGES_RESET},
	{SERVER,
	 NULL,
	 {{200, PEER, 0, false}, {30000, DONE, 0, false}},
	 0,
	 "connection_reset",
	 200,
	 METRIC_EXCHANGES_RESET},
	{SERVER,
	 NULL,
	 {{200, LOCAL, 0, false}, {30000, DONE, 0, false}},
	 0,
	 "connection_reset",
	 200,
	 METRIC_EXCHANGES_RESET},
	{CLIENT,
	 NULL,
	 {{200, LOCAL, 0, false}, {30000, DONE, 0, false}},
	 0,
	 "connection_reset",
	 200,
	 METRIC_EXCHANGES_RESET},
	{CLIENT,
	 NULL,
	 {{200, PEER, 0, false}, {50, READ, 0, false}, {1, DONE, 0, false}},
	 0,
	 "connection_reset",
	 250,
	 METRIC_EXCHANGES_RESET},
	{CLIENT,
	 NULL,
	 {{200, DONE, ETIMEDOUT, false}},
	 0,
	 "connection_reset",
	 200,
	 METRIC_EXCHANGES_RESET},

	/* Gone without a FIN: a reset of our own. */
	{SERVER, NULL, {{200, DONE, 0, false}}, 0, "connection_reset", 200, METRIC_EXCHANGES_RESET},

	/* No response that we saw: nothing is invented, least of all how long it took. */
	{CLIENT,
	 NULL,
	 {{200, LOCAL, 0, false}, {1, DONE, 0, true}},
	 0,
	 "not_observed",
	 0,
	 METRIC_EXCHANGES_NOT_OBSERVED},
	{CLIENT,
	 NULL,
	 {{200, READ, 0, true}, {1, DONE, 0, false}},
	 0,
	 "not_observed",
	 0,
	 METRIC_EXCHANGES_NOT_OBSERVED},
};

static const enum metric exchange_metrics[] = {
	METRIC_EXCHANGES_RESET, METRIC_EXCHANGES_PROCESS_EXIT,    METRIC_EXCHANGES_NOT_OBSERVED,
	METRIC_EXCHANGES_IDLE,  METRIC_EXCHANGES_NO_RESPONSE_END,
};

static void run_case(struct scene *sc, const struct close_case *c)
{
	sc->role = c->role;
	scene_request(sc, 1, GET);
	if (c->response) {
		sc->now_ns += MS(100);
		scene_response(sc, 1, c->response);
	}
	assert_int_equal(sc->n_spans, 0);
	for (unsigned int i = 0; c->steps[i].after_ms; i++) {
		sc->now_ns += MS(c->steps[i].after_ms);
		stitch_event(sc->stitch, &(struct event){
						 .type = EVENT_CLOSE,
						 .time_ns = sc->now_ns,
						 .connection = sc->connection,
						 .role = sc->role,
						 .close = {.what = c->steps[i].what,
							   .error = c->steps[i].error,
							   .has_unseen = c->steps[i].has_unseen},
					 });
	}
	assert_int_equal(sc->n_spans, 1);
	assert_result(sc->spans[0], c->status, c->error_type);
	assert_int_equal(duration_ms(sc->spans[0]), c->duration_ms);
	assert_int_equal(sc->spans[0]->kind,
			 c->role == SERVER ? SPAN_KIND_SERVER : SPAN_KIND_CLIENT);
	for (size_t i = 0; i < ARRAY_SIZE(exchange_metrics); i++)
		assert_int_equal(scene_metric(sc, exchange_metrics[i]),
				 exchange_metrics[i] == c->metric);
	scene_close(sc, DONE, 0);
	assert_int_equal(stitch_connections(sc->stitch), 0);
	assert_int_equal(sc->n_spans, 1);
}

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		void *sc;

		print_message("case %zu\n", i);
		scene_setup(&sc);
		run_case(sc, &cases[i]);
		scene_teardown(&sc);
	}
}

/* Half-close: whoever sends no more may still read the answer. */
static void test_half_close(void **state)
{
	struct scene *sc = *state;

	scene_request(sc, 1, GET);
	scene_close(sc, PEER, 0);
	scene_close(sc, READ, 0);
	sc->now_ns += MS(300);
	scene_response_whole(sc, 1, OK_LENGTH);
	assert_int_equal(sc->n_spans, 1);
	assert_result(sc->spans[0], 200, NULL);
	assert_int_equal(duration_ms(sc->spans[0]), 300);

	sc->connection++;
	sc->role = CLIENT;
	scene_request(sc, 1, GET);
	scene_close(sc, LOCAL, 0);
	sc->now_ns += MS(300);
	scene_close(sc, PEER, 0); /* the response is in the socket, not read yet */
	scene_response_whole(sc, 1, OK_LENGTH);
	scene_close(sc, READ, 0);
	assert_int_equal(sc->n_spans, 2);
	assert_result(sc->spans[1], 200, NULL);
	assert_int_equal(duration_ms(sc->spans[1]), 300);
}

/* Several exchanges open at the end: the first has its answer, the others have none. */
static void test_pipelined(void **state)
{
	struct scene *sc = *state;

	for (uint32_t i = 1; i <= 3; i++)
		scene_request(sc, i, GET);
	scene_response(sc, 1, OK_CLOSE);
	scene_close(sc, LOCAL, 0);
	assert_int_equal(sc->n_spans, 3);
	assert_result(sc->spans[0], 200, NULL);
	assert_result(sc->spans[1], 0, "connection_reset");
	assert_result(sc->spans[2], 0, "connection_reset");
}

static void process_exit(struct scene *sc, uint32_t proc_id)
{
	stitch_process_exit(sc->stitch, proc_id, sc->now_ns);
}

static void test_process_exit(void **state)
{
	struct scene *sc = *state;
	uint64_t first = sc->connection;

	scene_request(sc, 1, GET);
	sc->connection++;
	scene_request(sc, 1, GET);
	scene_response(sc, 1, OK_LENGTH);
	sc->connection++;
	scene_request(sc, 1, GET);
	scene_response(sc, 1, OK_CLOSE);
	sc->connection++;
	sc->proc_id = SCENE_PROC + 1;
	scene_request(sc, 1, GET);

	sc->now_ns += MS(200);
	process_exit(sc, 0);
	process_exit(sc, SCENE_PROC);
	process_exit(sc, SCENE_PROC);
	assert_int_equal(sc->n_spans, 0); /* its sockets say how each ended */
	for (sc->connection = first; sc->connection < first + 3; sc->connection++) {
		sc->now_ns += MS(10);
		scene_close(sc, LOCAL, 0);
	}
	assert_int_equal(sc->n_spans, 3);
	assert_result(sc->spans[0], 0, "process_exit");
	assert_int_equal(duration_ms(sc->spans[0]), 200);
	assert_result(sc->spans[1], 200, "process_exit");
	assert_result(sc->spans[2], 200, NULL);
	assert_int_equal(scene_metric(sc, METRIC_EXCHANGES_PROCESS_EXIT), 2);

	scene_response_whole(sc, 1, OK_LENGTH);
	assert_int_equal(sc->n_spans, 4);
	assert_result(sc->spans[3], 200, NULL);
}

/* The socket was handed on before: who holds it answers. */
static void test_process_exit_with_socket_passed_on(void **state)
{
	struct scene *sc = *state;

	scene_request(sc, 1, GET);
	process_exit(sc, SCENE_PROC);
	scene_response_whole(sc, 1, OK_LENGTH);
	assert_int_equal(sc->n_spans, 1);
	assert_result(sc->spans[0], 200, NULL);
}

/* A response that could not be recorded is not blamed on the process, nor on the network. */
static void test_process_exit_with_response_unseen(void **state)
{
	struct scene *sc = *state;

	scene_request(sc, 1, GET);
	process_exit(sc, SCENE_PROC);
	stitch_event(sc->stitch, &(struct event){
					 .type = EVENT_CLOSE,
					 .time_ns = sc->now_ns,
					 .connection = sc->connection,
					 .close = {.what = EVENT_CLOSE_DONE, .has_unseen = true},
				 });
	assert_int_equal(sc->n_spans, 1);
	assert_result(sc->spans[0], 0, "not_observed");
}

/* A connection that was reset and one that follows with the same ports share nothing. */
static void test_next_connection(void **state)
{
	struct scene *sc = *state;
	struct event e = scene_head(sc, true, 1, str_from(GET));

	e.head.has_decision = true;
	e.head.reason = PARENT_JOINED;
	e.head.trace_id = (struct trace_id){{1}};
	e.head.span_id = (struct span_id){{2}};
	e.head.parent_span_id = (struct span_id){{3}};
	stitch_event(sc->stitch, &e);
	scene_close(sc, DONE, ECONNRESET);
	sc->now_ns += MS(1000);
	sc->connection++;
	scene_request(sc, 1, GET);
	scene_response_whole(sc, 1, OK_LENGTH);
	assert_int_equal(sc->n_spans, 2);
	assert_int_equal(duration_ms(sc->spans[1]), 0);
	assert_false(span_id_is_valid(&sc->spans[1]->parent_span_id));
	assert_memory_not_equal(&sc->spans[1]->trace_id, &e.head.trace_id, sizeof(e.head.trace_id));
}

/* Closes of connections nobody spoke HTTP on. */
static void test_unknown_connection(void **state)
{
	struct scene *sc = *state;

	scene_close(sc, PEER, 0);
	scene_close(sc, DONE, ECONNRESET);
	scene_end(sc, 1);
	assert_int_equal(sc->n_spans, 0);
	assert_int_equal(stitch_connections(sc->stitch), 0);
}

/* The server has enough of the head (408, 414, 431): that is the answer, whatever ends it then. */
static void test_answered_in_mid_head(void **state)
{
	static const char begin[] = "GET /a HTTP/1.1\r\n", end[] = "Host: h\r\n\r\n";
	struct scene *sc = *state;
	struct event e = scene_head(sc, true, 1, STR(begin));

	e.head.is_end = false;
	stitch_event(sc->stitch, &e);
	sc->now_ns += 20 * NSEC_PER_MSEC;
	scene_response_whole(sc, 1, "HTTP/1.1 408 Slow\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(sc->n_spans, 0);
	sc->now_ns += 20 * NSEC_PER_MSEC;
	sc->offset = sizeof(begin) - 1;
	e = scene_head(sc, true, 1, STR(end));
	e.head.is_start = false;
	e.head.head_start_ns = SCENE_START_NS;
	stitch_event(sc->stitch, &e);
	assert_int_equal(sc->n_spans, 1);
	assert_result(sc->spans[0], 408, NULL);
	assert_int_equal(duration_ms(sc->spans[0]), 20);
	assert_int_equal(scene_metric(sc, METRIC_RESPONSES_ORPHAN), 0);
	scene_close(sc, EVENT_CLOSE_DONE, ECONNRESET);
	assert_int_equal(sc->n_spans, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		SCENE_TEST(test_half_close),
		SCENE_TEST(test_pipelined),
		SCENE_TEST(test_process_exit),
		SCENE_TEST(test_process_exit_with_socket_passed_on),
		SCENE_TEST(test_process_exit_with_response_unseen),
		SCENE_TEST(test_next_connection),
		SCENE_TEST(test_unknown_connection),
		SCENE_TEST(test_answered_in_mid_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
