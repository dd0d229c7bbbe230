/* The JSON line: exact text, and that cJSON reads hostile strings back. */
#include "make.h"

#include <cjson/cJSON.h>

#include "export/json.h"

TEST(test_exact_line)
{
	struct resource *r = make_resource("orders", 4711);
	struct span *span = make_span(r, &(struct make_options){.trace = 1,
								.id = 2,
								.parent = 3,
								.kind = SPAN_KIND_SERVER,
								.end_us = 1,
								.status = 500,
								.path = "/a"});
	_cleanup_(freep) char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	assert_int_equal(json_write_span(out, span), 0);
	fclose(out);
	assert_string_equal(
		text, "{\"trace_id\":\"4bf90000000000000000000000000001\","
		      "\"span_id\":\"0000000000000002\",\"parent_span_id\":\"0000000000000003\","
		      "\"kind\":\"server\",\"name\":\"GET\","
		      "\"start_unix_nano\":1767614401234000000,"
		      "\"end_unix_nano\":1767614401234001000,\"status\":\"error\","
		      "\"service\":\"orders\",\"pid\":4711,\"attributes\":{"
		      "\"http.request.method\":\"GET\",\"http.response.status_code\":500,"
		      "\"url.path\":\"/a\"},\"links\":[]}\n");
	span_unref(span);
	resource_unref(r);
}

TEST(test_root_without_resource)
{
	struct span *span = make_span(
		NULL, &(struct make_options){.trace = 1, .id = 2, .kind = SPAN_KIND_CLIENT});
	_cleanup_(freep) char *text = NULL;

	assert_int_equal(json_format_span(span, &text), 0);
	assert_non_null(strstr(text, "\"parent_span_id\":\"\",\"kind\":\"client\""));
	assert_non_null(strstr(text, "\"status\":\"unset\",\"service\":\"\",\"pid\":0,"));
	assert_null(strchr(text, '\n'));
	span_unref(span);
}

/* Every single byte in a string, alone and between others. */
TEST(test_every_byte)
{
	for (int byte = 1; byte < 256; byte++) {
		char path[] = {'/', 'a', (char)byte, 'b', '\0'};
		struct span *span = make_span(
			NULL, &(struct make_options){.trace = 1, .id = 1, .kind = 2, .path = path});
		_cleanup_(freep) char *text = NULL;
		cJSON *json, *value;

		assert_int_equal(json_format_span(span, &text), 0);
		json = cJSON_Parse(text);
		assert_non_null(json);
		value = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "attributes"), "url.path");
		assert_string_equal(cJSON_GetStringValue(value), byte < 0x80 ? path
									     : "/a\xef\xbf\xbd"
									       "b");
		cJSON_Delete(json);
		span_unref(span);
	}
}

/* An embedded NUL is kept: values are views, not terminated strings. */
TEST(test_nul)
{
	struct span_options o = {.kind = SPAN_KIND_SERVER,
				 .trace_id = make_trace_id(1),
				 .span_id = make_span_id(1),
				 .name = STR("a\0b")};
	_cleanup_(freep) char *text = NULL;
	struct span *span;

	assert_int_equal(span_new(&o, &span), 0);
	assert_int_equal(json_format_span(span, &text), 0);
	assert_non_null(strstr(text, "\"name\":\"a\\u0000b\""));
	span_unref(span);
}

TEST(test_stream_in_error)
{
	struct span *span = make_span(NULL, &(struct make_options){.trace = 1, .id = 1, .kind = 2});
	FILE *full = fopen("/dev/full", "w");

	assert_non_null(full);
	setvbuf(full, NULL, _IONBF, 0);
	assert_int_equal(json_write_span(full, span), -EIO);
	fclose(full);
	span_unref(span);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact_line),
		cmocka_unit_test(test_root_without_resource),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_nul),
		cmocka_unit_test(test_stream_in_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
