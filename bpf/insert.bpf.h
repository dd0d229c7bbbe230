/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Carries 'traceparent' to the next host (docs/decisions/header-insertion.md): the programs for
 * connections that are made (sockops) and for what is sent on them (sk_msg), beside a tap that keeps
 * the state of a socket with the socket. Included by inserter.bpf.c.
 *
 * What is sent on a socket of 'sockets' comes here before TCP has it, in the kernel's own memory and
 * with the socket's lock held. It is followed here as a tap would, so that the decision for a
 * request's head, which is taken once, is taken here; the tap then finds by the sequence numbers
 * that it has been followed. Where a head ends, and all that is asked here is so, one line goes in
 * before the blank one.
 *
 * Promise: a message leaves as it came, or with that line.
 */
#pragma once

#include "core.bpf.h"

/* A head of up to so many bytes leaves whole even if the kernel is short of memory (room_for()). */
#define HEAD_AT_ONCE 1024
/* The piece that the line goes into is copied: no more than this of it, in one allocation. */
#define PIECE_BYTES_MAX 32768

/* --- connections */

/*
 * Whoever sends from his own pages is told when they are free again: before Linux 6.5 not by a socket
 * in the map.
 */
static __always_inline bool is_zero_copy(const struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_flags) &
	       1UL << bpf_core_enum_value(enum sock_flags, SOCK_ZEROCOPY);
}

static __always_inline bool is_blocking(const struct sock *sk)
{
	return !(BPF_CORE_READ(sk, sk_socket, file, f_flags) & O_NONBLOCK);
}

/*
 * Whether a socket that connects is one of Go's own. What C in the same process has may be blocking,
 * and be asked how many bytes wait, to both of which a socket in the map gives other answers. Go's
 * are never blocking, and are connected by its own code; C calls libc, which is somewhere else.
 */
static __always_inline bool is_of_go(const struct sock *sk, const struct proc *proc)
{
	if (is_blocking(sk))
		return false;
	return is_go_code(proc);
}

/*
 * Whether user space would find it, to take it out: by the tables of the network that the process's
 * first thread is in.
 */
static __always_inline bool is_in_own_network(const struct sock *sk)
{
	const struct task_struct *leader = READ(current_task(), group_leader);

	return BPF_CORE_READ(leader, nsproxy, net_ns) == BPF_CORE_READ(sk, __sk_common.skc_net.net);
}

/* In the process that connects. */
static __always_inline void connection_begins(struct bpf_sock_ops *ops)
{
	__u32 pid = READ(current_task(), tgid);
	struct bpf_sock *sk = ops->sk;
	const struct proc *proc;
	const struct tcp_sock *tp;
	const struct sock *full;

	if (!selected[pid % SELECTED_SLOTS] || !sk)
		return;
	proc = bpf_map_lookup_elem(&procs, &pid);
	if (!proc || !(proc->flags & PROC_PROPAGATES))
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return;
	full = (const struct sock *)tp;
	/* Put there in mid-stream, not made: user space takes it in as one that was there before. */
	if (BPF_CORE_READ_BITFIELD(tp, repair))
		return;
	if (is_zero_copy(full))
		count(COUNT_INSERT_ZERO_COPY);
	else if (!is_of_go(full, proc))
		count(COUNT_INSERT_NOT_GO);
	else if (!is_in_own_network(full))
		count(COUNT_INSERT_NETWORK);
	else
		bpf_sk_storage_get(&insertions, sk, &(struct insertion){.pid = pid},
				   BPF_SK_STORAGE_GET_F_CREATE);
}

static __always_inline bool propagates(__u32 pid)
{
	const struct proc *proc = bpf_map_lookup_elem(&procs, &pid);

	return proc && (proc->flags & PROC_PROPAGATES);
}

/* Wherever the answer to that came in. */
static __always_inline void connection_is_made(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	const struct insertion *own;
	const struct sock *full;
	__u64 cookie;

	/* One that is made meanwhile stays marked, and is taken in by user space. */
	if (!sk || insert_is_closed)
		return;
	own = bpf_sk_storage_get(&insertions, sk, 0, 0);
	if (!own || !propagates(own->pid))
		return;
	full = (const struct sock *)bpf_skc_to_tcp_sock(sk);
	if (!full || is_zero_copy(full)) {
		count(COUNT_INSERT_ZERO_COPY);
		return;
	}
	cookie = bpf_get_socket_cookie(ops);
	if (bpf_sock_hash_update(ops, &sockets, &cookie, BPF_NOEXIST))
		count(COUNT_INSERT_FULL);
}

SEC("sockops")
int in_connection(struct bpf_sock_ops *ops)
{
	if (ops->op == BPF_SOCK_OPS_TCP_CONNECT_CB)
		connection_begins(ops);
	else if (ops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		connection_is_made(ops);
	return 1;
}

/*
 * --- scratch memory: where tasks are preempted, this program may be in the middle of another message
 * on the same CPU, and the kernel does not skip it as it does those of tracing.
 */

/* Whoever adds one and then finds one is alone. The first slot that is free, else 0. */
static __always_inline __u32 slot_take(void)
{
	struct work *w;
	__u32 slot, i;

	for (i = 0; i < COPIES; i++) {
		slot = WORK_INSERT + i;
		w = bpf_map_lookup_elem(&works, &slot);
		if (!w)
			return 0;
		__sync_fetch_and_add(&w->users, 1);
		if (*(volatile __u64 *)&w->users == 1)
			return slot;
		__sync_fetch_and_add(&w->users, -1);
	}
	return 0;
}

static __always_inline void slot_give(__u32 slot)
{
	struct work *w = bpf_map_lookup_elem(&works, &slot);

	if (w)
		__sync_fetch_and_add(&w->users, -1);
}

/* --- the message */

static __always_inline __u32 message_pieces(struct sk_msg_md *msg)
{
	const struct sk_msg *kernel = (const struct sk_msg *)msg;

	/* A ring, but a message that is new begins at 0. */
	return BPF_CORE_READ(kernel, sg.start) ? 0 : BPF_CORE_READ(kernel, sg.end);
}

/* The lengths are the kernel's, and the addresses it tells for any byte of a piece. */
static __always_inline bool pieces_find(struct work *w, struct sk_msg_md *msg, __u32 n)
{
	const struct sk_msg *kernel = (const struct sk_msg *)msg;
	const __u32 entry = bpf_core_type_size(struct scatterlist),
		    length_at = bpf_core_field_offset(struct scatterlist, length);
	__u32 at = 0, i;

	if (bpf_probe_read_kernel(w->scan.bytes, (n * entry) & SCAN_MASK,
				  __builtin_preserve_access_index(&kernel->sg.data)))
		return false;
	for (i = 0; i < MESSAGE_PIECES; i++) {
		__u32 length;

		if (i >= n)
			break;
		length = HALF(&w->scan, i * entry + length_at);
		w->pieces[i].base = 0;
		w->pieces[i].length = length;
		if (!length)
			continue;
		if (bpf_msg_pull_data(msg, at, at + 1, 0))
			return false;
		w->pieces[i].base = msg->data;
		at += length;
	}
	return at == msg->size;
}

static __always_inline void source_of_message(struct work *w, const struct conn *c,
					      struct sk_msg_md *msg)
{
	__u32 n = message_pieces(msg);

	w->source.kind = SOURCE_NONE;
	w->source.skip = 0;
	/* Bytes of a body are counted, wherever they are. */
	if (c->tx.phase == PHASE_BODY && c->tx.body_left >= w->bytes)
		return;
	if (!n || n > MESSAGE_PIECES)
		return;
	if (n == 1) {
		/* Pages of somebody else, a file's, must be asked for. */
		if (!msg->data && bpf_msg_pull_data(msg, 0, 1, 0))
			return;
		w->pieces[0].base = msg->data;
		w->pieces[0].length = w->bytes;
	} else if (!pieces_find(w, msg, n)) {
		return;
	}
	w->source.kind = SOURCE_MESSAGE;
	w->source.base = (__u64)w->pieces;
	w->source.segments = n;
}

#if defined(__TARGET_ARCH_x86)
#define NR_WRITE  1
#define NR_SENDTO 44
#elif defined(__TARGET_ARCH_arm64)
#define NR_WRITE  64
#define NR_SENDTO 206
#endif

/* Where the application has what is one message altogether; 0: unknown. */
static __always_inline __u64 user_buffer(__u64 bytes)
{
	const struct pt_regs *regs = user_registers();
	__u64 number, buffer, length;

	if (!regs)
		return 0;
#if defined(__TARGET_ARCH_x86)
	number = READ(regs, orig_ax);
	buffer = READ(regs, si);
	length = READ(regs, dx);
#elif defined(__TARGET_ARCH_arm64)
	number = READ(regs, syscallno);
	buffer = READ(regs, regs[1]);
	length = READ(regs, regs[2]);
#endif
	return (number == NR_WRITE || number == NR_SENDTO) && length == bytes ? buffer : 0;
}

/* --- whether */

/*
 * Whether the next byte is known to be the first of a message, or within a head that began so: with
 * the connection, or behind requests that all have been answered.
 */
static __always_inline bool is_in_step(const struct conn *c, const struct tcp_sock *tp)
{
	const struct stream *s = &c->tx;

	/* The handshake's byte. Without one the connection was put there (TCP_REPAIR), in mid-stream. */
	if (!s->is_known)
		return sent_offset(tp) == 1;
	if (s->seq != READ(tp, write_seq) || s->is_tentative)
		return false;
	return s->phase == PHASE_START || s->phase == PHASE_HEAD;
}

/*
 * Whether the end of a short message waits for the peer, and the peer's word for that end: what a
 * socket in the map sends in pieces would. Go switches that off on each of its connections.
 */
static __always_inline bool sends_late(const struct tcp_sock *tp)
{
	return !(BPF_CORE_READ_BITFIELD(tp, nonagle) & TCP_NAGLE_OFF);
}

/* Nothing about the socket that makes its next send another than a plain one, or none. */
static __always_inline bool is_plain(const struct sock *sk, const struct tcp_sock *tp)
{
	__u8 state = READ(sk, __sk_common.skc_state);

	return (state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT) && may_send(sk) &&
	       !BPF_CORE_READ_BITFIELD(tp, repair) && !is_zero_copy(sk) && !sends_late(tp);
}

enum whose { WHOSE_NOBODYS, WHOSE_OURS, WHOSE_OTHERS };

/*
 * Whose maps have the socket. None may any more, when user space takes it out at this moment: then it
 * is a plain one from its next send on. Where another one has it as well as ours its programs may send
 * the bytes elsewhere, and what we have attached to the socket outlives our map.
 */
static __always_inline enum whose whose_is(const struct sock *sk)
{
	/* The lowest bits are flags (SK_USER_DATA_PTRMASK). */
	const struct sk_psock *psock = (void *)((__u64)READ(sk, sk_user_data) & ~7ULL);
	const struct list_head *first = BPF_CORE_READ(psock, link.next);
	const struct sk_psock_link *link =
		(void *)((__u64)first - bpf_core_field_offset(struct sk_psock_link, list));

	if (!psock || (__u64)first == (__u64)psock + bpf_core_field_offset(struct sk_psock, link))
		return WHOSE_NOBODYS;
	return first == BPF_CORE_READ(psock, link.prev) &&
			       BPF_CORE_READ(link, map, id) == sockets_id
		       ? WHOSE_OURS
		       : WHOSE_OTHERS;
}

static __always_inline bool is_short_of_memory(const struct sock *sk)
{
	unsigned long pressure = 1;

	bpf_probe_read_kernel(&pressure, sizeof(pressure),
			      READ(sk, __sk_common.skc_prot)->memory_pressure);
	return pressure;
}

/*
 * Whether all up to the line's end leaves at once. The kernel counts what it could not send by the
 * message's end: if it stopped before the line, the application would be told of a place that is not
 * where it stopped.
 *
 * With nothing in the socket's queues TCP takes some kilobytes in any case (tcp_stream_alloc_skb(),
 * tcp_wmem_schedule()). Else there must be memory that is the socket's own, or no want of it.
 */
static __always_inline bool room_for(const struct sock *sk, const struct tcp_sock *tp, __u32 size,
				     __u32 line_end)
{
	__u32 lowat = READ(tp, notsent_lowat);
	int queued = READ(sk, sk_wmem_queued);

	if (!lowat)
		lowat = READ(sk, __sk_common.skc_net.net)->ipv4.sysctl_tcp_notsent_lowat;
	if (READ(tp, write_seq) != READ(tp, snd_nxt) || size >= lowat)
		return false;
	if ((__s64)queued + 2 * (__s64)size + 4096 > READ(sk, sk_sndbuf))
		return false;
	if (!queued && line_end <= HEAD_AT_ONCE)
		return true;
	if (is_short_of_memory(sk))
		return false;
	return !bpf_core_field_exists(sk->sk_memcg) || !READ(sk, sk_memcg) ||
	       READ(sk, sk_forward_alloc) >= (int)line_end + 4096;
}

/* What some servers count of a head is less than all of it: not its first line, or no line ends. */
#define UNCOUNTED_BYTES 512
/* What uWSGI counts beside the head: names and numbers of its own, and the path again. */
#define COUNTED_BESIDE_BYTES 1024

static __always_inline bool passes(__u32 length, __u32 beside, __u32 limit)
{
	return length + beside + LINE_BYTES > limit && length <= limit + UNCOUNTED_BYTES;
}

/*
 * Whether servers take so many fields by default, and no more: 100 do Apache httpd, Tomcat, Kestrel
 * and Python's http.server, 96 actix, 200 Undertow, 64 iPlanet, 50 Bandit.
 */
static __always_inline bool is_limit_of_fields(__u8 fields)
{
	return fields == 50 || fields == 64 || fields == 96 || fields == 100 || fields == 200;
}

/* Whether a head of that length may be one that a server takes, and would not with the line. */
static __always_inline bool is_near_limit(__u32 length, __u8 fields)
{
	return is_limit_of_fields(fields) || passes(length, COUNTED_BESIDE_BYTES, 4096) ||
	       passes(length, 0, 8192) || passes(length, 0, 15360) || passes(length, 0, 16384) ||
	       passes(length, 0, 32768);
}

/*
 * Why the request whose head has ended in this message, which begins at 'begin', goes without; -1: it
 * does not.
 */
static __always_inline int why_not(const struct work *w, const struct conn *c, __u32 begin)
{
	const struct stream *s = &c->tx;

	/* The facts are those of what came last, which may have been no request, and no facts. */
	if (s->phase == PHASE_OUT_OF_STEP)
		return COUNT_INSERT_UNPROVEN;
	if (s->facts.traceparent != TRACEPARENT_NONE)
		return COUNT_INSERT_OWN;
	if (w->requests != 1 || c->opened - c->closed != 1)
		return COUNT_INSERT_PIPELINED;
	/*
	 * What we first saw may have been in an upload that looks like requests, and that was
	 * answered before its end: but not twice.
	 */
	if (s->began_old && c->closed < 2)
		return COUNT_INSERT_UNPROVEN;
	if (s->facts.method == METHOD_CONNECT)
		return COUNT_INSERT_METHOD;
	if (w->decision.reason == DECISION_NONE_TRUNCATED || (c->lost & exchange_bit(s->exchange)))
		return COUNT_INSERT_LOST;
	if (w->decision.is_doubtful)
		return COUNT_INSERT_DOUBTFUL;
	if (is_near_limit(begin + w->request_end - s->head_seq, s->facts.fields))
		return COUNT_INSERT_LIMIT;
	return -1;
}

/* --- the line */

static __always_inline __u8 hex_digit(__u8 value)
{
	return value + (value < 10 ? '0' : 'a' - 10);
}

static __always_inline __u8 *write_hex(__u8 *to, const __u8 *bytes, __u32 n)
{
	for (__u32 i = 0; i < n; i++) {
		*to++ = hex_digit(bytes[i] >> 4);
		*to++ = hex_digit(bytes[i] & 15);
	}
	return to;
}

/* With the blank line that is to be behind it. */
static __always_inline void line_make(struct work *w)
{
	const struct decision *d = &w->decision;
	__u8 *to = w->line;

	__builtin_memcpy(to, "traceparent: 00-", 16);
	to = write_hex(to + 16, d->ids.trace_id, 16);
	*to++ = '-';
	to = write_hex(to, d->ids.span_id, 8);
	*to++ = '-';
	to = write_hex(to, &d->flags, 1);
	__builtin_memcpy(to, "\r\n\r\n", 4);
}

/* The bytes at 'at' that a program may look at and write; NULL: it cannot have so many. */
static __always_inline __u8 *bytes_at(struct sk_msg_md *msg, __u32 at, const __u32 n)
{
	__u8 *from, *end;

	if (bpf_msg_pull_data(msg, at, at + n, 0))
		return NULL;
	from = (void *)(long)msg->data;
	end = (void *)(long)msg->data_end;
	return from + n <= end ? from : NULL;
}

static __always_inline bool is_line_end(struct sk_msg_md *msg, __u32 at)
{
	const __u8 *bytes = bytes_at(msg, at, 2);

	return bytes && bytes[0] == '\r' && bytes[1] == '\n';
}

/* The line and the blank one, as they will leave. */
static __always_inline bool is_line(struct sk_msg_md *msg, const struct work *w, __u32 at)
{
	const __u8 *bytes = bytes_at(msg, at, LINE_BYTES + 2);
	__u64 a, b, differs = 0;

	if (!bytes)
		return false;
	for (__u32 i = 0; i < LINE_BYTES + 2; i += 8) {
		__builtin_memcpy(&a, bytes + i, 8);
		__builtin_memcpy(&b, w->line + i, 8);
		differs |= a ^ b;
	}
	return !differs && !(insert_faults & INSERT_FAULT_LINE);
}
_Static_assert((LINE_BYTES + 2) % 8 == 0, "compared by words");

/* Bytes of the piece that the first 'n' bytes are in. They are in one behind bpf_msg_pull_data(). */
static __always_inline __u32 piece_of(const struct work *w, __u32 n)
{
	__u32 length = 0, i;

	for (i = 0; i < MESSAGE_PIECES; i++) {
		if (i >= w->source.segments || length >= n)
			break;
		length += w->pieces[i].length;
	}
	return length;
}

/* Takes the line out again. A message that is not what it was must not leave. */
static __always_inline int take_out(struct sk_msg_md *msg, __u32 at, __u32 size)
{
	if (!bpf_msg_pop_data(msg, at, LINE_BYTES, 0) && msg->size == size &&
	    is_line_end(msg, at) && !(insert_faults & INSERT_FAULT_TAKE_OUT))
		return SK_PASS;
	count(COUNT_INSERT_DROPPED);
	return SK_DROP;
}

struct place {
	__u32 at;    /* where the line goes */
	__u32 piece; /* bytes of the piece that this is in */
	__u32 size;  /* of the message */
};

/*
 * Puts the line in, and all of its piece into one again, so that no segment ends there. 1: done, 0:
 * not, negative: the message must not leave.
 */
static __always_inline int put_in(struct sk_msg_md *msg, struct work *w, const struct place *p)
{
	__u8 *bytes;

	if (bpf_msg_push_data(msg, p->at, LINE_BYTES, 0)) {
		count(COUNT_INSERT_NO_MEMORY);
		return 0;
	}
	bytes = bytes_at(msg, p->at, LINE_BYTES);
	if (bytes)
		__builtin_memcpy(bytes, w->line, LINE_BYTES);
	if (bytes && !bpf_msg_pull_data(msg, 0, p->piece + LINE_BYTES, 0)) {
		if (msg->size == p->size + LINE_BYTES && is_line(msg, w, p->at))
			return 1;
		count(COUNT_INSERT_UNDONE);
	} else {
		count(COUNT_INSERT_NO_MEMORY);
	}
	return take_out(msg, p->at, p->size) == SK_PASS ? 0 : -1;
}

/* A function of its own: its stack is not needed while the message is followed. */
static __attribute__((noinline)) int insert(struct sk_msg_md *msg, struct work *w, struct conn *c,
					    struct tcp_sock *tp)
{
	struct sock *sk = (struct sock *)tp;
	struct insertion *own = bpf_sk_storage_get(&insertions, sk, 0, 0);
	struct place place = {.size = msg->size};
	enum whose whose;
	int r;

	if (!own || own->is_off)
		return SK_PASS;
	place.at = w->request_end - 2;
	if (w->request_end < 2 || w->source.kind != SOURCE_MESSAGE || place.at > PIECE_BYTES_MAX) {
		count(COUNT_INSERT_BLANK);
		return SK_PASS;
	}
	place.piece = piece_of(w, place.at + 2);
	whose = whose_is(sk);
	if (whose == WHOSE_OTHERS)
		own->is_off = 1;
	if (whose != WHOSE_OURS || !is_plain(sk, tp)) {
		count(COUNT_INSERT_SOCKET);
		return SK_PASS;
	}
	if (place.piece > PIECE_BYTES_MAX - LINE_BYTES ||
	    w->source.segments + 2 > MESSAGE_PIECES - 1 ||
	    !room_for(sk, tp, place.size + LINE_BYTES, place.at + LINE_BYTES)) {
		count(COUNT_INSERT_NO_ROOM);
		return SK_PASS;
	}
	/* Before Linux 6.13 a line goes in at a wrong place of any other piece than the first. */
	if (bpf_msg_pull_data(msg, 0, place.at + 2, 0)) {
		count(COUNT_INSERT_NO_MEMORY);
		return SK_PASS;
	}
	if (!is_line_end(msg, place.at)) {
		count(COUNT_INSERT_BLANK);
		return SK_PASS;
	}
	line_make(w);
	r = put_in(msg, w, &place);
	if (r <= 0) {
		own->is_off = 1;
		return r ? SK_DROP : SK_PASS;
	}
	c->tx.seq += LINE_BYTES;
	c->tx.offset += LINE_BYTES;
	count(COUNT_INSERTED);
	return SK_PASS;
}

/* Only user space can take a socket out. */
static __always_inline void leave(const struct tcp_sock *tp, __u32 why)
{
	struct leave l = {
		.cookie = READ((const struct sock *)tp, __sk_common.skc_cookie.counter),
		.why = why,
	};

	bpf_map_push_elem(&leaving, &l, 0);
}

static __always_inline int message(struct sk_msg_md *msg, struct tcp_sock *tp, __u32 slot)
{
	struct sock *sk = (struct sock *)tp;
	struct actor actor;
	struct conn *c;
	struct work *w;
	bool is_known;
	int counter;

	c = conn_of_socket(sk, slot, &actor, true);
	if (c ? !(c->known.flags & PROC_PROPAGATES) : !propagates(READ(current_task(), tgid)))
		leave(tp, LEAVE_PASSED_ON);
	else if (!c)
		leave(tp, LEAVE_NOT_FOLLOWED);
	else if (is_blocking(sk))
		leave(tp, LEAVE_BLOCKING);
	else if (sends_late(tp))
		leave(tp, LEAVE_NAGLE);
	if (!c)
		return SK_PASS;
	w = work_begin(slot, &actor, c);
	if (!w)
		return SK_PASS;
	c->has_messages = 1;
	w->is_tx = 1;
	w->bytes = msg->size;
	w->ack = READ(tp, copied_seq);
	w->user_buffer = w->go_layout ? user_buffer(w->bytes) : 0;
	source_of_message(w, c, msg);
	is_known = is_in_step(c, tp);
	follow(w, c, READ(tp, write_seq), sent_offset(tp));
	/* A response: no tap may tell when the call that sends it returns. */
	if (c->role == ROLE_SERVER)
		finish_sent(c, c->done_seq);
	if (c->off)
		leave(tp, LEAVE_NOT_FOLLOWED);
	if (!w->requests || c->off || c->role != ROLE_CLIENT || !(c->known.flags & PROC_PROPAGATES))
		return SK_PASS;
	counter = is_known ? why_not(w, c, READ(tp, write_seq)) : COUNT_INSERT_UNPROVEN;
	if (counter >= 0) {
		count(counter);
		return SK_PASS;
	}
	return insert(msg, w, c, tp);
}

SEC("sk_msg")
int in_message(struct sk_msg_md *msg)
{
	struct bpf_sock *sk = msg->sk;
	struct tcp_sock *tp;
	int verdict;
	__u32 slot;

	if (!sk)
		return SK_PASS;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!may_be_selected()) {
		if (tp)
			leave(tp, LEAVE_PASSED_ON);
		return SK_PASS;
	}
	if (!tp)
		return SK_PASS;
	/* With TLS in the kernel these bytes are not what leaves. */
	if (READ((struct inet_connection_sock *)tp, icsk_ulp_ops)) {
		leave(tp, LEAVE_NOT_FOLLOWED);
		return SK_PASS;
	}
	slot = slot_take();
	if (!slot) {
		count(COUNT_INSERT_BUSY);
		return SK_PASS;
	}
	verdict = message(msg, tp, slot);
	slot_give(slot);
	return verdict;
}
