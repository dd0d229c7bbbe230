/* The picture of a trace: golden text, hostile strings, odd shapes. */
#include "make.h"

#include "export/tree.h"

static char *draw(struct span *const *spans, size_t n, const struct tree_options *options)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(tree_draw(out, spans, n, options), 0);
	fclose(out);
	return text;
}

static size_t lines_count(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void free_spans(struct span **spans, size_t n)
{
	for (size_t i = 0; i < n; i++)
		span_unref(spans[i]);
}

TEST(test_golden)
{
	struct resource *a = make_resource("orders", 1), *b = make_resource("stock", 2);
	struct span *spans[] = {
		/* In the order of their ends, as they come. */
		make_span(b, &(struct make_options){.trace = 1,
						    .id = 4,
						    .parent = 3,
						    .kind = SPAN_KIND_CLIENT,
						    .start_us = 4000,
						    .end_us = 9000,
						    .error = "connection_reset",
						    .url = "http://cache:8080/k/7"}),
		make_span(b, &(struct make_options){.trace = 1,
						    .id = 3,
						    .parent = 2,
						    .kind = SPAN_KIND_SERVER,
						    .start_us = 1900,
						    .end_us = 18100,
						    .status = 200,
						    .path = "/stock/7"}),
		make_span(a, &(struct make_options){.trace = 1,
						    .id = 2,
						    .parent = 1,
						    .kind = SPAN_KIND_CLIENT,
						    .start_us = 1200,
						    .end_us = 18700,
						    .status = 200,
						    .url = "http://127.0.0.1:8081/stock/7"}),
		make_span(a, &(struct make_options){.trace = 1,
						    .id = 5,
						    .parent = 1,
						    .kind = SPAN_KIND_CLIENT,
						    .start_us = 20000,
						    .end_us = 41000,
						    .status = 503,
						    .url = "http://h/mail"}),
		make_span(a, &(struct make_options){.trace = 1,
						    .id = 1,
						    .kind = SPAN_KIND_SERVER,
						    .end_us = 41200,
						    .status = 200,
						    .path = "/orders/7",
						    .query = "full=1"}),
	};
	static const char expected[] =
		"4bf90000000000000000000000000001  12:00:01.234  41.2 ms  5 spans  2 services\n"
		"orders server GET /orders/7?full=1                   200  41.2 ms  "
		"━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━\n"
		"├─ orders client GET /stock/7                        200  17.5 ms   "
		"──────────────\n"
		"│  └─ stock server GET /stock/7                      200  16.2 ms   "
		"╺━━━━━━━━━━━━╸\n"
		"│     └─ stock client GET connection_reset cache:80… err  5.00 ms     "
		"────\n"
		"└─ orders client GET h/mail                          503  21.0 ms                 "
		" "
		"─────────────────\n";
	_cleanup_(freep) char *text = draw(spans, 5, &(struct tree_options){.width = 100});

	assert_string_equal(text, expected);
	free_spans(spans, 5);
	resource_unref(a);
	resource_unref(b);
}

TEST(test_strings_cannot_steer)
{
	struct resource *r = make_resource("a\033[2Jb", 1);
	struct span *span =
		make_span(r, &(struct make_options){.trace = 1,
						    .id = 1,
						    .kind = SPAN_KIND_SERVER,
						    .status = 200,
						    .path = "/\n\x7f\x9b\xff\xe2\x80\xae"
							    "x"});
	_cleanup_(freep) char *text = draw(&span, 1, &(struct tree_options){.width = 100});

	assert_non_null(strstr(text, "a␛[2Jb server GET /␊␡���x"));
	assert_null(strchr(text, '\033'));
	assert_int_equal(lines_count(text), 2);
	span_unref(span);
	resource_unref(r);
}

TEST(test_colour_only_when_asked)
{
	struct resource *r = make_resource("a", 1);
	struct span *span = make_span(r, &(struct make_options){.trace = 1,
								.id = 1,
								.kind = SPAN_KIND_SERVER,
								.status = 500,
								.end_us = 7,
								.path = "/"});
	_cleanup_(freep) char *plain = draw(&span, 1, &(struct tree_options){.width = 80});
	_cleanup_(freep) char *colour =
		draw(&span, 1, &(struct tree_options){.width = 80, .colour = true});

	assert_null(strchr(plain, '\033'));
	assert_non_null(strstr(colour, "\033[31m500\033[0m"));
	span_unref(span);
	resource_unref(r);
}

/* Each span the child of the one before. */
TEST(test_deep)
{
	enum { N = 1000 };
	struct resource *r = make_resource("a", 1);
	struct span *spans[N];
	_cleanup_(freep) char *all = NULL, *cut = NULL;

	for (uint32_t i = 0; i < N; i++)
		spans[i] = make_span(r, &(struct make_options){.trace = 1,
							       .id = i + 1,
							       .parent = i,
							       .kind = SPAN_KIND_SERVER,
							       .start_us = i,
							       .end_us = 2 * N - i,
							       .status = 200,
							       .path = "/"});
	all = draw(spans, N, &(struct tree_options){.width = 100, .lines_max = N});
	assert_int_equal(lines_count(all), N + 1);
	/* The deepest line still has its name, and says how many levels are not drawn. */
	assert_non_null(strstr(all, "\n993                  └─ a server GET /"));

	cut = draw(spans, N, &(struct tree_options){.width = 100});
	assert_int_equal(lines_count(cut), 502);
	assert_non_null(strstr(cut, "\n… 500 more\n"));
	free_spans(spans, N);
	resource_unref(r);
}

/* Parents in a circle, a span its own parent, one id twice, a child before its parent in time. */
TEST(test_odd_parents)
{
	struct resource *r = make_resource("a", 1);
	static const struct make_options options[] = {
		{.trace = 1,
		 .id = 1,
		 .parent = 2,
		 .kind = 2,
		 .start_us = 5,
		 .end_us = 6,
		 .path = "/1"},
		{.trace = 1,
		 .id = 2,
		 .parent = 1,
		 .kind = 3,
		 .start_us = 1,
		 .end_us = 2,
		 .path = "/2"},
		{.trace = 1,
		 .id = 3,
		 .parent = 3,
		 .kind = 2,
		 .start_us = 0,
		 .end_us = 9,
		 .path = "/3"},
		{.trace = 1,
		 .id = 4,
		 .parent = 3,
		 .kind = 3,
		 .start_us = 2,
		 .end_us = 3,
		 .path = "/4"},
		{.trace = 1,
		 .id = 4,
		 .parent = 3,
		 .kind = 3,
		 .start_us = 3,
		 .end_us = 20,
		 .path = "/5"},
		{.trace = 1,
		 .id = 6,
		 .parent = 4,
		 .kind = 2,
		 .start_us = 0,
		 .end_us = 0,
		 .path = "/6"},
		{.trace = 1,
		 .id = 7,
		 .parent = 99,
		 .kind = 2,
		 .start_us = 8,
		 .end_us = 8,
		 .path = "/7"},
	};
	struct span *spans[ARRAY_SIZE(options)];
	_cleanup_(freep) char *text = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		spans[i] = make_span(r, &options[i]);
	text = draw(spans, ARRAY_SIZE(spans), &(struct tree_options){.width = 80});
	assert_int_equal(lines_count(text), 1 + ARRAY_SIZE(spans));
	assert_non_null(strstr(text, "\n├─ a client GET /4"));
	assert_non_null(strstr(text, "\n│  └─ a server GET /6"));
	assert_non_null(strstr(text, "\n└─ a client GET /5"));
	for (char path[] = "GET /1"; path[5] <= '7'; path[5]++)
		assert_non_null(strstr(text, path));
	free_spans(spans, ARRAY_SIZE(spans));
	resource_unref(r);
}

TEST(test_remote_parent_is_said)
{
	struct resource *r = make_resource("a", 1);
	struct span *span = make_span(
		r,
		&(struct make_options){.trace = 1, .id = 1, .parent = 9, .kind = SPAN_KIND_SERVER});
	_cleanup_(freep) char *text = draw(&span, 1, &(struct tree_options){.width = 100});

	assert_non_null(strstr(text, "1 span  1 service  parent elsewhere\n"));
	span_unref(span);
	resource_unref(r);
}

TEST(test_every_width)
{
	struct resource *r = make_resource("service", 1);
	struct span *spans[30];

	for (uint32_t i = 0; i < ARRAY_SIZE(spans); i++)
		spans[i] = make_span(r, &(struct make_options){.trace = 1,
							       .id = i + 1,
							       .parent = i,
							       .kind = i % 2 ? 3 : 2,
							       .start_us = i,
							       .end_us = i,
							       .path = "/日本語/a"});
	for (unsigned int width = 0; width < 500; width++) {
		_cleanup_(freep) char *text =
			draw(spans, ARRAY_SIZE(spans),
			     &(struct tree_options){.width = width ? width : 1});

		assert_int_equal(lines_count(text), 1 + ARRAY_SIZE(spans));
	}
	free_spans(spans, ARRAY_SIZE(spans));
	resource_unref(r);
}

TEST(test_terminal_width)
{
	setenv("COLUMNS", "123", 1);
	assert_int_equal(tree_terminal_width(-1), 123);
	setenv("COLUMNS", "-7", 1);
	assert_int_equal(tree_terminal_width(-1), 100);
	unsetenv("COLUMNS");
	assert_int_equal(tree_terminal_width(-1), 100);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_strings_cannot_steer),
		cmocka_unit_test(test_colour_only_when_asked),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_odd_parents),
		cmocka_unit_test(test_remote_parent_is_said),
		cmocka_unit_test(test_every_width),
		cmocka_unit_test(test_terminal_width),
	};

	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
