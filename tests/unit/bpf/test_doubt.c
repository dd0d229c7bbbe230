/*
 * Tests of the kernel side's core for what is carried to other hosts: whose ids may leave this one,
 * and where in a message a request's head ends.
 */
#include "ends.h"

#include "base/util.h"

#define LAYOUT 5

#define GET "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
#define OWN                                                                    \
	"GET /a HTTP/1.1\r\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-" \
	"b7ad6b7169203331-01\r\n\r\n"
#define POST "POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\n"

struct fake_g {
	uint64_t unused, m, goid;
};

struct fake_m {
	uint64_t unused[3], curg;
};

static struct fake_m fake_m;
static struct fake_g fake_g;

static void go_setup(void)
{
	const __u32 number = LAYOUT;
	struct go_layout layout = {
		.g_m = offsetof(struct fake_g, m),
		.g_goid = offsetof(struct fake_g, goid),
		.m_curg = offsetof(struct fake_m, curg),
	};

	setup(NULL);
	bpf_map_update_elem(&go_layouts, &number, &layout, BPF_ANY);
	fake_g = (struct fake_g){.m = (uintptr_t)&fake_m, .goid = 100};
	fake_m.curg = (uintptr_t)&fake_g;
}

static void go_end_init(struct end *e, uint64_t cookie)
{
	end_init(e, cookie, 11);
	e->go_layout = LAYOUT;
	e->g = (uintptr_t)&fake_g;
}

/* The server's end of a client's connection on this host. */
static void join_ends(struct end *server, const struct end *client)
{
	server->rx_seq = client->tx_seq;
	server->tx_seq = client->rx_seq;
}

static const struct decision *last(void)
{
	return decision_of(n_recorded - 1);
}

/* A goroutine's own request, and a call without one: nothing to doubt, nor below them. */
static void test_certain(void **state)
{
	struct end front, call, back;

	(void)state;
	go_setup();
	go_end_init(&call, 2);
	end_send(&call, GET);
	assert_int_equal(last()->reason, DECISION_NONE_NO_REQUEST);
	assert_false(last()->is_doubtful);

	go_end_init(&front, 1);
	go_end_init(&call, 3);
	go_end_init(&back, 4);
	end_recv(&front, GET);
	join_ends(&back, &call);
	end_send(&call, GET);
	assert_int_equal(last()->reason, DECISION_UNIT);
	assert_false(last()->is_doubtful);
	end_recv(&back, GET);
	assert_int_equal(last()->reason, DECISION_JOINED);
	assert_false(last()->is_doubtful);
}

/* A thread's request may turn out to be another's, and so all that hangs on its calls. */
static void test_below_a_thread(void **state)
{
	struct end front, call, back, further;

	(void)state;
	go_setup();
	end_init(&front, 1, 11);
	end_init(&call, 2, 11);
	go_end_init(&back, 3);
	go_end_init(&further, 4);
	join_ends(&back, &call);
	end_recv(&front, GET);
	assert_false(last()->is_doubtful);
	end_send(&call, GET);
	assert_int_equal(last()->reason, DECISION_UNIT);
	assert_true(last()->is_doubtful);
	end_recv(&back, GET);
	assert_int_equal(last()->reason, DECISION_JOINED);
	assert_true(last()->is_doubtful);
	end_send(&further, GET);
	assert_int_equal(last()->reason, DECISION_UNIT);
	assert_true(last()->is_doubtful);
}

/* What a header says stays, whoever sends it. */
static void test_header(void **state)
{
	struct end front, call, back;

	(void)state;
	go_setup();
	end_init(&front, 1, 11);
	end_init(&call, 2, 11);
	go_end_init(&back, 3);
	join_ends(&back, &call);
	end_recv(&front, GET);
	end_send(&call, OWN);
	assert_int_equal(last()->reason, DECISION_HEADER);
	assert_false(last()->is_doubtful);
	end_recv(&back, OWN);
	assert_int_equal(last()->reason, DECISION_HEADER);
	assert_false(last()->is_doubtful);
}

/* A goroutine that a request has begun may be a worker. */
static void test_inherited(void **state)
{
	struct unit_key unit = {.pid = 7, .kind = UNIT_GOROUTINE, .id = 100};
	struct go_child child = {.request = {.connection = 1, .exchange = 1}};
	struct end front, call;

	(void)state;
	go_setup();
	go_end_init(&front, 1);
	end_recv(&front, GET);
	fake_g.goid = unit.id = 101;
	bpf_map_update_elem(&go_children, &unit, &child, BPF_ANY);
	go_end_init(&call, 2);
	end_send(&call, GET);
	assert_int_equal(last()->reason, DECISION_UNIT);
	assert_true(last()->is_inherited);
	assert_true(last()->is_doubtful);
}

static const struct end *joined;

/* Another socket of the same numbers takes the join first, and its entry is given to the next one. */
static void take_join(void *map)
{
	const struct join_key key = joined->conn.join, other = {.request = 1};
	const struct join next = {.ids.trace_id[0] = 0xee, .ids.span_id[0] = 0xee};

	if (map != &joins)
		return;
	shim_on_lookup = NULL;
	bpf_map_delete_elem(&joins, &key);
	bpf_map_update_elem(&joins, &other, &next, BPF_ANY);
}

static void test_join_has_one_taker(void **state)
{
	static const uint8_t none[8];
	struct end call, back;

	(void)state;
	setup(NULL);
	end_init(&call, 2, 11);
	end_init(&back, 3, 12);
	join_ends(&back, &call);
	end_send(&call, GET);
	joined = &call;
	shim_on_lookup = take_join;
	end_recv(&back, GET);
	assert_null(shim_on_lookup);
	assert_int_equal(last()->reason, DECISION_NONE_REMOTE);
	assert_memory_equal(last()->parent_span_id, none, 8);
	assert_int_not_equal(last()->ids.trace_id[0], 0xee);
	assert_int_equal(shim_entries(&joins), 1);
}

/* A request that did not leave is not the one that another end receives in its place. */
static void test_join_of_a_failed_send(void **state)
{
	struct end call, back;

	(void)state;
	setup(NULL);
	end_init(&call, 2, 11);
	end_init(&back, 3, 12);
	join_ends(&back, &call);
	end_send(&call, GET);
	assert_int_equal(shim_entries(&joins), 1);
	call.conn.sent_from = call.tx_seq - (uint32_t)strlen(GET); /* as on_send_start() says */
	send_failed(&call.conn, call.conn.sent_from);
	assert_int_equal(shim_entries(&joins), 0);
	end_recv(&back, POST);
	assert_int_equal(last()->reason, DECISION_NONE_REMOTE);
}

/* The unit ends while its requests are looked at, and its entry is given to another one. */
static void take_unit(void *map)
{
	const struct unit_key unit = {.pid = 7, .kind = UNIT_THREAD, .id = 11},
			      other = {.pid = 7, .kind = UNIT_THREAD, .id = 12};
	const struct unit next = {.requests = {{.connection = 3, .exchange = 1}}};

	if (map != &units)
		return;
	shim_on_lookup = NULL;
	bpf_map_delete_elem(&units, &unit);
	bpf_map_update_elem(&units, &other, &next, BPF_ANY);
}

static void test_unit_of_another(void **state)
{
	struct end own, others, call;

	(void)state;
	setup(NULL);
	end_init(&own, 1, 11);
	end_init(&others, 3, 13);
	end_init(&call, 2, 11);
	end_recv(&own, GET);
	end_recv(&others, GET);
	shim_on_lookup = take_unit;
	end_send(&call, GET);
	assert_null(shim_on_lookup);
	assert_int_equal(last()->reason, DECISION_NONE_NO_REQUEST);
}

static void send(struct end *e, const char *bytes, unsigned int requests, size_t end)
{
	end_send(e, bytes);
	assert_int_equal(e->work.requests, requests);
	if (requests)
		assert_int_equal(e->work.request_end, end);
}

/* Where heads end, in whatever parts they are sent; a body's bytes are no heads. */
static void test_ends_of_heads(void **state)
{
	struct end e;

	(void)state;
	setup(NULL);
	end_init(&e, 2, 11);
	send(&e, GET, 1, strlen(GET));
	end_recv(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	send(&e, "GET /a HTTP/1.1\r\nHo", 0, 0);
	send(&e, "st: h\r\n\r\n", 1, 9);
	end_recv(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	send(&e, POST "GET /", 1, strlen(POST));
	end_recv(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	send(&e, GET GET, 2, 2 * strlen(GET));
	end_recv(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	end_recv(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	send(&e, POST, 1, strlen(POST));
	send(&e, "GET /", 0, 0);
}

/* "GET /xxx…x" and an end. Returns the length. */
static size_t long_line(char ret[static 1024], size_t n, const char *end)
{
	size_t length = strlen(end);

	memcpy(ret, "GET /", 5);
	memset(ret + 5, 'x', n);
	memcpy(ret + 5 + n, end, length + 1);
	return 5 + n + length;
}

/* A first line that is too long to be seen at once: what is no request's ends otherwise. */
static void test_long_first_line(void **state)
{
	char line[1024];
	size_t length;
	struct end e;

	(void)state;
	setup(NULL);
	for (size_t n = 95; n < 620; n += 3) {
		for (size_t cut = n - 10; cut < n + 16; cut++) {
			length = long_line(line, n, " HTTP/1.1\r\n\r\n");
			end_init(&e, 2, 11);
			end_call(&e, true, line, cut);
			send(&e, line + cut, 1, length - cut);
			long_line(line, n, " HTTP/2.1\r\n\r\n");
			end_init(&e, 3, 11);
			end_call(&e, true, line, cut);
			end_send(&e, line + cut);
			assert_int_equal(e.work.requests, 0);
			assert_true(e.conn.off);
		}
	}
}

/* A stream that is older than we are is known for one, also when it has found its step. */
static void test_older_stream(void **state)
{
	struct end e;

	(void)state;
	setup(NULL);
	end_init(&e, 2, 11);
	e.moved[1] = 1; /* the handshake's */
	send(&e, GET, 1, strlen(GET));
	assert_false(e.conn.tx.began_old);
	/* Without one: it was put there, in mid-stream. */
	end_init(&e, 3, 11);
	send(&e, GET, 1, strlen(GET));
	assert_true(e.conn.tx.began_old);
	end_init(&e, 3, 11);
	e.moved[1] = 1000;
	send(&e, GET, 1, strlen(GET));
	end_recv(&e, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	send(&e, GET, 1, strlen(GET));
	assert_true(e.conn.tx.began_old);
	assert_int_equal(e.conn.closed, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_certain),
		cmocka_unit_test(test_below_a_thread),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_inherited),
		cmocka_unit_test(test_ends_of_heads),
		cmocka_unit_test(test_older_stream),
		cmocka_unit_test(test_long_first_line),
		cmocka_unit_test(test_join_has_one_taker),
		cmocka_unit_test(test_unit_of_another),
		cmocka_unit_test(test_join_of_a_failed_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
