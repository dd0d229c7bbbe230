/* The kernel side's core on the host: heads cut anywhere, framing, gaps, what is no HTTP/1. */
#include "ends.h"

#include "base/util.h"

#define VALID "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static void test_cut_at_every_byte(void **state)
{
	const char request[] = REQUEST "hello", response[] = RESPONSE "5\r\nHTTP/\r\n0\r\n\r\n";

	(void)state;
	for (size_t cut = 1; cut < sizeof(request) - 1; cut++) {
		struct end e;

		setup(NULL);
		end_init(&e, 1, 11);
		end_call(&e, false, request, cut);
		end_call(&e, false, request + cut, sizeof(request) - 1 - cut);
		for (size_t i = 0; i < sizeof(response) - 1; i++)
			end_call(&e, true, response + i, 1);
		assert_int_equal(heads(true, texts, 64), 1);
		assert_string_equal(texts[0], REQUEST);
		assert_int_equal(heads(false, texts, 64), 1);
		assert_string_equal(texts[0], RESPONSE);
		assert_int_equal(decision_of(0)->reason, DECISION_HEADER);
		assert_int_equal(decision_of(0)->parent_span_id[0], 0xb7);
		assert_int_equal(decision_of(0)->ids.trace_id[15], 0x9c);
		assert_int_equal(e.conn.responded, 1);
		assert_int_equal(e.conn.role, ROLE_SERVER);
	}
}

static void test_byte_by_byte(void **state)
{
	const char request[] = "HEAD /a HTTP/1.1\r\nHost: b\r\n\r\n";
	struct end client, server;

	(void)state;
	end_init(&client, 1, 11);
	end_init(&server, 2, 12);
	client.rx_seq = server.tx_seq;
	server.rx_seq = client.tx_seq;
	for (size_t i = 0; i < sizeof(request) - 1; i++) {
		end_call(&client, true, request + i, 1);
		end_call(&server, false, request + i, 1);
	}
	assert_int_equal(client.conn.role, ROLE_CLIENT);
	assert_int_equal(server.conn.role, ROLE_SERVER);
	assert_int_equal(decision_of(1)->reason, DECISION_JOINED);
	assert_memory_equal(decision_of(1)->parent_span_id, decision_of(0)->ids.span_id, 8);
	assert_memory_equal(decision_of(1)->ids.trace_id, decision_of(0)->ids.trace_id, 16);
	assert_int_equal(shim_entries(&joins), 0);

	/* The answer to HEAD has no body, whatever its length says. */
	end_send(&server, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n");
	assert_int_equal(server.conn.responded, 1);
}

static void test_pipelined_in_one_read(void **state)
{
	char many[64 * 64] = "";
	struct end e;

	(void)state;
	for (int i = 0; i < 40; i++)
		sprintf(many + strlen(many), "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n", i);
	end_init(&e, 1, 11);
	end_recv(&e, many);
	assert_int_equal(heads(true, texts, 64), 40);
	assert_string_equal(texts[39], "GET /39 HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_int_equal(shim_entries(&requests), 40);
	n_recorded = 0;
	end_send(&e, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 404 "
		     "No\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(heads(false, texts, 64), 2);
	assert_int_equal(recorded(1)->header.exchange, 2);
	assert_int_equal(e.conn.responded, 2);
}

static void test_body_is_never_a_head(void **state)
{
	struct end e;

	(void)state;
	end_init(&e, 1, 11);
	end_recv(&e, "POST /a HTTP/1.1\r\nContent-Length: 42\r\n\r\n");
	end_recv(&e, "GET /evil HTTP/1.1\r\nHost: x\r\n\r\n");
	end_recv(&e, "12345678910");
	end_send(&e, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1a\r\n");
	end_send(&e, "HTTP/1.1 404 in the body..");
	end_send(&e, "\r\n0\r\nTrailer: x\r\n\r\n");
	assert_int_equal(heads(true, texts, 64), 1);
	assert_int_equal(heads(false, texts, 64), 1);
	assert_int_equal(e.conn.responded, 1);
	assert_int_equal(shim_counters[COUNT_OUT_OF_STEP], 0);
}

static void test_interim_responses(void **state)
{
	struct end e;

	(void)state;
	end_init(&e, 1, 11);
	end_recv(&e, "POST /up HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n");
	end_send(&e, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n");
	assert_int_equal(e.conn.responded, 0);
	end_send(&e, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(e.conn.responded, 1);
	assert_int_equal(heads(false, texts, 64), 3);
	for (unsigned int i = 1; i < n_recorded; i++)
		assert_int_equal(recorded(i)->header.exchange, 1);
}

static void test_gap_in_body_is_counted_not_lost(void **state)
{
	struct end e;

	(void)state;
	end_init(&e, 1, 11);
	end_recv(&e, "GET /a HTTP/1.1\r\n\r\n");
	end_send(&e, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
	e.tx_seq += 999990; /* sendfile that no hook saw */
	end_call(&e, true, "0123456789", 10);
	assert_int_equal(e.conn.responded, 1);
	assert_int_equal(shim_counters[COUNT_GAP_BODY], 1);

	/* And through a hook that sees pages: counted without content. */
	end_recv(&e, "GET /b HTTP/1.1\r\n\r\n");
	end_send(&e, "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n");
	end_call(&e, true, NULL, 5000);
	assert_int_equal(e.conn.responded, 2);
}

static void test_gap_elsewhere_is_out_of_step_until_the_other_spoke(void **state)
{
	struct end e;

	(void)state;
	end_init(&e, 1, 11);
	end_recv(&e, "GET /a HTTP/1.1\r\n\r\n");
	end_send(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	e.rx_seq += 77;
	n_recorded = 0;
	end_recv(&e, "GET /b HTTP/1.1\r\n\r\n"); /* could be the tail of what was missed */
	assert_int_equal(n_recorded, 0);
	end_send(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	end_recv(&e, "GET /c HTTP/1.1\r\n\r\n");
	assert_int_equal(heads(true, texts, 64), 1);
	assert_string_equal(texts[0], "GET /c HTTP/1.1\r\n\r\n");
	end_send(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(recorded(n_recorded - 1)->header.exchange,
			 recorded(n_recorded - 2)->header.exchange);
}

static void test_short_send_is_seen_once(void **state)
{
	const char request[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
	struct end e;

	(void)state;
	end_init(&e, 1, 11);
	end_call(&e, true, request, sizeof(request) - 1);
	e.tx_seq -= 10; /* the kernel took less; the application sends the rest */
	end_call(&e, true, request + sizeof(request) - 1 - 10, 10);
	assert_int_equal(heads(true, texts, 64), 1);
	assert_int_equal(e.conn.opened, 1);
}

static void test_traceparent_far_down(void **state)
{
	static const int cookies[] = {100, 1000, 2000, 2030, 2040, 2048, 4000, 7000, 15000};
	char *request = malloc(40000);

	(void)state;
	for (size_t i = 0; i < sizeof(cookies) / sizeof(cookies[0]); i++) {
		struct end e;
		size_t n = (size_t)sprintf(request, "GET /big HTTP/1.1\r\nCookie: ");

		memset(request + n, 'c', (size_t)cookies[i]);
		sprintf(request + n + cookies[i],
			"\r\nTraceparent:  00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 "
			"\r\n\r\n");
		setup(NULL);
		end_init(&e, 1, 11);
		end_recv(&e, request);
		assert_int_equal(decision_of(0)->reason, DECISION_HEADER);
	}
	free(request);
}

static void test_not_http(void **state)
{
	static const char *const others[] = {"\x16\x03\x01\x02\x00",
					     "SSH-2.0-x\r\n",
					     "*1\r\n$4\r\nPING\r\n",
					     "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
					     "EHLO me\r\n",
					     "GETX",
					     "\0\0\0\1"};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct end e;

		setup(NULL);
		end_init(&e, 1, 11);
		end_call(&e, false, others[i], strlen(others[i]) ? strlen(others[i]) : 4);
		end_recv(&e, "GETX\r\n");
		assert_int_equal(e.conn.off, 1);
		assert_int_equal(heads(true, texts, 64), 0);
	}
}

static void test_invalid_traceparents(void **state)
{
	static const struct {
		const char *value;
		int reason;
	} cases[] = {
		{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", DECISION_HEADER},
		{"00-00000000000000000000000000000001-0000000000000001-00", DECISION_HEADER},
		{"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what", DECISION_HEADER},
		{"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01what",
		 DECISION_NONE_REMOTE},
		{"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", DECISION_NONE_REMOTE},
		{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x", DECISION_NONE_REMOTE},
		{"00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", DECISION_NONE_REMOTE},
		{"00-00000000000000000000000000000000-b7ad6b7169203331-01", DECISION_NONE_REMOTE},
		{"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", DECISION_NONE_REMOTE},
		{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0", DECISION_NONE_REMOTE},
		{".0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", DECISION_NONE_REMOTE},
		{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\ntraceparent: "
		 "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		 DECISION_NONE_REMOTE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char request[512];
		struct end e;

		setup(NULL);
		end_init(&e, 1, 11);
		snprintf(request, sizeof(request), "GET / HTTP/1.1\r\ntraceparent: %s\r\n\r\n",
			 cases[i].value);
		end_recv(&e, request);
		assert_int_equal(decision_of(0)->reason, cases[i].reason);
	}
}

/*
 * Header lines that the parser, which looks at each byte again, does not read as a traceparent: the
 * two must agree.
 */
static void test_traceparents_that_are_none(void **state)
{
	static const char *const lines[] = {
		"traceparent: " VALID "\r\n chunked\r\n",
		"traceparent: " VALID "\r\n\tx\r\nHost: a\r\n",
		"traceparent: " VALID "\r\n \r\n",
		"traceparent: " VALID "\n \n",
		"traceparent: " VALID "\r\n x\r\ntraceparent: " VALID "\r\n",
		"traceparent\x1a " VALID "\r\n",
	};
	char request[512];
	struct end e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		snprintf(request, sizeof(request), "GET / HTTP/1.1\r\n%s\r\n", lines[i]);
		for (size_t cut = 1; cut < strlen(request); cut++) {
			setup(NULL);
			end_init(&e, 1, 11);
			end_call(&e, false, request, cut);
			end_recv(&e, request + cut);
			assert_int_equal(decision_of(0)->reason, DECISION_NONE_REMOTE);
		}
	}

	/* Blanks, and what is behind them comes with a later call. */
	setup(NULL);
	end_init(&e, 1, 11);
	end_recv(&e, "GET / HTTP/1.1\r\ntraceparent:               " VALID "                ");
	end_recv(&e, "x\r\n\r\n");
	assert_int_equal(decision_of(0)->reason, DECISION_NONE_REMOTE);

	/* Another line that goes on does not matter. */
	setup(NULL);
	end_init(&e, 1, 11);
	end_recv(&e, "GET / HTTP/1.1\r\ntraceparent: " VALID "\r\nA: b\r\n c\r\n\r\n");
	assert_int_equal(decision_of(0)->reason, DECISION_HEADER);
}

/* "content-length" and a byte that is no colon: no length. */
static void test_length_without_a_colon(void **state)
{
	struct end e;

	(void)state;
	end_init(&e, 1, 11);
	end_recv(&e, "GET /a HTTP/1.1\r\nContent-Length\x1a 5\r\n\r\n");
	end_send(&e, "HTTP/1.1 204 No Content\r\n\r\n");
	end_recv(&e, "GET /b HTTP/1.1\r\n\r\n");
	assert_int_equal(heads(true, texts, 64), 2);
}

static void test_transfer_codings(void **state)
{
	static const struct {
		const char *fields;
		bool chunked, close, bad;
	} cases[] = {
		{"Transfer-Encoding: chunked", true, false, false},
		{"transfer-encoding:\tCHUNKED  ", true, false, false},
		{"Transfer-Encoding: gzip, chunked", true, false, false},
		{"Transfer-Encoding: gzip,chunked", true, false, false},
		{"Transfer-Encoding: xchunked", false, true, false},
		{"Transfer-Encoding: gzip", false, true, false},
		{"Transfer-Encoding: identity\r\nContent-Length: 7", false, false, false},
		{"Transfer-Encoding: chunked                                ", false, false, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char response[512];
		struct end e;

		setup(NULL);
		end_init(&e, 1, 11);
		end_recv(&e, "GET / HTTP/1.1\r\n\r\n");
		snprintf(response, sizeof(response), "HTTP/1.1 200 OK\r\n%s\r\n\r\n",
			 cases[i].fields);
		end_send(&e, response);
		assert_int_equal(e.conn.tx.phase, cases[i].bad       ? PHASE_OUT_OF_STEP
						  : cases[i].chunked ? PHASE_CHUNK_SIZE
						  : cases[i].close   ? PHASE_TO_CLOSE
								     : PHASE_BODY);
	}
}

/*
 * Heads that end elsewhere for some, or whose bodies do: each is recorded, and what follows is not
 * taken for a message before the other end has spoken.
 */
static void test_heads_that_servers_read_differently(void **state)
{
	static const struct {
		const char *head;
		bool is_bad;
	} cases[] = {
		{"GET /a HTTP/1.1\r\nA: b\r\n\r\n", false},
		{"GET /a HTTP/1.1\r\nA: b\n\n", false},
		{"GET /a HTTP/1.1\nA: b\r\n\r\n", true},
		{"GET /a HTTP/1.1\r\nA: b\rc\r\n\r\n", true},
		{"GET /a HTTP/1.1\r\nA: b\r\r\n\r\n", true},
		{"GET /a HTTP/1.1\r\nA:\r b\r\n\r\n", true},
		{"GET /a HTTP/1.1\r\nAB:\r b\r\n\r\n", true},
		{"GET /a HTTP/1.1\r\nABC:\r b\r\n\r\n", true},
		{"GET /a HTTP/1.1\r\nABCD:\r b\r\n\r\n", true},
		{"GET /a HTTP/1.1\r\nABCDE:\r b\r\n\r\n", true},
		{"GET /a HTTP/1.1\r\nABCDEF:\r b\r\n\r\n", true},
		{"GET /a HTTP/1.1\r\nABCDEFG:\r b\r\n\r\n", true},
		{"GET /a HTTP/1.1\r\nA: b\f\x0b\r\n\r\n", false},
		{"GET /a HTTP/1.0\r\nTransfer-Encoding: identity\r\n\r\n", false},
		{"GET /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		{"GET /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t n = strlen(cases[i].head);

		for (size_t cut = 1; cut <= n; cut++) {
			struct end e;

			setup(NULL);
			end_init(&e, 1, 11);
			end_call(&e, false, cases[i].head, cut);
			end_call(&e, false, cases[i].head + cut, n - cut);
			assert_int_equal(heads(true, texts, 64), 1);
			assert_string_equal(texts[0], cases[i].head);
			assert_int_equal(e.conn.rx.phase == PHASE_OUT_OF_STEP, cases[i].is_bad);
			end_send(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
			end_sent(&e);
			assert_int_equal(shim_entries(&requests), 0);
			if (!cases[i].is_bad)
				continue;
			end_recv(&e, "GET /next HTTP/1.1\r\n\r\n");
			assert_int_equal(heads(true, texts, 64), 2);
		}
	}
}

/* The same of first lines and fields that are too long to be seen at once. */
static void test_long_lines_that_servers_read_differently(void **state)
{
	static const char *const bad[] = {
		"GET /%0300d HTTP/1.1\nA: b\r\n\r\n",
		"GET /%0300d HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET / HTTP/1.1\r\nA: %0300d\rb\r\n\r\n",
	};
	char text[1024];
	struct end e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		setup(NULL);
		end_init(&e, 1, 11);
		sprintf(text, bad[i], 0);
		end_recv(&e, text);
		assert_int_equal(heads(true, texts, 64), 1);
		assert_int_equal(e.conn.rx.phase, PHASE_OUT_OF_STEP);
	}
	setup(NULL);
	end_init(&e, 1, 11);
	sprintf(text, "GET /%0300d HTTP/1.0\r\nA: %0300d\r\n\r\n", 0, 0);
	end_recv(&e, text);
	assert_int_equal(e.conn.rx.phase, PHASE_START);
}

static void test_chunk_sizes(void **state)
{
	static const struct {
		const char *line;
		int phase;
	} cases[] = {
		{"0000000000000000000a\r\n", PHASE_BODY},
		{"A;x=y\r\n", PHASE_BODY},
		{"a \r\n", PHASE_BODY},
		{"00000000000000000000\r\n", PHASE_TRAILER},
		{"7fffffffffffffff\r\n", PHASE_OUT_OF_STEP},
		{"-1\r\n", PHASE_OUT_OF_STEP},
		{" 5\r\n", PHASE_OUT_OF_STEP},
		{"g\r\n", PHASE_OUT_OF_STEP},
		{"0000000000000000000000000000000000000001\r\n", PHASE_OUT_OF_STEP},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct end e;

		setup(NULL);
		end_init(&e, 1, 11);
		end_recv(&e, "GET / HTTP/1.1\r\n\r\n");
		end_send(&e, RESPONSE);
		end_send(&e, cases[i].line);
		assert_int_equal(e.conn.tx.phase, cases[i].phase);
	}
}

/* It is skipped by who receives, and no part of the body that it was sent in. */
static void test_urgent_byte(void **state)
{
	struct end e;

	(void)state;
	end_init(&e, 1, 11);
	end_recv(&e, "POST /a HTTP/1.1\r\nContent-Length: 10\r\n\r\n01234");
	e.rx_seq += 1;
	end_recv(&e, "5678");
	assert_int_equal(e.conn.rx.phase, PHASE_OUT_OF_STEP);
	assert_int_equal(shim_counters[COUNT_GAP], 1);
	assert_int_equal(shim_counters[COUNT_GAP_BODY], 0);
	end_recv(&e, "9");
	end_send(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	end_recv(&e, "GET /b HTTP/1.1\r\n\r\n");
	assert_int_equal(heads(true, texts, 64), 2);
}

/* Numbers that begin anew, with whichever distance to the old ones. */
static void test_numbers_that_begin_anew(void **state)
{
	static const uint32_t distances[] = {1000, 0x40000000, 0x80000001, 0xc0000000, 0xffff0000};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(distances); i++) {
		struct end e;

		setup(NULL);
		end_init(&e, 1, 11);
		end_recv(&e, "GET /a HTTP/1.1\r\n\r\n");
		end_send(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
		e.rx_seq += distances[i];
		end_recv(&e, "GET /b HTTP/1.1\r\n\r\n");
		assert_int_equal(shim_counters[COUNT_GAP], 1);
		assert_int_equal(e.conn.rx.phase, PHASE_OUT_OF_STEP);
		end_send(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
		end_recv(&e, "GET /c HTTP/1.1\r\n\r\n");
		assert_int_equal(heads(true, texts, 64), 2);
		assert_string_equal(texts[1], "GET /c HTTP/1.1\r\n\r\n");
	}
}

/* What comes behind a chunk: a CRLF, for some a LF alone, and nothing else. */
static void test_chunk_ends(void **state)
{
	static const struct {
		const char *body;
		bool is_whole;
	} cases[] = {
		{"5\r\nhello\r\n0\r\n\r\n", true},   {"5\r\nhello\n0\r\n\r\n", true},
		{"5\nhello\n2\nab\n0\n\n", true},    {"5\r\nhell\n\r\n0\r\n\r\n", true},
		{"5\r\nhello \r\n0\r\n\r\n", false}, {"5\r\nhello\r\r\n0\r\n\r\n", false},
		{"5\r\nhello0\r\n\r\n", false},      {"5\r\nhello\r\n\r\n0\r\n\r\n", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t n = strlen(cases[i].body);

		for (size_t cut = 1; cut <= n; cut++) {
			struct end e;

			setup(NULL);
			end_init(&e, 1, 11);
			end_recv(&e, "GET / HTTP/1.1\r\n\r\n");
			end_send(&e, RESPONSE);
			end_call(&e, true, cases[i].body, cut);
			end_call(&e, true, cases[i].body + cut, n - cut);
			assert_int_equal(e.conn.responded, cases[i].is_whole);
			assert_int_equal(e.conn.tx.phase == PHASE_OUT_OF_STEP, !cases[i].is_whole);
			if (!cases[i].is_whole)
				continue;
			end_recv(&e, "GET /next HTTP/1.1\r\n\r\n");
			end_send(&e, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
			assert_int_equal(e.conn.responded, 2);
		}
	}
}

/* More than sequence numbers can count passed by splice. */
static void test_gap_of_gigabytes(void **state)
{
	struct end e;

	(void)state;
	end_init(&e, 1, 11);
	end_recv(&e, "POST /a HTTP/1.1\r\nContent-Length: 6000000000\r\n\r\n");
	e.rx_seq += (uint32_t)6000000000;
	e.skipped = 6000000000;
	end_send(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	end_recv(&e, "GET /b HTTP/1.1\r\n\r\n");
	assert_int_equal(heads(true, texts, 64), 2);
	assert_int_equal(shim_counters[COUNT_OUT_OF_STEP] + shim_counters[COUNT_GAP], 0);
}

static void test_vectors(void **state)
{
	const char request[] = REQUEST "hello";
	uint64_t vectors[256][2];
	struct end e;

	(void)state;
	end_init(&e, 1, 11);
	vectors[0][0] = (uintptr_t) "xx";
	vectors[0][1] = 2;
	for (size_t i = 0; i < sizeof(request) - 1; i++) {
		vectors[i + 1][0] = (uintptr_t)&request[i];
		vectors[i + 1][1] = i % 3 == 2 ? 1 : 1;
	}
	e.work.source.segments = sizeof(request);
	end_call(&e, true, request, 0); /* sets the call's fields; no bytes */
	e.work.source.kind = SOURCE_KERNEL_IOVEC;
	e.work.source.base = (uintptr_t)vectors;
	e.work.source.segments = sizeof(request);
	e.work.source.skip = 2;
	e.work.bytes = sizeof(request) - 1;
	e.work.at = 0;
	follow(&e.work, &e.conn, e.tx_seq, 0);
	assert_int_equal(heads(true, texts, 64), 1);
	assert_string_equal(texts[0], REQUEST);
}

/* Chunks in vectors of their own: each window goes on where the last one stopped. */
static void test_chunks_in_vectors(void **state)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
	uint64_t vectors[1024][2];
	struct end e;
	size_t n = 0;

	(void)state;
	end_init(&e, 1, 11);
	end_recv(&e, "GET /a HTTP/1.1\r\n\r\n");
	vectors[n][0] = (uintptr_t)head;
	vectors[n++][1] = sizeof(head) - 1;
	while (n < 1022) {
		vectors[n][0] = (uintptr_t) "3\r\n";
		vectors[n++][1] = 3;
		vectors[n][0] = (uintptr_t) "abc\r\n";
		vectors[n++][1] = 5;
	}
	vectors[n][0] = (uintptr_t) "0\r\n\r\n";
	vectors[n++][1] = 5;
	end_call(&e, true, head, 0);
	e.work.source.kind = SOURCE_KERNEL_IOVEC;
	e.work.source.base = (uintptr_t)vectors;
	e.work.source.segments = (__u32)n;
	e.work.source.first = 0;
	e.work.source.first_at = 0;
	for (size_t i = 0; i < n; i++)
		e.work.bytes += vectors[i][1];
	e.work.at = 0;
	follow(&e.work, &e.conn, e.tx_seq, 0);
	assert_int_equal(e.conn.responded, 1);
	assert_int_equal(shim_counters[COUNT_OUT_OF_STEP] + shim_counters[COUNT_UNREADABLE], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_cut_at_every_byte, setup),
		cmocka_unit_test_setup(test_byte_by_byte, setup),
		cmocka_unit_test_setup(test_pipelined_in_one_read, setup),
		cmocka_unit_test_setup(test_body_is_never_a_head, setup),
		cmocka_unit_test_setup(test_interim_responses, setup),
		cmocka_unit_test_setup(test_gap_in_body_is_counted_not_lost, setup),
		cmocka_unit_test_setup(test_gap_elsewhere_is_out_of_step_until_the_other_spoke,
				       setup),
		cmocka_unit_test_setup(test_short_send_is_seen_once, setup),
		cmocka_unit_test_setup(test_traceparent_far_down, setup),
		cmocka_unit_test_setup(test_not_http, setup),
		cmocka_unit_test_setup(test_invalid_traceparents, setup),
		cmocka_unit_test_setup(test_traceparents_that_are_none, setup),
		cmocka_unit_test_setup(test_length_without_a_colon, setup),
		cmocka_unit_test_setup(test_transfer_codings, setup),
		cmocka_unit_test_setup(test_heads_that_servers_read_differently, setup),
		cmocka_unit_test_setup(test_long_lines_that_servers_read_differently, setup),
		cmocka_unit_test_setup(test_chunk_sizes, setup),
		cmocka_unit_test_setup(test_chunk_ends, setup),
		cmocka_unit_test_setup(test_urgent_byte, setup),
		cmocka_unit_test_setup(test_numbers_that_begin_anew, setup),
		cmocka_unit_test_setup(test_gap_of_gigabytes, setup),
		cmocka_unit_test_setup(test_vectors, setup),
		cmocka_unit_test_setup(test_chunks_in_vectors, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
