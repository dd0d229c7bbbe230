/*
 * Spans to OTLP; see otlp.h. The batch becomes a tree of protobuf-c's messages (proto/otlp.proto)
 * which view the spans' bytes, and protobuf-c packs it.
 *
 * All memory is sized before the first message is made: from counts and lengths, never by
 * protobuf_c_message_get_packed_size(), which walks the tree as packing does and takes as long. So
 * nothing that follows can fail.
 */
#include "export/otlp.h"

#include <errno.h>
#include <stdalign.h>

#include "export/utf8.h"
#include "otlp.pb-c.h"

/*
 * Span.flags above the 8 trace flags: whether the parent is in another process is known, and it
 * is.
 */
#define FLAG_HAS_IS_REMOTE 0x100u
#define FLAG_IS_REMOTE     0x200u

/*
 * The most a field takes on the wire beside the bytes it views: the tag of a number below 2,048,
 * and a varint. A message takes that for each of its fields, and once as a field of its parent.
 */
#define FIELD_BYTES_MAX      12
#define MESSAGE_BYTES_MAX(m) ((otlp__##m##__descriptor.n_fields + 1) * FIELD_BYTES_MAX)

#define ARENA_ALIGNMENT alignof(max_align_t)

/* One attribute; the two messages are always made together. */
struct attribute_messages {
	Otlp__KeyValue pair;
	Otlp__AnyValue value;
};

/* The spans of one resource, as a chain through otlp_encoder.next. */
struct otlp_group {
	const struct resource *resource;
	uint32_t first, last; /* index of the span + 1 */
	size_t n_spans;
	Otlp__ResourceSpans message;
	Otlp__Resource resource_message;
	Otlp__ScopeSpans scope_spans;
	Otlp__ScopeSpans *scope_spans_list[1];
};

/* What a batch is made of: how much memory it takes. */
struct batch_size {
	size_t n_spans, n_groups;
	size_t n_attributes; /* of spans and resources */
	size_t text_bytes;   /* but for the keys of spans */
};

/* Parts that all messages share; protobuf-c wants them writable, but only reads them. */
static Otlp__InstrumentationScope scope_message = {
	.base = PROTOBUF_C_MESSAGE_INIT(&otlp__instrumentation_scope__descriptor),
	.name = {.data = (uint8_t *)"tsunagi", .len = sizeof("tsunagi") - 1},
	.version = {.data = (uint8_t *)TSUNAGI_VERSION, .len = sizeof(TSUNAGI_VERSION) - 1},
};
static Otlp__Status status_messages[] = {
	[SPAN_STATUS_OK] = {.base = PROTOBUF_C_MESSAGE_INIT(&otlp__status__descriptor),
			    .code = OTLP__STATUS__STATUS_CODE__OK},
	[SPAN_STATUS_ERROR] = {.base = PROTOBUF_C_MESSAGE_INIT(&otlp__status__descriptor),
			       .code = OTLP__STATUS__STATUS_CODE__ERROR},
};

/* Makes it empty, with room for 'size' bytes. Returns 0 or -ENOMEM. */
static int arena_reset(struct otlp_arena *a, size_t size)
{
	a->used = 0;
	if (a->size >= size)
		return 0;
	size += size / 4; /* the next batch is as large, but not to the byte */
	free(a->bytes);
	*a = (struct otlp_arena){.bytes = malloc(size)};
	if (!a->bytes)
		return -ENOMEM;
	a->size = size;
	return 0;
}

static size_t arena_round(size_t bytes)
{
	return (bytes + ARENA_ALIGNMENT - 1) & ~(ARENA_ALIGNMENT - 1);
}

static void *arena_take(struct otlp_arena *a, size_t bytes)
{
	void *p = a->bytes + a->used;

	a->used += arena_round(bytes);
	assert(a->used <= a->size);
	return p;
}

static ProtobufCBinaryData bytes_of(const void *p, size_t n)
{
	return (ProtobufCBinaryData){.data = (uint8_t *)p, .len = n};
}

/* One invalid byte would make a collector refuse the whole batch. */
static ProtobufCBinaryData text_of(struct otlp_encoder *e, struct str s)
{
	char *repaired = e->arena.bytes + e->arena.used;

	if (!s.n || utf8_valid_bytes(s) == s.n)
		return bytes_of(s.p, s.n);
	s.n = utf8_repair(s, repaired);
	return bytes_of(arena_take(&e->arena, s.n), s.n);
}

static void attribute_init(struct attribute_messages *m, ProtobufCBinaryData key)
{
	*m = (struct attribute_messages){
		.pair = {.base = PROTOBUF_C_MESSAGE_INIT(&otlp__key_value__descriptor),
			 .key = key,
			 .value = &m->value},
		.value.base = PROTOBUF_C_MESSAGE_INIT(&otlp__any_value__descriptor),
	};
}

static void attribute_set_text(struct attribute_messages *m, ProtobufCBinaryData text)
{
	m->value.value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	m->value.string_value = text;
}

static void attribute_set_int(struct attribute_messages *m, int64_t i)
{
	m->value.value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
	m->value.int_value = i;
}

struct attribute_list {
	struct attribute_messages *messages;
	Otlp__KeyValue **pairs; /* what protobuf-c wants of a repeated field */
};

static struct attribute_list attribute_list_take(struct otlp_arena *a, size_t n)
{
	struct attribute_list list = {
		.messages = arena_take(a, n * sizeof(*list.messages)),
		.pairs = arena_take(a, n * sizeof(*list.pairs)),
	};

	for (size_t i = 0; i < n; i++)
		list.pairs[i] = &list.messages[i].pair;
	return list;
}

static Otlp__KeyValue **span_attributes(struct otlp_encoder *e, const struct span *s)
{
	struct attribute_list list = attribute_list_take(&e->arena, s->n_attributes);

	for (size_t i = 0; i < s->n_attributes; i++) {
		const struct attribute *a = &s->attributes[i];
		struct str key = e->key_names[a->key];

		attribute_init(&list.messages[i], bytes_of(key.p, key.n));
		if (attribute_key_type(a->key) == ATTRIBUTE_STRING)
			attribute_set_text(&list.messages[i], text_of(e, a->s));
		else
			attribute_set_int(&list.messages[i], a->i);
	}
	return list.pairs;
}

static Otlp__KeyValue **resource_attributes(struct otlp_encoder *e, const struct resource *r)
{
	struct attribute_list list = attribute_list_take(&e->arena, r->n_attributes);

	for (size_t i = 0; i < r->n_attributes; i++) {
		const struct resource_attribute *a = &r->attributes[i];

		attribute_init(&list.messages[i], text_of(e, str_from(a->key)));
		if (a->text)
			attribute_set_text(&list.messages[i], text_of(e, str_from(a->text)));
		else
			attribute_set_int(&list.messages[i], a->number);
	}
	return list.pairs;
}

/*
 * A server span's parent is in another process, be it on this host; a client span's is in its own.
 */
static uint32_t span_flags(const struct span *s)
{
	bool is_remote = s->kind == SPAN_KIND_SERVER && span_id_is_valid(&s->parent_span_id);

	return s->trace_flags | FLAG_HAS_IS_REMOTE | (is_remote ? FLAG_IS_REMOTE : 0);
}

static Otlp__Span *span_message(struct otlp_encoder *e, const struct span *s)
{
	static const Otlp__Span blank = OTLP__SPAN__INIT;
	Otlp__Span *m = arena_take(&e->arena, sizeof(*m));

	*m = blank;
	m->trace_id = bytes_of(s->trace_id.b, sizeof(s->trace_id.b));
	m->span_id = bytes_of(s->span_id.b, sizeof(s->span_id.b));
	if (span_id_is_valid(&s->parent_span_id))
		m->parent_span_id = bytes_of(s->parent_span_id.b, sizeof(s->parent_span_id.b));
	m->trace_state = text_of(e, s->tracestate);
	m->name = text_of(e, s->name);
	m->kind = (Otlp__Span__SpanKind)s->kind;
	m->start_time_unix_nano = s->start_unix_ns;
	m->end_time_unix_nano = s->end_unix_ns;
	m->n_attributes = s->n_attributes;
	m->attributes = span_attributes(e, s);
	if (s->status != SPAN_STATUS_UNSET)
		m->status = &status_messages[s->status];
	m->flags = span_flags(s);
	return m;
}

static Otlp__ResourceSpans *group_message(struct otlp_encoder *e, struct otlp_group *g,
					  struct span *const *spans)
{
	Otlp__ScopeSpans *list = &g->scope_spans;

	otlp__resource_spans__init(&g->message);
	otlp__resource__init(&g->resource_message);
	otlp__scope_spans__init(list);

	if (g->resource) {
		g->resource_message.n_attributes = g->resource->n_attributes;
		g->resource_message.attributes = resource_attributes(e, g->resource);
	}
	list->scope = &scope_message;
	list->spans = arena_take(&e->arena, g->n_spans * sizeof(*list->spans));
	for (uint32_t i = g->first; i; i = e->next[i - 1])
		list->spans[list->n_spans++] = span_message(e, spans[i - 1]);

	g->scope_spans_list[0] = list;
	g->message.resource = &g->resource_message;
	g->message.n_scope_spans = 1;
	g->message.scope_spans = g->scope_spans_list;
	return &g->message;
}

static size_t slots_of(size_t spans_max)
{
	return 2 * spans_max;
}

/* Room for 'n' spans in the tables; spans_max stays a power of two. */
static int encoder_grow(struct otlp_encoder *e, size_t n)
{
	size_t spans_max = MAX(e->spans_max, (size_t)64);

	while (spans_max < n)
		spans_max *= 2;
	if (spans_max == e->spans_max)
		return 0;

	free(e->groups);
	free(e->slots);
	free(e->next);
	e->spans_max = 0;
	e->groups = malloc(spans_max * sizeof(*e->groups));
	e->slots = malloc(slots_of(spans_max) * sizeof(*e->slots));
	e->next = malloc(spans_max * sizeof(*e->next));
	if (!e->groups || !e->slots || !e->next)
		return -ENOMEM;
	e->spans_max = spans_max;

	for (int key = 0; key < _ATTR_MAX; key++) {
		e->key_names[key] = str_from(attribute_key_name(key));
		e->key_bytes_max = MAX(e->key_bytes_max, e->key_names[key].n);
	}
	return 0;
}

/* The group of a resource, made where there is none; the table is never more than half full. */
static struct otlp_group *group_get(struct otlp_encoder *e, const struct resource *resource,
				    size_t *n_groups)
{
	size_t i = ((uintptr_t)resource >> 4) * 0x9E3779B97F4A7C15ULL >> 32;

	for (;; i++) {
		uint32_t *slot = &e->slots[i & (slots_of(e->spans_max) - 1)];

		if (!*slot) {
			e->groups[*n_groups] = (struct otlp_group){.resource = resource};
			*n_groups += 1;
			*slot = (uint32_t)*n_groups;
		}
		if (e->groups[*slot - 1].resource == resource)
			return &e->groups[*slot - 1];
	}
}

static size_t spans_group(struct otlp_encoder *e, struct span *const *spans, size_t n)
{
	size_t n_groups = 0;

	memset(e->slots, 0, slots_of(e->spans_max) * sizeof(*e->slots));
	for (size_t i = 0; i < n; i++) {
		struct otlp_group *g = group_get(e, spans[i]->resource, &n_groups);
		uint32_t *link = g->last ? &e->next[g->last - 1] : &g->first;

		*link = g->last = (uint32_t)i + 1;
		e->next[i] = 0;
		g->n_spans++;
	}
	return n_groups;
}

static struct batch_size batch_measure(const struct otlp_encoder *e, struct span *const *spans,
				       size_t n, size_t n_groups)
{
	struct batch_size size = {.n_spans = n, .n_groups = n_groups};

	for (size_t i = 0; i < n; i++) {
		size.n_attributes += spans[i]->n_attributes;
		size.text_bytes += spans[i]->size_bytes; /* more than its texts */
	}
	for (size_t g = 0; g < n_groups; g++) {
		const struct resource *r = e->groups[g].resource;

		for (size_t i = 0; r && i < r->n_attributes; i++)
			size.text_bytes += str_from(r->attributes[i].key).n +
					   str_from(r->attributes[i].text).n;
		size.n_attributes += r ? r->n_attributes : 0;
	}
	return size;
}

/* Bytes of all messages in the arena, each part rounded up. */
static size_t messages_bytes_max(const struct batch_size *size)
{
	const size_t attribute = sizeof(struct attribute_messages) + sizeof(Otlp__KeyValue *);
	const size_t span = sizeof(Otlp__Span) + sizeof(Otlp__Span *) + 3 * ARENA_ALIGNMENT;
	const size_t group = sizeof(Otlp__ResourceSpans *) + 3 * ARENA_ALIGNMENT;

	return size->n_attributes * attribute + size->n_spans * span + size->n_groups * group +
	       ARENA_ALIGNMENT;
}

/* Bytes of all texts that may have to be repaired, each rounded up. */
static size_t repaired_bytes_max(const struct batch_size *size)
{
	size_t n_texts = 2 * (size->n_attributes + size->n_spans);

	return utf8_repair_bytes_max(size->text_bytes) + n_texts * ARENA_ALIGNMENT;
}

static size_t body_bytes_max(const struct otlp_encoder *e, const struct batch_size *size)
{
	const size_t attribute = MESSAGE_BYTES_MAX(key_value) + MESSAGE_BYTES_MAX(any_value);
	const size_t ids = sizeof(struct trace_id) + 2 * sizeof(struct span_id);
	const size_t span = MESSAGE_BYTES_MAX(span) + MESSAGE_BYTES_MAX(status) + ids;
	const size_t group = MESSAGE_BYTES_MAX(resource_spans) + MESSAGE_BYTES_MAX(resource) +
			     MESSAGE_BYTES_MAX(scope_spans) +
			     MESSAGE_BYTES_MAX(instrumentation_scope) + scope_message.name.len +
			     scope_message.version.len;

	return size->n_attributes * (attribute + e->key_bytes_max) + size->n_spans * span +
	       size->n_groups * group + utf8_repair_bytes_max(size->text_bytes);
}

int otlp_encode(struct otlp_encoder *e, struct span *const *spans, size_t n, struct str *ret_body)
{
	Otlp__ExportTraceServiceRequest request = OTLP__EXPORT_TRACE_SERVICE_REQUEST__INIT;
	struct batch_size size;
	size_t body_bytes;
	uint8_t *body;
	int r;

	r = encoder_grow(e, n);
	if (r < 0)
		return r;
	size = batch_measure(e, spans, n, spans_group(e, spans, n));
	body_bytes = body_bytes_max(e, &size);
	r = arena_reset(&e->arena, messages_bytes_max(&size) + repaired_bytes_max(&size) +
					   arena_round(body_bytes));
	if (r < 0)
		return r;

	request.n_resource_spans = size.n_groups;
	request.resource_spans =
		arena_take(&e->arena, size.n_groups * sizeof(*request.resource_spans));
	for (size_t g = 0; g < size.n_groups; g++)
		request.resource_spans[g] = group_message(e, &e->groups[g], spans);

	body = arena_take(&e->arena, body_bytes);
	*ret_body = (struct str){
		.p = (const char *)body,
		.n = otlp__export_trace_service_request__pack(&request, body),
	};
	return 0;
}

void otlp_encoder_done(struct otlp_encoder *e)
{
	free(e->groups);
	free(e->slots);
	free(e->next);
	free(e->arena.bytes);
	*e = (struct otlp_encoder){0};
}
