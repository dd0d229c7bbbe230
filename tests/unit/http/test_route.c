/* Tests of http/route.c: what of a router's own words is http.route. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/util.h"
#include "http/route.h"

static void assert_str(struct str s, const char *expected)
{
	assert_int_equal(s.n, strlen(expected));
	assert_memory_equal(s.p ? s.p : "", expected, s.n);
}

static void test_pattern(void **state)
{
	static const struct {
		const char *pattern, *route;
	} cases[] = {
		{"/", "/"},
		{"/a/{id}", "/a/{id}"},
		{"GET /a/{id}", "/a/{id}"},
		{"POST \t/a/{rest...}", "/a/{rest...}"},
		{"example.org/a/", "/a/"},
		{"GET example.org/{$}", "/{$}"},
		{"GET", ""},
		{"", ""},
		{"GET /a\n", ""},
		{"/\xc3\xa9", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_str(http_route_of_pattern(str_from(cases[i].pattern)), cases[i].route);
}

/* As chi 5.5's RoutePattern() answers. */
static void test_chi(void **state)
{
	static const struct {
		const char *patterns, *route;
	} cases[] = {
		{"/a/{id}", "/a/{id}"},
		{"/a/*/{id}", "/a/{id}"},
		{"/a/*/b/*/{id}", "/a/b/{id}"},
		{"/a/*/*/c", "/a/c"},
		{"/a/*/", "/a"},
		{"/", "/"},
		{"/a/", "/a"},
		{"/a//", "/a"},
		{"/a/*", "/a/*"},
		{"/*/*", "/*"},
		{"a/*", ""},
		{"", ""},
	};
	char room[HTTP_ROUTE_BYTES_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_str(http_route_of_chi(str_from(cases[i].patterns), room), cases[i].route);
}

static void test_check(void **state)
{
	char longest[HTTP_ROUTE_BYTES_MAX + 2] = "/";

	(void)state;
	assert_str(http_route_check(STR("/a/:id")), "/a/:id");
	assert_str(http_route_check(STR("a")), "");
	assert_str(http_route_check(STR("/a\x7f")), "");
	memset(longest + 1, 'x', HTTP_ROUTE_BYTES_MAX - 1);
	assert_str(http_route_check(str_from(longest)), longest);
	longest[HTTP_ROUTE_BYTES_MAX] = 'x';
	assert_str(http_route_check(str_from(longest)), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pattern),
		cmocka_unit_test(test_chi),
		cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
