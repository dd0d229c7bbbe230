/*
 * Tests of the kernel side's core: the route of a Go server's response. A goroutine with its stack,
 * net/http's structures and a router's are laid out in the test's memory.
 */
#include "ends.h"

#include "base/util.h"

#define LAYOUT 5

struct fake_string {
	const char *p;
	uint64_t n;
};

/* As the layout says. */
static struct {
	uint64_t unused, m, goid, low, high;
} g;

static struct {
	uint64_t unused[3], curg;
} m;

static struct {
	uint64_t unused, buf;
} writer;

static struct {
	uint64_t unused, bufw, cur_req;
} http_conn;

static struct {
	uint64_t req, conn;
} response;

static struct {
	uint64_t unused;
	struct fake_string pattern;
} request;

static struct {
	uint64_t owner;
	struct fake_string text;
} context;

static uint64_t stack[64];

#define GET "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
#define OK  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

static const char ok[] = OK;

static const struct go_layout layout = {
	.g_m = 8,
	.g_goid = 16,
	.g_stack = 24,
	.m_curg = 24,
	.has_patterns = 1,
	.conn_bufw = 8,
	.conn_writer_buf = 8,
	.conn_cur_req = 16,
	.response_req = 0,
	.response_conn = 8,
	.request_pattern = 8,
	.has_routers = 1,
	.routers =
		{
			[GO_ROUTER_GIN] = {.is_known = 1, .text = 8},
			[GO_ROUTER_GORILLA] = {.is_known = 1, .is_text = 1},
			[GO_ROUTER_CHI] = {.is_known = 1, .text = 8},
		},
};

static void set_layout(const struct go_layout *l)
{
	const __u32 number = LAYOUT;

	bpf_map_update_elem(&go_layouts, &number, l, BPF_ANY);
}

static struct fake_string text(const char *s)
{
	return (struct fake_string){s, strlen(s)};
}

/* A server whose goroutine is about to answer a request with 'ok'. */
static void asked(struct end *e, const char *pattern)
{
	setup(NULL);
	set_layout(&layout);
	memset(stack, 0, sizeof(stack));
	m.curg = (uintptr_t)&g;
	g.m = (uintptr_t)&m;
	g.goid = 100;
	g.low = (uintptr_t)stack;
	g.high = (uintptr_t)(stack + ARRAY_SIZE(stack));
	writer.buf = (uintptr_t)ok;
	http_conn.bufw = (uintptr_t)&writer;
	http_conn.cur_req = (uintptr_t)&response;
	response.conn = (uintptr_t)&http_conn;
	response.req = (uintptr_t)&request;
	request.pattern = text(pattern);
	stack[ARRAY_SIZE(stack) - 9] = (uintptr_t)&http_conn;
	end_init(e, 1, 11);
	e->is_blocking = false;
	e->go_layout = LAYOUT;
	e->g = (uintptr_t)&g;
	end_recv(e, GET);
}

static void assert_route(unsigned int i, __u16 kind, const char *route)
{
	const struct record_head *r = recorded(i);

	assert_int_equal(n_recorded, i + 1);
	assert_false(r->flags & HEAD_REQUEST);
	assert_int_equal(r->data_length, strlen(OK) - 2);
	assert_memory_equal(r->data, OK, r->data_length);
	assert_int_equal(r->route_kind, kind);
	assert_int_equal(r->route_length, strlen(route));
	assert_memory_equal(r->data + r->data_length, route, r->route_length);
}

static void test_pattern(void **state)
{
	struct end e;

	(void)state;
	asked(&e, "GET /a/{id}");
	end_send(&e, ok);
	assert_route(1, ROUTE_PATTERN, "GET /a/{id}");
	assert_int_equal(recorded(0)->route_length, 0);
	end_sent(&e);

	/* The next one of the connection: where its net/http.conn is, is known. */
	stack[ARRAY_SIZE(stack) - 9] = 0;
	request.pattern = text("/b");
	end_recv(&e, GET);
	end_send(&e, ok);
	assert_route(3, ROUTE_PATTERN, "/b");
}

/* Go 1.22. */
static void test_pattern_behind_pointer(void **state)
{
	static struct fake_string pattern[2];
	struct go_layout l = layout;
	struct end e;

	(void)state;
	asked(&e, "unused");
	pattern[1] = text("/c/");
	request.pattern.p = (const char *)pattern;
	l.pattern_points = 1;
	l.pattern_str = sizeof(pattern[0]);
	set_layout(&l);
	end_send(&e, ok);
	assert_route(1, ROUTE_PATTERN, "/c/");
}

/* What does not fit together has no route. */
static void test_doubt(void **state)
{
	struct end e;

	(void)state;
	asked(&e, "/a");
	stack[ARRAY_SIZE(stack) - 9] = 0;
	end_send(&e, ok);
	assert_route(1, ROUTE_NONE, "");

	asked(&e, "/a");
	m.curg = 0;
	end_send(&e, ok);
	assert_route(1, ROUTE_NONE, "");

	asked(&e, "/a");
	writer.buf++; /* it sends from somewhere else */
	end_send(&e, ok);
	assert_route(1, ROUTE_NONE, "");

	asked(&e, "/a");
	http_conn.cur_req = 0;
	end_send(&e, ok);
	assert_route(1, ROUTE_NONE, "");

	asked(&e, "/a");
	response.conn++;
	end_send(&e, ok);
	assert_route(1, ROUTE_NONE, "");

	asked(&e, "");
	end_send(&e, ok);
	assert_route(1, ROUTE_NONE, "");
}

static void test_length(void **state)
{
	char longest[ROUTE_BYTES_MAX + 2] = {0};
	struct end e;

	(void)state;
	memset(longest, 'x', ROUTE_BYTES_MAX);
	asked(&e, longest);
	end_send(&e, ok);
	assert_route(1, ROUTE_PATTERN, longest);
	assert_int_equal(shim_counters[COUNT_GO_ROUTE_LONG], 0);

	longest[ROUTE_BYTES_MAX] = 'x';
	asked(&e, longest);
	end_send(&e, ok);
	assert_route(1, ROUTE_NONE, "");
	assert_int_equal(shim_counters[COUNT_GO_ROUTE_LONG], 1);
}

/* What go.bpf.c leaves. */
static void noted(struct end *e, __u8 router)
{
	struct request_key key = {.connection = e->conn.cookie, .exchange = e->conn.opened};
	struct request *r = bpf_map_lookup_elem(&requests, &key);

	assert_non_null(r);
	r->go_router = router;
	r->go_route = (uintptr_t)&context;
	r->go_route_owner = 1000;
	context.owner = 1000;
}

static void only_noted(struct end *e, const char *route)
{
	struct request_key key = {.connection = e->conn.cookie, .exchange = e->conn.opened};
	struct request *r = bpf_map_lookup_elem(&requests, &key);

	r->go_route = (uintptr_t)route;
	r->go_route_owner = strlen(route);
}

static void test_router(void **state)
{
	static struct fake_string patterns[ROUTE_PATTERNS + 1];
	struct end e;

	(void)state;
	asked(&e, "/outer/");
	noted(&e, GO_ROUTER_GIN);
	context.text = text("/inner/:id");
	end_send(&e, ok);
	assert_route(1, ROUTE_TEMPLATE, "/inner/:id");

	/* It has been taken for another request. */
	asked(&e, "/outer/");
	noted(&e, GO_ROUTER_GIN);
	context.owner++;
	end_send(&e, ok);
	assert_route(1, ROUTE_NONE, "");

	/* The string itself was noted. */
	asked(&e, "/outer/");
	noted(&e, GO_ROUTER_GORILLA);
	only_noted(&e, "/inner/{id}");
	end_send(&e, ok);
	assert_route(1, ROUTE_TEMPLATE, "/inner/{id}");

	/* Two routers have it. */
	asked(&e, "/outer/");
	noted(&e, _GO_ROUTER_MAX);
	end_send(&e, ok);
	assert_route(1, ROUTE_NONE, "");

	asked(&e, "/outer/");
	noted(&e, GO_ROUTER_CHI);
	patterns[0] = text("/a/*");
	patterns[1] = text("/{id}");
	context.text = (struct fake_string){(const char *)patterns, 2};
	end_send(&e, ok);
	assert_route(1, ROUTE_CHI, "/a/*/{id}");

	asked(&e, "/outer/");
	noted(&e, GO_ROUTER_CHI);
	context.text.n = ROUTE_PATTERNS + 1;
	end_send(&e, ok);
	assert_route(1, ROUTE_NONE, "");
}

/* An interim response has none, the final one has. */
static void test_interim(void **state)
{
	static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct end e;

	(void)state;
	asked(&e, "/a");
	writer.buf = (uintptr_t)interim;
	end_send(&e, interim);
	assert_int_equal(recorded(1)->route_length, 0);
	writer.buf = (uintptr_t)ok;
	end_send(&e, ok);
	assert_route(2, ROUTE_PATTERN, "/a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pattern), cmocka_unit_test(test_pattern_behind_pointer),
		cmocka_unit_test(test_doubt),   cmocka_unit_test(test_length),
		cmocka_unit_test(test_router),  cmocka_unit_test(test_interim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
