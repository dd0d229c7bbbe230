/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The route that a Go server took, when its response's head is sent: read from the program's own
 * structures, whose fields 'go_layouts' knows, and put behind the head. Called by head_part()
 * (stream.bpf.h). A route is that of this request, or none is told.
 *
 * net/http needs no probe: the connection's goroutine has its net/http.conn near the end of its
 * stack, and that is known by the buffer that is sent from, which nobody else has. From there it is
 * three pointers to the pattern of the request that is being answered. Other routers have an object
 * for each request, which a probe has noted with it (go.bpf.c).
 */
#pragma once

#include "goroutine.bpf.h"

#define STACK_WORDS     32 /* of the stack's end that are searched; it is among the first 16 */
#define GO_SEARCHES_MAX 3  /* for a connection */
#define ROUTE_PATTERNS  4  /* of chi: so many routers, one below the other */
#define ROUTE_SCRATCH   (WINDOW_AT + HEAD_WINDOW) /* in the window's buffer */

/* Appends to the route. False: there is no more of it to be told. */
static __always_inline bool route_append(struct work *w, __u32 head, const struct go_string *text)
{
	__u64 n = text->length;
	__u32 at = WINDOW_AT + head + w->route_length;

	if (n > ROUTE_BYTES_MAX || w->route_length + n > ROUTE_BYTES_MAX) {
		count(COUNT_GO_ROUTE_LONG);
		return false;
	}
	/* As in copy_user(): the bounds must be seen where they are used. */
	asm volatile("" : "+r"(at), "+r"(n));
	at &= SCAN_MASK;
	if (!n || n > ROUTE_BYTES_MAX)
		return false;
	if (bpf_probe_read_user(w->scan.bytes + at, n, (const void *)text->address))
		return false;
	w->route_length += n;
	return true;
}

static __always_inline bool is_sent_from(const struct go_layout *l, __u64 conn, __u64 buffer)
{
	__u64 word = 0;

	return read_word(&word, conn + l->conn_bufw) &&
	       read_word(&word, word + l->conn_writer_buf) && word == buffer;
}

/* The net/http.conn whose buffer is sent from, among what lies at the end of the goroutine's stack. */
static __always_inline __u64 conn_on_stack(struct work *w, const struct go_layout *l)
{
	__u64 end = 0, buffer, candidate;
	__u32 i;

	if (!goroutine_id(l, w->g) || !read_word(&end, w->g + l->g_stack + 8))
		return 0;
	buffer = first_byte(w);
	if (bpf_probe_read_user(w->scan.bytes + ROUTE_SCRATCH, STACK_WORDS * 8,
				(const void *)(end - STACK_WORDS * 8)))
		return 0;
	for (i = 0; i < STACK_WORDS; i++) {
		candidate = *(const __u64 *)(w->scan.bytes + ROUTE_SCRATCH + i * 8);
		if (candidate >= 4096 && !(candidate & 7) && is_sent_from(l, candidate, buffer))
			return candidate;
	}
	return 0;
}

SUBPROGRAM2(go_conn_find, struct work *, w, struct conn *, c)
{
	const struct go_layout *l;

	if (!w || !c || c->go_searches >= GO_SEARCHES_MAX)
		return 0;
	l = go_layout_of(w->go_layout);
	if (!l || !l->has_patterns)
		return 0;
	c->go_conn = conn_on_stack(w, l);
	if (!c->go_conn && ++c->go_searches == GO_SEARCHES_MAX)
		count(COUNT_GO_CONN_UNKNOWN);
	return 0;
}

/* The pattern by which net/http.ServeMux has found the handler of what this connection answers. */
SUBPROGRAM3(route_of_pattern, struct work *, w, struct conn *, c, __u32, head)
{
	const struct go_layout *l;
	struct go_string text = {};
	__u64 response = 0, word = 0;

	if (!w || !c || !c->go_conn)
		return 0;
	l = go_layout_of(w->go_layout);
	if (!l || !l->has_patterns || !is_sent_from(l, c->go_conn, first_byte(w)))
		return 0;
	if (!read_word(&response, c->go_conn + l->conn_cur_req) || !response)
		return 0;
	if (!read_word(&word, response + l->response_conn) || word != c->go_conn)
		return 0;
	if (!read_word(&word, response + l->response_req) || !word)
		return 0;
	word += l->request_pattern;
	if (l->pattern_points) {
		if (!read_word(&word, word) || !word)
			return 0;
		word += l->pattern_str;
	}
	if (read_string(&text, word) && route_append(w, head, &text))
		w->route_kind = ROUTE_PATTERN;
	return 0;
}

static __always_inline const struct request *answered_request(const struct conn *c)
{
	struct request_key key = {.connection = c->cookie, .exchange = c->tx.exchange};

	return bpf_map_lookup_elem(&requests, &key);
}

/* chi has a pattern for each router that the request has passed. */
SUBPROGRAM3(route_of_chi, struct work *, w, struct conn *, c, __u32, head)
{
	const struct request *request;
	struct go_string slice = {}, text = {};
	const struct go_layout *l;
	__u32 i;

	if (!w || !c)
		return 0;
	request = answered_request(c);
	l = go_layout_of(w->go_layout);
	if (!request || !l ||
	    !read_string(&slice, request->go_route + l->routers[GO_ROUTER_CHI].text) ||
	    !slice.length)
		return 0;
	if (slice.length > ROUTE_PATTERNS) {
		count(COUNT_GO_ROUTE_LONG);
		return 0;
	}
	for (i = 0; i < ROUTE_PATTERNS; i++) {
		if (i >= slice.length)
			break;
		if (!read_string(&text, slice.address + i * sizeof(text)) ||
		    !route_append(w, head, &text))
			return 0;
	}
	w->route_kind = ROUTE_CHI;
	return 0;
}

SUBPROGRAM3(route_of_text, struct work *, w, struct conn *, c, __u32, head)
{
	const struct request *request;
	const struct go_layout *l;
	struct go_string text = {};
	__u32 router;

	if (!w || !c)
		return 0;
	request = answered_request(c);
	l = go_layout_of(w->go_layout);
	if (!request || !l)
		return 0;
	router = request->go_router;
	if (router >= _GO_ROUTER_MAX)
		return 0;
	if (l->routers[router].is_text) {
		text.address = request->go_route;
		text.length = request->go_route_owner;
	} else if (!read_string(&text, request->go_route + l->routers[router].text)) {
		return 0;
	}
	if (route_append(w, head, &text))
		w->route_kind = ROUTE_TEMPLATE;
	return 0;
}

/* Whether the router's object still is for the request that is being answered. */
SUBPROGRAM2(route_is_owned, struct work *, w, struct conn *, c)
{
	const struct request *request;
	const struct go_layout *l;
	__u64 owner = 0;
	__u32 router;

	if (!w || !c)
		return false;
	request = answered_request(c);
	l = go_layout_of(w->go_layout);
	if (!request || !l)
		return false;
	router = request->go_router;
	if (router >= _GO_ROUTER_MAX)
		return false;
	if (l->routers[router].is_text)
		return true;
	return route_owner(&l->routers[router], request->go_route, &owner) &&
	       owner == request->go_route_owner;
}

/* What routers have noted for the request, and be it that none has all of it; false: nothing. */
static __always_inline bool route_of_router(struct work *w, struct conn *c, __u32 head)
{
	const struct go_layout *l = go_layout_of(w->go_layout);
	const struct request *request;

	if (!l || !l->has_routers)
		return false;
	request = answered_request(c);
	if (!request || !request->go_route)
		return false;
	if (request->go_router == GO_ROUTER_CHI)
		route_of_chi(w, c, head);
	else
		route_of_text(w, c, head);
	/* Last: whoever takes the object for another request names that one first. */
	if (w->route_kind != ROUTE_NONE && !route_is_owned(w, c))
		w->route_kind = ROUTE_NONE;
	return true;
}

/*
 * The route of the response whose head, 'head' bytes in this window, ends here. Part of its caller,
 * and itself in parts that do not call each other: a call chain's stack is short.
 */
static __always_inline void route_find(struct work *w, struct conn *c, __u32 head)
{
	if (c->role != ROLE_SERVER || c->tx.facts.status / 100 == 1)
		return;
	if (!route_of_router(w, c, head)) {
		if (!c->go_conn)
			go_conn_find(w, c);
		route_of_pattern(w, c, head);
	}
	if (w->route_kind == ROUTE_NONE)
		w->route_length = 0;
}
