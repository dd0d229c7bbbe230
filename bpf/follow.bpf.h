/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * follow(): one call's bytes on one direction of a connection, from its place by sequence numbers
 * to the walk over its windows; send_failed(): those bytes did not leave. Everything from here down
 * also compiles for the host (tests/unit/bpf/shim.h).
 */
#pragma once

#include "stream.bpf.h"

/*
 * Puts the stream where this call begins: at 'seq', 'offset' bytes into its life. Bytes that passed
 * unseen are taken from the body if they fit into it, else the stream is out of step. False:
 * nothing new in this call.
 */
static __always_inline bool stream_seek(struct work *w, struct conn *c, struct stream *s, __u32 seq,
					__u64 offset)
{
	__s64 gap;

	if (!s->is_known) {
		s->is_known = 1;
		s->seq = seq;
		s->offset = offset;
		/* The handshake may count as a byte. */
		if (offset > 1) {
			s->phase = PHASE_OUT_OF_STEP;
			s->is_old = 1;
			s->began_old = 1;
		} else if (!offset && w->is_tx && !c->rx.is_known) {
			s->began_old = 1; /* put there in mid-stream, without a handshake */
		}
		return true;
	}
	gap = (__s32)(seq - s->seq);
	/*
	 * More than sequence numbers can tell: by the offsets, whose low bits are not to be
	 * trusted, for they are read while the network moves them.
	 */
	if ((__s64)(offset - s->offset) > 0x7fffffff)
		gap = (__s64)(offset - s->offset) +
		      (__s32)((__u32)gap - (__u32)(offset - s->offset));
	if (gap < 0) {
		__u64 known = (__u64)-gap;

		/* Behind the first byte that there was: the numbers have begun anew. */
		if (known > s->offset + 2) {
			s->seq = seq;
			s->offset = offset;
			lose_step(c, s, w->is_tx, COUNT_GAP);
			return true;
		}
		if (known >= w->bytes)
			return false;
		w->at = known;
		/* 'seq' and 'offset' of a stream name the byte at w->at == 0. */
		s->seq -= (__u32)known;
		s->offset -= known;
		return true;
	}
	if (gap > 0) {
		/* One byte that was not received is not of the body, if it was sent as urgent. */
		bool may_be_urgent = !w->is_tx && gap == 1;

		if (s->phase == PHASE_BODY && (__u64)gap <= s->body_left && !may_be_urgent) {
			s->body_left -= (__u64)gap;
			count(COUNT_GAP_BODY);
			s->seq += (__u32)gap;
			s->offset += (__u64)gap;
			if (!s->body_left) {
				if (s->facts.is_chunked)
					s->phase = PHASE_CHUNK_SIZE;
				else
					message_done(w, c);
			}
			return true;
		}
		s->seq += (__u32)gap;
		s->offset += (__u64)gap;
		if (s->phase != PHASE_TO_CLOSE && s->phase != PHASE_OUT_OF_STEP)
			lose_step(c, s, w->is_tx, COUNT_GAP);
	}
	return true;
}

/*
 * A stream that lost its step looks at the beginning of a call again when the other direction has
 * spoken meanwhile. False: it is still out of step.
 */
static __always_inline bool stream_resync(struct work *w, struct conn *c, struct stream *s)
{
	const struct stream *other = w->is_tx ? &c->rx : &c->tx;
	__u64 rest = w->bytes - w->at;
	bool is_request = c->role == ROLE_UNKNOWN || (c->role == ROLE_CLIENT) == (w->is_tx != 0);

	if (!s->is_old && s->spoken_mark == other->spoken)
		return false;
	if (w->source.kind == SOURCE_NONE || !gather(w, w->at, rest < 32 ? rest : 32))
		return false;
	if (!http_start_is_known(&w->scan, WINDOW_AT, rest < 32 ? rest : 32))
		return false;
	if (!is_request && c->opened - c->responded > 1) {
		/* Which of several requests this response answers is anybody's guess. */
		if (c->is_pipelined) {
			give_up(c, COUNT_OUT_OF_STEP);
			return false;
		}
		c->responded = c->opened - 1;
	}
	/* Of the only open request the answer has begun: what comes is in it, or answers none. */
	if (!is_request && c->opened != c->responded && c->opened == c->headed)
		return false;
	stream_to_start(s);
	s->is_tentative = 1;
	s->is_old = 0;
	count(COUNT_BACK_IN_STEP);
	return true;
}

/* What is received goes on with a request that has begun, under this unit too. */
static __always_inline void continue_logically(struct work *w, struct conn *c)
{
	const struct stream *s = &c->rx;
	int r;

	unit_find(w);
	if (w->unit.kind != UNIT_LOGICAL || c->role != ROLE_SERVER ||
	    s->phase == PHASE_OUT_OF_STEP || (s->phase == PHASE_START && !s->in_head))
		return;
	r = logical_note(w, c, s->exchange);
	if (r > 0)
		unit_add(w, c);
	else if (r < 0)
		unit_lose(w, c);
}

struct finish {
	struct conn *c;
	__u64 now_ns;
};

SMALL_STEP finish_one(__u32 i, struct finish *f)
{
	struct conn *c = f->c;
	__u32 exchange = c->closed + 1;

	/* Less or equal: the end of the connection may be dealt with on another CPU meanwhile. */
	if ((__s32)(c->responded - c->closed) <= 0)
		return 1;
	request_close(c, exchange);
	if (!((c->lost | c->told) & exchange_bit(exchange)))
		emit_end(c, exchange, f->now_ns);
	c->closed = exchange;
	return 0;
}

/* Ends the exchanges of a server whose responses have left to the last byte. */
SUBPROGRAM2(finish_sent, struct conn *, c, __u32, write_seq)
{
	struct finish f = {.c = c};

	if (!c || c->closed == c->responded || (__s32)(write_seq - c->done_seq) < 0)
		return 0;
	f.now_ns = bpf_ktime_get_ns();
	LOOP_SMALL(PIPELINE_MAX, finish_one, &f);
	return 0;
}

SUBPROGRAM4(follow, struct work *, w, struct conn *, c, __u32, seq, __u64, offset)
{
	struct stream *s;

	if (!w || !c)
		return 0;
	s = this_stream(c, w);
	/*
	 * The send of a response that has left may not have returned yet, or nobody may have seen
	 * that it did. What comes now comes behind it.
	 */
	if (!w->is_tx && c->role == ROLE_SERVER)
		finish_sent(c, w->ack);
	if (!stream_seek(w, c, s, seq, offset))
		return 0;
	s->spoken++;
	if (w->jvm_slot && !w->is_tx && c->role != ROLE_CLIENT)
		continue_logically(w, c);
	if (s->phase == PHASE_OUT_OF_STEP && !stream_resync(w, c, s))
		w->at = w->bytes;
	else
		LOOP_STEPS(WINDOWS_MAX, walk_window, w, c);
	if (w->at < w->bytes && !c->off) {
		lose_step(c, s, w->is_tx, COUNT_STEPS);
		w->at = w->bytes;
	}
	s->seq += (__u32)w->at;
	s->offset += w->at;
	/* Of which request it was nobody knows, nor whom that unit works for. */
	if (is_received_logically(w) && c->role == ROLE_SERVER && s->phase == PHASE_OUT_OF_STEP &&
	    logical_note(w, c, 0) < 0)
		unit_lose(w, c);
	/*
	 * Something was sent, and it may have been a response; or the connection has ended while a
	 * context was opened.
	 */
	if ((w->is_tx && s->phase == PHASE_OUT_OF_STEP) || (c->published && c->closed == c->opened))
		contexts_drop(c);
	return 0;
}

/*
 * Nothing of a send was taken, and the next byte is still that at 'seq'. One that tried to send the
 * rest of another send does not matter: that was followed rightly.
 */
static __always_inline void send_failed(struct conn *c, __u32 seq)
{
	if (!c->tx.is_known || (__s32)(c->tx.seq - seq) <= 0 || c->sent_from != seq)
		return;
	c->tx.offset -= c->tx.seq - seq;
	c->tx.seq = seq;
	if (c->tx.phase == PHASE_OUT_OF_STEP)
		return;
	lose_step(c, &c->tx, true, COUNT_OUT_OF_STEP);
	join_withdraw(c);
	contexts_drop(c);
}
