/*
 * Tests of the kernel side's core: goroutines as units of work, and calls that net/http's transport
 * sends for them. A goroutine and its thread are laid out in the test's memory.
 */
#include "ends.h"

#include "base/util.h"

#define LAYOUT 5

/* As the layout says, and a register points to it. */
struct fake_g {
	uint64_t unused, m, goid;
};

struct fake_m {
	uint64_t unused[3], curg;
};

struct fake_writer {
	uint64_t unused, buf;
};

struct fake_conn {
	uint64_t unused, bw, closed[2];
};

static struct fake_writer fake_writer;
static struct fake_conn fake_conn;
static struct fake_m fake_m[4];
static struct fake_g fake_g[4];

static void go_setup(void)
{
	const __u32 number = LAYOUT;
	struct go_layout layout = {
		.g_m = offsetof(struct fake_g, m),
		.g_goid = offsetof(struct fake_g, goid),
		.m_curg = offsetof(struct fake_m, curg),
		.has_calls = 1,
		.persist_conn_bw = offsetof(struct fake_conn, bw),
		.persist_conn_closed = offsetof(struct fake_conn, closed),
		.writer_buf = offsetof(struct fake_writer, buf),
	};

	setup(NULL);
	bpf_map_update_elem(&go_layouts, &number, &layout, BPF_ANY);
	for (unsigned int i = 0; i < ARRAY_SIZE(fake_g); i++) {
		fake_g[i] = (struct fake_g){.m = (uintptr_t)&fake_m[i], .goid = 100 + i};
		fake_m[i].curg = (uintptr_t)&fake_g[i];
	}
}

/* The end of a connection that goroutine 'i' reads and writes. */
static void go_end_init(struct end *e, uint64_t cookie, unsigned int i)
{
	end_init(e, cookie, 11);
	e->is_blocking = false;
	e->go_layout = LAYOUT;
	e->g = (uintptr_t)&fake_g[i];
}

/* What the probe leaves. */
static void handed_over(const char *buffer, const struct end *server)
{
	struct go_call_key key = {.buffer = (uintptr_t)buffer, .pid = 7};
	struct go_call call = {
		.reason = server ? DECISION_UNIT : DECISION_NONE_NO_REQUEST,
		.persist_conn = (uintptr_t)&fake_conn,
	};

	fake_writer.buf = key.buffer;
	fake_conn = (struct fake_conn){.bw = (uintptr_t)&fake_writer};
	if (server)
		call.request = (struct request_key){.connection = server->conn.cookie,
						    .exchange = server->conn.rx.exchange};
	bpf_map_update_elem(&go_calls, &key, &call, BPF_ANY);
}

#define GET "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
#define OK  "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

/* A request is open on goroutine 0, and its call is with the transport's, 1, which sends it. */
static void call_is_handed_over(struct end *server, struct end *client)
{
	go_setup();
	go_end_init(server, 1, 0);
	go_end_init(client, 2, 1);
	end_recv(server, GET);
	handed_over(GET, server);
}

static void test_own_goroutine(void **state)
{
	const struct unit_key unit = {.pid = 7, .kind = UNIT_GOROUTINE, .id = 100};
	struct end server, client;

	(void)state;
	go_setup();
	go_end_init(&server, 1, 0);
	go_end_init(&client, 2, 0);
	end_recv(&server, GET);
	end_send(&client, GET);
	assert_int_equal(decision_of(1)->reason, DECISION_UNIT);
	assert_memory_equal(decision_of(1)->parent_span_id, decision_of(0)->ids.span_id, 8);
	assert_true(decision_of(1)->is_proven);
	assert_false(decision_of(0)->is_unit);

	/* Answered: then it holds nothing, and nothing is left of it when the connection ends. */
	end_send(&server, OK);
	end_sent(&server);
	assert_int_equal(shim_entries(&requests), 0);
	assert_int_equal(shim_entries(&units), 1);
	end_recv(&client, OK);
	end_send(&client, GET);
	assert_int_equal(decision_of(2)->reason, DECISION_NONE_NO_REQUEST);
	unit_leave(&unit, 2);
	assert_int_equal(shim_entries(&units), 1); /* of another connection */
	unit_leave(&unit, 1);
	assert_int_equal(shim_entries(&units), 0);
}

/* The first head is read by a goroutine that hands the connection on: nothing is left of that one. */
static void test_connection_that_is_handed_on(void **state)
{
	struct end server;

	(void)state;
	go_setup();
	go_end_init(&server, 1, 0);
	end_recv(&server, GET);
	server.g = (uintptr_t)&fake_g[1];
	end_send(&server, OK);
	end_sent(&server);
	end_recv(&server, GET);
	assert_int_equal(decision_of(1)->goroutine, 101);
	assert_int_equal(shim_entries(&units), 1);
}

/* The transport's goroutine sends for the one that handed the request over, once. */
static void test_transport(void **state)
{
	struct end server, client;

	(void)state;
	call_is_handed_over(&server, &client);
	end_send(&client, GET);
	assert_int_equal(decision_of(1)->reason, DECISION_UNIT);
	assert_memory_equal(decision_of(1)->parent_span_id, decision_of(0)->ids.span_id, 8);
	assert_int_equal(shim_entries(&go_calls), 0);
	end_recv(&client, OK);
	end_send(&client, GET);
	assert_int_equal(decision_of(2)->reason, DECISION_NONE_NO_REQUEST);
}

/* Handed over for a request that has been answered since. */
static void test_transport_too_late(void **state)
{
	struct end server, client;

	(void)state;
	call_is_handed_over(&server, &client);
	end_send(&server, OK);
	end_sent(&server);
	end_recv(&server, "GET /next HTTP/1.1\r\n\r\n");
	end_send(&client, GET);
	assert_int_equal(decision_of(2)->reason, DECISION_NONE_NO_REQUEST);
}

/* Handed over for a request that is nobody's parent by now. */
static void test_transport_taken_back(void **state)
{
	struct end server, client;
	struct request_key key;
	struct request *request;

	(void)state;
	call_is_handed_over(&server, &client);
	key = (struct request_key){.connection = 1, .exchange = server.conn.rx.exchange};
	request = bpf_map_lookup_elem(&requests, &key);
	assert_non_null(request);
	request->is_blind = 1;
	end_send(&client, GET);
	assert_int_equal(decision_of(1)->reason, DECISION_NONE_AMBIGUOUS);
}

/* What was never sent must not be taken for what another goroutine sends from the same memory. */
static void test_stale_call(void **state)
{
	struct end server, other, client;

	(void)state;
	go_setup();
	go_end_init(&server, 1, 0);
	go_end_init(&other, 2, 1);
	go_end_init(&client, 3, 1);
	end_recv(&server, GET);
	handed_over(GET, &server);
	end_recv(&other, "GET /b HTTP/1.1\r\n\r\n");
	end_send(&client, GET);
	assert_int_equal(decision_of(2)->reason, DECISION_UNIT);
	assert_memory_equal(decision_of(2)->parent_span_id, decision_of(1)->ids.span_id, 8);
	assert_int_equal(shim_entries(&go_calls), 0);
}

/*
 * A call that was never sent from the buffer it was handed over with, as over TLS, and whose request
 * is open still: the connection has ended, and the memory is another one's that is no transport's.
 */
static void test_stale_buffer(void **state)
{
	struct end server, client;

	(void)state;
	call_is_handed_over(&server, &client);
	fake_conn.closed[0] = 1;
	end_send(&client, GET);
	assert_int_equal(decision_of(1)->reason, DECISION_NONE_NO_REQUEST);
	assert_int_equal(shim_entries(&go_calls), 0);

	/* What the connection was is something else by now. */
	end_recv(&client, OK);
	handed_over(GET, &server);
	fake_conn.bw = (uintptr_t)&fake_g[0];
	end_send(&client, GET);
	assert_int_equal(decision_of(2)->reason, DECISION_NONE_NO_REQUEST);
	end_recv(&client, OK);
	handed_over(GET, &server);
	fake_writer.buf++;
	end_send(&client, GET);
	assert_int_equal(decision_of(3)->reason, DECISION_NONE_NO_REQUEST);
}

/* A register that holds something else, as in code that is not Go: no unit, no request. */
static void test_not_a_goroutine(void **state)
{
	struct end server, client;

	(void)state;
	go_setup();
	fake_m[2].curg = (uintptr_t)&fake_g[3]; /* its thread runs another one */
	go_end_init(&server, 1, 2);
	go_end_init(&client, 2, 2);
	end_recv(&server, GET);
	assert_int_equal(shim_entries(&requests), 0);
	end_send(&client, GET);
	assert_int_equal(decision_of(1)->reason, DECISION_NONE_NO_REQUEST);
	server.g = client.g = 0;
	end_send(&server, OK);
	end_recv(&server, GET);
	assert_int_equal(shim_entries(&requests), 0);
}

/* A goroutine that takes up requests of several connections at a time follows none, for good. */
static void test_loop(void **state)
{
	struct end a, b, client;

	(void)state;
	go_setup();
	go_end_init(&a, 1, 0);
	go_end_init(&b, 2, 0);
	go_end_init(&client, 3, 0);
	end_recv(&a, GET);
	end_recv(&b, GET);
	end_send(&a, OK);
	end_sent(&a);
	end_send(&client, GET);
	assert_int_equal(decision_of(2)->reason, DECISION_NONE_AMBIGUOUS);
	end_recv(&client, OK);
	end_send(&b, OK);
	end_sent(&b);
	end_recv(&a, GET);
	end_send(&client, GET);
	assert_int_equal(decision_of(4)->reason, DECISION_NONE_AMBIGUOUS);
}

/*
 * Requests that follow on one connection before the first is answered: which of them it works for is
 * not known, but it ends with its connection, and of ends of goroutines nobody tells.
 */
static void test_pipeline(void **state)
{
	struct unit_key unit = {.pid = 7, .kind = UNIT_GOROUTINE, .id = 100};
	struct end server, client;

	(void)state;
	go_setup();
	go_end_init(&server, 1, 0);
	go_end_init(&client, 2, 0);
	end_recv(&server, GET GET GET GET GET GET);
	end_send(&client, GET);
	assert_int_equal(decision_of(6)->reason, DECISION_NONE_AMBIGUOUS);
	end_recv(&client, OK);
	end_send(&server, OK);
	end_sent(&server);
	end_send(&client, GET);
	assert_int_equal(decision_of(7)->reason, DECISION_NONE_AMBIGUOUS);
	end_recv(&client, OK);
	end_send(&server, OK OK OK OK OK);
	end_sent(&server);
	assert_int_equal(shim_entries(&requests), 0);

	end_recv(&server, GET);
	end_send(&client, GET);
	assert_int_equal(decision_of(9)->reason, DECISION_UNIT);
	unit_leave(&unit, 1);
	assert_int_equal(shim_entries(&units), 0);
}

/* No room for its request: it has no parent to give, and nothing of it is left behind. */
static void test_requests_full(void **state)
{
	struct unit_key unit = {.pid = 7, .kind = UNIT_GOROUTINE, .id = 100};
	struct end server, client;

	(void)state;
	go_setup();
	go_end_init(&server, 1, 0);
	go_end_init(&client, 2, 0);
	shim_map(&requests)->n_max = 0;
	end_recv(&server, GET);
	assert_int_equal(shim_counters[COUNT_REQUESTS_FULL], 1);
	end_send(&client, GET);
	assert_int_equal(decision_of(1)->reason, DECISION_NONE_AMBIGUOUS);
	end_recv(&client, OK);
	end_send(&server, OK);
	end_sent(&server);

	shim_map(&requests)->n_max = SHIM_ENTRIES;
	end_recv(&server, GET);
	end_send(&client, GET);
	assert_int_equal(decision_of(3)->reason, DECISION_UNIT);
	end_recv(&client, OK);
	end_send(&server, OK);
	end_sent(&server);

	shim_map(&requests)->n_max = 0;
	end_recv(&server, GET);
	unit_leave(&unit, 2);
	assert_int_equal(shim_entries(&units), 1);
	unit_leave(&unit, 1);
	assert_int_equal(shim_entries(&units), 0);
}

/*
 * A request has made the transport dial, so the transport's goroutine was begun for it. It sends for
 * others, too, and where no call is found it is not the first one that it sends for.
 */
static void test_transport_of_a_dialer(void **state)
{
	struct unit_key sender = {.pid = 7, .kind = UNIT_GOROUTINE, .id = 101};
	struct go_child child = {.request = {.connection = 1, .exchange = 1}};
	struct end dialer, other, client;

	(void)state;
	go_setup();
	go_end_init(&dialer, 1, 0);
	go_end_init(&other, 3, 2);
	go_end_init(&client, 2, 1);
	end_recv(&dialer, GET);
	bpf_map_update_elem(&go_children, &sender, &child, BPF_ANY);
	handed_over(GET, &dialer);
	end_send(&client, GET);
	assert_int_equal(decision_of(1)->reason, DECISION_UNIT);
	assert_false(decision_of(1)->is_inherited);
	end_recv(&client, OK);
	end_recv(&other, GET);
	end_send(&client, GET);
	assert_int_equal(decision_of(3)->reason, DECISION_NONE_NO_REQUEST);
}

/* Another goroutine than received the request may answer: that says nothing of the process. */
static void test_answer_by_another_goroutine(void **state)
{
	const __u32 pid = 7;
	struct proc proc = {.proc_id = 3, .go_layout = LAYOUT};
	struct end server;

	(void)state;
	go_setup();
	bpf_map_update_elem(&procs, &pid, &proc, BPF_ANY);
	go_end_init(&server, 1, 0);
	end_recv(&server, GET);
	server.g = (uintptr_t)&fake_g[1];
	server.tid = 12;
	end_send(&server, OK);
	assert_int_equal(shim_counters[COUNT_HANDS_OVER], 0);
	assert_int_equal(recorded(n_recorded - 1)->flags & ANSWER_FLAGS, HEAD_BY_RECEIVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_goroutine),
		cmocka_unit_test(test_connection_that_is_handed_on),
		cmocka_unit_test(test_transport),
		cmocka_unit_test(test_transport_too_late),
		cmocka_unit_test(test_transport_taken_back),
		cmocka_unit_test(test_stale_call),
		cmocka_unit_test(test_stale_buffer),
		cmocka_unit_test(test_not_a_goroutine),
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_pipeline),
		cmocka_unit_test(test_requests_full),
		cmocka_unit_test(test_transport_of_a_dialer),
		cmocka_unit_test(test_answer_by_another_goroutine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
