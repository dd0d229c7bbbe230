/* Layouts of Go programs; see go_layout.h. */
#include "go_layout.h"

#include <string.h>

#include "base/util.h"
#include "go_routes.h"

static bool is_known(const struct go_program *program, enum go_field field)
{
	return program->offsets[field].source != GO_SOURCE_NONE;
}

static uint32_t offset_of(const struct go_program *program, enum go_field field)
{
	return program->offsets[field].bytes;
}

bool go_layout_has_contexts(const struct go_program *program)
{
	static const enum go_field needed[] = {
		GO_FIELD_TRANSPORT_REQUEST_REQUEST,
		GO_FIELD_REQUEST_CTX,
		GO_FIELD_VALUE_CTX_CONTEXT,
		GO_FIELD_CANCEL_CTX_CONTEXT,
	};

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!is_known(program, needed[i]))
			return false;
	return program->types[GO_STRUCT_CANCEL_CTX] && program->types[GO_STRUCT_VALUE_CTX];
}

/* 0 where its fields are not known: such contexts lead nowhere. */
static uint64_t context_type(const struct go_program *program, enum go_struct type,
			     enum go_field field)
{
	return is_known(program, field) ? program->types[type] : 0;
}

struct go_probe_layout go_layout_of(const struct go_program *program)
{
	/* At most one of the two is known: in Go 1.20 it was a pointer. */
	enum go_field timer = is_known(program, GO_FIELD_TIMER_CTX_CANCEL_CTX_POINTER)
				      ? GO_FIELD_TIMER_CTX_CANCEL_CTX_POINTER
				      : GO_FIELD_TIMER_CTX_CANCEL_CTX;

	return (struct go_probe_layout){
		.g_m = offset_of(program, GO_FIELD_G_M),
		.g_goid = offset_of(program, GO_FIELD_G_GOID),
		.m_curg = offset_of(program, GO_FIELD_M_CURG),
		.has_calls = is_known(program, GO_FIELD_PERSIST_CONN_BW) &&
			     is_known(program, GO_FIELD_PERSIST_CONN_CLOSED) &&
			     is_known(program, GO_FIELD_WRITER_BUF),
		.persist_conn_bw = offset_of(program, GO_FIELD_PERSIST_CONN_BW),
		.persist_conn_closed = offset_of(program, GO_FIELD_PERSIST_CONN_CLOSED),
		.writer_buf = offset_of(program, GO_FIELD_WRITER_BUF),
		.g_gopc = offset_of(program, GO_FIELD_G_GOPC),
		.dial_conn = program->functions[GO_FUNCTION_DIAL_CONN].address,
		.dial_conn_bytes = program->functions[GO_FUNCTION_DIAL_CONN].size,
		.call_request = offset_of(program, GO_FIELD_TRANSPORT_REQUEST_REQUEST),
		.request_ctx = offset_of(program, GO_FIELD_REQUEST_CTX),
		.value_ctx_context = offset_of(program, GO_FIELD_VALUE_CTX_CONTEXT),
		.cancel_ctx_context = offset_of(program, GO_FIELD_CANCEL_CTX_CONTEXT),
		.timer_ctx_cancel_ctx = offset_of(program, timer),
		.timer_ctx_points = timer == GO_FIELD_TIMER_CTX_CANCEL_CTX_POINTER,
		.without_cancel_ctx_c = offset_of(program, GO_FIELD_WITHOUT_CANCEL_CTX_C),
		.value_ctx_val = offset_of(program, GO_FIELD_VALUE_CTX_VAL),
		.gin_context_request = offset_of(program, GO_FIELD_GIN_CONTEXT_REQUEST),
		.value_ctx = program->types[GO_STRUCT_VALUE_CTX],
		.cancel_ctx = program->types[GO_STRUCT_CANCEL_CTX],
		.timer_ctx = context_type(program, GO_STRUCT_TIMER_CTX, timer),
		.without_cancel_ctx = context_type(program, GO_STRUCT_WITHOUT_CANCEL_CTX,
						   GO_FIELD_WITHOUT_CANCEL_CTX_C),
		.gin_context =
			context_type(program, GO_STRUCT_GIN_CONTEXT, GO_FIELD_GIN_CONTEXT_REQUEST),
		.context_interface = program->context_interface,
		.server = context_type(program, GO_STRUCT_SERVER, GO_FIELD_VALUE_CTX_VAL),
		.routes = go_routes_of(program),
	};
}

bool go_layout_is_same(const struct go_probe_layout *a, const struct go_probe_layout *b)
{
	return a->g_m == b->g_m && a->g_goid == b->g_goid && a->m_curg == b->m_curg &&
	       a->g_gopc == b->g_gopc && a->dial_conn == b->dial_conn &&
	       a->dial_conn_bytes == b->dial_conn_bytes && a->has_calls == b->has_calls &&
	       a->persist_conn_bw == b->persist_conn_bw &&
	       a->persist_conn_closed == b->persist_conn_closed && a->writer_buf == b->writer_buf &&
	       a->call_request == b->call_request && a->request_ctx == b->request_ctx &&
	       a->value_ctx_context == b->value_ctx_context &&
	       a->cancel_ctx_context == b->cancel_ctx_context &&
	       a->timer_ctx_cancel_ctx == b->timer_ctx_cancel_ctx &&
	       a->timer_ctx_points == b->timer_ctx_points && a->value_ctx_val == b->value_ctx_val &&
	       a->gin_context_request == b->gin_context_request &&
	       a->without_cancel_ctx_c == b->without_cancel_ctx_c && a->value_ctx == b->value_ctx &&
	       a->cancel_ctx == b->cancel_ctx && a->timer_ctx == b->timer_ctx &&
	       a->without_cancel_ctx == b->without_cancel_ctx && a->gin_context == b->gin_context &&
	       a->context_interface == b->context_interface && a->server == b->server &&
	       memcmp(&a->routes, &b->routes, sizeof(a->routes)) == 0;
}

bool go_layout_has_goroutines(const struct go_program *program)
{
	return is_known(program, GO_FIELD_G_GOID) && is_known(program, GO_FIELD_G_M) &&
	       is_known(program, GO_FIELD_M_CURG);
}
