/*
 * Tests of stitch/span_build.c and exchange.c: what a span says, by the semantic conventions for
 * HTTP.
 */
#include "events.h"

#define OK_LENGTH "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
#define T1        "0af7651916cd43dd8448eb211c80319c"
#define S1        "b7ad6b7169203331"

/* One exchange; the span is the scene's newest. */
static struct span *exchange(struct scene *sc, const char *request, const char *response)
{
	sc->connection++;
	scene_request(sc, 1, request);
	scene_response_whole(sc, 1, response);
	return sc->spans[sc->n_spans - 1];
}

static struct span *client_exchange(struct scene *sc, const char *request, const char *response)
{
	sc->role = EVENT_ROLE_CLIENT;
	sc->local = scene_endpoint("127.0.0.1", 40000);
	sc->remote = scene_endpoint("192.0.2.8", 9090);
	return exchange(sc, request, response);
}

static void assert_name(const struct span *s, const char *name)
{
	assert_int_equal(s->name.n, strlen(name));
	assert_memory_equal(s->name.p, name, s->name.n);
}

static void test_server(void **state)
{
	struct scene *sc = *state;
	struct span *s = exchange(sc,
				  "POST /a/b?x=1&token=abc HTTP/1.1\r\nHost: example.org:8443\r\n"
				  "User-Agent: curl/8\r\nAuthorization: Bearer zzz\r\n\r\n",
				  OK_LENGTH);

	assert_int_equal(s->kind, SPAN_KIND_SERVER);
	assert_name(s, "POST");
	assert_ptr_equal(s->resource, sc->resource);
	assert_text(s, ATTR_HTTP_REQUEST_METHOD, "POST");
	assert_text(s, ATTR_HTTP_REQUEST_METHOD_ORIGINAL, NULL);
	assert_text(s, ATTR_URL_SCHEME, "http");
	assert_text(s, ATTR_URL_PATH, "/a/b");
	assert_text(s, ATTR_URL_QUERY, "x=1&token=REDACTED");
	assert_text(s, ATTR_URL_FULL, NULL);
	assert_text(s, ATTR_SERVER_ADDRESS, "example.org");
	assert_number(s, ATTR_SERVER_PORT, 8443);
	assert_text(s, ATTR_CLIENT_ADDRESS, "192.0.2.7");
	assert_text(s, ATTR_NETWORK_PEER_ADDRESS, "192.0.2.7");
	assert_number(s, ATTR_NETWORK_PEER_PORT, 40000);
	assert_text(s, ATTR_NETWORK_PROTOCOL_VERSION, "1.1");
	assert_text(s, ATTR_USER_AGENT_ORIGINAL, "curl/8");
	assert_number(s, ATTR_THREAD_ID, 4243);
	assert_text(s, ATTR_TSUNAGI_TRUNCATED, NULL);
	assert_text(s, ATTR_TSUNAGI_PARENT_REASON, NULL);
	assert_result(s, 200, NULL);
}

/* No attribute is there twice, and no text of a request that must stay secret is in any. */
static void assert_no_secret(const struct span *s, const char *secret)
{
	bool seen[_ATTR_MAX] = {0};

	for (size_t i = 0; i < s->n_attributes; i++) {
		const struct attribute *a = &s->attributes[i];

		assert_false(seen[a->key]);
		seen[a->key] = true;
		if (attribute_key_type(a->key) == ATTRIBUTE_STRING)
			assert_null(memmem(a->s.p, a->s.n, secret, strlen(secret)));
	}
}

static void test_secrets(void **state)
{
	static const char *const requests[] = {
		"GET /s?X-Amz-Signature=hush&sig=hush&a=1 HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET http://u:hush@h/ HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET http://hush@h:99999/ HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: u:hush@h\r\nAuthorization: hush\r\nCookie: hush\r\n\r\n",
		"GET hush:hush@h/ HTTP/1.1\r\nHost: h\r\n\r\n",
		"CONNECT u:hush@h:443 HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET /?%6Bey=hush&KEY=hush;hush&q=1;secret=hush#token=hush HTTP/1.1\r\n\r\n",
		"GET /?a=\xff&password=hush HTTP/1.1\r\nHost: h\r\n\r\n",
	};
	struct scene *sc = *state;

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		sc->role = EVENT_ROLE_SERVER;
		assert_no_secret(exchange(sc, requests[i], OK_LENGTH), "hush");
		assert_no_secret(client_exchange(sc, requests[i], OK_LENGTH), "hush");
	}
}

static void test_server_address(void **state)
{
	static const struct {
		const char *request, *address, *path;
		int64_t port;
	} cases[] = {
		{"GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "h", "/a", 8080},
		{"GET /a HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "::1", "/a", 80},
		{"GET /a HTTP/1.0\r\n\r\n", "127.0.0.1", "/a", 8080},
		{"GET /a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "127.0.0.1", "/a", 8080},
		{"GET /a HTTP/1.1\r\nHost: b@d:1\r\n\r\n", "127.0.0.1", "/a", 8080},
		{"GET http://[2001:db8::1]:8081/p?q HTTP/1.1\r\nHost: h\r\n\r\n", "2001:db8::1",
		 "/p", 8081},
		{"GET http://host HTTP/1.1\r\nHost: h:1\r\n\r\n", "host", "/", 80},
		{"GET https://host HTTP/1.1\r\nHost: h:1\r\n\r\n", "host", "/", 443},
		{"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "h", "*", 8080},
		{"CONNECT h:443 HTTP/1.1\r\nHost: x\r\n\r\n", "h", NULL, 443},
		{"GET /a%2Fb;x HTTP/1.1\r\nHost: h\r\n\r\n", "h", "/a%2Fb;x", 8080},
		{"GET nonsense HTTP/1.1\r\nHost: h\r\n\r\n", "h", NULL, 8080},
	};
	struct scene *sc = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct span *s = exchange(sc, cases[i].request, OK_LENGTH);

		assert_text(s, ATTR_SERVER_ADDRESS, cases[i].address);
		assert_text(s, ATTR_URL_PATH, cases[i].path);
		assert_number(s, ATTR_SERVER_PORT, cases[i].port);
	}
}

static void test_client(void **state)
{
	static const struct {
		const char *request, *full, *address;
		int64_t port;
	} cases[] = {
		{"GET /a?key=1&b=2 HTTP/1.1\r\nHost: h:81\r\n\r\n",
		 "http://h:81/a?key=REDACTED&b=2", "h", 81},
		{"GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "http://h/a", "h", 9090},
		{"GET /a HTTP/1.1\r\nHost: [::1]:81\r\n\r\n", "http://[::1]:81/a", "::1", 81},
		{"GET /a HTTP/1.0\r\n\r\n", "http://192.0.2.8:9090/a", "192.0.2.8", 9090},
		{"GET http://u:p@o.example/a?b HTTP/1.1\r\nHost: x\r\n\r\n",
		 "http://REDACTED:REDACTED@o.example/a?b", "o.example", 80},
		{"GET http://u@[::1]:65535/ HTTP/1.1\r\nHost: x\r\n\r\n",
		 "http://REDACTED:REDACTED@[::1]:65535/", "::1", 65535},
		{"GET https://o.example:444 HTTP/1.1\r\nHost: x\r\n\r\n", "https://o.example:444/",
		 "o.example", 444},
		{"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "http://h", "h", 9090},
		{"CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", NULL, "h", 443},
	};
	struct scene *sc = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct span *s = client_exchange(sc, cases[i].request, OK_LENGTH);

		assert_int_equal(s->kind, SPAN_KIND_CLIENT);
		assert_text(s, ATTR_URL_FULL, cases[i].full);
		assert_text(s, ATTR_SERVER_ADDRESS, cases[i].address);
		assert_number(s, ATTR_SERVER_PORT, cases[i].port);
		assert_text(s, ATTR_URL_PATH, NULL);
		assert_text(s, ATTR_CLIENT_ADDRESS, NULL);
		assert_text(s, ATTR_NETWORK_PEER_ADDRESS, "192.0.2.8");
		assert_number(s, ATTR_NETWORK_PEER_PORT, 9090);
		assert_text(s, ATTR_TSUNAGI_PARENT_REASON, "undecided");
	}
	assert_int_equal(scene_metric(sc, METRIC_SPANS_CLIENT), ARRAY_SIZE(cases));
}

static void test_method(void **state)
{
	struct scene *sc = *state;
	struct span *s = exchange(sc, "get / HTTP/1.1\r\nHost: h\r\n\r\n", OK_LENGTH);

	assert_name(s, "HTTP");
	assert_text(s, ATTR_HTTP_REQUEST_METHOD, "_OTHER");
	assert_text(s, ATTR_HTTP_REQUEST_METHOD_ORIGINAL, "get");
	s = exchange(sc, "QUERY / HTTP/1.0\r\n\r\n", OK_LENGTH);
	assert_name(s, "QUERY");
	assert_text(s, ATTR_NETWORK_PROTOCOL_VERSION, "1.0");
}

/* A server's 4xx is the client's fault, and an error of the client span alone. */
static void test_status(void **state)
{
	static const struct {
		int64_t status;
		const char *server_error, *client_error;
	} cases[] = {
		{200, NULL, NULL},  {302, NULL, NULL},   {399, NULL, NULL},   {400, NULL, "400"},
		{404, NULL, "404"}, {500, "500", "500"}, {503, "503", "503"}, {999, "999", "999"},
	};
	struct scene *sc = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[64];

		snprintf(text, sizeof(text), "HTTP/1.1 %u X\r\n\r\n", (unsigned)cases[i].status);
		sc->role = EVENT_ROLE_SERVER;
		assert_result(exchange(sc, "GET / HTTP/1.1\r\n\r\n", text), cases[i].status,
			      cases[i].server_error);
		assert_result(client_exchange(sc, "GET / HTTP/1.1\r\n\r\n", text), cases[i].status,
			      cases[i].client_error);
	}
}

static void test_addresses(void **state)
{
	static const struct {
		const char *address, *printed;
	} cases[] = {
		{"::1", "::1"},
		{"::ffff:192.0.2.1", "192.0.2.1"},
		{"2001:db8::1", "2001:db8::1"},
		{"127.0.0.1", "127.0.0.1"},
	};
	struct scene *sc = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		sc->remote = scene_endpoint(cases[i].address, 1);
		assert_text(exchange(sc, "GET / HTTP/1.1\r\n\r\n", OK_LENGTH),
			    ATTR_NETWORK_PEER_ADDRESS, cases[i].printed);
	}
	sc->remote = (struct event_endpoint){0};
	assert_text(exchange(sc, "GET / HTTP/1.1\r\n\r\n", OK_LENGTH), ATTR_NETWORK_PEER_ADDRESS,
		    NULL);
}

/* Whatever bytes came in, what goes out is UTF-8: a collector may refuse a batch for less. */
static void test_utf8(void **state)
{
	struct scene *sc = *state;
	struct span *s = exchange(sc,
				  "GET /\xc3\xa4\xff?\x80 HTTP/1.1\r\nHost: \xff\r\n"
				  "User-Agent: a\xc3\xa4 \xff\xe2\x82 \xed\xa0\x80\xc3\r\n\r\n",
				  OK_LENGTH);

	assert_text(s, ATTR_URL_PATH, "/%C3%A4%FF");
	assert_text(s, ATTR_URL_QUERY, "%80");
	assert_text(s, ATTR_SERVER_ADDRESS, "127.0.0.1");
	assert_text(s, ATTR_USER_AGENT_ORIGINAL, "a\xc3\xa4 ??? ????");
}

static struct event decided(struct scene *sc, enum parent_reason reason, const char *request)
{
	struct event e;

	sc->connection++;
	e = scene_head(sc, true, 1, str_from(request));
	e.head.has_decision = true;
	e.head.reason = reason;
	assert_true(ids_from_hex(T1, 16, e.head.trace_id.b));
	assert_true(ids_from_hex("00f067aa0ba902b7", 8, e.head.span_id.b));
	assert_true(ids_from_hex(S1, 8, e.head.parent_span_id.b));
	e.head.trace_flags = TRACE_FLAG_SAMPLED;
	return e;
}

static struct span *finish(struct scene *sc, const struct event *e)
{
	stitch_event(sc->stitch, e);
	scene_response_whole(sc, 1, OK_LENGTH);
	return sc->spans[sc->n_spans - 1];
}

static void test_decision(void **state)
{
	struct scene *sc = *state;
	struct event e = decided(sc, PARENT_HEADER,
				 "GET / HTTP/1.1\r\ntraceparent: 00-" T1 "-" S1 "-01\r\n"
				 "tracestate: a=1\r\nTracestate: b=2\r\n\r\n");
	struct span *s = finish(sc, &e);

	assert_memory_equal(&s->trace_id, &e.head.trace_id, sizeof(s->trace_id));
	assert_memory_equal(&s->span_id, &e.head.span_id, sizeof(s->span_id));
	assert_memory_equal(&s->parent_span_id, &e.head.parent_span_id, sizeof(s->parent_span_id));
	assert_int_equal(s->trace_flags, TRACE_FLAG_SAMPLED);
	assert_int_equal(s->tracestate.n, strlen("a=1,b=2"));
	assert_memory_equal(s->tracestate.p, "a=1,b=2", s->tracestate.n);
	assert_int_equal(scene_metric(sc, METRIC_PARENT_HEADER), 1);

	/* tracestate without its traceparent says nothing. */
	e = decided(sc, PARENT_JOINED, "GET / HTTP/1.1\r\ntracestate: a=1\r\n\r\n");
	s = finish(sc, &e);
	assert_true(span_id_is_valid(&s->parent_span_id));
	assert_int_equal(s->tracestate.n, 0);
	assert_int_equal(scene_metric(sc, METRIC_PARENT_JOINED), 1);
	assert_int_equal(sc->n_revoked, 0);
}

static void test_no_decision(void **state)
{
	struct scene *sc = *state;
	struct span *s = exchange(sc, "GET / HTTP/1.1\r\n\r\n", OK_LENGTH);
	struct event e;

	assert_false(span_id_is_valid(&s->parent_span_id));
	assert_int_equal(s->trace_flags, TRACE_FLAG_SAMPLED | TRACE_FLAG_RANDOM);
	assert_int_equal(scene_metric(sc, METRIC_PARENT_UNDECIDED), 1);

	/* Ids that are all-zero are no decision. */
	e = decided(sc, PARENT_JOINED, "GET / HTTP/1.1\r\n\r\n");
	e.head.span_id = (struct span_id){0};
	s = finish(sc, &e);
	assert_false(span_id_is_valid(&s->parent_span_id));
	assert_memory_not_equal(&s->trace_id, &e.head.trace_id, sizeof(s->trace_id));
	assert_int_equal(scene_metric(sc, METRIC_PARENT_UNDECIDED), 2);
}

/*
 * A decision "from the header" that the header does not bear out: no parent, and the context is
 * taken back.
 */
static void test_mismatch(void **state)
{
	static const char *const headers[] = {
		"",
		"traceparent: 00-1af7651916cd43dd8448eb211c80319c-" S1 "-01\r\n",
		"traceparent: 00-" T1 "-" S1 "-01-x\r\n",
		"traceparent: 00-" T1 "-" S1 "-01\r\n"
		"traceparent: 00-1af7651916cd43dd8448eb211c80319c-" S1 "-01\r\n",
	};
	struct scene *sc = *state;

	for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
		char request[512];
		struct event e;
		struct span *s;

		snprintf(request, sizeof(request), "GET / HTTP/1.1\r\n%stracestate: a=1\r\n\r\n",
			 headers[i]);
		e = decided(sc, PARENT_HEADER, request);
		s = finish(sc, &e);
		assert_false(span_id_is_valid(&s->parent_span_id));
		assert_memory_equal(&s->span_id, &e.head.span_id, sizeof(s->span_id));
		assert_int_equal(s->tracestate.n, 0);
		assert_int_equal(sc->n_revoked, i + 1);
	}
	assert_int_equal(scene_metric(sc, METRIC_PARENT_MISMATCH), ARRAY_SIZE(headers));
}

/* A goroutine is named beside the thread that it ran on. */
static void test_goroutine(void **state)
{
	struct scene *sc = *state;
	struct event e = decided(sc, PARENT_NONE_REMOTE, "GET / HTTP/1.1\r\n\r\n");
	struct span *s;

	s = finish(sc, &e);
	assert_null(span_get(s, ATTR_TSUNAGI_GOROUTINE_ID));
	e = decided(sc, PARENT_NONE_REMOTE, "GET / HTTP/1.1\r\n\r\n");
	e.head.goroutine = 1234567890123;
	s = finish(sc, &e);
	assert_number(s, ATTR_TSUNAGI_GOROUTINE_ID, 1234567890123);
	assert_number(s, ATTR_THREAD_ID, 4243);
}

/* Each reason has its counter, and a client root says its reason. */
static void test_reasons(void **state)
{
	struct scene *sc = *state;

	sc->role = EVENT_ROLE_CLIENT;
	for (enum parent_reason r = PARENT_NONE_REMOTE; r < _PARENT_REASON_MAX; r++) {
		struct event e = decided(sc, r, "GET / HTTP/1.1\r\n\r\n");

		e.head.parent_span_id = (struct span_id){0};
		assert_text(finish(sc, &e), ATTR_TSUNAGI_PARENT_REASON, parent_reason_name(r));
	}
	assert_int_equal(scene_metric(sc, METRIC_PARENT_NONE_REMOTE), 1);
	assert_int_equal(scene_metric(sc, METRIC_PARENT_NONE_NO_UNIT), 1);
	assert_int_equal(scene_metric(sc, METRIC_PARENT_NONE_NO_REQUEST), 1);
	assert_int_equal(scene_metric(sc, METRIC_PARENT_NONE_AMBIGUOUS), 1);
	assert_int_equal(scene_metric(sc, METRIC_PARENT_NONE_TRUNCATED), 1);
	assert_int_equal(scene_metric(sc, METRIC_PARENT_NONE_LATE), 1);
}

/* A server's route comes with its response, and is in its span's name. */
static void test_route(void **state)
{
	static const struct {
		enum event_route kind;
		const char *text, *route, *name;
		uint64_t goroutine;
	} cases[] = {
		{EVENT_ROUTE_PATTERN, "PUT h/r/{id}", "/r/{id}", "PUT /r/{id}", 12},
		{EVENT_ROUTE_TEMPLATE, "/r/:id", "/r/:id", "PUT /r/:id", 12},
		{EVENT_ROUTE_CHI, "/r/*/:id", "/r/:id", "PUT /r/:id", 12},
		{EVENT_ROUTE_TEMPLATE, "r", NULL, "PUT", 12},
		{EVENT_ROUTE_NONE, "", NULL, "PUT", 12},
		{EVENT_ROUTE_TEMPLATE, "/r", NULL, "PUT", 0},
	};
	struct scene *sc = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct event e = scene_head(sc, true, (uint32_t)i + 1,
					    STR("PUT /r/1 HTTP/1.1\r\nHost: h\r\n\r\n"));

		e.head.goroutine = cases[i].goroutine;
		stitch_event(sc->stitch, &e);
		e = scene_head(sc, false, (uint32_t)i + 1, STR(OK_LENGTH));
		e.head.is_complete = true;
		e.head.route_kind = cases[i].kind;
		e.head.route = str_from(cases[i].text);
		stitch_event(sc->stitch, &e);
		assert_int_equal(sc->n_spans, i + 1);
		assert_text(sc->spans[i], ATTR_HTTP_ROUTE, cases[i].route);
		assert_name(sc->spans[i], cases[i].name);
	}
	assert_int_equal(scene_metric(sc, METRIC_ROUTES_BAD), 1);
}

/* Retries: one span for each attempt, each with its own id, status and the same parent. */
static void test_retries(void **state)
{
	static const int statuses[] = {503, 503, 200};
	struct scene *sc = *state;

	sc->role = EVENT_ROLE_CLIENT;
	for (uint32_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		struct event e = decided(sc, PARENT_UNIT, "GET /r HTTP/1.1\r\nHost: h\r\n\r\n");
		char text[64];

		e.head.is_proven = true;
		e.head.span_id.b[7] = (uint8_t)i;
		stitch_event(sc->stitch, &e);
		snprintf(text, sizeof(text), "HTTP/1.1 %d X\r\n\r\n", statuses[i]);
		scene_response_whole(sc, 1, text);
		assert_result(sc->spans[i], statuses[i], statuses[i] == 503 ? "503" : NULL);
		assert_int_equal(sc->spans[i]->span_id.b[7], i);
		assert_memory_equal(&sc->spans[i]->parent_span_id, &sc->spans[0]->parent_span_id,
				    8);
		assert_text(sc->spans[i], ATTR_TSUNAGI_PARENT_REASON, NULL);
	}
	assert_int_equal(sc->n_spans, 3);
	assert_int_equal(scene_metric(sc, METRIC_PARENT_UNIT), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_server),         SCENE_TEST(test_secrets),
		SCENE_TEST(test_server_address), SCENE_TEST(test_client),
		SCENE_TEST(test_method),         SCENE_TEST(test_status),
		SCENE_TEST(test_addresses),      SCENE_TEST(test_utf8),
		SCENE_TEST(test_decision),       SCENE_TEST(test_no_decision),
		SCENE_TEST(test_mismatch),       SCENE_TEST(test_reasons),
		SCENE_TEST(test_retries),        SCENE_TEST(test_goroutine),
		SCENE_TEST(test_route),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
