/* Tests of http/head.c: every form of head a server meets, cut at every byte, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/util.h"
#include "http/head.h"

#define assert_str(view, text)                                     \
	do {                                                       \
		assert_int_equal((view).n, strlen(text));          \
		assert_memory_equal((view).p, text, strlen(text)); \
	} while (0)

/* In memory of exactly its size, so that a sanitizer sees a read past the end. */
static int parse_exact(struct str bytes, struct http_head *ret)
{
	char *copy = malloc(bytes.n ? bytes.n : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, bytes.p ? bytes.p : "", bytes.n);
	r = http_head_parse((struct str){.p = copy, .n = bytes.n}, ret);
	free(copy);
	return r;
}

/* DONE for the whole, MORE for every beginning of it; 'ret' views 'text'. */
static struct http_head parse(const char *text)
{
	struct http_head h;
	struct str all = str_from(text);

	assert_int_equal(http_head_parse(all, &h), HTTP_HEAD_DONE);
	for (size_t n = 0; n < h.head_bytes; n++) {
		struct http_head partial;

		assert_int_equal(parse_exact((struct str){.p = text, .n = n}, &partial),
				 HTTP_HEAD_MORE);
	}
	return h;
}

static void assert_bad(const char *text)
{
	struct http_head h;

	assert_int_equal(parse_exact(str_from(text), &h), HTTP_HEAD_BAD);
}

static void test_request(void **state)
{
	struct http_head h =
		parse("POST /a/b?c=d HTTP/1.1\r\n"
		      "Host: example.org:8080\r\n"
		      "User-Agent: curl/8.0 (x)\r\n"
		      "content-length: 12\r\n"
		      "TraceParent:\t00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 \r\n"
		      "tracestate: a=1\r\n"
		      "Tracestate: b=2\r\n"
		      "Connection: Keep-Alive, Upgrade\r\n"
		      "\r\nGET /body HTTP/1.1\r\n");

	(void)state;
	assert_true(h.is_request);
	assert_int_equal(h.method, HTTP_METHOD_POST);
	assert_str(h.method_text, "POST");
	assert_str(h.target, "/a/b?c=d");
	assert_int_equal(h.minor_version, 1);
	assert_str(h.host, "example.org:8080");
	assert_int_equal(h.n_hosts, 1);
	assert_str(h.user_agent, "curl/8.0 (x)");
	assert_int_equal(h.content_length, 12);
	assert_str(h.traceparent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
	assert_int_equal(h.n_traceparents, 1);
	assert_int_equal(h.n_tracestates, 2);
	assert_str(h.tracestates[0], "a=1");
	assert_str(h.tracestates[1], "b=2");
	assert_true(h.has_keep_alive);
	assert_false(h.has_close);
	assert_false(h.is_chunked);
}

static void test_response(void **state)
{
	struct http_head h = parse("HTTP/1.0 404 Not Found\r\nTransfer-Encoding: gzip, Chunked\r\n"
				   "Connection: x, close\r\n\r\nbody");

	(void)state;
	assert_false(h.is_request);
	assert_int_equal(h.status, 404);
	assert_int_equal(h.minor_version, 0);
	assert_str(h.reason, "Not Found");
	assert_true(h.is_chunked);
	assert_true(h.has_close);
	assert_int_equal(h.content_length, -1);

	h = parse("HTTP/1.1 200\r\n\r\n");
	assert_int_equal(h.status, 200);
	assert_str(h.reason, "");
	h = parse("HTTP/1.1 999 \xff\xfe\r\n\r\n");
	assert_int_equal(h.status, 999);
}

/* Bare LF, empty lines in front, no headers, blanks before the line's end. */
static void test_tolerated(void **state)
{
	struct http_head h = parse("\r\n\n\r\nGET / HTTP/1.1\nHost: a\n\n");

	(void)state;
	assert_str(h.host, "a");
	assert_int_equal(h.head_bytes, strlen("\r\n\n\r\nGET / HTTP/1.1\nHost: a\n\n"));
	h = parse("GET  /x  HTTP/1.0 \r\n\r\n");
	assert_str(h.target, "/x");
	assert_int_equal(h.minor_version, 0);
	h = parse("HTTP/1.1 200 OK\n\n");
	assert_int_equal(h.status, 200);
	h = parse("GET /\xc3\xa4 HTTP/1.1\r\nno colon here\r\n: no name\r\nX : y\r\n\r\n");
	assert_str(h.target, "/\xc3\xa4");
}

/* A value that goes on in the next line is not known; the head is still a head. */
static void test_folded(void **state)
{
	struct http_head h = parse("GET / HTTP/1.1\r\nX: a\r\n b\r\nHost: a\r\n .evil\r\n"
				   "User-Agent: u\r\n\tv\r\nContent-Length: 1\r\n 2\r\n\r\n");

	(void)state;
	assert_int_equal(h.host.n, 0);
	assert_int_equal(h.user_agent.n, 0);
	assert_int_equal(h.content_length, -1);
	assert_true(h.has_bad_framing);
	h = parse("GET / HTTP/1.1\r\nX: a\r\n Host: b\r\n\r\n");
	assert_int_equal(h.n_hosts, 0);
}

static void test_methods(void **state)
{
	static const struct {
		const char *text;
		enum http_method method;
	} cases[] = {
		{"GET", HTTP_METHOD_GET},         {"HEAD", HTTP_METHOD_HEAD},
		{"POST", HTTP_METHOD_POST},       {"PUT", HTTP_METHOD_PUT},
		{"DELETE", HTTP_METHOD_DELETE},   {"CONNECT", HTTP_METHOD_CONNECT},
		{"OPTIONS", HTTP_METHOD_OPTIONS}, {"TRACE", HTTP_METHOD_TRACE},
		{"PATCH", HTTP_METHOD_PATCH},     {"QUERY", HTTP_METHOD_QUERY},
		{"PROPFIND", HTTP_METHOD_OTHER},  {"MKCALENDAR", HTTP_METHOD_OTHER},
		{"PURGE", HTTP_METHOD_OTHER},     {"M-SEARCH", HTTP_METHOD_OTHER},
		{"get", HTTP_METHOD_OTHER},       {"GETX", HTTP_METHOD_OTHER},
		{"HTTP", HTTP_METHOD_OTHER},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[128];
		struct http_head h;

		snprintf(text, sizeof(text), "%s / HTTP/1.1\r\n\r\n", cases[i].text);
		h = parse(text);
		assert_int_equal(h.method, cases[i].method);
		assert_str(h.method_text, cases[i].text);
		if (h.method != HTTP_METHOD_OTHER)
			assert_str(http_method_name(h.method), cases[i].text);
	}
	assert_str(http_method_name(HTTP_METHOD_OTHER), "_OTHER");
}

static void test_bad(void **state)
{
	static const char *const cases[] = {
		"GETX\x01\x02\x03",
		"\x16\x03\x01\x02",
		" GET / HTTP/1.1\r\n\r\n",
		"ABCDEFGHIJABCDEFGHIJABCDEFGHIJABCDEFGHIJ / HTTP/1.1\r\n\r\n",
		"GET /\r\n",
		"GET / HTTP/2.0\r\n\r\n",
		"GET / HTTP/1.2\r\n\r\n",
		"GET / HTTP/1.1x\r\n\r\n",
		"GET / HTTP/1.10\r\n\r\n",
		"GET /a b HTTP/1.1\r\n\r\n",
		"GET\t/ HTTP/1.1\r\n\r\n",
		"GET /\x7f HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\rX: y\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"HTTP/1.1 99\r\n",
		"HTTP/1.1 099 x\r\n",
		"HTTP/1.1 2000 x\r\n",
		"HTTP/1.1 2x0 x\r\n",
		"HTTP/2 200\r\n",
		"HTTP is fun",
		"HTTP/1.1  \r\n",
		"*3\r\n$3\r\nSET\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_bad(cases[i]);
	/* Zero bytes count too. */
	assert_int_equal(parse_exact(STR("GET /\0 HTTP/1.1\r\n\r\n"), &(struct http_head){0}),
			 HTTP_HEAD_BAD);
}

static void test_output_untouched(void **state)
{
	struct http_head h = {.status = 77};

	(void)state;
	assert_int_equal(http_head_parse(STR("HTTP/1.1 200 OK\r\n"), &h), HTTP_HEAD_MORE);
	assert_int_equal(http_head_parse(STR("HTTP/1.1 2x0 OK\r\n\r\n"), &h), HTTP_HEAD_BAD);
	assert_int_equal(h.status, 77);
}

static void test_host(void **state)
{
	struct http_head h = parse("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");

	(void)state;
	assert_int_equal(h.n_hosts, 2);
	assert_int_equal(h.host.n, 0);
	h = parse("GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n");
	assert_int_equal(h.n_hosts, 2);
	assert_str(h.host, "a");
	h = parse("GET / HTTP/1.0\r\n\r\n");
	assert_int_equal(h.n_hosts, 0);
	h = parse("GET / HTTP/1.1\r\nHost: a\x01\r\nUser-Agent: \x1b[31m\r\n\r\n");
	assert_int_equal(h.host.n, 0);
	assert_int_equal(h.user_agent.n, 0);
	h = parse("GET / HTTP/1.1\r\nHostess: a\r\nX-Host: b\r\nHost : c\r\n\r\n");
	assert_int_equal(h.n_hosts, 0);
}

static void test_traceparents(void **state)
{
	struct http_head h = parse("GET / HTTP/1.1\r\ntraceparent: a\r\ntraceparent: b\r\n"
				   "traceparent: a\r\n\r\n");

	(void)state;
	assert_int_equal(h.n_traceparents, 3);
	assert_int_equal(h.traceparent.n, 0);
	h = parse("GET / HTTP/1.1\r\ntracestate: 1\r\ntracestate: 2\r\ntracestate: 3\r\n"
		  "tracestate: 4\r\ntracestate: 5\r\n\r\n");
	assert_int_equal(h.n_tracestates, 5);
	assert_str(h.tracestates[3], "4");
}

static void test_content_length(void **state)
{
	static const struct {
		const char *headers;
		int64_t length;
		bool is_bad;
	} cases[] = {
		{"", -1, false},
		{"Content-Length: 0\r\n", 0, false},
		{"Content-Length: 9223372036854775807\r\n", INT64_MAX, false},
		{"Content-Length: 9223372036854775808\r\n", -1, true},
		{"Content-Length: 18446744073709551616\r\n", -1, true},
		{"Content-Length: -1\r\n", -1, true},
		{"Content-Length: +1\r\n", -1, true},
		{"Content-Length: 5, 5\r\n", -1, true},
		{"Content-Length:\r\n", -1, true},
		{"Content-Length: 0x10\r\n", -1, true},
		{"Content-Length: 5\r\nContent-Length: 5\r\n", 5, false},
		{"Content-Length: 5\r\nContent-Length: 6\r\n", -1, true},
		{"Content-Length: 5\r\nContent-Length: 6\r\nContent-Length: 5\r\n", -1, true},
		{"Content-Length: x\r\nContent-Length: 5\r\n", -1, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[256];
		struct http_head h;

		snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\n%s\r\n", cases[i].headers);
		h = parse(text);
		assert_int_equal(h.content_length, cases[i].length);
		assert_int_equal(h.has_bad_framing, cases[i].is_bad);
	}
}

static void test_framing(void **state)
{
	static const struct {
		enum http_method method;
		const char *response;
		enum http_framing framing;
	} cases[] = {
		{HTTP_METHOD_GET, "200 OK\r\nContent-Length: 5", HTTP_FRAMING_LENGTH},
		{HTTP_METHOD_GET, "200 OK\r\nX: y", HTTP_FRAMING_CLOSE_DELIMITED},
		{HTTP_METHOD_GET, "200 OK\r\nTransfer-Encoding: chunked", HTTP_FRAMING_CHUNKED},
		{HTTP_METHOD_GET, "200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5",
		 HTTP_FRAMING_CHUNKED},
		{HTTP_METHOD_GET, "200 OK\r\nTransfer-Encoding: chunked, gzip",
		 HTTP_FRAMING_CLOSE_DELIMITED},
		{HTTP_METHOD_GET, "200 OK\r\nContent-Length: -5", HTTP_FRAMING_CLOSE_DELIMITED},
		{HTTP_METHOD_HEAD, "200 OK\r\nContent-Length: 5", HTTP_FRAMING_NO_BODY},
		{HTTP_METHOD_GET, "204 No\r\nContent-Length: 5", HTTP_FRAMING_NO_BODY},
		{HTTP_METHOD_GET, "304 No\r\nTransfer-Encoding: chunked", HTTP_FRAMING_NO_BODY},
		{HTTP_METHOD_POST, "100 Continue", HTTP_FRAMING_NO_BODY},
		{HTTP_METHOD_GET, "101 Up", HTTP_FRAMING_TUNNEL},
		{HTTP_METHOD_CONNECT, "200 OK\r\nContent-Length: 5", HTTP_FRAMING_TUNNEL},
		{HTTP_METHOD_CONNECT, "407 No\r\nContent-Length: 5", HTTP_FRAMING_LENGTH},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[256];
		struct http_head h;

		snprintf(text, sizeof(text), "HTTP/1.1 %s\r\n\r\n", cases[i].response);
		h = parse(text);
		assert_int_equal(http_framing(cases[i].method, &h), cases[i].framing);
	}
}

/* Cut at every byte: a header is whole or absent, the target is cut only where the bytes end. */
static void test_truncated(void **state)
{
	static const char text[] = "GET /some/path HTTP/1.1\r\nHost: a.example:8080\r\n"
				   "User-Agent: abc\r\nX: y\r\n\r\n";
	static const size_t line = sizeof("GET /some/path HTTP/1.1\r\n") - 1;
	static const size_t host_line = sizeof("Host: a.example:8080\r\n") - 1;

	(void)state;
	for (size_t n = 0; n < sizeof(text); n++) {
		char *copy = malloc(n ? n : 1);
		struct http_head h;
		int r;

		assert_non_null(copy);
		memcpy(copy, text, n);
		r = http_head_parse_truncated((struct str){.p = copy, .n = n}, &h);
		if (n <= strlen("GET ")) {
			assert_int_equal(r, HTTP_HEAD_BAD);
			free(copy);
			continue;
		}
		assert_int_equal(r, HTTP_HEAD_DONE);
		assert_true(h.is_request);
		assert_int_equal(h.method, HTTP_METHOD_GET);
		assert_memory_equal(h.target.p, "/some/path", h.target.n);
		assert_int_equal(h.target.n, MIN(n - strlen("GET "), strlen("/some/path")));
		assert_int_equal(h.minor_version, n < line ? -1 : 1);
		if (n > line + host_line)
			assert_str(h.host, "a.example:8080");
		else
			assert_int_equal(h.host.n, 0);
		free(copy);
	}
	assert_int_equal(http_head_parse_truncated(STR("GETX /junk"), &(struct http_head){0}),
			 HTTP_HEAD_BAD);
	assert_int_equal(http_head_parse_truncated(STR("GET junk"), &(struct http_head){0}),
			 HTTP_HEAD_BAD);
	assert_int_equal(http_head_parse_truncated(STR("HTTP/1.1 20"), &(struct http_head){0}),
			 HTTP_HEAD_BAD);
}

static void test_large(void **state)
{
	size_t n = HTTP_HEAD_BYTES_MAX + 100;
	char *text = malloc(n);
	struct http_head h;

	(void)state;
	assert_non_null(text);
	memset(text, 'a', n);
	memcpy(text, "GET /", 5);
	assert_int_equal(http_head_parse((struct str){.p = text, .n = HTTP_HEAD_BYTES_MAX - 1}, &h),
			 HTTP_HEAD_MORE);
	assert_int_equal(http_head_parse((struct str){.p = text, .n = n}, &h), HTTP_HEAD_BAD);
	assert_int_equal(http_head_parse_truncated((struct str){.p = text, .n = n}, &h),
			 HTTP_HEAD_DONE);
	assert_int_equal(h.target.n, HTTP_HEAD_BYTES_MAX - 4);

	/* As large as may be, and followed by a body. */
	memcpy(text + HTTP_HEAD_BYTES_MAX - 13, " HTTP/1.1\r\n\r\n", 13);
	assert_int_equal(http_head_parse((struct str){.p = text, .n = n}, &h), HTTP_HEAD_DONE);
	assert_int_equal(h.head_bytes, HTTP_HEAD_BYTES_MAX);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_response),
		cmocka_unit_test(test_tolerated),
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_methods),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_output_untouched),
		cmocka_unit_test(test_host),
		cmocka_unit_test(test_traceparents),
		cmocka_unit_test(test_content_length),
		cmocka_unit_test(test_framing),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
