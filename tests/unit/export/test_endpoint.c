/* Which URL is posted to. */
#include "make.h"

#include "export/endpoint.h"

TEST(test_urls)
{
	static const struct {
		const char *endpoint, *url;
	} cases[] = {
		{"http://h:4318", "http://h:4318/v1/traces"},
		{"http://h:4318/", "http://h:4318/v1/traces"},
		{"http://h:4318/v1/traces", "http://h:4318/v1/traces"},
		{"http://h:4318/pre", "http://h:4318/pre"},
		{"http://h:4318/pre/", "http://h:4318/pre/"},
		{"http://h:4318//", "http://h:4318//"},
		{"http://h:4318?token=a%20b", "http://h:4318/v1/traces?token=a%20b"},
		{"http://h:4318/pre?x=1", "http://h:4318/pre?x=1"},
		{"https://collector.example", "https://collector.example/v1/traces"},
		{"http://[::1]:4318", "http://[::1]:4318/v1/traces"},
		{"http://[fe80::1%25eth0]:4318", "http://[fe80::1%25eth0]:4318/v1/traces"},
		{"http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"},
		{"HTTP://h", "http://h/v1/traces"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct endpoint e;

		assert_int_equal(endpoint_parse(cases[i].endpoint, &e), 0);
		assert_string_equal(e.url, cases[i].url);
		endpoint_done(&e);
	}
}

TEST(test_invalid)
{
	static const char *const cases[] = {
		"",
		"h:4318",
		"localhost",
		"/v1/traces",
		"ftp://h/",
		"file:///etc",
		"http://",
		"http://:4318",
		"http://h:port",
		"http://h:99999",
		"http://[::1",
		"http://h h/pre",
		"unix:///run/x",
		"http://h:4318\n",
		"http://h/a\nb",
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct endpoint e;

		if (endpoint_parse(cases[i], &e) != ENDPOINT_INVALID)
			fail_msg("'%s' was accepted as '%s'", cases[i], e.url);
	}
}

TEST(test_display_has_no_secrets)
{
	struct endpoint e;

	assert_int_equal(endpoint_parse("http://me:secret@h:4318/x?token=t#f", &e), 0);
	assert_string_equal(e.display, "http://h:4318/x");
	assert_non_null(strstr(e.url, "me:secret@"));
	endpoint_done(&e);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_invalid),
		cmocka_unit_test(test_display_has_no_secrets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
