/* Tests of http/url.c: the forms of a request target, Host values, and that no secret gets out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/util.h"
#include "http/url.h"

static void assert_str(struct str view, const char *text)
{
	assert_int_equal(view.n, strlen(text));
	assert_memory_equal(view.p ? view.p : "", text, view.n);
}

static void test_target(void **state)
{
	static const struct {
		const char *target, *scheme, *host, *path, *query;
		uint16_t port;
		bool is_connect;
		enum url_form form;
	} cases[] = {
		{"/", "", "", "/", "", 0, false, URL_FORM_ORIGIN},
		{"/a?b", "", "", "/a", "b", 0, false, URL_FORM_ORIGIN},
		{"/a?", "", "", "/a", "", 0, false, URL_FORM_ORIGIN},
		{"/a?b?c#d", "", "", "/a", "b?c", 0, false, URL_FORM_ORIGIN},
		{"/a#b?c", "", "", "/a", "", 0, false, URL_FORM_ORIGIN},
		{"/a%2Fb;x", "", "", "/a%2Fb;x", "", 0, false, URL_FORM_ORIGIN},
		{"//x/y", "", "", "//x/y", "", 0, false, URL_FORM_ORIGIN},
		{"/http://u:p@h/", "", "", "/http://u:p@h/", "", 0, false, URL_FORM_ORIGIN},
		{"*", "", "", "*", "", 0, false, URL_FORM_ASTERISK},
		{"h:443", "", "h", "", "", 443, true, URL_FORM_AUTHORITY},
		{"[::1]:443", "", "::1", "", "", 443, true, URL_FORM_AUTHORITY},
		{"http://h", "http", "h", "/", "", 0, false, URL_FORM_ABSOLUTE},
		{"http://h:1/p?q", "http", "h", "/p", "q", 1, false, URL_FORM_ABSOLUTE},
		{"http://h?q", "http", "h", "/", "q", 0, false, URL_FORM_ABSOLUTE},
		{"HTTPS://h:/p", "HTTPS", "h", "/p", "", 0, false, URL_FORM_ABSOLUTE},
		{"http://u:p@h/", "http", "h", "/", "", 0, false, URL_FORM_ABSOLUTE},
		{"http://u:p@x@h:8/", "http", "h", "/", "", 8, false, URL_FORM_ABSOLUTE},
		{"http://u@[2001:db8::1]:8080/p?q", "http", "2001:db8::1", "/p", "q", 8080, false,
		 URL_FORM_ABSOLUTE},
		{"http://h:99999/p", "http", "", "/p", "", 0, false, URL_FORM_ABSOLUTE},
		{"http://u:p@/p", "http", "", "/p", "", 0, false, URL_FORM_ABSOLUTE},
		{"http://h/p@q", "http", "h", "/p@q", "", 0, false, URL_FORM_ABSOLUTE},
	};
	static const char *const bad[] = {"", "a", "a/b", "http:/x", "://x", "1http", "**"};
	struct url url;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(
			url_parse_target(str_from(cases[i].target), cases[i].is_connect, &url), 0);
		assert_int_equal(url.form, cases[i].form);
		assert_str(url.scheme, cases[i].scheme);
		assert_str(url.host, cases[i].host);
		assert_str(url.path, cases[i].path);
		assert_str(url.query, cases[i].query);
		assert_int_equal(url.port, cases[i].port);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(url_parse_target(str_from(bad[i]), false, &url), URL_BAD);
	assert_int_equal(url_parse_target(STR("/a"), true, &url), URL_BAD);
	assert_int_equal(url_parse_target(STR("u:p@h:443"), true, &url), URL_BAD);
}

static void test_authority(void **state)
{
	static const struct {
		const char *authority, *host;
		uint16_t port;
	} cases[] = {
		{"a", "a", 0},
		{"a:", "a", 0},
		{"a:80", "a", 80},
		{"a.b-c_d:65535", "a.b-c_d", 65535},
		{"127.0.0.1:1", "127.0.0.1", 1},
		{"[::1]", "::1", 0},
		{"[::1]:80", "::1", 80},
		{"[fe80::1%25eth0]:80", "fe80::1%25eth0", 80},
		{"[::ffff:1.2.3.4]:80", "::ffff:1.2.3.4", 80},
	};
	static const char *const bad[] = {
		"",
		":80",
		"a:65536",
		"a:8a",
		"a:-1",
		"a b",
		"a/b",
		"u@h",
		"::1",
		"[]",
		"[::1",
		"[::1]x",
		"[g::]",
		"[::1]:x",
		"a\"",
		"a<b>",
		"\xc3",
		"[::%/]",
		"a:99999999999999999999",
	};
	struct str host;
	uint16_t port;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(url_parse_authority(str_from(cases[i].authority), &host, &port),
				 0);
		assert_str(host, cases[i].host);
		assert_int_equal(port, cases[i].port);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(url_parse_authority(str_from(bad[i]), &host, &port), URL_BAD);
	assert_int_equal(url_parse_authority(STR("a\0b"), &host, &port), URL_BAD);
}

static void test_redact(void **state)
{
	static const struct {
		const char *query, *redacted;
	} cases[] = {
		{"", ""},
		{"a=1&b=2", "a=1&b=2"},
		{"a&b&&=&=x&c=", "a&b&&=&=x&c="},
		{"X-Amz-Signature=abc&sig=d&a=1", "X-Amz-Signature=REDACTED&sig=REDACTED&a=1"},
		{"SIG=1&Signature=2&x-goog-signature=3&AWSAccessKeyId=4",
		 "SIG=REDACTED&Signature=REDACTED&x-goog-signature=REDACTED&AWSAccessKeyId="
		 "REDACTED"},
		{"token=1&access_token=2&api_key=3&key=4&password=5&secret=6",
		 "token=REDACTED&access_token=REDACTED&api_key=REDACTED&key=REDACTED&"
		 "password=REDACTED&secret=REDACTED"},
		{"X-Amz-Credential=1&X-Amz-Security-Token=2&x-amz-security%2dtoken=3",
		 "X-Amz-Credential=REDACTED&X-Amz-Security-Token=REDACTED&"
		 "x-amz-security%2dtoken=REDACTED"},
		{"x-amz-security-tokens=1", "x-amz-security-tokens=1"},
		{"key", "key"},
		{"key=", "key="},
		{"key=a=b;c&d=e", "key=REDACTED&d=e"},
		{"a=1;token=x;y=2&b=3", "a=1;token=REDACTED&b=3"},
		{"a;token=x", "a;token=REDACTED"},
		{"%74oken=x&to%6ben=y&to%zzken=z", "%74oken=REDACTED&to%6ben=REDACTED&to%zzken=z"},
		{"keys=1&monkey=2&token2=3", "keys=1&monkey=2&token2=3"},
		{"key=a&key=b&key=c", "key=REDACTED&key=REDACTED&key=REDACTED"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct str query = str_from(cases[i].query);
		size_t size = URL_REDACTED_BYTES_MAX(query.n);
		char *buffer = malloc(size);

		assert_non_null(buffer);
		assert_str((struct str){.p = buffer, .n = url_redact_query(query, buffer, size)},
			   cases[i].redacted);
		free(buffer);
	}
}

/* A buffer that is too small cuts the text, and nothing else. */
static void test_redact_bounded(void **state)
{
	static const char query[] = "a=1&token=verysecret&b=2";
	static const char redacted[] = "a=1&token=REDACTED&b=2";

	(void)state;
	for (size_t size = 0; size < sizeof(redacted); size++) {
		char *buffer = malloc(size ? size : 1);

		assert_non_null(buffer);
		assert_int_equal(url_redact_query(str_from(query), buffer, size), size);
		assert_memory_equal(buffer, redacted, size);
		free(buffer);
	}
}

static void test_escape(void **state)
{
	char buffer[64];

	(void)state;
	assert_str((struct str){.p = buffer, .n = url_escape(STR("/\xc3\xa4%20\xff"), buffer)},
		   "/%C3%A4%20%FF");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_target), cmocka_unit_test(test_authority),
		cmocka_unit_test(test_redact), cmocka_unit_test(test_redact_bounded),
		cmocka_unit_test(test_escape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
