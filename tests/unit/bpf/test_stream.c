/*
 * The kernel side's core on the host: exchanges, contexts and decisions, lost records, old
 * connections.
 */
#include "ends.h"

#include "base/util.h"

static void test_thread_is_the_unit(void **state)
{
	struct end server, client, other;

	(void)state;
	end_init(&server, 1, 11);
	end_init(&client, 2, 11);
	end_init(&other, 3, 99);
	end_recv(&server, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
	end_send(&client, "GET /b HTTP/1.1\r\nHost: y\r\n\r\n");
	end_send(&other, "GET /c HTTP/1.1\r\nHost: y\r\n\r\n");
	assert_int_equal(decision_of(1)->reason, DECISION_UNIT);
	assert_memory_equal(decision_of(1)->parent_span_id, decision_of(0)->ids.span_id, 8);
	assert_int_equal(decision_of(2)->reason, DECISION_NONE_NO_REQUEST);

	/* The response is complete: what the thread sends now belongs to nobody. */
	end_recv(&client, "HTTP/1.1 204 No\r\n\r\n");
	end_send(&server, "HTTP/1.1 204 No\r\n\r\n");
	end_sent(&server);
	end_send(&client, "GET /d HTTP/1.1\r\nHost: y\r\n\r\n");
	assert_int_equal(decision_of(3)->reason, DECISION_NONE_NO_REQUEST);
	assert_int_equal(shim_entries(&requests), 0);
}

static void test_two_open_requests_are_ambiguous(void **state)
{
	struct end a, b, client;

	(void)state;
	end_init(&a, 1, 11);
	end_init(&b, 2, 11);
	end_init(&client, 3, 11);
	end_recv(&a, "GET /a HTTP/1.1\r\n\r\n");
	end_recv(&b, "GET /b HTTP/1.1\r\n\r\n");
	end_send(&client, "GET /c HTTP/1.1\r\n\r\n");
	assert_int_equal(decision_of(2)->reason, DECISION_NONE_AMBIGUOUS);
	assert_true(decision_of(2)->parent_span_id[0] == 0 &&
		    decision_of(2)->parent_span_id[7] == 0);

	/*
	 * It is a loop, then and from now on: what it works for can not be told from its sockets.
	 */
	end_send(&a, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	end_sent(&a);
	end_recv(&client, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	end_send(&client, "GET /d HTTP/1.1\r\n\r\n");
	assert_int_equal(decision_of(3)->reason, DECISION_NONE_AMBIGUOUS);
}

static void test_nonblocking_is_no_unit(void **state)
{
	struct end server, client;

	(void)state;
	end_init(&server, 1, 11);
	end_init(&client, 2, 11);
	server.is_blocking = false;
	end_recv(&server, "GET /a HTTP/1.1\r\n\r\n");
	end_send(&client, "GET /b HTTP/1.1\r\n\r\n");
	assert_int_equal(decision_of(1)->reason, DECISION_NONE_AMBIGUOUS);
}

static void test_lost_record_publishes_nothing(void **state)
{
	struct end server, client;

	(void)state;
	end_init(&server, 1, 11);
	end_init(&client, 2, 11);
	ring_is_full = true;
	end_recv(&server, "GET /a HTTP/1.1\r\n\r\n");
	assert_int_equal(shim_counters[COUNT_LOST_REQUEST_SERVER], 1);
	end_send(&client, "GET /b HTTP/1.1\r\n\r\n");
	assert_int_equal(shim_entries(&joins), 0);
	assert_int_equal(shim_counters[COUNT_LOST_REQUEST_CLIENT], 1);
	ring_is_full = false;

	/*
	 * The thread is busy with it all the same: nobody else's request is the parent of what it
	 * sends.
	 */
	end_recv(&client, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	end_send(&client, "GET /d HTTP/1.1\r\n\r\n");
	assert_int_equal(decision_of(0)->reason, DECISION_NONE_AMBIGUOUS);
	n_recorded = 0;

	/* The response of a lost request is no record either, and the next exchange is whole. */
	end_send(&server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(n_recorded, 0);
	end_recv(&server, "GET /c HTTP/1.1\r\n\r\n");
	assert_int_equal(n_recorded, 1);
	assert_int_equal(recorded(0)->header.exchange, 2);
}

static void test_truncated_head(void **state)
{
	char *request = malloc(40000);
	struct end e;
	size_t n;

	(void)state;
	n = (size_t)sprintf(request, "GET /big HTTP/1.1\r\nCookie: ");
	memset(request + n, 'c', 20000);
	sprintf(request + n + 20000,
		"\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n");
	end_init(&e, 1, 11);
	end_recv(&e, request);
	assert_int_equal(decision_of(0)->reason, DECISION_NONE_TRUNCATED);
	assert_true(only_request()->is_blind);
	assert_int_equal(shim_counters[COUNT_HEAD_TRUNCATED], 1);

	/* The framing holds: the next message is found. */
	end_send(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	end_recv(&e, "GET /next HTTP/1.1\r\n\r\n");
	assert_int_equal(decision_of(1)->reason, DECISION_NONE_REMOTE);
	free(request);
}

static void test_forwarded_header(void **state)
{
	struct end server, client;

	(void)state;
	end_init(&server, 1, 11);
	end_init(&client, 2, 11);
	end_recv(&server, REQUEST "hello");
	end_send(&client, REQUEST "hello"); /* a proxy that copies what came in */
	assert_int_equal(decision_of(1)->reason, DECISION_HEADER);
	assert_memory_equal(decision_of(1)->parent_span_id, decision_of(0)->ids.span_id, 8);
	assert_memory_equal(decision_of(1)->ids.trace_id, decision_of(0)->ids.trace_id, 16);
}

/* One thread receives, another answers: then the first may work for somebody else meanwhile. */
static void test_hand_over_ends_thread_units(void **state)
{
	const __u32 pid = 7;
	struct proc proc = {.proc_id = 3, .flags = PROC_THREAD_UNITS};
	struct end server;

	(void)state;
	bpf_map_update_elem(&procs, &pid, &proc, BPF_ANY);
	end_init(&server, 1, 11);
	end_recv(&server, "GET /a HTTP/1.1\r\n\r\n");
	end_send(&server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	end_sent(&server);
	assert_int_equal(shim_counters[COUNT_HANDS_OVER], 0);
	assert_int_equal(recorded(n_recorded - 1)->flags & ANSWER_FLAGS, HEAD_BY_RECEIVER);
	end_recv(&server, "GET /b HTTP/1.1\r\n\r\n");
	server.tid = 12;
	end_send(&server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(shim_counters[COUNT_HANDS_OVER], 1);
	assert_int_equal(recorded(n_recorded - 1)->flags & ANSWER_FLAGS, HEAD_HANDED_OVER);
	assert_int_equal(((struct proc *)bpf_map_lookup_elem(&procs, &pid))->hands_over, 1);
}

/* A process is proven once its threads have answered often enough what they received. */
static void test_answers_prove_a_process(void **state)
{
	const __u32 pid = 7, generation = procs_generation;
	struct proc proc = {.proc_id = 3, .flags = PROC_THREAD_UNITS};
	struct end server;

	(void)state;
	bpf_map_update_elem(&procs, &pid, &proc, BPF_ANY);
	end_init(&server, 1, 11);
	for (int i = 0; i < ANSWERS_PROVE; i++) {
		const struct proc *there = bpf_map_lookup_elem(&procs, &pid);

		assert_int_equal(there->answered, i);
		end_recv(&server, "GET /a HTTP/1.1\r\n\r\n");
		assert_true(decision_of((unsigned int)i)->is_unit);
		end_send(&server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
		end_sent(&server);
	}
	assert_int_equal(((struct proc *)bpf_map_lookup_elem(&procs, &pid))->answered,
			 ANSWERS_PROVE);
	assert_int_equal(procs_generation, generation + 1); /* connections look again, once */
}

/* A thread that took up another request meanwhile bears out nothing by its answer. */
static void test_answer_of_a_loop(void **state)
{
	const __u32 pid = 7;
	struct proc proc = {.proc_id = 3, .flags = PROC_THREAD_UNITS};
	struct end a, b;

	(void)state;
	bpf_map_update_elem(&procs, &pid, &proc, BPF_ANY);
	end_init(&a, 1, 11);
	end_init(&b, 2, 11);
	end_recv(&a, "GET /a HTTP/1.1\r\n\r\n");
	end_recv(&b, "GET /b HTTP/1.1\r\n\r\n");
	end_send(&a, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(recorded(n_recorded - 1)->flags & ANSWER_FLAGS, 0);
	assert_int_equal(((struct proc *)bpf_map_lookup_elem(&procs, &pid))->answered, 0);
}

/* The second of two that were read at once may be the one that the thread works for, or not. */
static void test_pipelined_request_is_blind(void **state)
{
	struct end server, client;

	(void)state;
	end_init(&server, 1, 11);
	end_init(&client, 2, 11);
	end_recv(&server, "GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n");
	end_send(&server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	end_sent(&server);
	end_send(&client, "GET /c HTTP/1.1\r\n\r\n");
	assert_int_equal(decision_of(2)->reason, DECISION_NONE_AMBIGUOUS);
}

/* In mid-upload when we came: what looks like requests there is followed by more of the upload. */
static void test_old_connection_in_mid_upload(void **state)
{
	struct end e;

	(void)state;
	old_end_init(&e, 1, 11);
	for (int i = 0; i < 5; i++)
		end_recv(&e, "GET /fake HTTP/1.1\r\nHost: x\r\n\r\nGET /fake HTTP/1.1\r\n\r\nxx");
	assert_int_equal(heads(true, texts, 64), 0);
	assert_int_equal(shim_entries(&requests), 0);
	end_send(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	end_recv(&e, "GET /true HTTP/1.1\r\n\r\n");
	assert_int_equal(heads(true, texts, 64), 1);
	assert_string_equal(texts[0], "GET /true HTTP/1.1\r\n\r\n");
}

/*
 * A response nobody could read was sent: the request may be over, so it is nobody's parent any
 * more.
 */
static void test_unreadable_response_closes_the_context(void **state)
{
	struct end server, client;

	(void)state;
	end_init(&server, 1, 11);
	end_init(&client, 2, 11);
	end_recv(&server, "GET /a HTTP/1.1\r\n\r\n");
	end_call(&server, true, NULL, 300);
	assert_int_equal(shim_entries(&requests), 0);
	end_send(&client, "GET /b HTTP/1.1\r\n\r\n");
	assert_int_equal(decision_of(1)->reason, DECISION_NONE_NO_REQUEST);

	/* The same when the connection is given up in mid-request. */
	end_recv(&server, "GET /c HTTP/1.1\r\n\r\n");
	assert_int_equal(shim_entries(&requests), 1);
	end_send(&server, "HTTP/1.1 101 Switching Protocols\r\n\r\n");
	assert_int_equal(server.conn.off, 1);
	assert_int_equal(shim_entries(&requests), 0);
}

/*
 * A response that lost its step, and text that looks like one more: the only open request has its
 * answer, and no second head is recorded for it. The next request's is found.
 */
static void test_one_answer_for_a_request(void **state)
{
	static const char *const answers[] = {
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
		("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"
		 "Content-Length: 3\r\nContent-Length: 5\r\n\r\nab"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		struct end e;
		unsigned int n;

		setup(NULL);
		end_init(&e, 1, 11);
		end_recv(&e, "POST /a HTTP/1.1\r\nContent-Length: 50\r\n\r\n");
		end_send(&e, answers[i]);
		assert_int_equal(e.conn.tx.phase, PHASE_OUT_OF_STEP);
		n = n_recorded;
		for (int k = 0; k < 3; k++) {
			end_recv(&e, "body");
			end_send(&e, "HTTP/1.1 404 in text\r\nContent-Length: 0\r\n\r\n");
		}
		assert_int_equal(n_recorded, n);
		end_recv(&e, "01234567890123456789012345678901234567");
		end_recv(&e, "GET /b HTTP/1.1\r\n\r\n");
		end_send(&e, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
		assert_int_equal(n_recorded, n + 2);
		assert_int_equal(recorded(n)->header.exchange, 2);
		assert_int_equal(recorded(n + 1)->header.exchange, 2);
		assert_true(recorded(n + 1)->flags & HEAD_COMPLETE);
	}
}

/* What begins where we are out of step is no request before its head has ended. */
static void test_truncated_guess(void **state)
{
	char *request = malloc(40000);
	struct end e;
	size_t n;

	(void)state;
	n = (size_t)sprintf(request, "GET /fake HTTP/1.1\r\nCookie: ");
	memset(request + n, 'c', 20000);
	sprintf(request + n + 20000, "\r\n\r\nmore of the upload");
	old_end_init(&e, 1, 11);
	end_recv(&e, request);
	assert_null(decision_of(0));
	assert_int_equal(shim_entries(&requests), 0);
	end_send(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	end_recv(&e, "GET /true HTTP/1.1\r\n\r\n");
	assert_true(recorded(n_recorded - 1)->flags & HEAD_END);
	assert_non_null(decision_of(0));
	assert_null(decision_of(1));
	free(request);
}

static void test_old_connection_in_mid_body(void **state)
{
	static const char *const bodies[] = {"Hello world\n",  "GE", "P", "HTTP is fun\r\n",
					     "PUT it there\n", "{}"};

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct end e;

		setup(NULL);
		old_end_init(&e, 1, 11);
		end_send(&e, bodies[i]);
		end_send(&e, "the rest of it\r\n");
		end_recv(&e, "GET /a HTTP/1.1\r\n\r\n");
		end_send(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
		assert_int_equal(e.conn.role, ROLE_SERVER);
		assert_int_equal(heads(true, texts, 64), 1);
		assert_string_equal(texts[0], "GET /a HTTP/1.1\r\n\r\n");
		assert_int_equal(e.conn.responded, 1);
		assert_int_equal(e.conn.off, 0);
	}
}

/* Go reads the first byte of the next request by itself. */
static void test_old_connection_first_byte_alone(void **state)
{
	struct end e;

	(void)state;
	old_end_init(&e, 1, 11);
	end_recv(&e, "G");
	end_recv(&e, "ET /a HTTP/1.1\r\n\r\n");
	assert_int_equal(heads(true, texts, 64), 1);
	assert_string_equal(texts[0], "GET /a HTTP/1.1\r\n\r\n");
}

/* The response of a request that was in flight when we came answers nothing that we know. */
static void test_old_connection_response_first(void **state)
{
	struct end e;

	(void)state;
	old_end_init(&e, 1, 11);
	end_send(&e, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
	assert_int_equal(n_recorded, 0);
	end_recv(&e, "GET /a HTTP/1.1\r\n\r\n");
	end_send(&e, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(n_recorded, 2);
	assert_int_equal(recorded(1)->header.exchange, 1);
	assert_int_equal(e.conn.role, ROLE_SERVER);
}

/* Nobody saw the send of the response return, or who receives is ahead of who sent it. */
static void test_end_of_send_unseen(void **state)
{
	struct end server, client;

	(void)state;
	end_init(&server, 1, 11);
	end_init(&client, 2, 11);
	for (int i = 0; i < 2; i++) {
		end_recv(&server, "GET /a HTTP/1.1\r\n\r\n");
		end_send(&server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	}
	end_recv(&server, "GET /b HTTP/1.1\r\n\r\n");
	end_send(&client, "GET /c HTTP/1.1\r\n\r\n");
	assert_int_equal(decision_of(3)->reason, DECISION_UNIT);
	assert_memory_equal(decision_of(3)->parent_span_id, decision_of(2)->ids.span_id, 8);

	/* The rest of a request is received while its answer waits for room: it is open. */
	end_send(&server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	server.tx_seq -= 1;
	end_recv(&server, "GET /d HTTP/1.1\r\n\r\n");
	assert_int_equal(shim_entries(&requests), 2);
}

/* What abandon() does to an end that has exchanges open. */
static void end_reset(struct end *e)
{
	while (e->conn.closed != e->conn.opened)
		request_close(&e->conn, ++e->conn.closed);
	e->conn.responded = e->conn.opened;
}

/* Nothing is open for the thread: neither the server's last request nor another one. */
static void assert_nothing_open(void)
{
	struct end client;

	assert_int_equal(shim_entries(&requests), 0);
	end_init(&client, 9, 11);
	end_send(&client, "GET /c HTTP/1.1\r\n\r\n");
	assert_int_equal(decision_of(1)->reason, DECISION_NONE_NO_REQUEST);
}

/* 408, 414 and 431 are sent before the head has been read; a lingering close reads the rest. */
static void test_answered_in_mid_head(void **state)
{
	struct end server;

	(void)state;
	end_init(&server, 1, 11);
	end_recv(&server, "GET /a HTTP/1.1\r\nHost: x\r\n");
	end_send(&server, "HTTP/1.1 408 Slow\r\nContent-Length: 0\r\n\r\n");
	end_sent(&server);
	end_recv(&server, "\r\n");
	assert_nothing_open();

	/* The next one is as any other. */
	end_recv(&server, "GET /b HTTP/1.1\r\n\r\n");
	assert_int_equal(shim_entries(&requests), 1);
}

static void test_reset_in_mid_head(void **state)
{
	struct end server;

	(void)state;
	end_init(&server, 1, 11);
	end_recv(&server, "GET /a HTTP/1.1\r\nHost: x\r\n");
	end_reset(&server);
	end_recv(&server, "\r\n");
	assert_nothing_open();
}

static struct end *to_reset;

static void reset_when_published(void *map)
{
	if (map == &requests)
		end_reset(to_reset);
}

static long reset_when_recorded(const void *record, size_t n)
{
	end_reset(to_reset);
	return on_record(record, n);
}

/* The network ends the connection while a program looks at what came. */
static void test_reset_meanwhile(void **state)
{
	struct end server;

	(void)state;
	for (int i = 0; i < 2; i++) {
		setup(NULL);
		end_init(&server, 1, 11);
		to_reset = &server;
		shim_ring = i ? reset_when_recorded : on_record;
		shim_on_update = i ? NULL : reset_when_published;
		end_recv(&server, "GET /a HTTP/1.1\r\n\r\n");
		shim_ring = on_record;
		shim_on_update = NULL;
		assert_nothing_open();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_thread_is_the_unit, setup),
		cmocka_unit_test_setup(test_two_open_requests_are_ambiguous, setup),
		cmocka_unit_test_setup(test_nonblocking_is_no_unit, setup),
		cmocka_unit_test_setup(test_lost_record_publishes_nothing, setup),
		cmocka_unit_test_setup(test_truncated_head, setup),
		cmocka_unit_test_setup(test_forwarded_header, setup),
		cmocka_unit_test_setup(test_hand_over_ends_thread_units, setup),
		cmocka_unit_test_setup(test_answers_prove_a_process, setup),
		cmocka_unit_test_setup(test_answer_of_a_loop, setup),
		cmocka_unit_test_setup(test_pipelined_request_is_blind, setup),
		cmocka_unit_test_setup(test_end_of_send_unseen, setup),
		cmocka_unit_test_setup(test_answered_in_mid_head, setup),
		cmocka_unit_test_setup(test_reset_in_mid_head, setup),
		cmocka_unit_test_setup(test_reset_meanwhile, setup),
		cmocka_unit_test_setup(test_old_connection_in_mid_upload, setup),
		cmocka_unit_test_setup(test_unreadable_response_closes_the_context, setup),
		cmocka_unit_test_setup(test_one_answer_for_a_request, setup),
		cmocka_unit_test_setup(test_truncated_guess, setup),
		cmocka_unit_test_setup(test_old_connection_in_mid_body, setup),
		cmocka_unit_test_setup(test_old_connection_first_byte_alone, setup),
		cmocka_unit_test_setup(test_old_connection_response_first, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
