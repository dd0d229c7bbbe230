/* Tests of http/trace_context.c: which traceparent values W3C Trace Context calls valid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/util.h"
#include "http/trace_context.h"

#define T1 "0af7651916cd43dd8448eb211c80319c"
#define S1 "b7ad6b7169203331"

static void test_valid(void **state)
{
	static const struct {
		const char *value, *trace_id, *span_id;
		uint8_t version, flags;
	} cases[] = {
		{"00-" T1 "-" S1 "-01", T1, S1, 0, 1},
		{"00-" T1 "-" S1 "-00", T1, S1, 0, 0},
		{"00-" T1 "-" S1 "-ff", T1, S1, 0, 0xff},
		{" \t00-" T1 "-" S1 "-01\t ", T1, S1, 0, 1},
		{"00-12345678901234567890123456789012-1234567890123456-03",
		 "12345678901234567890123456789012", "1234567890123456", 0, 3},
		{"cc-" T1 "-" S1 "-01-what", T1, S1, 0xcc, 1},
		{"cc-" T1 "-" S1 "-01-", T1, S1, 0xcc, 1},
		{"01-" T1 "-" S1 "-01", T1, S1, 1, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct trace_context c;
		char hex[TRACE_ID_HEX + 1];

		assert_int_equal(trace_context_parse(str_from(cases[i].value), &c), 0);
		assert_int_equal(c.version, cases[i].version);
		assert_int_equal(c.flags, cases[i].flags);
		ids_to_hex(c.trace_id.b, sizeof(c.trace_id.b), hex);
		assert_string_equal(hex, cases[i].trace_id);
		ids_to_hex(c.span_id.b, sizeof(c.span_id.b), hex);
		assert_string_equal(hex, cases[i].span_id);
	}
}

static void test_invalid(void **state)
{
	static const char *const cases[] = {
		"",
		".0",
		"ff-" T1 "-" S1 "-01",
		"FF-" T1 "-" S1 "-01",
		"00-00000000000000000000000000000000-" S1 "-01",
		"00-" T1 "-0000000000000000-01",
		"00-0AF7651916CD43DD8448EB211C80319C-" S1 "-01",
		"00-" T1 "-B7AD6B7169203331-01",
		"00-" T1 "-" S1 "-0A",
		"00-" T1 "-" S1 "-01-",
		"00-" T1 "-" S1 "-01-what",
		"00-" T1 "-" S1 "-0",
		"cc-" T1 "-" S1 "-01what",
		"cc-" T1 "-" S1 "-01.",
		"00_" T1 "-" S1 "-01",
		"00-" T1 "_" S1 "-01",
		"00-" T1 "-" S1 "_01",
		"00-g" T1 "-" S1 "-01",
		"0-" T1 "-" S1 "-01x",
		"00-" T1 "-" S1 "-01, 00-" T1 "-" S1 "-01",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct trace_context c = {.flags = 7};

		assert_int_equal(trace_context_parse(str_from(cases[i]), &c),
				 TRACE_CONTEXT_INVALID);
		assert_int_equal(c.flags, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid),
		cmocka_unit_test(test_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
