/*
 * Pairing and ending of exchanges; see stitch.h.
 *
 * The kernel side numbers the requests of a connection and gives a response the number of its
 * request, so nothing here depends on counting heads. Responses come in the order of their requests
 * (RFC 9112, section 9.3.2): one that has come proves that those before it are over.
 */
#include "stitch/stitch.h"

#include <errno.h>

#include "metrics/metrics.h"
#include "stitch/conn.h"
#include "stitch/lineage.h"
#include "stitch/span_build.h"

#define TICK_CONNECTIONS 256

struct stitch {
	struct stitch_options options;
	struct conn_table conns;
	struct lineage lineage;
	int64_t clock_offset_ns;
};

/* How an exchange ended. */
enum outcome {
	OUTCOME_DONE,
	OUTCOME_NO_END, /* the response was seen, its end was not: the status is true, the duration
			   is not */
	OUTCOME_RESET,
	OUTCOME_PROCESS_EXIT,
	OUTCOME_NOT_OBSERVED,
	OUTCOME_IDLE,
	_OUTCOME_MAX,
};

static const struct {
	const char *error_type;
	enum metric metric; /* _METRIC_MAX: none */
	bool is_unseen;     /* struct span_ending */
} outcomes[] = {
	[OUTCOME_DONE] = {NULL, _METRIC_MAX, false},
	[OUTCOME_NO_END] = {"not_observed", METRIC_EXCHANGES_NO_RESPONSE_END, true},
	[OUTCOME_RESET] = {"connection_reset", METRIC_EXCHANGES_RESET, false},
	[OUTCOME_PROCESS_EXIT] = {"process_exit", METRIC_EXCHANGES_PROCESS_EXIT, false},
	[OUTCOME_NOT_OBSERVED] = {"not_observed", METRIC_EXCHANGES_NOT_OBSERVED, true},
	[OUTCOME_IDLE] = {"not_observed", METRIC_EXCHANGES_IDLE, true},
};
static_assert(ARRAY_SIZE(outcomes) == _OUTCOME_MAX, "each outcome has a row");

static const enum metric parent_metrics[] = {
	[PARENT_UNDECIDED] = METRIC_PARENT_UNDECIDED,
	[PARENT_HEADER] = METRIC_PARENT_HEADER,
	[PARENT_JOINED] = METRIC_PARENT_JOINED,
	[PARENT_UNIT] = METRIC_PARENT_UNIT,
	[PARENT_NONE_REMOTE] = METRIC_PARENT_NONE_REMOTE,
	[PARENT_NONE_NO_UNIT] = METRIC_PARENT_NONE_NO_UNIT,
	[PARENT_NONE_NO_REQUEST] = METRIC_PARENT_NONE_NO_REQUEST,
	[PARENT_NONE_AMBIGUOUS] = METRIC_PARENT_NONE_AMBIGUOUS,
	[PARENT_NONE_TRUNCATED] = METRIC_PARENT_NONE_TRUNCATED,
	[PARENT_NONE_LATE] = METRIC_PARENT_NONE_LATE,
};
static_assert(ARRAY_SIZE(parent_metrics) == _PARENT_REASON_MAX, "each reason has a counter");

/* Only requests that a server received can be somebody's parent. */
static void stitch_revoke(struct stitch *s, const struct event *e)
{
	if (e->role != EVENT_ROLE_SERVER)
		return;
	metrics_increment(METRIC_CONTEXTS_REVOKED);
	s->options.revoke(s->options.userdata, e->connection, e->exchange);
}

/* A request that will have no span: counted, and its context must not become anybody's parent. */
static void stitch_refuse(struct stitch *s, const struct event *e, enum metric why)
{
	metrics_increment(why);
	stitch_revoke(s, e);
}

static struct resource *stitch_resource(struct stitch *s, uint32_t proc_id, uint32_t pid)
{
	struct resource *r = s->options.resource(s->options.userdata, proc_id, pid);

	return r ? resource_ref(r) : NULL;
}

/* What lineage lets go. */
static void stitch_emit(void *userdata, struct span *span, enum parent_reason reason)
{
	struct stitch *s = userdata;

	metrics_increment(span->kind == SPAN_KIND_CLIENT ? METRIC_SPANS_CLIENT
							 : METRIC_SPANS_SERVER);
	metrics_increment(parent_metrics[reason]);
	s->options.emit(s->options.userdata, span);
}

/* The span of an exchange, NULL when it has none. */
static struct span *stitch_span(const struct conn *c, const struct exchange *x,
				const struct span_ending *ending)
{
	struct span *span;

	if (!ending->resource) {
		metrics_increment(METRIC_SPANS_NO_PROCESS);
		return NULL;
	}
	if (span_build(c, x, ending, &span) < 0) {
		metrics_increment(METRIC_SPANS_NO_MEMORY);
		return NULL;
	}
	return span;
}

/* Ends the oldest exchange of the connection. */
static void stitch_end(struct stitch *s, struct conn *c, enum outcome outcome, uint64_t end_ns)
{
	struct exchange *x = conn_pop_exchange(&s->conns, c);

	if (!x->resource)
		x->resource = stitch_resource(s, x->proc_id, x->pid);
	if (outcomes[outcome].metric != _METRIC_MAX)
		metrics_increment(outcomes[outcome].metric);
	lineage_end(&s->lineage, x,
		    stitch_span(c, x,
				&(struct span_ending){
					.error_type = outcomes[outcome].error_type,
					.is_unseen = outcomes[outcome].is_unseen,
					.end_ns = end_ns,
					.clock_offset_ns = s->clock_offset_ns,
					.resource = x->resource,
				}),
		    end_ns);
	exchange_free(x);
}

/* Ends the oldest exchange, of whose end no more is known than when it was last heard of. */
static void stitch_end_unseen(struct stitch *s, struct conn *c, enum outcome without_response)
{
	stitch_end(s, c, c->first->status ? OUTCOME_NO_END : without_response, c->first->last_ns);
}

/*
 * The exchange of that number, when it is open: then it is the connection's first, because all
 * before it are over and were ended here. NULL when there is none.
 */
static struct exchange *stitch_reach(struct stitch *s, struct conn *c, uint32_t number)
{
	while (c->first && c->first->number < number)
		stitch_end_unseen(s, c, OUTCOME_NOT_OBSERVED);
	return c->first && c->first->number == number ? c->first : NULL;
}

/*
 * More requests are waiting than pipelining explains: whatever is paired from here on may be wrong.
 */
static void stitch_stop_connection(struct stitch *s, struct conn *c)
{
	while (c->first)
		stitch_end_unseen(s, c, OUTCOME_NOT_OBSERVED);
	c->is_stopped = true;
}

/* What was answered before its head had come to its end is over. */
static void stitch_end_early(struct stitch *s, struct conn *c, uint32_t number)
{
	struct early_response early = c->early;
	struct exchange *x;

	if (early.number != number)
		return;
	c->early = (struct early_response){0};
	x = stitch_reach(s, c, number);
	if (!x)
		return;
	x->status = early.status;
	stitch_end(s, c, OUTCOME_DONE, early.time_ns);
}

static void stitch_request(struct stitch *s, struct conn *c, const struct event *e,
			   struct str bytes, bool is_truncated)
{
	struct exchange_request request = {.is_truncated = is_truncated};
	struct exchange *x;
	int r;

	if (e->exchange <= c->last_number) {
		metrics_increment(METRIC_RECORDS_BAD);
		return;
	}
	c->last_number = e->exchange;

	r = is_truncated ? http_head_parse_truncated(bytes, &request.head)
			 : http_head_parse(bytes, &request.head);
	if (r != HTTP_HEAD_DONE || !request.head.is_request) {
		stitch_refuse(s, e, METRIC_HEADS_BAD);
		return;
	}
	if (c->n_exchanges == CONN_EXCHANGES_MAX) {
		stitch_stop_connection(s, c);
		stitch_refuse(s, e, METRIC_PIPELINE_FULL);
		return;
	}
	if (exchange_new(c, e, &request, &x) < 0) {
		stitch_refuse(s, e, METRIC_SPANS_NO_MEMORY);
		return;
	}
	if (lineage_begin(&s->lineage, x, e) < 0) {
		exchange_free(x);
		stitch_refuse(s, e, METRIC_SPANS_NO_MEMORY);
		return;
	}

	if (conn_push_exchange(&s->conns, c, x)) {
		lineage_end(&s->lineage, x, NULL, e->time_ns);
		exchange_free(x);
		stitch_refuse(s, e, METRIC_OPEN_BYTES_FULL);
		return;
	}

	if (is_truncated)
		metrics_increment(METRIC_HEADS_TRUNCATED);
	if (x->has_wrong_parent) {
		metrics_increment(METRIC_PARENT_MISMATCH);
		stitch_revoke(s, e);
	}
	x->resource = stitch_resource(s, e->proc_id, e->pid);
	stitch_end_early(s, c, e->exchange);
}

/* Interim responses (1xx but 101) come before the final one, perhaps in the same bytes. */
static int parse_final_response(struct str bytes, bool is_truncated, struct http_head *ret)
{
	for (;;) {
		int r = is_truncated ? http_head_parse_truncated(bytes, ret)
				     : http_head_parse(bytes, ret);

		if (r != HTTP_HEAD_DONE || ret->is_request)
			return HTTP_HEAD_BAD;
		if (ret->status >= 200 || ret->status == 101)
			return HTTP_HEAD_DONE;
		bytes = str_skip(bytes, ret->head_bytes);
		if (!bytes.n)
			return HTTP_HEAD_MORE;
	}
}

/* A response that ended although its head was not seen passed by a way that is not watched. */
static void stitch_response_end(struct stitch *s, const struct event *e)
{
	struct conn *c = conn_find(&s->conns, e->connection);
	struct exchange *x;

	if (!c)
		return;
	conn_touch(&s->conns, c, e->time_ns);
	x = stitch_reach(s, c, e->exchange);
	if (x)
		stitch_end(s, c, x->status ? OUTCOME_DONE : OUTCOME_NOT_OBSERVED, e->time_ns);
}

/*
 * A response that cannot be understood. Where its record was to tell its end as well, no other
 * will.
 */
static void stitch_response_bad(struct stitch *s, const struct event *e)
{
	metrics_increment(METRIC_RESPONSES_BAD);
	if (e->head.is_complete)
		stitch_response_end(s, e);
}

/* Whether the response is that of the request whose head is under way. */
static bool is_early(const struct conn *c, const struct event *e)
{
	return c && c->request.parts && e->exchange == c->last_number + 1 && e->head.is_complete;
}

static void stitch_response(struct stitch *s, struct conn *c, const struct event *e,
			    struct str bytes, bool is_truncated)
{
	struct http_head head;
	struct exchange *x;
	int r;

	r = parse_final_response(bytes, is_truncated, &head);
	if (r == HTTP_HEAD_BAD) {
		stitch_response_bad(s, e);
		return;
	}
	x = c ? stitch_reach(s, c, e->exchange) : NULL;
	if (!x && r == HTTP_HEAD_DONE && is_early(c, e)) {
		c->early = (struct early_response){e->exchange, head.status, e->time_ns};
		return;
	}
	if (!x) {
		if (r == HTTP_HEAD_DONE)
			metrics_increment(METRIC_RESPONSES_ORPHAN);
		return;
	}
	if (r == HTTP_HEAD_MORE) {
		x->last_ns = MAX(x->last_ns, e->time_ns);
		return;
	}
	if (x->status) {
		metrics_increment(METRIC_RECORDS_BAD);
		return;
	}

	exchange_take_response(x, &head, e);
	lineage_answered(&s->lineage, x, e);
	if (e->head.is_complete || x->framing == HTTP_FRAMING_NO_BODY ||
	    x->framing == HTTP_FRAMING_TUNNEL ||
	    (x->framing == HTTP_FRAMING_LENGTH && head.content_length == 0))
		stitch_end(s, c, OUTCOME_DONE, e->time_ns);
}

/* A request on a connection that is not followed. */
static void stitch_leave(struct stitch *s, const struct event *e, enum metric why)
{
	if (e->head.is_request && (e->head.is_end || e->head.is_truncated))
		stitch_refuse(s, e, why);
}

static void stitch_head_on(struct stitch *s, struct conn *c, const struct event *e)
{
	bool is_request = e->head.is_request;
	struct head_view head;
	int r;

	r = conn_add_head(&s->conns, c, &e->head, &head);
	if (r == PARTS_MORE)
		return;
	if (r != PARTS_WHOLE && is_request)
		stitch_refuse(s, e,
			      r == PARTS_LOST ? METRIC_HEADS_PARTIAL : METRIC_OPEN_BYTES_FULL);
	else if (r != PARTS_WHOLE)
		stitch_response_bad(s, e);
	else if (is_request)
		stitch_request(s, c, e, head.bytes, head.is_truncated);
	else
		stitch_response(s, c, e, head.bytes, head.is_truncated);
	conn_drop_head(&s->conns, c, is_request);
}

/* A response on a connection of which no request was seen. */
static void stitch_orphan(struct stitch *s, const struct event *e)
{
	if (!e->head.is_end && !e->head.is_truncated)
		return;
	if (e->head.is_start)
		stitch_response(s, NULL, e, e->head.bytes, e->head.is_truncated);
	else
		metrics_increment(METRIC_RESPONSES_ORPHAN);
}

/* By what conn_add() said. */
static enum metric why_not_added(int r)
{
	switch (r) {
	case CONN_FULL:
		return METRIC_CONNECTIONS_FULL;
	case CONN_NO_ROOM:
		return METRIC_OPEN_BYTES_FULL;
	default:
		return METRIC_SPANS_NO_MEMORY;
	}
}

static void stitch_head(struct stitch *s, const struct event *e)
{
	struct conn *c = conn_find(&s->conns, e->connection);
	int r;

	/*
	 * The kernel side took back what it had guessed from the first bytes of an old connection.
	 */
	if (c && c->role != e->role && !c->first) {
		conn_remove(&s->conns, c);
		c = NULL;
	}
	if (!c && !e->head.is_request) {
		stitch_orphan(s, e);
		return;
	}
	if (!c) {
		r = conn_add(&s->conns, e, &c);
		if (r) {
			stitch_leave(s, e, why_not_added(r));
			return;
		}
	}
	conn_touch(&s->conns, c, e->time_ns);
	if (c->is_stopped)
		stitch_leave(s, e, METRIC_PIPELINE_FULL);
	else
		stitch_head_on(s, c, e);
}

/*
 * The oldest exchange, whose response was seen but not to its end, now that no more bytes of it can
 * come.
 */
static void stitch_end_cut(struct stitch *s, struct conn *c, const struct event *e)
{
	const struct exchange *x = c->first;

	if (x->framing == HTTP_FRAMING_CLOSE_DELIMITED)
		stitch_end(s, c, OUTCOME_DONE, e->time_ns);
	else if (x->framing == HTTP_FRAMING_LENGTH && !e->close.has_unseen)
		stitch_end(s, c, c->exit_ns ? OUTCOME_PROCESS_EXIT : OUTCOME_RESET, e->time_ns);
	else
		stitch_end(s, c, OUTCOME_NO_END, x->is_last ? e->time_ns : x->last_ns);
}

/* The oldest exchange, now that no more bytes of its response can come. */
static void stitch_end_closed(struct stitch *s, struct conn *c, const struct event *e)
{
	const struct exchange *x = c->first;
	uint64_t end_ns;

	if (!x->status && e->close.has_unseen) {
		stitch_end(s, c, OUTCOME_NOT_OBSERVED, x->last_ns);
		return;
	}
	if (c->exit_ns && !x->status) {
		stitch_end(s, c, OUTCOME_PROCESS_EXIT, MAX(c->exit_ns, x->last_ns));
		return;
	}
	if (e->close.error) {
		stitch_end(s, c, OUTCOME_RESET, e->time_ns);
		return;
	}
	if (x->status) {
		stitch_end_cut(s, c, e);
		return;
	}

	/*
	 * Whoever went first gave up on the exchange, and then it was over; without any FIN it was
	 * a reset.
	 */
	end_ns = e->time_ns;
	if (c->role == EVENT_ROLE_SERVER && c->peer_fin_ns)
		end_ns = c->peer_fin_ns;
	else if (c->local_fin_ns)
		end_ns = c->local_fin_ns;
	stitch_end(s, c, OUTCOME_RESET, MAX(end_ns, x->last_ns));
}

/*
 * True when no more bytes of a response can come. A FIN of who sends requests says nothing:
 * half-close.
 */
static bool is_response_over(const struct conn *c, const struct event *e)
{
	if (e->close.error || e->close.what == EVENT_CLOSE_DONE)
		return true;
	if (c->exit_ns && e->close.what == EVENT_CLOSE_LOCAL_FIN)
		return true;
	return e->close.what ==
	       (c->role == EVENT_ROLE_SERVER ? EVENT_CLOSE_LOCAL_FIN : EVENT_CLOSE_READ_END);
}

static void stitch_close(struct stitch *s, const struct event *e)
{
	struct conn *c = conn_find(&s->conns, e->connection);

	if (!c)
		return;
	conn_touch(&s->conns, c, e->time_ns);
	if (e->close.what == EVENT_CLOSE_LOCAL_FIN)
		c->local_fin_ns = e->time_ns;
	else if (e->close.what != EVENT_CLOSE_DONE && !c->peer_fin_ns)
		c->peer_fin_ns = e->time_ns;

	if (is_response_over(c, e)) {
		while (c->first)
			stitch_end_closed(s, c, e);
	} else if (e->close.what == EVENT_CLOSE_PEER_FIN && c->role == EVENT_ROLE_CLIENT &&
		   c->first && c->first->status &&
		   c->first->framing == HTTP_FRAMING_CLOSE_DELIMITED) {
		stitch_end(s, c, OUTCOME_DONE, e->time_ns);
	}
	if (e->close.what == EVENT_CLOSE_DONE)
		conn_remove(&s->conns, c);
}

void stitch_event(struct stitch *s, const struct event *e)
{
	switch (e->type) {
	case EVENT_HEAD:
		stitch_head(s, e);
		break;
	case EVENT_END:
		stitch_response_end(s, e);
		break;
	case EVENT_CLOSE:
		stitch_close(s, e);
		break;
	case EVENT_GOROUTINE:
		lineage_goroutine_ended(&s->lineage, e);
		break;
	case EVENT_PROCESS: /* stitch_process_exit(): who it was is known to the daemon */
	case _EVENT_TYPE_MAX:
		break;
	}
}

void stitch_set_clock(struct stitch *s, int64_t wall_minus_monotonic_ns)
{
	s->clock_offset_ns = wall_minus_monotonic_ns;
}

static bool is_idle(const struct stitch *s, const struct conn *c, uint64_t now_ns)
{
	return c && now_ns > c->last_ns && now_ns - c->last_ns >= s->options.exchange_idle_ns;
}

/*
 * A response that is under way is not idle however long it takes: its bytes are not reported. It is
 * looked at again after the same time, so that a tick always gets on.
 */
void stitch_tick(struct stitch *s, uint64_t now_ns)
{
	struct conn *c;

	for (int i = 0; i < TICK_CONNECTIONS; i++) {
		c = s->conns.busy.first;
		if (!is_idle(s, c, now_ns))
			break;
		while (c->first && !c->first->status)
			stitch_end(s, c, OUTCOME_IDLE, c->first->last_ns);
		conn_touch(&s->conns, c, now_ns);
	}
	for (int i = 0; i < TICK_CONNECTIONS; i++) {
		c = s->conns.idle.first;
		if (!is_idle(s, c, now_ns))
			break;
		conn_remove(&s->conns, c);
	}
	lineage_tick(&s->lineage, now_ns);
}

/*
 * Its sockets are closed right behind, and then it is clear how each exchange ended; one whose
 * socket another process holds goes on.
 */
void stitch_process_exit(struct stitch *s, uint32_t proc_id, uint64_t time_ns)
{
	if (!proc_id)
		return;
	for (struct conn *c = s->conns.busy.first; c; c = c->next)
		if (c->first->proc_id == proc_id)
			c->exit_ns = time_ns;
}

void stitch_finish(struct stitch *s, uint64_t now_ns)
{
	struct conn *c;

	while ((c = s->conns.busy.first))
		stitch_end(s, c, c->first->status ? OUTCOME_NO_END : OUTCOME_NOT_OBSERVED, now_ns);
	lineage_finish(&s->lineage);
}

size_t stitch_connections(const struct stitch *s)
{
	return s->conns.table.n;
}

size_t stitch_bytes(const struct stitch *s)
{
	return s->conns.bytes;
}

int stitch_new(const struct stitch_options *options, struct stitch **ret)
{
	struct stitch *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->options = *options;
	s->conns.max = options->connections_max;
	s->lineage.emit = stitch_emit;
	s->lineage.userdata = s;
	s->lineage.held_bytes_max = options->bytes_max / 2;
	s->conns.bytes_max = options->bytes_max;
	s->conns.head_bytes_max = options->head_bytes_max;
	s->clock_offset_ns = (int64_t)(now_ns(CLOCK_REALTIME) - now_ns(CLOCK_MONOTONIC));
	*ret = s;
	return 0;
}

void stitch_free(struct stitch *s)
{
	if (!s)
		return;
	conn_table_done(&s->conns);
	lineage_done(&s->lineage);
	free(s);
}
