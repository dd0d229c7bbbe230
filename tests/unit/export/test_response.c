/* How answers of a collector are judged. */
#include "make.h"

#include "export/response.h"

TEST(test_accepted)
{
	struct response r;

	response_judge(200, STR_NONE, 10, &r);
	assert_int_equal(r.verdict, RESPONSE_ACCEPTED);
	assert_int_equal(r.rejected_spans, 0);
	assert_string_equal(r.message, "");

	/* partial_success without anything in it */
	response_judge(202, STR("\x0a\x00"), 10, &r);
	assert_int_equal(r.verdict, RESPONSE_ACCEPTED);
	assert_int_equal(r.rejected_spans, 0);
}

TEST(test_partial_success)
{
	struct response r;

	response_judge(200,
		       STR("\x0a\x08\x08\x03\x12\x04"
			   "full"),
		       10, &r);
	assert_int_equal(r.verdict, RESPONSE_ACCEPTED);
	assert_int_equal(r.rejected_spans, 3);
	assert_string_equal(r.message, "full");
	/* A warning. */
	response_judge(200,
		       STR("\x0a\x06\x12\x04"
			   "slow"),
		       10, &r);
	assert_int_equal(r.rejected_spans, 0);
	assert_string_equal(r.message, "slow");
}

TEST(test_rejected_is_bounded)
{
	struct response r;

	response_judge(200, STR("\x0a\x03\x08\xff\x7f"), 10, &r);
	assert_int_equal(r.rejected_spans, 10);
	/* -1 */
	response_judge(200, STR("\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 10, &r);
	assert_int_equal(r.verdict, RESPONSE_ACCEPTED);
	assert_int_equal(r.rejected_spans, 0);
}

TEST(test_no_otlp)
{
	struct response r;

	response_judge(200, STR("<html>It works!</html>"), 10, &r);
	assert_int_equal(r.verdict, RESPONSE_REFUSED);
	assert_non_null(strstr(r.message, "no OTLP answer"));
	response_judge(302, STR_NONE, 10, &r);
	assert_int_equal(r.verdict, RESPONSE_REFUSED);
}

TEST(test_errors)
{
	struct response r;

	response_judge(400,
		       STR("\x08\x03\x12\x07"
			   "bad\033\nid"),
		       10, &r);
	assert_int_equal(r.verdict, RESPONSE_REFUSED);
	assert_string_equal(r.message, "bad  id");
	response_judge(502, STR("<h1>Bad gateway\xff</h1>"), 10, &r);
	assert_string_equal(r.message, "<h1>Bad gateway\xef\xbf\xbd</h1>");
}

TEST(test_long_message_is_cut)
{
	static char text[RESPONSE_BYTES_MAX];
	struct response r;

	memset(text, '<', sizeof(text));
	response_judge(500, (struct str){.p = text, .n = sizeof(text)}, 10, &r);
	assert_true(strlen(r.message) < sizeof(r.message));
	assert_true(strlen(r.message) > 200);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_partial_success),
		cmocka_unit_test(test_rejected_is_bounded),
		cmocka_unit_test(test_no_otlp),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_long_message_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
