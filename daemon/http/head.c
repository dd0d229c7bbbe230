/*
 * The HTTP/1 head parser; see head.h.
 *
 * Few header lines matter, so lines are found by memchr() and looked into only when their first
 * character may begin a name that does.
 */
#include "http/head.h"

#include "base/util.h"

static const struct str method_names[] = {
	[HTTP_METHOD_OTHER] = STR("_OTHER"),    [HTTP_METHOD_GET] = STR("GET"),
	[HTTP_METHOD_HEAD] = STR("HEAD"),       [HTTP_METHOD_POST] = STR("POST"),
	[HTTP_METHOD_PUT] = STR("PUT"),         [HTTP_METHOD_DELETE] = STR("DELETE"),
	[HTTP_METHOD_CONNECT] = STR("CONNECT"), [HTTP_METHOD_OPTIONS] = STR("OPTIONS"),
	[HTTP_METHOD_TRACE] = STR("TRACE"),     [HTTP_METHOD_PATCH] = STR("PATCH"),
	[HTTP_METHOD_QUERY] = STR("QUERY"),
};
static_assert(ARRAY_SIZE(method_names) == _HTTP_METHOD_MAX, "each method has a name");

struct str http_method_name(enum http_method method)
{
	return method_names[method];
}

static enum http_method method_find(struct str text)
{
	for (enum http_method m = HTTP_METHOD_GET; m < _HTTP_METHOD_MAX; m++)
		if (str_equal(method_names[m], text))
			return m;
	return HTTP_METHOD_OTHER;
}

/* tchar of RFC 9110, section 5.6.2. */
static bool is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c > ' ' && c < 0x7f && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_visible(char c)
{
	return (unsigned char)c > ' ' && c != 0x7f;
}

struct cursor {
	const char *p, *end;
};

static size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->p);
}

/* At least one blank. */
static int parse_blanks(struct cursor *c)
{
	if (c->p == c->end)
		return HTTP_HEAD_MORE;
	if (*c->p != ' ')
		return HTTP_HEAD_BAD;
	while (c->p < c->end && *c->p == ' ')
		c->p++;
	return c->p == c->end ? HTTP_HEAD_MORE : HTTP_HEAD_DONE;
}

static int parse_version(struct cursor *c, int8_t *ret_minor)
{
	static const struct str prefix = STR("HTTP/1.");
	size_t n = MIN(prefix.n, cursor_left(c));

	if (memcmp(c->p, prefix.p, n) != 0)
		return HTTP_HEAD_BAD;
	c->p += n;
	if (c->p == c->end)
		return HTTP_HEAD_MORE;
	if (*c->p != '0' && *c->p != '1')
		return HTTP_HEAD_BAD;
	*ret_minor = (int8_t)(*c->p++ - '0');
	return HTTP_HEAD_DONE;
}

/* Blanks before the end of the line are let pass, as most servers do. */
static int parse_line_end(struct cursor *c)
{
	while (c->p < c->end && *c->p == ' ')
		c->p++;
	if (c->p < c->end && *c->p == '\r')
		c->p++;
	if (c->p == c->end)
		return HTTP_HEAD_MORE;
	return *c->p++ == '\n' ? HTTP_HEAD_DONE : HTTP_HEAD_BAD;
}

static int parse_request_line(struct cursor *c, struct http_head *h)
{
	const char *start = c->p;
	int r;

	while (c->p < c->end && is_token(*c->p))
		c->p++;
	h->method_text = (struct str){.p = start, .n = (size_t)(c->p - start)};
	if (h->method_text.n > HTTP_METHOD_BYTES_MAX || (!h->method_text.n && c->p < c->end))
		return HTTP_HEAD_BAD;
	r = parse_blanks(c);
	if (r != HTTP_HEAD_DONE)
		return r;

	start = c->p;
	while (c->p < c->end && is_visible(*c->p))
		c->p++;
	h->target = (struct str){.p = start, .n = (size_t)(c->p - start)};
	if (!h->target.n)
		return HTTP_HEAD_BAD;
	r = parse_blanks(c);
	if (r != HTTP_HEAD_DONE)
		return r;

	r = parse_version(c, &h->minor_version);
	if (r != HTTP_HEAD_DONE)
		return r;
	r = parse_line_end(c);
	if (r != HTTP_HEAD_DONE)
		return r;
	h->is_request = true;
	h->method = method_find(h->method_text);
	return HTTP_HEAD_DONE;
}

static int parse_status_line(struct cursor *c, struct http_head *h)
{
	const char *lf;
	int r;

	r = parse_version(c, &h->minor_version);
	if (r != HTTP_HEAD_DONE)
		return r;
	r = parse_blanks(c);
	if (r != HTTP_HEAD_DONE)
		return r;

	for (int i = 0; i < 3; i++, c->p++) {
		if (c->p == c->end)
			return HTTP_HEAD_MORE;
		if (*c->p < '0' || *c->p > '9')
			return HTTP_HEAD_BAD;
		h->status = (uint16_t)(h->status * 10 + (*c->p - '0'));
	}
	if (h->status < 100)
		return HTTP_HEAD_BAD;
	if (c->p < c->end && *c->p != ' ' && *c->p != '\r' && *c->p != '\n')
		return HTTP_HEAD_BAD;

	lf = memchr(c->p, '\n', cursor_left(c));
	if (!lf)
		return HTTP_HEAD_MORE;
	h->reason = (struct str){.p = c->p, .n = (size_t)(lf - c->p)};
	if (h->reason.n && h->reason.p[h->reason.n - 1] == '\r')
		h->reason.n--;
	if (h->reason.n)
		h->reason = str_skip(h->reason, 1);
	c->p = lf + 1;
	return HTTP_HEAD_DONE;
}

static int parse_start_line(struct cursor *c, struct http_head *h)
{
	static const struct str http = STR("HTTP/");
	size_t n;

	/* Empty lines before a request line are to be ignored (RFC 9112, section 2.2). */
	while (c->p < c->end && (*c->p == '\r' || *c->p == '\n'))
		c->p++;

	n = MIN(http.n, cursor_left(c));
	if (!n)
		return HTTP_HEAD_MORE;
	if (n == http.n && memcmp(c->p, http.p, n) == 0)
		return parse_status_line(c, h);
	return parse_request_line(c, h);
}

static struct str trim_ows(struct str s)
{
	while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
		s = str_skip(s, 1);
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

static bool is_clean(struct str value)
{
	for (size_t i = 0; i < value.n; i++)
		if (((unsigned char)value.p[i] < ' ' && value.p[i] != '\t') || value.p[i] == 0x7f)
			return false;
	return true;
}

/* Cuts the first item off a comma-separated list. */
static struct str list_next(struct str *list)
{
	ptrdiff_t comma = str_find(*list, ',');
	struct str item = {.p = list->p, .n = comma < 0 ? list->n : (size_t)comma};

	*list = str_skip(*list, comma < 0 ? list->n : (size_t)comma + 1);
	return trim_ows(item);
}

static void take_content_length(struct http_head *h, struct str value)
{
	int64_t length = 0;
	bool is_bad = !value.n || h->has_bad_framing;

	for (size_t i = 0; i < value.n && !is_bad; i++) {
		is_bad = value.p[i] < '0' || value.p[i] > '9' ||
			 __builtin_mul_overflow(length, 10, &length) ||
			 __builtin_add_overflow(length, value.p[i] - '0', &length);
	}
	if (h->content_length >= 0 && h->content_length != length)
		is_bad = true;
	h->has_bad_framing = is_bad;
	h->content_length = is_bad ? -1 : length;
}

static void take_transfer_encoding(struct http_head *h, struct str value)
{
	struct str coding = STR_NONE;

	while (value.n)
		coding = list_next(&value);
	h->has_transfer_encoding = true;
	h->is_chunked = str_equal_nocase(coding, STR("chunked"));
}

static void take_connection(struct http_head *h, struct str value)
{
	while (value.n) {
		struct str option = list_next(&value);

		if (str_equal_nocase(option, STR("close")))
			h->has_close = true;
		else if (str_equal_nocase(option, STR("keep-alive")))
			h->has_keep_alive = true;
	}
}

/* A header that may come once: a second one that says something else makes it unknown. */
static void take_single(struct str *view, unsigned int *count, struct str value)
{
	if ((*count)++ == 0)
		*view = value;
	else if (!str_equal(*view, value))
		*view = STR_NONE;
}

static void take_tracestate(struct http_head *h, struct str value)
{
	if (h->n_tracestates < HTTP_TRACESTATES_MAX)
		h->tracestates[h->n_tracestates] = value;
	h->n_tracestates++;
}

/* The headers that matter; no two names are of one length and begin with the same letter. */
enum header {
	HEADER_HOST,
	HEADER_USER_AGENT,
	HEADER_TRACESTATE,
	HEADER_CONNECTION,
	HEADER_TRACEPARENT,
	HEADER_CONTENT_LENGTH,
	HEADER_TRANSFER_ENCODING,
	_HEADER_MAX,
};

static const struct str header_names[] = {
	[HEADER_HOST] = STR("host"),
	[HEADER_USER_AGENT] = STR("user-agent"),
	[HEADER_TRACESTATE] = STR("tracestate"),
	[HEADER_CONNECTION] = STR("connection"),
	[HEADER_TRACEPARENT] = STR("traceparent"),
	[HEADER_CONTENT_LENGTH] = STR("content-length"),
	[HEADER_TRANSFER_ENCODING] = STR("transfer-encoding"),
};
static_assert(ARRAY_SIZE(header_names) == _HEADER_MAX, "each header has a name");

static bool may_matter(char c)
{
	c |= 0x20;
	return c == 'h' || c == 'u' || c == 't' || c == 'c';
}

/* _HEADER_MAX: it does not matter. */
static enum header header_find(struct str name)
{
	for (enum header i = 0; i < _HEADER_MAX; i++)
		if (name.n == header_names[i].n && (name.p[0] | 0x20) == header_names[i].p[0])
			return str_equal_nocase(name, header_names[i]) ? i : _HEADER_MAX;
	return _HEADER_MAX;
}

/*
 * A value with control characters, or one that continues on the next line, is as good as none. Only
 * those that are exported as they are need a look at each byte.
 */
static void take_header(struct http_head *h, enum header header, struct str value, bool is_folded)
{
	switch (header) {
	case HEADER_HOST:
		take_single(&h->host, &h->n_hosts,
			    is_folded || !is_clean(value) ? STR_NONE : value);
		break;
	case HEADER_USER_AGENT:
		if (!is_folded && !h->user_agent.n && is_clean(value))
			h->user_agent = value;
		break;
	case HEADER_TRACESTATE:
		if (!is_folded && is_clean(value))
			take_tracestate(h, value);
		break;
	case HEADER_CONNECTION:
		take_connection(h, value);
		break;
	case HEADER_TRACEPARENT:
		take_single(&h->traceparent, &h->n_traceparents, is_folded ? STR_NONE : value);
		break;
	case HEADER_CONTENT_LENGTH:
		take_content_length(h, is_folded ? STR_NONE : value);
		break;
	case HEADER_TRANSFER_ENCODING:
		take_transfer_encoding(h, value);
		break;
	case _HEADER_MAX:
		break;
	}
}

/* 'line' is without its end. */
static void parse_header(struct http_head *h, struct str line, bool is_folded)
{
	ptrdiff_t colon = str_find(line, ':');
	enum header header;

	if (colon <= 0)
		return;
	header = header_find((struct str){.p = line.p, .n = (size_t)colon});
	if (header != _HEADER_MAX)
		take_header(h, header, trim_ows(str_skip(line, (size_t)colon + 1)), is_folded);
}

static int parse_headers(struct cursor *c, struct http_head *h)
{
	while (c->p < c->end) {
		const char *lf = memchr(c->p, '\n', cursor_left(c));
		struct str line;

		if (!lf)
			return HTTP_HEAD_MORE;
		line = (struct str){.p = c->p, .n = (size_t)(lf - c->p)};
		if (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		if (!line.n) {
			c->p = lf + 1;
			return HTTP_HEAD_DONE;
		}
		/* Whether the line goes on is in the first character of the next one. */
		if (lf + 1 == c->end)
			return HTTP_HEAD_MORE;

		if (may_matter(line.p[0]))
			parse_header(h, line, lf[1] == ' ' || lf[1] == '\t');
		c->p = lf + 1;
	}
	return HTTP_HEAD_MORE;
}

int http_head_parse(struct str bytes, struct http_head *ret)
{
	struct cursor c = {.p = bytes.p, .end = bytes.p + MIN(bytes.n, HTTP_HEAD_BYTES_MAX)};
	struct http_head h = {.content_length = -1};
	int r;

	r = parse_start_line(&c, &h);
	if (r == HTTP_HEAD_DONE)
		r = parse_headers(&c, &h);
	if (r == HTTP_HEAD_MORE && bytes.n >= HTTP_HEAD_BYTES_MAX)
		return HTTP_HEAD_BAD;
	if (r != HTTP_HEAD_DONE)
		return r;

	h.head_bytes = (size_t)(c.p - bytes.p);
	*ret = h;
	return HTTP_HEAD_DONE;
}

/*
 * Without the version at its end a line is a request only by its looks: be strict, for a span that
 * is missing does less harm than one made from junk.
 */
static bool is_cut_request_line(struct http_head *h)
{
	h->method = method_find(h->method_text);
	if (h->method == HTTP_METHOD_OTHER || !h->target.n)
		return false;
	return h->target.p[0] == '/' || str_starts_with(h->target, STR("http://"));
}

int http_head_parse_truncated(struct str bytes, struct http_head *ret)
{
	struct cursor c = {.p = bytes.p, .end = bytes.p + MIN(bytes.n, HTTP_HEAD_BYTES_MAX)};
	struct http_head h = {.content_length = -1, .minor_version = -1};
	int r;

	r = parse_start_line(&c, &h);
	if (r == HTTP_HEAD_BAD)
		return HTTP_HEAD_BAD;
	if (r == HTTP_HEAD_MORE) {
		if (!is_cut_request_line(&h))
			return HTTP_HEAD_BAD;
		h.is_request = true;
		h.minor_version = -1;
	} else {
		parse_headers(&c, &h); /* DONE or MORE: either way what is whole was taken */
	}

	h.head_bytes = (size_t)(c.p - bytes.p);
	*ret = h;
	return HTTP_HEAD_DONE;
}

enum http_framing http_framing(enum http_method request_method, const struct http_head *response)
{
	if (response->status == 101)
		return HTTP_FRAMING_TUNNEL;
	if (request_method == HTTP_METHOD_CONNECT && response->status / 100 == 2)
		return HTTP_FRAMING_TUNNEL;
	if (request_method == HTTP_METHOD_HEAD || response->status / 100 == 1 ||
	    response->status == 204 || response->status == 304)
		return HTTP_FRAMING_NO_BODY;
	if (response->has_transfer_encoding)
		return response->is_chunked ? HTTP_FRAMING_CHUNKED : HTTP_FRAMING_CLOSE_DELIMITED;
	if (response->content_length >= 0)
		return HTTP_FRAMING_LENGTH;
	return HTTP_FRAMING_CLOSE_DELIMITED;
}
