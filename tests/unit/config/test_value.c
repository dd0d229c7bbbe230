/* Single values: what is read, what is refused, and that what is written is read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/nearest.h"
#include "base/util.h"
#include "config/value.h"

#define REFUSED UINT64_MAX

typedef int (*parse_fn)(struct str text, uint64_t *ret);

struct value_case {
	const char *text;
	uint64_t value;
};

static void check(parse_fn parse, const struct value_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t value = REFUSED;
		int r = parse(str_from(cases[i].text), &value);

		if (value != cases[i].value || (r != 0) != (value == REFUSED))
			fail_msg("'%s' gave %llu", cases[i].text, (unsigned long long)value);
	}
}

static void test_numbers(void **state)
{
	static const struct value_case counts[] = {
		{"0", 0},
		{"1", 1},
		{"65536", 65536},
		{"", REFUSED},
		{"01", REFUSED},
		{"+1", REFUSED},
		{"-1", REFUSED},
		{"1 ", REFUSED},
		{"0x1", REFUSED},
		{"1_0", REFUSED},
		{"999999999999999999", 999999999999999999},
		{"9999999999999999999", REFUSED},
	};
	static const struct value_case durations[] = {
		{"1s", 1000},      {"500ms", 500},
		{"10m", 600000},   {"2h", 7200000},
		{"1S", 1000},      {"1", REFUSED},
		{"s", REFUSED},    {"1 s", REFUSED},
		{"1.5s", REFUSED}, {"-1s", REFUSED},
		{"1d", REFUSED},   {"01s", REFUSED},
		{"", REFUSED},     {"999999999999999999h", REFUSED},
	};
	static const struct value_case sizes[] = {
		{"0", 0},          {"4096", 4096},
		{"64KB", 65536},   {"16KiB", 16384},
		{"8MB", 8 << 20},  {"1GB", 1 << 30},
		{"1g", 1 << 30},   {"5B", 5},
		{"64kb", 65536},   {"KB", REFUSED},
		{"1TB", REFUSED},  {"1.5MB", REFUSED},
		{"-1KB", REFUSED}, {"1KBB", REFUSED},
		{"", REFUSED},     {"999999999999999999GB", REFUSED},
	};

	(void)state;
	check(value_parse_count, counts, ARRAY_SIZE(counts));
	check(value_parse_duration_ms, durations, ARRAY_SIZE(durations));
	check(value_parse_size, sizes, ARRAY_SIZE(sizes));
}

static void test_written_values_are_read_back(void **state)
{
	static const uint64_t values[] = {1,     256,   999,   1000,    1024,
					  60000, 65536, 90000, 3600000, 8 << 20};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		struct value_text duration = value_format_duration(values[i]);
		struct value_text size = value_format_size(values[i]);
		uint64_t value;

		assert_int_equal(value_parse_duration_ms(str_from(duration.text), &value), 0);
		assert_int_equal(value, values[i]);
		assert_int_equal(value_parse_size(str_from(size.text), &value), 0);
		assert_int_equal(value, values[i]);
	}
	assert_string_equal(value_format_duration(90000).text, "90s");
	assert_string_equal(value_format_size(65536).text, "64KB");
}

static void test_ports(void **state)
{
	static const char *const refused[] = {
		"",         "0",      "65536", "010",       "8080-", "-8080", "8090-8080",
		"80-70000", "80-090", "80 90", "80-90-100", "http",  "0-80",  "8080 - 8090",
	};
	uint16_t first = 1, last = 2;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		if (value_parse_ports(str_from(refused[i]), &first, &last) != VALUE_BAD)
			fail_msg("'%s' accepted", refused[i]);
	}
	assert_int_equal(first, 1);
	assert_int_equal(last, 2);
	assert_int_equal(value_parse_ports(STR("80"), &first, &last), 0);
	assert_int_equal(first, 80);
	assert_int_equal(last, 80);
	assert_int_equal(value_parse_ports(STR("1-65535"), &first, &last), 0);
	assert_int_equal(first, 1);
	assert_int_equal(last, 65535);
}

static void test_urls(void **state)
{
	static const char *const accepted[] = {
		"http://localhost",
		"https://collector.example:4318",
		"HTTP://a_b-c",
		"http://10.0.0.1:4318/",
		"http://[::1]:4318",
		"https://[fe80::1]/v1/traces",
		"http://user:pw@host:1/p",
		"http://a/b/c%20d",
		"http://host./x@y",
	};
	static const char *const refused[] = {
		"",
		"http",
		"http:/",
		"http://",
		"http:///path",
		"http://:4318",
		"localhost:4318",
		"ftp://host",
		"http//host",
		"http://[::1",
		"http://[::g]:1",
		"http://[]",
		"http://::1",
		"http://[::1]4318",
		"http://host:",
		"http://host:0",
		"http://host:65536",
		"http://host:x",
		"http://a..b",
		"http://.a",
		"http://999.1.1.1",
		"http://h ost",
		"http://host?x=1",
		"http://host/#f",
		"http://user@",
		"http://h\xc3\xb6st",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(accepted); i++) {
		if (value_check_url(str_from(accepted[i])))
			fail_msg("'%s': %s", accepted[i], value_check_url(str_from(accepted[i])));
	}
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		if (!value_check_url(str_from(refused[i])))
			fail_msg("'%s' accepted", refused[i]);
	}
}

static void test_patterns(void **state)
{
	static const char *const accepted[] = {
		"",     "a*?",          "[a]",     "[!]a]",   "[]]", "x]",
		"\\[a", "[[:alpha:]_]", "[a\\]b]", "[[.].]]", "[[]",
	};
	static const char *const refused[] = {
		"[", "[a", "[]", "[!", "[!]", "a\\", "[a\\]", "[[:alpha:]", "[a][b", "*[[.a",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(accepted); i++) {
		if (value_check_pattern(str_from(accepted[i])))
			fail_msg("'%s': %s", accepted[i],
				 value_check_pattern(str_from(accepted[i])));
	}
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		if (!value_check_pattern(str_from(refused[i])))
			fail_msg("'%s' accepted", refused[i]);
	}
}

static void test_nearest_word(void **state)
{
	static const char *const words[] = {"status", "traces", "trace", "counters"};

	(void)state;
	assert_int_equal(nearest_distance(STR("abcd"), STR("abdc")), 1);
	assert_int_equal(nearest_distance(STR(""), STR("abc")), 3);
	assert_int_equal(nearest_distance(STR("kitten"), STR("Sitting")), 3);
	assert_string_equal(nearest_find(STR("statsu"), words, ARRAY_SIZE(words)), "status");
	assert_string_equal(nearest_find(STR("TRACE"), words, ARRAY_SIZE(words)), "trace");
	assert_string_equal(nearest_find(STR("counter"), words, ARRAY_SIZE(words)), "counters");
	assert_null(nearest_find(STR("zzzzzz"), words, ARRAY_SIZE(words)));
	assert_null(nearest_find(STR(""), words, ARRAY_SIZE(words)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_written_values_are_read_back),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_nearest_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
