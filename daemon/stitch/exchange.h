/*
 * A request that waits for its response, for stitch.c: what its span will say of the request is
 * copied out of the ring into one allocation, redacted already.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "http/head.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/resource.h"

struct branch;

struct exchange {
	struct exchange *next;
	struct branch *branch; /* lineage.c's; NULL: nothing about it is in doubt */
	uint32_t bytes;        /* of this allocation */
	uint32_t number;
	uint32_t pid, tid, proc_id;
	uint64_t goroutine;        /* 0: none */
	struct resource *resource; /* a reference; NULL: not known when the request came */

	/* From the decision, or made here. */
	enum parent_reason reason;
	uint8_t trace_flags;
	struct trace_id trace_id;
	struct span_id span_id;
	struct span_id parent_span_id;

	enum http_method method;
	int8_t minor_version;
	bool is_truncated;
	bool has_wrong_parent; /* the header has another trace id than the decision: no parent */
	bool is_last;    /* Connection: close, or HTTP/1.0 without keep-alive, in either head */
	uint16_t status; /* 0: no final response seen */
	enum http_framing framing; /* of the response, once there is a status */
	uint16_t server_port;      /* 0: the connection's */
	uint64_t start_ns;         /* the request's first byte */
	uint64_t last_ns;          /* the newest event of this exchange */

	/* Views into 'text'; empty: none. */
	struct str method_original; /* of HTTP_METHOD_OTHER */
	struct str server_address;
	struct str url_path, url_query, user_agent; /* servers */
	struct str url_full;                        /* clients */
	struct str route;                           /* servers; of the response */
	struct str tracestate;
	char *route_text; /* room for HTTP_ROUTE_BYTES_MAX, in 'text'; NULL: none */
	char text[];
};

struct conn;

struct exchange_request {
	struct http_head head;
	bool is_truncated;
};

/* The exchange of a request: 'e' is the event of its head's last part. Returns 0 or -ENOMEM. */
int exchange_new(const struct conn *c, const struct event *e,
		 const struct exchange_request *request, struct exchange **ret);
void exchange_free(struct exchange *x);

/* A final response's head has come; 'e' is the event of its last part. */
void exchange_take_response(struct exchange *x, const struct http_head *response,
			    const struct event *e);
