/* What counts as valid UTF-8, and what becomes of the rest. */
#include "make.h"

#include "export/utf8.h"

static void expect_repaired(struct str in, const char *expected)
{
	char out[256];

	assert_true(utf8_repair_bytes_max(in.n) <= sizeof(out));
	out[utf8_repair(in, out)] = '\0';
	assert_string_equal(out, expected);
}

#define FFFD "\xef\xbf\xbd"

TEST(test_valid_is_kept)
{
	static const char text[] =
		"plain ASCII, longer than a word; \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80";

	assert_int_equal(utf8_valid_bytes(STR(text)), sizeof(text) - 1);
	assert_int_equal(utf8_valid_bytes(STR_NONE), 0);
	assert_int_equal(utf8_valid_bytes(STR("a\0b")), 3);
	expect_repaired(str_from(text), text);
}

TEST(test_invalid_bytes)
{
	expect_repaired(STR("a\x80z"), "a" FFFD "z");
	expect_repaired(STR("\xc0\xaf"), FFFD FFFD);                   /* overlong '/' */
	expect_repaired(STR("\xe0\x80\xaf"), FFFD FFFD FFFD);          /* overlong */
	expect_repaired(STR("\xed\xa0\x80"), FFFD FFFD FFFD);          /* a surrogate */
	expect_repaired(STR("\xf4\x90\x80\x80"), FFFD FFFD FFFD FFFD); /* above U+10FFFF */
	expect_repaired(STR("\xf5\x80"), FFFD FFFD);
	expect_repaired(STR("12345678\xe2\x82"), "12345678" FFFD FFFD); /* cut short */
	expect_repaired(STR("\xff\xf4\x8f\xbf\xbf"), FFFD "\xf4\x8f\xbf\xbf");
}

TEST(test_encode_decode_all)
{
	for (uint32_t rune = 1; rune <= 0x10FFFF; rune++) {
		uint32_t back = 0;
		char bytes[4];
		size_t n = utf8_encode(rune, bytes);

		if (rune >= 0xD800 && rune <= 0xDFFF)
			continue;
		if (utf8_decode((struct str){.p = bytes, .n = n}, &back) != n || back != rune)
			fail_msg("U+%X became U+%X", rune, back);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid_is_kept),
		cmocka_unit_test(test_invalid_bytes),
		cmocka_unit_test(test_encode_decode_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
