/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * One direction of a connection, walked through the bytes of a call: begins and ends messages,
 * records heads, has the decisions taken, and keeps count of exchanges. Called by follow()
 * (follow.bpf.h), which has found where the bytes belong in the stream; what a tap calls is in
 * core.bpf.h.
 *
 * The bytes of a call are looked at in windows. A window begins at WINDOW_AT of the work buffer,
 * with the carried part of an unfinished line directly in front; when it has been scanned, the
 * record's header takes that place, so head bytes are copied once from the process and once into
 * the ring.
 */
#pragma once

#include "context.bpf.h"
#include "emit.bpf.h"
#include "route.bpf.h"
#include "source.bpf.h"

#define WINDOWS_MAX 2048 /* of a call; chunks need two each */
#define LINES_MAX   1024 /* of a window */
#define SHORT_SEND  16384
#define TAIL_BYTES  16 /* more than " HTTP/1.1\r" */

static __always_inline struct stream *this_stream(struct conn *c, const struct work *w)
{
	return w->is_tx ? &c->tx : &c->rx;
}

static __always_inline void stream_to_start(struct stream *s)
{
	s->phase = PHASE_START;
	s->carried = 0;
	s->line_is_long = 0;
	s->in_head = 0;
	s->head_length = 0;
	s->is_lost = 0;
	s->is_truncated = 0;
	s->is_tentative = 0;
	s->is_unproven = 0;
	s->is_chunk_end = 0;
}

/*
 * We no longer know where in a message this direction is: what follows is looked at again when the
 * other spoke.
 */
static __always_inline void lose_step(struct conn *c, struct stream *s, bool is_tx, __u32 counter)
{
	const struct stream *other = is_tx ? &c->rx : &c->tx;

	stream_to_start(s);
	s->phase = PHASE_OUT_OF_STEP;
	s->spoken_mark = other->spoken;
	count(counter);
}

struct drop {
	struct conn *c;
	__u32 exchange;
};

SMALL_STEP drop_one(__u32 i, struct drop *d)
{
	if (d->exchange == d->c->opened)
		return 1;
	request_close(d->c, ++d->exchange);
	return 0;
}

/*
 * Whether the open requests of a server have been answered can no longer be told: none of them may
 * be a parent from now on, nor one that was over when its context was opened. The exchanges
 * themselves go on.
 */
SUBPROGRAM1(contexts_drop, struct conn *, c)
{
	struct drop d = {.c = c};

	if (!c || c->role != ROLE_SERVER)
		return 0;
	d.exchange = c->published ? c->opened - PIPELINE_MAX : c->closed;
	LOOP_SMALL(PIPELINE_MAX, drop_one, &d);
	return 0;
}

static __always_inline void give_up(struct conn *c, __u32 counter)
{
	c->off = 1;
	contexts_drop(c);
	count(counter);
}

/* The last byte of a message was scanned. */
SUBPROGRAM2(message_done, struct work *, w, struct conn *, c)
{
	struct stream *s;
	bool is_response;

	if (!w || !c)
		return 0;
	s = this_stream(c, w);
	is_response = (c->role == ROLE_SERVER) == (w->is_tx != 0);
	if (is_response && s->exchange) {
		c->responded = s->exchange;
		if (c->role == ROLE_SERVER) {
			/* It is over when the bytes have left: on_send() sees to it. */
			c->done_seq = s->seq + (__u32)w->at;
		} else {
			join_withdraw(c);
			c->closed = s->exchange;
			if (!((c->told | c->lost) & exchange_bit(s->exchange)))
				emit_end(c, s->exchange, w->now_ns);
		}
	}
	stream_to_start(s);
	return 0;
}

/*
 * The first bytes of a message are there: which exchange does it belong to? False: the connection
 * was given up.
 */
SUBPROGRAM2(message_start, struct work *, w, struct conn *, c)
{
	const struct stream *other;
	struct stream *s;
	bool is_request;
	__u8 first;

	if (!w || !c)
		return false;
	s = this_stream(c, w);
	other = w->is_tx ? &c->rx : &c->tx;
	first = BYTE(&w->scan, w->pos);
	/*
	 * A response begins with "HTTP/", and no method does. One byte tells unless it is an 'H'.
	 */
	if (c->role == ROLE_UNKNOWN) {
		if (first == 'H' && w->end - w->pos < 2 && !w->is_tx)
			first = 'G'; /* "HEAD" byte by byte: who receives first is the server */
		is_request =
			first != 'H' || (BYTE(&w->scan, w->pos + 1) != 'T' && w->end - w->pos >= 2);
		if (first == 'H' && w->end - w->pos < 2)
			is_request = true;
		c->role = is_request == (w->is_tx != 0) ? ROLE_CLIENT : ROLE_SERVER;
	} else {
		is_request = (c->role == ROLE_CLIENT) == (w->is_tx != 0);
	}

	__builtin_memset(&s->facts, 0, sizeof(s->facts));
	s->in_head = 1;
	s->head_start_ns = w->now_ns;
	s->head_seq = s->seq + (__u32)w->at;
	s->head_ack = w->ack;
	if (!is_request) {
		s->exchange = c->opened != c->responded ? c->responded + 1 : 0;
		if (!s->exchange)
			count(COUNT_ORPHAN_RESPONSE);
		else if (c->lost & exchange_bit(s->exchange))
			s->is_lost = 1;
		c->answer = c->role == ROLE_SERVER ? who_answers(w, c) : 0;
		return true;
	}
	if (c->opened != c->responded && other->phase != PHASE_OUT_OF_STEP)
		c->is_pipelined = 1;
	if (c->opened - c->closed >= PIPELINE_MAX) {
		give_up(c, COUNT_PIPELINE_FULL);
		return false;
	}
	s->exchange = ++c->opened;
	if (c->headed == s->exchange)
		c->headed = 0; /* of one that was taken back */
	c->lost &= ~exchange_bit(s->exchange);
	c->told &= ~exchange_bit(s->exchange);
	c->methods_head &= ~exchange_bit(s->exchange);
	c->methods_connect &= ~exchange_bit(s->exchange);
	return true;
}

static __always_inline __u8 request_method(const struct conn *c, __u32 exchange)
{
	if (c->methods_head & exchange_bit(exchange))
		return METHOD_HEAD;
	if (c->methods_connect & exchange_bit(exchange))
		return METHOD_CONNECT;
	return METHOD_OTHER;
}

/* Lines until the head ends, the phase changes, or the window is used up. */
STEP(scan_line)
{
	__u32 pos, end, length, newline;
	int r = LINE_MORE;
	struct stream *s;

	if (!w || !c)
		return 1;
	s = this_stream(c, w);
	pos = w->pos;
	end = w->end;
	if (pos >= end)
		return 1;
	newline = http_find_newline(&w->scan, pos, end);
	if (newline & HAS_BARE_CR)
		s->facts.is_bad = 1;
	newline &= NEWLINE_AT;
	if (newline == NO_NEWLINE) {
		length = end - pos;
		if (length > LINE_LOOK)
			length = LINE_LOOK;
		if (!s->line_is_long && length > LINE_CARRY) {
			/*
			 * Longer than what is carried, or than one look: its beginning tells all we
			 * ask.
			 */
			r = http_line(s, &w->scan, pos, length, true);
			s->line_is_long = 1;
		}
		if (s->line_is_long) {
			w->pos = pos + length;
			w->result = r;
			return r == LINE_BAD ? 1 : 0;
		}
		/* The caller carries it over. */
		w->result = LINE_MORE;
		w->unfinished = 1;
		return 1;
	}
	if (s->line_is_long)
		r = http_long_line_end(s, &w->scan, newline);
	else
		r = http_line(s, &w->scan, pos, newline - pos, false);
	w->pos = newline + 1;
	w->result = r;
	return r != LINE_MORE ? 1 : 0;
}

SUBPROGRAM2(carry_over, struct work *, w, struct stream *, s)
{
	__u32 length, i;

	if (!w || !s)
		return 0;
	length = w->end - w->pos;
	if (length > LINE_CARRY)
		length = LINE_CARRY;
	for (i = 0; i < LINE_CARRY; i++) {
		if (i >= length)
			break;
		s->carry[i] = BYTE(&w->scan, w->pos + i);
	}
	s->carried = length;
	w->pos = w->end;
	return 0;
}

SUBPROGRAM2(carry_back, struct work *, w, struct stream *, s)
{
	__u32 length, i;

	if (!w || !s)
		return 0;
	length = s->carried;
	if (length > LINE_CARRY)
		length = LINE_CARRY;
	for (i = 0; i < LINE_CARRY; i++) {
		if (i >= length)
			break;
		w->scan.bytes[(WINDOW_AT - length + i) & SCAN_MASK] = s->carry[i];
	}
	s->carried = 0;
	w->pos = WINDOW_AT - length;
	return 0;
}

/* The end of what was seen of a first line, for the window in which it goes on; nothing is carried. */
static __always_inline void tail_keep(const struct work *w, struct stream *s)
{
	__u64 words[2] = {WORD(&w->scan, w->end - 16), WORD(&w->scan, w->end - 8)};

	__builtin_memcpy(s->carry, words, TAIL_BYTES);
}

static __always_inline void tail_put_back(struct work *w, const struct stream *s)
{
	__builtin_memcpy(w->scan.bytes + WINDOW_AT - TAIL_BYTES, s->carry, TAIL_BYTES);
}

static __always_inline void record_fill(struct work *w, struct conn *c, struct stream *s,
					__u32 flags, __u32 length)
{
	struct record_head *r = (struct record_head *)w->scan.bytes;

	r->header.type = RECORD_HEAD;
	r->header.role = c->role;
	r->header.pad = 0;
	r->header.length = sizeof(*r) + length + w->route_length;
	r->header.time_ns = w->now_ns;
	r->header.connection = c->cookie;
	r->header.pid = w->pid;
	r->header.tid = w->tid;
	r->header.proc_id = w->proc_id;
	r->header.exchange = s->exchange;
	r->offset = s->offset + w->at;
	r->head_start_ns = s->head_start_ns;
	__builtin_memcpy(r->local_address, c->local_address, 16);
	__builtin_memcpy(r->remote_address, c->remote_address, 16);
	r->local_port = c->local_port;
	r->remote_port = c->remote_port;
	r->family = c->family;
	r->flags = flags;
	r->data_length = length;
	r->route_kind = w->route_kind;
	r->route_length = w->route_length;
	if (flags & HEAD_DECISION)
		r->decision = w->decision;
}

/* Not one within the other: all frames together would be more than Linux 6.1 allows. */
static __always_inline void open_request(struct work *w, struct conn *c, bool is_blind)
{
	int r = publish_server(w, c, is_blind), verdict;

	if (w->unit.kind == UNIT_LOGICAL) {
		for (__u32 i = 0; r && i < LOGICAL_MAX; i++) {
			verdict = logical_pick(w, c, i);
			if (verdict > 0 && r > 0)
				unit_add(w, c);
			else if (verdict)
				unit_lose(w, c);
		}
		return;
	}
	if (r > 0)
		unit_add(w, c);
	else if (r < 0)
		unit_lose(w, c);
}

/*
 * Records the window's part of a head: 'length' bytes from WINDOW_AT on. A part that is lost takes
 * the whole message with it: a request is then counted once, and its response is not recorded
 * either.
 */
static __always_inline void record_part(struct work *w, struct conn *c, __u32 flags, __u32 length)
{
	__u32 lost_counter = COUNT_LOST_RESPONSE, total;
	bool is_request = (c->role == ROLE_CLIENT) == (w->is_tx != 0);
	struct stream *s = this_stream(c, w);

	if (is_request) {
		flags |= HEAD_REQUEST;
		lost_counter = c->role == ROLE_CLIENT ? COUNT_LOST_REQUEST_CLIENT
						      : COUNT_LOST_REQUEST_SERVER;
	}
	if (s->is_lost || !s->exchange)
		return;
	record_fill(w, c, s, flags, length);
	/* Masked where it is used: the compiler may spill a bound that was checked before. */
	total = sizeof(struct record_head) + length + w->route_length;
	asm volatile("" : "+r"(total));
	if (!emit(w->scan.bytes, total & SCAN_MASK, lost_counter)) {
		s->is_lost = 1;
		if (!is_request) {
			c->unreported = s->exchange;
			return;
		}
		c->lost |= exchange_bit(s->exchange);
		if (c->role == ROLE_SERVER)
			open_request(w, c, true);
		return;
	}
	/* A later exchange proves to the reader that this one is over. */
	if (s->exchange > c->unreported)
		c->unreported = 0;
	if (flags & HEAD_COMPLETE)
		c->told |= exchange_bit(s->exchange);
	if (!(flags & HEAD_DECISION))
		return;
	if (c->role == ROLE_SERVER)
		open_request(w, c, false);
	else
		publish_client(w, c);
}

static __always_inline void decide(struct work *w, struct conn *c, struct stream *s)
{
	c->pid = w->pid;
	c->proc_id = w->proc_id;
	if (!(c->known.seen & PROC_SEEN_HTTP1)) {
		struct proc *proc = proc_of(w);

		if (proc)
			proc->seen |= PROC_SEEN_HTTP1;
		c->known.seen |= PROC_SEEN_HTTP1;
	}
	if (s->facts.traceparent == TRACEPARENT_INVALID)
		count(COUNT_TRACEPARENT_INVALID);
	/* Of a JVM's request that is known (follow()). */
	if (w->is_tx || !w->jvm_slot)
		unit_find(w);
	if (c->role == ROLE_SERVER) {
		decide_server(w, s);
		return;
	}
	unit_request(w);
	decide_client(w, s);
}

static __always_inline void note_protocol(struct work *w)
{
	struct proc *proc = proc_of(w);
	__u8 first = BYTE(&w->scan, w->pos);

	if (!proc)
		return;
	if (first == 0x16 && BYTE(&w->scan, w->pos + 1) == 0x03)
		proc->seen |= PROC_SEEN_TLS;
	else if (HALF(&w->scan, w->pos) == 0x20495250U) /* "PRI " */
		proc->seen |= PROC_SEEN_HTTP2;
	else
		proc->seen |= PROC_SEEN_OTHER;
}

/*
 * Bytes that are no HTTP/1. On a connection that never spoke it, that is all we want to know; where
 * we had been out of step, it was no message that began there.
 */
static __always_inline void no_http(struct work *w, struct conn *c, struct stream *s)
{
	bool is_request = (c->role == ROLE_CLIENT) == (w->is_tx != 0);

	if (s->is_tentative && s->in_head) {
		if (is_request && c->opened == s->exchange)
			c->opened--;
		if (!c->opened)
			c->role = ROLE_UNKNOWN;
		lose_step(c, s, w->is_tx, COUNT_OUT_OF_STEP);
		s->is_old = 1;
		return;
	}
	if (!c->opened || (c->opened == 1 && s->in_head && s->exchange == 1)) {
		note_protocol(w);
		give_up(c, COUNT_NOT_HTTP);
		return;
	}
	/* What had begun was no request after all: its number is for the next one. */
	if (s->in_head && is_request && c->opened == s->exchange)
		c->opened--;
	lose_step(c, s, w->is_tx, COUNT_OUT_OF_STEP);
}

/*
 * A request where we were out of step: one that begins where a call begins and lasts to its end, or
 * further. In the middle of an upload more would follow, of the upload.
 */
static __always_inline bool is_whole_call(const struct work *w, const struct stream *s,
					  __u32 length, bool complete)
{
	__u64 rest = w->bytes - w->at - length;

	return complete ? rest == 0 : s->phase != PHASE_BODY || rest <= s->body_left;
}

/*
 * Whether the message whose head ends here ends in this same call, so that no record of its end is
 * needed. What is sent may still block or be cut short: only short sends, which the socket takes at
 * once, are said to be complete before they have left.
 */
static __always_inline bool ends_here(const struct work *w, const struct stream *s, __u32 length,
				      bool complete)
{
	if (s->facts.status / 100 == 1 && s->facts.status != 101)
		return false;
	if (w->is_tx && (w->bytes > SHORT_SEND || w->may_fail))
		return false;
	return complete || (s->phase == PHASE_BODY && s->body_left <= w->bytes - w->at - length);
}

/*
 * A head, or a part of one, was scanned: 'length' new bytes. Decides and records, then moves the
 * stream on to the body if the head has ended.
 */
SUBPROGRAM4(head_part, struct work *, w, struct conn *, c, __u32, length, bool, starts)
{
	bool ended, is_request, was_truncated, complete = false, tunnel = false;
	__u32 flags = starts ? HEAD_START : 0;
	struct stream *s;

	if (!w || !c)
		return 0;
	s = this_stream(c, w);
	ended = w->result == LINE_HEAD_END;
	was_truncated = s->is_truncated;
	is_request = (c->role == ROLE_CLIENT) == (w->is_tx != 0);
	s->head_length += length;
	if (s->head_length > head_bytes_max && !was_truncated) {
		/* Where a guess begins, nothing is decided before its end has proved it. */
		if (s->is_tentative && is_request && !ended) {
			no_http(w, c, s);
			return 0;
		}
		s->is_truncated = 1;
		s->is_unproven = 0; /* what is decided now stays */
		flags |= HEAD_TRUNCATED;
		count(COUNT_HEAD_TRUNCATED);
	}
	if (ended) {
		flags |= HEAD_END;
		if (s->facts.is_request != is_request) {
			/*
			 * The other kind of message than the roles say; one that was guessed just
			 * now was wrong.
			 */
			if (is_request && s->exchange == 1 && c->opened == 1) {
				c->role = ROLE_UNKNOWN;
				c->opened = 0;
			}
			lose_step(c, s, w->is_tx, COUNT_OUT_OF_STEP);
			return 0;
		}
		if (is_request && s->facts.method == METHOD_HEAD)
			c->methods_head |= exchange_bit(s->exchange);
		if (is_request && s->facts.method == METHOD_CONNECT)
			c->methods_connect |= exchange_bit(s->exchange);
		http_begin_body(s, request_method(c, s->exchange), &complete, &tunnel);
		if (s->is_tentative && is_request && !is_whole_call(w, s, length, complete)) {
			no_http(w, c, s);
			return 0;
		}
	}
	if (is_request && (ended || (flags & HEAD_TRUNCATED)) && !was_truncated) {
		decide(w, c, s);
		flags |= HEAD_DECISION;
	}
	if (!is_request)
		flags |= c->answer;
	if (!is_request && (ended || (flags & HEAD_TRUNCATED)) &&
	    (s->facts.status / 100 != 1 || s->facts.status == 101))
		c->headed = s->exchange;
	if (ended && !is_request && ends_here(w, s, length, complete))
		flags |= HEAD_COMPLETE;
	w->route_length = 0;
	w->route_kind = ROUTE_NONE;
	if (ended && !is_request && w->go_layout && w->is_tx)
		route_find(w, c, length);
	if (!was_truncated)
		record_part(w, c, flags, length);
	w->at += length;
	if (!ended)
		return 0;
	if (is_request && (flags & HEAD_DECISION)) {
		w->requests++;
		w->request_end = w->at;
	}

	s->in_head = 0;
	s->is_tentative = 0;
	if (tunnel) {
		message_done(w, c);
		give_up(c, COUNT_TUNNEL);
	} else if (s->facts.is_bad || (is_request && s->phase == PHASE_TO_CLOSE)) {
		lose_step(c, s, w->is_tx, COUNT_OUT_OF_STEP);
	} else if (complete && !is_request && s->facts.status / 100 == 1) {
		stream_to_start(s); /* an interim response: the final one is still to come */
	} else if (complete) {
		message_done(w, c);
	}
	return 0;
}

/* Brings the next window into the buffer. False: its bytes cannot be read. */
static __always_inline bool window_open(struct work *w, struct stream *s, __u64 rest)
{
	__u32 want = s->phase == PHASE_CHUNK_SIZE || s->phase == PHASE_TRAILER ? 64 : HEAD_WINDOW;

	if (want > rest)
		want = rest;
	if (!gather(w, w->at, want))
		return false;
	carry_back(w, s);
	if (s->is_unproven)
		tail_put_back(w, s);
	w->end = WINDOW_AT + want;
	w->result = LINE_MORE;
	w->unfinished = 0;
	return true;
}

/*
 * One step of the walk: a stretch of a body, or a window. Returns 1 when there is nothing more to
 * do.
 */
STEP(walk_window)
{
	bool in_head, starts = false;
	struct stream *s;
	__u32 length;
	__u64 rest;

	if (!w || !c)
		return 1;
	s = this_stream(c, w);
	rest = w->bytes - w->at;
	if (!rest || c->off)
		return 1;
	if (s->phase == PHASE_BODY) {
		__u64 take = rest < s->body_left ? rest : s->body_left;

		s->body_left -= take;
		w->at += take;
		if (s->body_left)
			return 1;
		if (s->facts.is_chunked)
			s->phase = PHASE_CHUNK_SIZE;
		else
			message_done(w, c);
		return 0;
	}
	if (s->phase == PHASE_TO_CLOSE || s->phase == PHASE_OUT_OF_STEP) {
		w->at = w->bytes;
		return 1;
	}

	if (w->source.kind == SOURCE_NONE || !window_open(w, s, rest)) {
		if (w->source.kind != SOURCE_NONE)
			count(COUNT_UNREADABLE);
		else
			count(COUNT_NO_CONTENT);
		w->at = w->bytes;
		lose_step(c, s, w->is_tx, COUNT_OUT_OF_STEP);
		return 1;
	}
	in_head = s->phase == PHASE_START || s->phase == PHASE_HEAD;
	if (s->phase == PHASE_START && !s->in_head) {
		/* Empty lines in front of a message belong to none. */
		__u8 first = BYTE(&w->scan, w->pos);

		if (first == '\r' || first == '\n') {
			w->at += 1;
			return 0;
		}
		if (!http_start_is_plausible(&w->scan, w->pos, w->end - w->pos)) {
			no_http(w, c, s);
			return 0;
		}
		if (!message_start(w, c))
			return 1;
		starts = true;
		if (is_received_logically(w) && c->role == ROLE_SERVER) {
			logical_begin(w, c);
			if (logical_note(w, c, s->exchange) < 0)
				unit_lose(w, c);
		}
	}

	LOOP_STEPS(LINES_MAX, scan_line, w, c);
	if (w->result == LINE_BAD) {
		no_http(w, c, s);
		w->at = w->bytes;
		return 1;
	}
	if (w->unfinished && s->phase == PHASE_START &&
	    !http_start_is_plausible(&w->scan, w->pos, w->end - w->pos)) {
		no_http(w, c, s);
		w->at = w->bytes;
		return 1;
	}
	if (w->unfinished)
		carry_over(w, s);
	if (s->is_unproven)
		tail_keep(w, s);
	if (w->pos < WINDOW_AT || w->pos > WINDOW_AT + HEAD_WINDOW)
		return 1;
	length = w->pos - WINDOW_AT;
	if (in_head) {
		head_part(w, c, length, starts);
		return 0;
	}
	w->at += length;
	if (w->result == LINE_DONE)
		message_done(w, c);
	return 0;
}
