/*
 * Parser of captured HTTP/1.0 and 1.1 heads: stitch gives it the bytes that the kernel side copied,
 * and it answers done, more or bad. It allocates nothing and keeps nothing: the result is views
 * into the caller's bytes.
 *
 * The start line decides whether bytes are HTTP at all. Header lines are taken as a lenient server
 * takes them: bare LF ends a line, a line that is none is passed over, and a value with control
 * characters or an obs-fold is as good as absent. Sources: RFC 9112 (syntax, framing), RFC 9110
 * (methods), W3C Trace Context (traceparent, tracestate).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define HTTP_HEAD_BYTES_MAX   65536
#define HTTP_METHOD_BYTES_MAX 32
#define HTTP_TRACESTATES_MAX  4

/*
 * The methods OpenTelemetry's semantic conventions know (RFC 9110, PATCH of RFC 5789, QUERY); case
 * matters.
 */
enum http_method {
	HTTP_METHOD_OTHER,
	HTTP_METHOD_GET,
	HTTP_METHOD_HEAD,
	HTTP_METHOD_POST,
	HTTP_METHOD_PUT,
	HTTP_METHOD_DELETE,
	HTTP_METHOD_CONNECT,
	HTTP_METHOD_OPTIONS,
	HTTP_METHOD_TRACE,
	HTTP_METHOD_PATCH,
	HTTP_METHOD_QUERY,
	_HTTP_METHOD_MAX,
};

/* "GET", ...; "_OTHER" for HTTP_METHOD_OTHER. */
struct str http_method_name(enum http_method method);

struct http_head {
	bool is_request;
	bool is_chunked; /* the last transfer coding is "chunked" */
	bool has_transfer_encoding;
	bool has_bad_framing; /* Content-Length that is no number, too large, or two that differ */
	bool has_close;       /* Connection: close */
	bool has_keep_alive;  /* Connection: keep-alive */
	int8_t minor_version; /* 0 or 1; -1: the request line was cut before it */
	enum http_method method; /* requests */
	uint16_t status;         /* responses: 100 to 999 */
	struct str method_text;  /* as sent */
	struct str target;
	struct str reason;
	struct str host;                              /* empty: none, or several that differ */
	struct str user_agent;                        /* the first one */
	struct str traceparent;                       /* empty: none, or several that differ */
	struct str tracestates[HTTP_TRACESTATES_MAX]; /* the first ones, in order; they form one
							 list */
	unsigned int n_hosts, n_traceparents, n_tracestates; /* how many there were */
	int64_t content_length;                              /* -1: none, or has_bad_framing */
	size_t head_bytes;                                   /* up to and with the blank line */
};

/*
 * DONE: 'ret' holds the head. MORE: the bytes are the beginning of a head. BAD: they are none, or
 * longer than HTTP_HEAD_BYTES_MAX. 'ret' is written on DONE only; 'bytes' may be followed by the
 * body.
 */
enum { HTTP_HEAD_DONE = 0, HTTP_HEAD_MORE, HTTP_HEAD_BAD };
int http_head_parse(struct str bytes, struct http_head *ret);

/*
 * The same for the beginning of a head whose rest will never come: DONE with what is whole, BAD
 * otherwise. The request's target may itself be cut (then minor_version is -1); a header is whole
 * or not there.
 */
int http_head_parse_truncated(struct str bytes, struct http_head *ret);

/* How the end of a response's body is found (RFC 9112, section 6.3). */
enum http_framing {
	HTTP_FRAMING_NO_BODY,
	HTTP_FRAMING_LENGTH, /* content_length bytes */
	HTTP_FRAMING_CHUNKED,
	HTTP_FRAMING_CLOSE_DELIMITED,
	HTTP_FRAMING_TUNNEL, /* 101, or 2xx to CONNECT: what follows is not HTTP */
};
enum http_framing http_framing(enum http_method request_method, const struct http_head *response);
