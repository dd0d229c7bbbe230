/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Contexts: which request a unit of work has open, and the one decision for each request head
 * (docs/architecture.md). A parent is right or absent: every doubt is a reason in the decision,
 * never a guess.
 *
 * A decision is taken first (decide_*), recorded in the ring by the caller, and published
 * (publish_*) only when that succeeded: what was lost can be nobody's parent.
 */
#pragma once

#include "goroutine.bpf.h"

static __always_inline void random_bytes(__u8 *out, __u32 words)
{
	__u32 any = 0, i;

	for (i = 0; i < words; i++) {
		__u32 v = bpf_get_prandom_u32();

		any |= v;
		__builtin_memcpy(out + 4 * i, &v, 4);
	}
	if (!any)
		out[0] = 1; /* an id is never all-zero */
}

static __always_inline void ids_new_trace(struct decision *d)
{
	random_bytes(d->ids.trace_id, 4);
	d->flags = 0x03; /* sampled, random */
}

static __always_inline void ids_from_header(struct decision *d, const struct head_facts *f)
{
	__builtin_memcpy(d->ids.trace_id, f->trace_id, 16);
	__builtin_memcpy(d->parent_span_id, f->parent_id, 8);
	d->flags = f->trace_flags;
	d->reason = DECISION_HEADER;
}

/* The unit is told by the program itself, or by the agent in it: there is nothing to doubt. */
static __always_inline bool is_exact(const struct work *w)
{
	return w->unit.kind == UNIT_GOROUTINE || w->unit.kind == UNIT_LOGICAL;
}

/* A server request, when its head is complete. */
SUBPROGRAM2(decide_server, struct work *, w, struct stream *, s)
{
	struct join_key key;
	struct decision *d;
	struct join *join;

	if (!w || !s)
		return 0;
	key.request = s->head_seq;
	key.response = s->head_ack;
	d = &w->decision;
	__builtin_memset(d, 0, sizeof(*d));
	random_bytes(d->ids.span_id, 2);
	d->is_unit = (w->unit.kind == UNIT_GOROUTINE && w->has_children) ||
		     (w->unit.kind == UNIT_THREAD && w->is_blocking);
	d->goroutine = is_exact(w) ? w->unit.id : 0;
	d->is_logical = w->unit.kind == UNIT_LOGICAL;
	d->is_proven = w->is_proven || w->go_layout || is_exact(w);
	join = bpf_map_lookup_elem(&joins, &key);
	if (s->is_truncated) {
		ids_new_trace(d);
		d->reason = DECISION_NONE_TRUNCATED;
	} else if (s->facts.traceparent == TRACEPARENT_VALID) {
		ids_from_header(d, &s->facts);
	} else if (join) {
		__builtin_memcpy(d->ids.trace_id, join->ids.trace_id, 16);
		__builtin_memcpy(d->parent_span_id, join->ids.span_id, 8);
		d->flags = join->flags;
		d->is_doubtful = join->is_doubtful;
		d->reason = DECISION_JOINED;
	} else {
		ids_new_trace(d);
		d->reason = DECISION_NONE_REMOTE;
	}
	/*
	 * The kernel gives a deleted entry to the next that needs one: what was copied is right if
	 * nobody else had deleted it by then.
	 */
	if (join && bpf_map_delete_elem(&joins, &key) && d->reason == DECISION_JOINED) {
		__builtin_memset(d->parent_span_id, 0, 8);
		ids_new_trace(d);
		d->is_doubtful = 0;
		d->reason = DECISION_NONE_REMOTE;
	}
	return 0;
}

/*
 * The one open request that the current unit works for, copied to 'parent'; 'unit_reason':
 * DECISION_UNIT, or why none. Called before decide_client(), not by it: together their frames would
 * be more than a call chain may have.
 */
SUBPROGRAM1(unit_request, struct work *, w)
{
	struct go_work work = {};
	const struct request *r;

	if (!w)
		return 0;
	w->caller = 0;
	w->is_inherited = 0;
	w->elder = 0;
	w->unit_reason = DECISION_NONE_NO_UNIT;
	if (!w->unit.kind && !w->go_layout)
		return 0;
	if (w->go_layout) {
		go_work_of(w, &work);
	} else {
		struct unit_key unit = w->unit;

		if (unit.kind == UNIT_LOGICAL)
			w->caller = unit.id;
		work.reason = unit_open(&unit, &work.request);
	}
	w->unit_reason = work.reason;
	if (work.reason != DECISION_UNIT)
		return 0;
	w->is_inherited = work.is_inherited;
	r = bpf_map_lookup_elem(&requests, &work.request);
	w->elder = work.elder;
	if (r)
		w->parent = *r;
	/* Taken back since the call was noted. */
	if (r && r->is_blind)
		w->unit_reason = DECISION_NONE_AMBIGUOUS;
	/*
	 * Answered meanwhile; or while it was copied, and then its memory may have become another's.
	 */
	if (!bpf_map_lookup_elem(&requests, &work.request))
		w->unit_reason = DECISION_NONE_NO_REQUEST;
	return 0;
}

static __always_inline bool same_bytes8(const __u8 *a, const __u8 *b)
{
	__u64 x, y;

	__builtin_memcpy(&x, a, 8);
	__builtin_memcpy(&y, b, 8);
	return x == y;
}

/* A client request, before the last byte of its head leaves. */
SUBPROGRAM2(decide_client, struct work *, w, struct stream *, s)
{
	struct decision *d;
	__u8 reason;

	if (!w || !s)
		return 0;
	d = &w->decision;
	__builtin_memset(d, 0, sizeof(*d));
	random_bytes(d->ids.span_id, 2);
	d->is_proven = w->is_proven || w->go_layout || is_exact(w);
	if (s->is_truncated) {
		ids_new_trace(d);
		d->reason = DECISION_NONE_TRUNCATED;
		return 0;
	}
	reason = w->unit_reason;
	d->goroutine = w->caller;
	d->is_logical = w->unit.kind == UNIT_LOGICAL;
	d->is_inherited = reason == DECISION_UNIT && w->is_inherited;
	d->elder = d->is_inherited ? w->elder : 0;
	if (s->facts.traceparent == TRACEPARENT_VALID) {
		/*
		 * The application's own header. A copy of the one that came in makes the server
		 * span the parent.
		 */
		ids_from_header(d, &s->facts);
		if (reason == DECISION_UNIT &&
		    same_bytes8(w->parent.parent_span_id, s->facts.parent_id) &&
		    same_bytes8(w->parent.ids.trace_id, s->facts.trace_id) &&
		    same_bytes8(w->parent.ids.trace_id + 8, s->facts.trace_id + 8))
			__builtin_memcpy(d->parent_span_id, w->parent.ids.span_id, 8);
		return 0;
	}
	d->reason = reason;
	if (reason != DECISION_UNIT) {
		ids_new_trace(d);
		return 0;
	}
	__builtin_memcpy(d->ids.trace_id, w->parent.ids.trace_id, 16);
	__builtin_memcpy(d->parent_span_id, w->parent.ids.span_id, 8);
	d->flags = w->parent.flags;
	d->is_doubtful = d->is_inherited || !(w->go_layout || is_exact(w)) || w->parent.is_doubtful;
	return 0;
}

/*
 * A value to begin with: before Linux 6.2 none may lie in memory that a subprogram was given, and the
 * stack is short. Nobody finds the entry before its unit has it.
 */
static const struct request request_blind = {.is_blind = 1};

/* The goroutine that received the connection's newest request until now does so no more. */
static __always_inline void leave_unit(const struct conn *c)
{
	struct unit_key unit = {.id = c->unit_id, .pid = c->pid, .kind = UNIT_GOROUTINE};

	unit_leave(&unit, c->cookie);
}

/*
 * Opens the request's context. 'is_blind': its record was lost, or its head is not whole. So is one
 * that was not received on a blocking socket, and one that was sent before the one ahead was
 * answered: they tell that the thread has something else to do, no more. A context of the agent's
 * tells them apart. 1: it is to be added to its unit of work, negative: its unit is to be lost.
 */
SUBPROGRAM3(publish_server, struct work *, w, struct conn *, c, bool, is_blind)
{
	struct request_key key = {};
	const struct decision *d;
	struct request *request;
	int r;

	if (!w || !c)
		return 0;
	/* Only its unit of work could ever find it. */
	if (!w->unit.kind)
		return 0;
	key.connection = c->cookie;
	key.exchange = c->rx.exchange;
	/* Answered before it was read to the end, or its connection has ended: nobody closes it. */
	if ((__s32)(c->closed - key.exchange) >= 0)
		return 0;
	r = bpf_map_update_elem(&requests, &key, &request_blind, BPF_ANY);
	request = bpf_map_lookup_elem(&requests, &key);
	if (r || !request) {
		count(COUNT_REQUESTS_FULL);
		r = -1;
		goto out;
	}
	r = 1;
	d = &w->decision;
	request->ids = d->ids;
	if (d->reason == DECISION_HEADER)
		__builtin_memcpy(request->parent_span_id, d->parent_span_id, 8);
	request->flags = d->flags;
	request->is_doubtful = d->is_doubtful;
	request->is_blind = is_blind || c->rx.is_truncated ||
			    (w->unit.kind != UNIT_LOGICAL && c->opened - c->closed > 1) ||
			    (w->unit.kind == UNIT_THREAD && !w->is_blocking);
out:
	/* Nobody else than its connection tells that what it lost is over, but of a thread. */
	if (r < 0 && w->unit.kind == UNIT_THREAD)
		return r;
	c->published |= exchange_bit(key.exchange);
	/* Some servers have the first head of a connection read by a goroutine of its own. */
	if (c->unit_kind == UNIT_GOROUTINE && c->unit_id != w->unit.id)
		leave_unit(c);
	c->unit_kind = w->unit.kind;
	c->unit_id = w->unit.id;
	return r;
}

static __always_inline void join_withdraw(struct conn *c)
{
	struct join_key key = c->join;

	if (!c->join_is_out)
		return;
	bpf_map_delete_elem(&joins, &key);
	c->join_is_out = 0;
}

static __always_inline void go_context_forget(__u32 pid, const struct request *r)
{
	struct go_context_key key = {.pid = pid};

	if (!r || !r->go_context)
		return;
	key.context = r->go_context;
	bpf_map_delete_elem(&go_contexts, &key);
}

static __always_inline void request_close(struct conn *c, __u32 exchange)
{
	struct request_key key = {.connection = c->cookie, .exchange = exchange};

	if (c->logical_next)
		logical_close(c, exchange);
	if (!(c->published & exchange_bit(exchange)))
		return;
	c->published &= ~exchange_bit(exchange);
	if (c->unit_kind == UNIT_GOROUTINE)
		go_context_forget(c->pid, bpf_map_lookup_elem(&requests, &key));
	bpf_map_delete_elem(&requests, &key);
}

/*
 * Offers the request to a server on this host. Its record is in the ring, its bytes have not left.
 */
SUBPROGRAM2(publish_client, struct work *, w, struct conn *, c)
{
	struct join_key key = {};
	struct join join = {};

	if (!w || !c || c->tx.is_truncated)
		return 0;
	join_withdraw(c);
	key.request = c->tx.head_seq;
	key.response = c->tx.head_ack;
	c->join = key;
	join.ids = w->decision.ids;
	join.connection = c->cookie;
	join.flags = w->decision.flags;
	join.is_doubtful = w->decision.is_doubtful;
	c->join_is_out = 1;
	if (bpf_map_update_elem(&joins, &key, &join, BPF_ANY)) {
		c->join_is_out = 0;
		count(COUNT_JOINS_FULL);
	}
	return 0;
}

/* The thread took up another request while it had this one open: whom it works for is not known. */
static __always_inline bool is_loop(const struct work *w)
{
	struct unit_key key = w->unit;
	const struct unit *unit = bpf_map_lookup_elem(&units, &key);

	return !unit || unit->is_loop;
}

static __always_inline void note_answer(struct work *w)
{
	struct proc *proc = proc_of(w);

	if (proc && proc->answered < ANSWERS_PROVE && ++proc->answered == ANSWERS_PROVE)
		__sync_fetch_and_add(&procs_generation, 1);
}

static __always_inline void note_hand_over(const struct conn *c)
{
	__u32 receiver = c->pid;
	struct proc *proc = bpf_map_lookup_elem(&procs, &receiver);

	if (!proc || proc->hands_over)
		return;
	proc->hands_over = 1;
	__sync_fetch_and_add(&procs_generation, 1);
	count(COUNT_HANDS_OVER);
}

/*
 * A response begins: whose thread sends it? Where it is another one than received the request, this
 * process hands requests over, and its threads take up other work while theirs is open: they are no
 * units of work from now on, and user space takes back the parents that they gave until then.
 * Returns the flags of the response's head.
 */
SUBPROGRAM2(who_answers, struct work *, w, const struct conn *, c)
{
	if (!w || !c || !(c->published & exchange_bit(c->tx.exchange)) ||
	    c->tx.exchange != c->opened)
		return 0;
	/*
	 * A goroutine that received a request serves its connection, whoever answers; the agent
	 * tells who works for it.
	 */
	if (c->unit_kind != UNIT_THREAD)
		return HEAD_BY_RECEIVER;
	if (c->unit_id != w->tid) {
		note_hand_over(c);
		return HEAD_HANDED_OVER;
	}
	if (w->unit.kind != UNIT_THREAD)
		return HEAD_HANDED_OVER; /* another thread of the process was seen to, meanwhile */
	if (is_loop(w))
		return 0;
	if (!w->is_proven)
		note_answer(w);
	return HEAD_BY_RECEIVER;
}
