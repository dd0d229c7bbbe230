/* Strangers' text: what is kept, what is replaced, what is hidden. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "discover/text.h"

static void test_clean(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"plain", "plain"},
		{"", ""},
		{"caf\xc3\xa9 \xe7\xb9\x8b \xf0\x9f\x94\x97",
		 "caf\xc3\xa9 \xe7\xb9\x8b \xf0\x9f\x94\x97"},
		{"\x1b[31m\n\t\x7f", "?[31m???"},
		{"\xc2\x9b"
		 "31m",
		 "??31m"}, /* C1 control */
		{"a\xff"
		 "b\xc3",
		 "a?b?"},                     /* no UTF-8; cut off */
		{"\xc0\xaf", "??"},           /* overlong */
		{"\xe0\x80\xaf", "???"},      /* overlong */
		{"\xed\xa0\x80", "???"},      /* surrogate */
		{"\xf4\x90\x80\x80", "????"}, /* above U+10FFFF */
		{"\xe7\xb9", "??"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[64];

		strcpy(text, rows[i].in);
		text_clean(text, strlen(text));
		assert_string_equal(text, rows[i].out);
	}
}

static void check_line(struct str arguments, size_t max, bool redact, const char *expected)
{
	char *line = text_command_line(arguments, max, redact);

	assert_non_null(line);
	assert_string_equal(line, expected);
	free(line);
}

static void test_command_line(void **state)
{
	(void)state;
	check_line(STR("java\0-jar\0a b.jar\0"), 4096, false, "java -jar a b.jar");
	check_line(STR("java\0-jar\0x"), 4096, false, "java -jar x");
	check_line(STR("java\0-jar\0"), 7, false, "java -j");
	check_line(STR("nginx: worker\0\0\0\0\0"), 4096, false, "nginx: worker");
	check_line(STR("a\0\0b\0"), 4096, false, "a  b");
	check_line(STR(""), 4096, false, "");
	check_line(STR("a\0b\n\0"), 4096, true, "a b?");
}

static void test_redaction(void **state)
{
	(void)state;
	check_line(STR("x\0--db-password=hunter2\0--port=80\0"), 4096, true,
		   "x --db-password=REDACTED --port=80");
	check_line(STR("x\0--api-key\0abc\0--port\00080\0"), 4096, true,
		   "x --api-key REDACTED --port 80");
	check_line(STR("java\0-Dmy.Secret.Token=a=b\0-jar\0token-service.jar\0"), 4096, true,
		   "java -Dmy.Secret.Token=REDACTED -jar token-service.jar");
	check_line(STR("x\0PASSWORD=p\0"), 4096, true, "x PASSWORD=REDACTED");
	check_line(STR("x\0--token\0--verbose\0y\0"), 4096, true, "x --token --verbose y");
	check_line(STR("x\0-Ddb=jdbc:pg://u:p@db/shop?a=b@c\0http://h/a@b\0"), 4096, true,
		   "x -Ddb=jdbc:pg://REDACTED@db/shop?a=b@c http://h/a@b");
	check_line(STR("x\0--token=t\0"), 10, true, "x --token=");
}

static void test_base_name(void **state)
{
	(void)state;
	assert_true(str_equal(text_base_name(STR("/a/b")), STR("b")));
	assert_true(str_equal(text_base_name(STR("b")), STR("b")));
	assert_true(str_equal(text_base_name(STR("/a/")), STR("")));
	assert_true(str_equal(text_base_name(STR_NONE), STR("")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_command_line),
		cmocka_unit_test(test_redaction),
		cmocka_unit_test(test_base_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
