/* From an exchange to a span; see span_build.h. */
#include "stitch/span_build.h"

#include "base/util.h"
#include "http/route.h"

static void add_text(struct span_options *o, enum attribute_key key, struct str text)
{
	if (text.n)
		span_add_text(o, key, text);
}

static void add_number(struct span_options *o, enum attribute_key key, int64_t number)
{
	if (number)
		span_add_int(o, key, number);
}

static void add_request(struct span_options *o, const struct conn *c, const struct exchange *x)
{
	static const struct str versions[] = {STR("1.0"), STR("1.1")};
	struct str peer = {.p = c->remote_text, .n = c->remote_n};
	bool is_client = c->role == EVENT_ROLE_CLIENT;
	uint16_t own_port = is_client ? c->remote.port : c->local.port;

	span_add_text(o, ATTR_HTTP_REQUEST_METHOD, http_method_name(x->method));
	add_text(o, ATTR_HTTP_REQUEST_METHOD_ORIGINAL, x->method_original);
	if (is_client) {
		add_text(o, ATTR_URL_FULL, x->url_full);
	} else {
		span_add_text(o, ATTR_URL_SCHEME, STR("http"));
		add_text(o, ATTR_URL_PATH, x->url_path);
		add_text(o, ATTR_URL_QUERY, x->url_query);
		add_text(o, ATTR_HTTP_ROUTE, x->route);
		add_text(o, ATTR_USER_AGENT_ORIGINAL, x->user_agent);
		add_text(o, ATTR_CLIENT_ADDRESS, peer);
	}
	add_text(o, ATTR_SERVER_ADDRESS, x->server_address);
	add_number(o, ATTR_SERVER_PORT, x->server_port ? x->server_port : own_port);
	add_text(o, ATTR_NETWORK_PEER_ADDRESS, peer);
	add_number(o, ATTR_NETWORK_PEER_PORT, c->remote.port);
	if (x->minor_version >= 0)
		span_add_text(o, ATTR_NETWORK_PROTOCOL_VERSION, versions[x->minor_version]);
	add_number(o, ATTR_THREAD_ID, x->tid);
	add_number(o, ATTR_TSUNAGI_GOROUTINE_ID, (int64_t)x->goroutine);
	if (x->is_truncated)
		span_add_text(o, ATTR_TSUNAGI_TRUNCATED, STR("head"));
	if (is_client && !span_id_is_valid(&x->parent_span_id))
		span_add_text(o, ATTR_TSUNAGI_PARENT_REASON,
			      str_from(parent_reason_name(x->reason)));
}

/* 'digits' must live as long as the options. */
static void add_result(struct span_options *o, const struct exchange *x,
		       const struct span_ending *ending, char digits[3])
{
	unsigned int error_from = o->kind == SPAN_KIND_CLIENT ? 400 : 500;
	bool is_error = x->status >= error_from;

	add_number(o, ATTR_HTTP_RESPONSE_STATUS_CODE, x->status);
	/* That we did not see how it ended says nothing against it. */
	if (is_error || (ending->error_type && !ending->is_unseen))
		o->status = SPAN_STATUS_ERROR;
	if (ending->error_type) {
		span_add_text(o, ATTR_ERROR_TYPE, str_from(ending->error_type));
		return;
	}
	if (!is_error)
		return;
	digits[0] = (char)('0' + x->status / 100);
	digits[1] = (char)('0' + x->status / 10 % 10);
	digits[2] = (char)('0' + x->status % 10);
	span_add_text(o, ATTR_ERROR_TYPE, (struct str){.p = digits, .n = 3});
}

/*
 * The clock may be set to before the machine's start; a span is never dated before 1970 for that.
 */
static uint64_t wall_ns(uint64_t monotonic_ns, int64_t offset_ns)
{
	if (offset_ns < 0 && monotonic_ns < -(uint64_t)offset_ns)
		return 0;
	return monotonic_ns + (uint64_t)offset_ns;
}

#define METHOD_BYTES_MAX 16 /* no method that has a name is longer */
#define NAME_BYTES_MAX   (METHOD_BYTES_MAX + 1 + HTTP_ROUTE_BYTES_MAX)

/* "{method} {route}", or the method alone; 'text' must live as long as the name. */
static struct str span_name(const struct exchange *x, char text[static NAME_BYTES_MAX])
{
	struct str method =
		x->method == HTTP_METHOD_OTHER ? STR("HTTP") : http_method_name(x->method);

	if (!x->route.n || method.n > METHOD_BYTES_MAX)
		return method;
	memcpy(text, method.p, method.n);
	text[method.n] = ' ';
	memcpy(text + method.n + 1, x->route.p, x->route.n);
	return (struct str){.p = text, .n = method.n + 1 + x->route.n};
}

int span_build(const struct conn *c, const struct exchange *x, const struct span_ending *ending,
	       struct span **ret)
{
	bool is_client = c->role == EVENT_ROLE_CLIENT;
	uint64_t end_ns = MAX(ending->end_ns, x->start_ns);
	char digits[3], name[NAME_BYTES_MAX];
	struct span_options o = {
		.kind = is_client ? SPAN_KIND_CLIENT : SPAN_KIND_SERVER,
		.trace_flags = x->trace_flags,
		.trace_id = x->trace_id,
		.span_id = x->span_id,
		.parent_span_id = x->parent_span_id,
		/* What a client belongs to is here, even if it passes a header on. */
		.has_local_parent = is_client || x->reason == PARENT_JOINED,
		.start_unix_ns = wall_ns(x->start_ns, ending->clock_offset_ns),
		.end_unix_ns = wall_ns(end_ns, ending->clock_offset_ns),
		.resource = ending->resource,
		.name = span_name(x, name),
		.tracestate = x->tracestate,
	};

	add_request(&o, c, x);
	add_result(&o, x, ending, digits);
	return span_new(&o, ret);
}
