/* Exchanges; see exchange.h. */
#include "stitch/exchange.h"

#include <errno.h>

#include "base/util.h"
#include "http/route.h"
#include "http/trace_context.h"
#include "http/url.h"
#include "metrics/metrics.h"
#include "stitch/conn.h"

/* In place of a user and a password (OpenTelemetry's semantic conventions for url.full). */
#define REDACTED_USER "REDACTED:REDACTED@"
/* What a URL has beside its parts. */
#define URL_EXTRA_BYTES sizeof("http://" REDACTED_USER "[]:65535?")

/* What a request says about where it goes. */
struct target {
	const struct http_head *head;
	struct url url;
	struct str host;
	uint16_t port;
	bool is_host_sent; /* in the target or the Host header, not taken from the socket */
};

static bool is_ascii(struct str s)
{
	unsigned char all = 0;

	for (size_t i = 0; i < s.n; i++)
		all |= (unsigned char)s.p[i];
	return all < 0x80;
}

/* Length of the UTF-8 sequence at 'p' (RFC 3629), or 0. */
static size_t utf8_length(const unsigned char *p, size_t left)
{
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

	if (!n || n > left || p[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

/* OTLP strings are UTF-8, and a collector may refuse a whole batch for one that is not. */
static void utf8_repair(char *text, size_t n)
{
	size_t i = 0;

	while (i < n) {
		size_t length = utf8_length((unsigned char *)text + i, n - i);

		if (!length)
			text[i] = '?';
		i += MAX(length, 1U);
	}
}

/* Copies to the end of the text and moves it on. */
static struct str put(char **end, struct str s)
{
	struct str copy = {.p = *end, .n = s.n};

	if (s.n)
		memcpy(*end, s.p, s.n);
	*end += s.n;
	return copy;
}

static void put_port(char **end, uint16_t port)
{
	char text[sizeof(":65535")], *p = text + sizeof(text);

	do
		*--p = (char)('0' + port % 10);
	while (port /= 10);
	*--p = ':';
	put(end, (struct str){.p = p, .n = (size_t)(text + sizeof(text) - p)});
}

/* Whoever the target names comes before the Host header (RFC 9112, section 3.2.2). */
static void target_find_host(struct target *q)
{
	if (q->url.form == URL_FORM_ABSOLUTE || q->url.form == URL_FORM_AUTHORITY) {
		q->host = q->url.host;
		q->port = q->url.port;
		if (!q->port && q->host.n)
			q->port = str_equal_nocase(q->url.scheme, STR("https")) ? 443 : 80;
	} else if (url_parse_authority(q->head->host, &q->host, &q->port) != 0) {
		q->host = STR_NONE;
		q->port = 0;
	}
	q->is_host_sent = q->host.n > 0;
}

/* The port in a URL: only where the sender wrote one. */
static uint16_t target_url_port(const struct target *q, const struct event_endpoint *server)
{
	if (!q->is_host_sent)
		return server->port;
	return q->url.form == URL_FORM_ABSOLUTE ? q->url.port : q->port;
}

/* A value that is redacted follows a '=' and grows by 7 at most. Most have none to redact. */
static size_t redacted_bytes_max(struct str query)
{
	size_t n = query.n;

	for (size_t i = 0; i < query.n; i++)
		n += query.p[i] == '=' ? STR("REDACTED").n - 1 : 0;
	return MIN(n, URL_REDACTED_BYTES_MAX(query.n));
}

static struct str put_query(char **end, struct str query)
{
	struct str redacted = {.p = *end};

	redacted.n = url_redact_query(query, *end, redacted_bytes_max(query));
	*end += redacted.n;
	return redacted;
}

/* url.full and, inside it, server.address. A tunnel has no URL. */
static void put_url(struct exchange *x, char **end, const struct target *q,
		    const struct event_endpoint *server)
{
	bool is_ipv6 = str_find(q->host, ':') >= 0;
	uint16_t port = target_url_port(q, server);
	char *start = *end;

	if (q->url.form == URL_FORM_AUTHORITY) {
		x->server_address = put(end, q->host);
		return;
	}
	put(end, q->url.scheme.n ? q->url.scheme : STR("http"));
	put(end, STR("://"));
	if (q->url.has_user)
		put(end, STR(REDACTED_USER));
	if (is_ipv6)
		put(end, STR("["));
	x->server_address = put(end, q->host);
	if (is_ipv6)
		put(end, STR("]"));
	if (port)
		put_port(end, port);
	if (q->url.form != URL_FORM_ASTERISK)
		put(end, q->url.path);
	if (q->url.query.n) {
		put(end, STR("?"));
		put_query(end, q->url.query);
	}
	x->url_full = (struct str){.p = start, .n = (size_t)(*end - start)};
}

static struct str put_tracestates(char **end, const struct http_head *head)
{
	char *start = *end;

	for (unsigned int i = 0; i < head->n_tracestates; i++) {
		if (i)
			put(end, STR(","));
		put(end, head->tracestates[i]);
	}
	return (struct str){.p = start, .n = (size_t)(*end - start)};
}

static size_t tracestates_bytes(const struct http_head *head)
{
	size_t n = 0;

	/* More of them than the parser keeps: a part of the list would be a wrong list. */
	if (head->n_tracestates > HTTP_TRACESTATES_MAX)
		return 0;
	for (unsigned int i = 0; i < head->n_tracestates; i++) {
		if (!is_ascii(head->tracestates[i]))
			return 0;
		n += head->tracestates[i].n + 1;
	}
	return n;
}

/* The kernel side says that the context came from the header: is that what the header says? */
static bool is_header_trace(const struct http_head *head, const struct trace_id *trace_id)
{
	struct trace_context context;

	return trace_context_parse(head->traceparent, &context) == 0 &&
	       memcmp(&context.trace_id, trace_id, sizeof(*trace_id)) == 0;
}

static void exchange_take_decision(struct exchange *x, const struct event_head *e,
				   const struct http_head *head)
{
	if (e->has_decision && trace_id_is_valid(&e->trace_id) && span_id_is_valid(&e->span_id)) {
		x->reason = e->reason;
		x->trace_flags = e->trace_flags;
		x->trace_id = e->trace_id;
		x->span_id = e->span_id;
		if (e->reason != PARENT_HEADER || x->is_truncated ||
		    is_header_trace(head, &e->trace_id)) {
			x->parent_span_id = e->parent_span_id;
			return;
		}
		/* The ids are out already, so they stay; a parent that is doubtful does not. */
		x->reason = PARENT_UNDECIDED;
		x->has_wrong_parent = true;
		return;
	}
	x->reason = PARENT_UNDECIDED;
	x->trace_flags = TRACE_FLAG_SAMPLED | TRACE_FLAG_RANDOM;
	x->trace_id = trace_id_new();
	x->span_id = span_id_new();
}

/* Only servers in Go tell their routes. */
static bool has_route_room(const struct conn *c, uint64_t goroutine)
{
	return c->role == EVENT_ROLE_SERVER && goroutine;
}

static void exchange_put_texts(struct exchange *x, const struct conn *c, const struct target *q,
			       bool has_tracestate)
{
	const struct http_head *head = q->head;
	char *end = x->text;

	if (head->method == HTTP_METHOD_OTHER)
		x->method_original = put(&end, head->method_text);
	if (c->role == EVENT_ROLE_CLIENT) {
		put_url(x, &end, q, &c->remote);
	} else {
		x->url_path = put(&end, q->url.path);
		x->url_query = put_query(&end, q->url.query);
		x->server_address = put(&end, q->host);
		x->user_agent = put(&end, head->user_agent);
		utf8_repair((char *)x->user_agent.p, x->user_agent.n);
	}
	if (has_tracestate)
		x->tracestate = put_tracestates(&end, head);
	if (has_route_room(c, x->goroutine))
		x->route_text = end;
}

int exchange_new(const struct conn *c, const struct event *e,
		 const struct exchange_request *request, struct exchange **ret)
{
	const struct http_head *head = &request->head;
	struct target q = {.head = head};
	_cleanup_(freep) char *escaped = NULL;
	struct str target = head->target;
	char address[INET6_ADDRSTRLEN];
	size_t tracestate_bytes, bytes;
	struct exchange *x;

	if (!is_ascii(target)) {
		escaped = malloc(3 * target.n);
		if (!escaped)
			return -ENOMEM;
		target = (struct str){.p = escaped, .n = url_escape(target, escaped)};
	}

	/* A target of no known form: the server will say 400, and the span has no path. */
	if (url_parse_target(target, head->method == HTTP_METHOD_CONNECT, &q.url) != 0)
		q.url = (struct url){.form = URL_FORM_ASTERISK};
	target_find_host(&q);
	if (!q.host.n)
		q.host = (struct str){
			.p = address,
			.n = conn_print_address(
				c->role == EVENT_ROLE_CLIENT ? &c->remote : &c->local, address),
		};

	/* tracestate belongs to the traceparent beside it, and to no other parent. */
	tracestate_bytes = e->head.has_decision && e->head.reason == PARENT_HEADER
				   ? tracestates_bytes(head)
				   : 0;

	bytes = sizeof(*x) + head->method_text.n + q.url.scheme.n + q.host.n + q.url.path.n +
		redacted_bytes_max(q.url.query) + URL_EXTRA_BYTES + head->user_agent.n +
		tracestate_bytes +
		(has_route_room(c, e->head.goroutine) ? HTTP_ROUTE_BYTES_MAX : 0);
	x = malloc(bytes);
	if (!x)
		return -ENOMEM;

	*x = (struct exchange){
		.bytes = (uint32_t)bytes,
		.number = e->exchange,
		.pid = e->pid,
		.tid = e->tid,
		.proc_id = e->proc_id,
		.goroutine = e->head.goroutine,
		.method = head->method,
		.minor_version = head->minor_version,
		.is_truncated = request->is_truncated,
		.is_last = head->has_close || (head->minor_version == 0 && !head->has_keep_alive),
		.server_port = q.port,
		.start_ns =
			e->head.head_start_ns ? MIN(e->head.head_start_ns, e->time_ns) : e->time_ns,
		.last_ns = e->time_ns,
	};
	exchange_take_decision(x, &e->head, head);
	exchange_put_texts(x, c, &q, tracestate_bytes > 0 && !x->has_wrong_parent);
	*ret = x;
	return 0;
}

void exchange_free(struct exchange *x)
{
	resource_unref(x->resource);
	free(x);
}

static void take_route(struct exchange *x, const struct event_head *e)
{
	if (!x->route_text)
		return;
	switch (e->route_kind) {
	case EVENT_ROUTE_NONE:
		return;
	case EVENT_ROUTE_PATTERN:
		x->route = http_route_of_pattern(e->route);
		break;
	case EVENT_ROUTE_TEMPLATE:
		x->route = http_route_check(e->route);
		break;
	case EVENT_ROUTE_CHI:
		x->route = http_route_of_chi(e->route, x->route_text);
		break;
	}
	if (!x->route.n) {
		metrics_increment(METRIC_ROUTES_BAD);
		return;
	}
	if (x->route.p != x->route_text)
		memcpy(x->route_text, x->route.p, x->route.n);
	x->route.p = x->route_text;
}

void exchange_take_response(struct exchange *x, const struct http_head *response,
			    const struct event *e)
{
	x->status = response->status;
	x->framing = http_framing(x->method, response);
	x->is_last |=
		response->has_close || (response->minor_version == 0 && !response->has_keep_alive);
	x->last_ns = MAX(x->last_ns, e->time_ns);
	take_route(x, &e->head);
}
