/*
 * The encoder, read back by protobuf-c's generated code. With the argument "emit" it writes one
 * encoded request to stdout instead, for tests/check/otlp_decode.sh to read it with OpenTelemetry's
 * own messages.
 */
#include "make.h"

#include "export/otlp.h"
#include "otlp.pb-c.h"

static Otlp__ExportTraceServiceRequest *decode(struct str body)
{
	Otlp__ExportTraceServiceRequest *m =
		otlp__export_trace_service_request__unpack(NULL, body.n, (const uint8_t *)body.p);

	assert_non_null(m);
	return m;
}

static void expect_bytes(const ProtobufCBinaryData *bytes, const void *expected, size_t n)
{
	assert_int_equal(bytes->len, n);
	if (n)
		assert_memory_equal(bytes->data, expected, n);
}

static void expect_text(const ProtobufCBinaryData *bytes, const char *expected)
{
	expect_bytes(bytes, expected, strlen(expected));
}

static void expect_attribute_text(const Otlp__KeyValue *kv, const char *key, const char *value)
{
	expect_text(&kv->key, key);
	assert_int_equal(kv->value->value_case, OTLP__ANY_VALUE__VALUE_STRING_VALUE);
	expect_text(&kv->value->string_value, value);
}

static void expect_attribute_int(const Otlp__KeyValue *kv, const char *key, int64_t value)
{
	expect_text(&kv->key, key);
	assert_int_equal(kv->value->value_case, OTLP__ANY_VALUE__VALUE_INT_VALUE);
	assert_true(kv->value->int_value == value);
}

/* Every field set, extreme numbers, text that needs repair: what both kinds of test look at. */
static struct span *full_span(struct resource *resource)
{
	struct span_options o = {
		.kind = SPAN_KIND_SERVER,
		.status = SPAN_STATUS_ERROR,
		.trace_flags = TRACE_FLAG_SAMPLED | TRACE_FLAG_RANDOM,
		.trace_id = make_trace_id(0x01020304),
		.span_id = make_span_id(0x05060708),
		.parent_span_id = make_span_id(0x090a0b0c),
		.start_unix_ns = MAKE_EPOCH_NS,
		.end_unix_ns = UINT64_MAX,
		.resource = resource,
		.name = STR("GET /caf\xc3\xa9"),
		.tracestate = STR("rojo=00f067aa0ba902b7"),
	};
	struct span *span;

	span_add_text(&o, ATTR_URL_PATH, STR("/a\xff\0b"));
	span_add_text(&o, ATTR_URL_QUERY, STR_NONE);
	span_add_int(&o, ATTR_HTTP_RESPONSE_STATUS_CODE, 503);
	span_add_int(&o, ATTR_THREAD_ID, INT64_MIN);
	assert_int_equal(span_new(&o, &span), 0);
	return span;
}

TEST(test_all_fields)
{
	struct resource *resource = make_resource("orders", 4711);
	struct span *span = full_span(resource);
	_cleanup_(otlp_encoder_done) struct otlp_encoder e = {0};
	Otlp__ExportTraceServiceRequest *m;
	Otlp__ResourceSpans *rs;
	Otlp__Span *s;
	struct str body;

	assert_int_equal(otlp_encode(&e, &span, 1, &body), 0);
	m = decode(body);
	assert_int_equal(m->n_resource_spans, 1);
	rs = m->resource_spans[0];
	assert_int_equal(rs->resource->n_attributes, 2);
	expect_attribute_text(rs->resource->attributes[0], "service.name", "orders");
	expect_attribute_int(rs->resource->attributes[1], "process.pid", 4711);
	assert_int_equal(rs->n_scope_spans, 1);
	expect_text(&rs->scope_spans[0]->scope->name, "tsunagi");
	expect_text(&rs->scope_spans[0]->scope->version, TSUNAGI_VERSION);

	assert_int_equal(rs->scope_spans[0]->n_spans, 1);
	s = rs->scope_spans[0]->spans[0];
	expect_bytes(&s->trace_id, &span->trace_id, 16);
	expect_bytes(&s->span_id, &span->span_id, 8);
	expect_bytes(&s->parent_span_id, &span->parent_span_id, 8);
	expect_text(&s->trace_state, "rojo=00f067aa0ba902b7");
	expect_text(&s->name, "GET /caf\xc3\xa9");
	assert_int_equal(s->kind, OTLP__SPAN__SPAN_KIND__SERVER);
	assert_true(s->start_time_unix_nano == MAKE_EPOCH_NS);
	assert_true(s->end_time_unix_nano == UINT64_MAX);
	assert_int_equal(s->flags, 0x303);
	assert_int_equal(s->status->code, OTLP__STATUS__STATUS_CODE__ERROR);
	assert_int_equal(s->n_attributes, 4);
	expect_text(&s->attributes[0]->key, "url.path");
	expect_bytes(&s->attributes[0]->value->string_value, "/a\xef\xbf\xbd\0b", 7);
	expect_attribute_text(s->attributes[1], "url.query", "");
	expect_attribute_int(s->attributes[2], "http.response.status_code", 503);
	expect_attribute_int(s->attributes[3], "thread.id", INT64_MIN);

	otlp__export_trace_service_request__free_unpacked(m, NULL);
	span_unref(span);
	resource_unref(resource);
}

TEST(test_root_has_no_parent)
{
	struct span *span = make_span(
		NULL, &(struct make_options){
			      .trace = 1, .id = 2, .kind = SPAN_KIND_CLIENT, .status = 200});
	_cleanup_(otlp_encoder_done) struct otlp_encoder e = {0};
	Otlp__ExportTraceServiceRequest *m;
	Otlp__Span *s;
	struct str body;

	assert_int_equal(otlp_encode(&e, &span, 1, &body), 0);
	m = decode(body);
	/* A resource that is not known is an empty one. */
	assert_int_equal(m->resource_spans[0]->resource->n_attributes, 0);
	s = m->resource_spans[0]->scope_spans[0]->spans[0];
	assert_int_equal(s->parent_span_id.len, 0);
	assert_int_equal(s->trace_state.len, 0);
	assert_null(s->status);
	assert_int_equal(s->flags, 0x103);
	otlp__export_trace_service_request__free_unpacked(m, NULL);
	span_unref(span);
}

/* Each span must be found under its own resource, in order. */
TEST(test_grouping)
{
	enum { SPANS = 1000, RESOURCES = 70 };
	_cleanup_(otlp_encoder_done) struct otlp_encoder e = {0};
	struct resource *resources[RESOURCES];
	struct span *spans[SPANS];
	Otlp__ExportTraceServiceRequest *m;
	size_t n = 0;
	struct str body;

	for (uint32_t i = 0; i < RESOURCES; i++)
		resources[i] = make_resource("s", i);
	for (uint32_t i = 0; i < SPANS; i++)
		spans[i] = make_span(resources[i * 7 % RESOURCES],
				     &(struct make_options){.trace = 1, .id = i + 1, .kind = 2});

	assert_int_equal(otlp_encode(&e, spans, SPANS, &body), 0);
	m = decode(body);
	assert_int_equal(m->n_resource_spans, 10);
	for (size_t i = 0; i < m->n_resource_spans; i++) {
		Otlp__ScopeSpans *scope_spans = m->resource_spans[i]->scope_spans[0];

		expect_attribute_int(m->resource_spans[i]->resource->attributes[1], "process.pid",
				     (int64_t)(i * 7 % RESOURCES));
		for (size_t k = 0; k < scope_spans->n_spans; k++, n++) {
			struct span_id id = make_span_id((uint32_t)(i + k * 10 + 1));

			expect_bytes(&scope_spans->spans[k]->span_id, &id, 8);
		}
	}
	assert_int_equal(n, SPANS);

	otlp__export_trace_service_request__free_unpacked(m, NULL);
	for (size_t i = 0; i < SPANS; i++)
		span_unref(spans[i]);
	for (size_t i = 0; i < RESOURCES; i++)
		resource_unref(resources[i]);
}

/*
 * Batches of any size after each other, with texts of every length around those of a length byte
 * or two.
 */
TEST(test_reuse_and_lengths)
{
	_cleanup_(otlp_encoder_done) struct otlp_encoder e = {0};
	static char path[70000];

	memset(path, 'p', sizeof(path));
	for (size_t length = 0; length < 70000; length += length < 300 ? 1 : 9973) {
		struct span_options o = {.kind = SPAN_KIND_SERVER,
					 .trace_id = make_trace_id(1),
					 .span_id = make_span_id(1)};
		Otlp__ExportTraceServiceRequest *m;
		struct span *span, *spans[3];
		struct str body;

		path[length / 2] = '\xff';
		span_add_text(&o, ATTR_URL_PATH, (struct str){.p = path, .n = length});
		assert_int_equal(span_new(&o, &span), 0);
		for (size_t i = 0; i < 3; i++)
			spans[i] = span;
		assert_int_equal(otlp_encode(&e, spans, 3 - length % 3, &body), 0);
		m = decode(body);
		assert_int_equal(m->resource_spans[0]->scope_spans[0]->n_spans, 3 - length % 3);
		assert_int_equal(m->resource_spans[0]
					 ->scope_spans[0]
					 ->spans[0]
					 ->attributes[0]
					 ->value->string_value.len,
				 length + (length ? 2 : 0));
		path[length / 2] = 'p';
		otlp__export_trace_service_request__free_unpacked(m, NULL);
		span_unref(span);
	}
}

/*
 * The memory for a batch is sized by what its texts may become: as large as that they are here, in
 * each attribute of spans and resources.
 */
TEST(test_all_invalid)
{
	enum { SPANS = 100, LENGTH = 300 };
	_cleanup_(otlp_encoder_done) struct otlp_encoder e = {0};
	struct resource *resource = make_resource("s", UINT32_MAX);
	struct span_options o = {.kind = SPAN_KIND_SERVER,
				 .status = SPAN_STATUS_ERROR,
				 .trace_id = make_trace_id(1),
				 .span_id = make_span_id(1),
				 .parent_span_id = make_span_id(2),
				 .start_unix_ns = UINT64_MAX,
				 .end_unix_ns = UINT64_MAX,
				 .resource = resource};
	Otlp__ExportTraceServiceRequest *m;
	Otlp__ScopeSpans *scope_spans;
	struct span *span, *spans[SPANS];
	char bytes[LENGTH];
	struct str text = {.p = bytes, .n = LENGTH}, body;

	memset(bytes, '\xff', LENGTH);
	for (char key[] = "a"; resource->n_attributes < RESOURCE_ATTRIBUTES_MAX; key[0]++)
		assert_int_equal(resource_set(resource, key, text), 0);
	o.name = o.tracestate = text;
	for (int key = 0; key < _ATTR_MAX; key++) {
		if (attribute_key_type(key) == ATTRIBUTE_STRING)
			span_add_text(&o, key, text);
		else
			span_add_int(&o, key, INT64_MIN);
	}
	assert_int_equal(span_new(&o, &span), 0);
	for (size_t i = 0; i < SPANS; i++)
		spans[i] = span;

	assert_int_equal(otlp_encode(&e, spans, SPANS, &body), 0);
	m = decode(body);
	assert_int_equal(m->resource_spans[0]->resource->n_attributes, RESOURCE_ATTRIBUTES_MAX);
	for (size_t i = 2; i < RESOURCE_ATTRIBUTES_MAX; i++)
		assert_int_equal(
			m->resource_spans[0]->resource->attributes[i]->value->string_value.len,
			3 * LENGTH);
	scope_spans = m->resource_spans[0]->scope_spans[0];
	assert_int_equal(scope_spans->n_spans, SPANS);
	for (size_t i = 0; i < SPANS; i++) {
		const Otlp__Span *s = scope_spans->spans[i];

		assert_int_equal(s->name.len, 3 * LENGTH);
		assert_int_equal(s->trace_state.len, 3 * LENGTH);
		assert_int_equal(s->n_attributes, _ATTR_MAX);
		expect_attribute_int(s->attributes[ATTR_THREAD_ID], "thread.id", INT64_MIN);
		assert_int_equal(s->attributes[ATTR_URL_FULL]->value->string_value.len, 3 * LENGTH);
	}

	otlp__export_trace_service_request__free_unpacked(m, NULL);
	span_unref(span);
	resource_unref(resource);
}

TEST(test_nothing)
{
	_cleanup_(otlp_encoder_done) struct otlp_encoder e = {0};
	struct str body = STR("untouched");

	assert_int_equal(otlp_encode(&e, NULL, 0, &body), 0);
	assert_int_equal(body.n, 0);
}

static int emit(void)
{
	struct resource *resource = make_resource("orders", 4711);
	struct span *spans[] = {
		full_span(resource),
		make_span(NULL,
			  &(struct make_options){.trace = 1, .id = 2, .kind = 3, .end_us = 5}),
	};
	_cleanup_(otlp_encoder_done) struct otlp_encoder e = {0};
	struct str body;
	int r = otlp_encode(&e, spans, ARRAY_SIZE(spans), &body);

	if (r >= 0 && fwrite(body.p, 1, body.n, stdout) != body.n)
		r = -EIO;
	for (size_t i = 0; i < ARRAY_SIZE(spans); i++)
		span_unref(spans[i]);
	resource_unref(resource);
	return r < 0;
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_fields),        cmocka_unit_test(test_root_has_no_parent),
		cmocka_unit_test(test_grouping),          cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_reuse_and_lengths), cmocka_unit_test(test_all_invalid),
	};

	if (argc > 1 && strcmp(argv[1], "emit") == 0)
		return emit();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
