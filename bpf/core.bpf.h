/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * What a tap calls: on_send_start() before bytes leave, on_send_end() when they have or could not,
 * on_send() when a send has returned, on_recv() when a receive has, on_state() at each change of a
 * socket's state. A tap is a thin front that finds the arguments: the socket, where the bytes are,
 * how many.
 *
 * What is sent is followed in on_send_start(), under the socket's lock and by sequence numbers, so
 * calls of several threads are seen in the order of their bytes, and a send that was cut short is
 * simply seen again when the application sends the rest.
 */
#pragma once

#include "follow.bpf.h"
#include "iter.bpf.h"
#include "registers.bpf.h"
#include "socket.bpf.h"

/* TCP over IP only; everything else is none of our business. */
static __always_inline bool is_followed(const struct sock *sk)
{
	__u16 family = READ(sk, __sk_common.skc_family), protocol;

	if (family != AF_INET && family != AF_INET6)
		return false;
	protocol = READ(sk, sk_protocol);
	if (protocol == IPPROTO_MPTCP)
		count(COUNT_MPTCP);
	return protocol == IPPROTO_TCP;
}

/* Whether it is worth it to look for the current process in 'procs'. */
static __always_inline bool may_be_selected(void)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32;

	return selected[pid % SELECTED_SLOTS];
}

/* Who does it. */
struct actor {
	__u32 pid, tid;
};

/*
 * The connection of a socket that the current process acts on; NULL when the process is not
 * selected, the socket is none of our business, or it is no longer followed.
 */
static __always_inline struct conn *conn_of_socket(struct sock *sk, __u32 slot,
						   struct actor *ret_actor, bool has_cookie)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 generation = procs_generation, pid = id >> 32;
	struct conn *c;
	struct proc *proc;

	if (!selected[pid % SELECTED_SLOTS] || !is_followed(sk))
		return NULL;
	ret_actor->pid = pid;
	ret_actor->tid = (__u32)id;
	c = socket_conn(sk);
	if (c && c->known_pid == pid && c->known_generation == generation) {
		return c->off ? NULL : c;
	}

	proc = bpf_map_lookup_elem(&procs, &pid);
	if (!proc)
		return NULL;
	c = socket_conn_new(sk, slot, has_cookie);
	if (!c) {
		count(COUNT_NO_STATE);
		return NULL;
	}
	c->known = *proc;
	c->known_pid = pid;
	c->known_generation = generation;
	return c->off ? NULL : c;
}

static __always_inline struct conn *conn_of(struct sock *sk, __u32 slot, struct actor *ret_actor)
{
	return conn_of_socket(sk, slot, ret_actor, false);
}

/*
 * What the program that makes this system call has in the register where Go keeps the goroutine.
 */
static __always_inline __u64 user_g(void)
{
	const struct pt_regs *regs = user_registers();

#if defined(__TARGET_ARCH_x86)
	/* Not those of user code: the stack is laid out in a way that is not known. */
	return regs && (READ(regs, cs) & 3) == 3 ? READ(regs, r14) : 0;
#elif defined(__TARGET_ARCH_arm64)
	return regs ? READ(regs, regs[28]) : 0;
#endif
}

/* Where the code is that made the current system call; 0: not known. */
static __always_inline __u64 user_address(void)
{
	const struct pt_regs *regs = user_registers();

#if defined(__TARGET_ARCH_x86)
	return regs ? READ(regs, ip) : 0;
#elif defined(__TARGET_ARCH_arm64)
	return regs ? READ(regs, pc) : 0;
#endif
}

/*
 * Whether the code of the Go program itself made the current system call, as far as it is known: not
 * C in it, nor a library, which may be Go as well and have goroutines of its own with the same ids.
 */
static __always_inline bool is_go_code(const struct proc *proc)
{
	return !proc->go_text_bytes || user_address() - proc->go_text < proc->go_text_bytes;
}

/*
 * Whether io_uring may have received this for a thread that does something else: its receives are
 * made by workers, and in the middle of whatever system call the thread makes next.
 */
static __always_inline bool is_asynchronous(void)
{
	return (READ(current_task(), flags) & PF_IO_WORKER) || uses_io_uring();
}

static __always_inline struct work *work_begin(__u32 slot, const struct actor *actor,
					       const struct conn *c)
{
	struct work *w = bpf_map_lookup_elem(&works, &slot);

	if (!w)
		return NULL;
	w->slot = slot;
	w->pid = actor->pid;
	w->tid = actor->tid;
	w->proc_id = c->known.proc_id;
	w->proc_flags = c->known.hands_over ? 0 : c->known.flags;
	w->is_proven = c->known.answered >= ANSWERS_PROVE;
	w->unit.pid = actor->pid;
	w->unit.kind = w->proc_flags & PROC_THREAD_UNITS ? UNIT_THREAD : UNIT_NONE;
	w->unit.id = actor->tid;
	w->go_layout = c->known.go_layout;
	if (w->go_layout)
		w->g = is_go_code(&c->known) ? user_g() : 0;
	w->jvm_slot = c->known.jvm_slot;
	if (w->jvm_slot)
		w->thread_pointer = is_asynchronous() ? 0 : thread_pointer();
	w->now_ns = bpf_ktime_get_ns();
	w->at = 0;
	w->requests = 0;
	w->is_blocking = 0;
	w->may_fail = 0;
	w->source.first = 0;
	w->source.first_at = 0;
	return w;
}

SMALL_STEP abandon_one(__u32 i, struct finish *f)
{
	struct conn *c = f->c;

	if (c->closed == c->opened)
		return 1;
	c->closed++;
	if (c->role == ROLE_SERVER)
		request_close(c, c->closed);
	return 0;
}

/* What must be forgotten when a response ends with the connection, or the connection with it. */
static __always_inline void abandon(struct conn *c)
{
	struct finish f = {.c = c};

	join_withdraw(c);
	LOOP_SMALL(PIPELINE_MAX, abandon_one, &f);
	/* And of what was taken for a request, and was none. */
	if (c->logical_next)
		logical_close(c, c->opened + 1);
	c->responded = c->opened;
	if (c->unit_kind == UNIT_GOROUTINE)
		leave_unit(c);
}

/* Bytes of the stream up to write_seq; the handshake may count as one of them. */
static __always_inline __u64 sent_offset(const struct tcp_sock *tp)
{
	return READ(tp, bytes_acked) + (READ(tp, write_seq) - READ(tp, snd_una));
}

/* Bytes of the stream up to 'copied_seq'; a FIN may count as one of them. */
static __always_inline __u64 received_offset(const struct tcp_sock *tp, __u32 copied_seq)
{
	return READ(tp, bytes_received) - (READ(tp, rcv_nxt) - copied_seq);
}

/* Whether more response bytes came or went than were followed, or than could be reported. */
static __always_inline bool has_unseen(struct sock *sk, const struct conn *c)
{
	const struct stream *s = c->role == ROLE_CLIENT ? &c->rx : &c->tx;
	const struct tcp_sock *tp = tcp_of(sk);
	__u64 passed;

	if (!tp)
		return true;
	passed = c->role == ROLE_CLIENT ? READ(tp, bytes_received) : sent_offset(tp);
	/* Handshake and FIN, one each. */
	return s->phase == PHASE_OUT_OF_STEP || passed > s->offset + 2 || c->unreported != 0;
}

/* Whether what is sent is followed before TCP has it (insert.bpf.h). */
static __always_inline bool has_messages(const struct conn *c)
{
#ifdef BASIC
	return false;
#else
	return c->has_messages;
#endif
}

/* Something is sent that was not followed before: the socket has been taken out of the map. */
static __always_inline void messages_end(struct conn *c)
{
#ifndef BASIC
	c->has_messages = 0;
#endif
}

/* Whether a stream has been followed up to 'seq'. */
static __always_inline bool is_past(const struct stream *s, __u32 seq)
{
	return s->is_known && (__s32)(s->seq - seq) >= 0;
}

/* A send that fails before it has copied anything is none. */
static __always_inline bool may_send(const struct sock *sk)
{
	return !READ(sk, sk_err) && !(READ(sk, sk_shutdown) & SEND_SHUTDOWN);
}

/* Whether the socket takes bytes without waiting. */
static __always_inline bool has_room(const struct sock *sk)
{
	return READ(sk, sk_wmem_queued) < READ(sk, sk_sndbuf);
}

/*
 * Before bytes leave, with the socket's lock held. May be called again for the rest of the same
 * send: what was followed already is skipped by its sequence numbers. 'msg': NULL for pages, whose
 * bytes are not looked at.
 */
static __always_inline void on_send_start(struct sock *sk, const struct msghdr *msg, __u64 bytes,
					  __u32 copy)
{
	struct actor actor;
	struct tcp_sock *tp;
	struct work *w;
	struct conn *c;
	__u32 slot, seq;

	slot = (msg ? WORK_SEND_START : WORK_SEND_PAGES) + copy;
	c = conn_of(sk, slot, &actor);
	if (!c)
		return;
	tp = tcp_of(sk);
	if (!tp)
		return;
	seq = READ(tp, write_seq);
	if ((copy || has_messages(c)) && is_past(&c->tx, seq + (__u32)bytes))
		return;
	messages_end(c);
	w = work_begin(slot, &actor, c);
	if (!w)
		return;
	w->is_tx = 1;
	w->bytes = bytes;
	w->ack = READ(tp, copied_seq);
	w->may_fail = !has_room(sk);
	if (msg)
		source_of_iter(&w->source, msg);
	else
		w->source.kind = SOURCE_NONE;
	if (!is_past(&c->tx, seq + 1))
		c->sent_from = seq;
	follow(w, c, seq, sent_offset(tp));
}

/*
 * A send has taken 'ret' bytes or failed, and the socket's lock is still held. For a tap whose
 * on_send_start() comes only once, before any wait for room: what failed altogether was followed in
 * vain, and the application may send something else; and what it did not show to on_send_start(),
 * since it might not have left, is followed now.
 */
static __always_inline void on_send_end(struct sock *sk, const struct msghdr *msg, int ret,
					__u32 copy)
{
	struct actor actor;
	struct tcp_sock *tp;
	struct work *w;
	struct conn *c;
	__u32 seq;

	c = conn_of(sk, WORK_SEND_END + copy, &actor);
	if (!c)
		return;
	tp = tcp_of(sk);
	if (!tp)
		return;
	seq = READ(tp, write_seq);
	/* The application sends again what did not leave of a message. */
	if (has_messages(c) && is_past(&c->tx, seq))
		return;
	if (ret < 0) {
		send_failed(c, seq);
		return;
	}
	if (!ret || is_past(&c->tx, seq))
		return;
	w = work_begin(WORK_SEND_END + copy, &actor, c);
	if (!w)
		return;
	w->is_tx = 1;
	w->bytes = ret;
	w->ack = READ(tp, copied_seq);
	source_of_iter(&w->source, msg);
	source_rewind(w);
	follow(w, c, seq - ret, sent_offset(tp) - ret);
}

/*
 * A send has returned, however: what had to leave for a response to be complete may have left now.
 */
static __always_inline void on_sent(struct sock *sk, struct conn *c)
{
	struct tcp_sock *tp;

	if (c->role != ROLE_SERVER)
		return;
	tp = tcp_of(sk);
	if (tp)
		finish_sent(c, READ(tp, write_seq));
}

static __always_inline void on_send(struct sock *sk)
{
	struct conn *c;

	if (!may_be_selected())
		return;
	c = socket_conn(sk);
	if (c)
		on_sent(sk, c);
}

/*
 * The same for a tap that sees no other end of a send (on_send_end()). The lock is not held: a send
 * of another thread on the same socket may be taken for the one that failed, and is lost.
 */
static __always_inline void on_send_returned(struct sock *sk, int ret)
{
	struct tcp_sock *tp;
	struct conn *c;

	if (!may_be_selected())
		return;
	c = socket_conn(sk);
	if (!c)
		return;
	tp = tcp_of(sk);
	/* The application sends again what did not leave of a message. */
	if (ret < 0 && tp && !has_messages(c))
		send_failed(c, READ(tp, write_seq));
	on_sent(sk, c);
}

/* The application has read the end: a response that lasts to the close is complete. */
static __always_inline void on_read_end(struct conn *c)
{
	if (c->role != ROLE_CLIENT || c->rx.phase != PHASE_TO_CLOSE)
		return;
	emit_close(c, CLOSE_READ_END, 0, false);
	abandon(c);
	stream_to_start(&c->rx);
}

/* Whose bytes nobody told where they are: counted, and the process is named to who asks. */
static __always_inline void note_io_uring(struct work *w, struct conn *c)
{
	struct proc *proc;

	count(COUNT_IO_URING);
	if (c->known.seen & PROC_SEEN_IO_URING)
		return;
	proc = proc_of(w);
	if (proc)
		proc->seen |= PROC_SEEN_IO_URING;
	c->known.seen |= PROC_SEEN_IO_URING;
}

struct receive {
	const struct msghdr
		*msg; /* has passed the bytes; NULL: the user's registers say where they are */
	int ret, flags;
	__u32 copy; /* of the program, from 0 */
};

/*
 * A receive has returned. A socket that is O_NONBLOCK shows as MSG_DONTWAIT in the flags, as does a
 * single call that must not wait.
 */
static __always_inline void on_recv(struct sock *sk, struct receive r)
{
	struct actor actor;
	struct tcp_sock *tp;
	struct work *w;
	struct conn *c;
	__u32 copied;

	if (r.ret < 0 || (r.flags & (MSG_PEEK | MSG_OOB | MSG_ERRQUEUE)))
		return;
	c = conn_of(sk, WORK_RECV + r.copy, &actor);
	if (!c)
		return;
	if (r.ret == 0) {
		if (READ(sk, sk_shutdown) & RCV_SHUTDOWN)
			on_read_end(c);
		return;
	}
	tp = tcp_of(sk);
	if (!tp)
		return;
	copied = READ(tp, copied_seq);
	/* A read that also took the FIN moved copied_seq one further. */
	if ((READ(sk, sk_shutdown) & RCV_SHUTDOWN) && copied == READ(tp, rcv_nxt))
		copied -= 1;
	if (r.copy && is_past(&c->rx, copied))
		return;
	w = work_begin(WORK_RECV + r.copy, &actor, c);
	if (!w)
		return;
	w->is_tx = 0;
	w->bytes = r.ret;
	w->ack = READ(tp, write_seq);
	w->is_blocking = !(r.flags & MSG_DONTWAIT) && !is_asynchronous();
	if (r.flags & MSG_TRUNC) {
		w->source.kind = SOURCE_NONE;
	} else if (r.msg) {
		source_of_iter(&w->source, r.msg);
		source_rewind(w);
	} else {
		if (uses_io_uring())
			note_io_uring(w, c);
		source_of_registers(w, c);
	}
	follow(w, c, copied - r.ret, received_offset(tp, copied) - r.ret);
	/*
	 * The connection had ended before this was read: no event will come for what was opened
	 * just now.
	 */
	if (READ(sk, __sk_common.skc_state) == TCP_CLOSE && c->opened != c->closed) {
		emit_close(c, CLOSE_DONE, READ(sk, sk_err), has_unseen(sk, c));
		abandon(c);
	}
}

/*
 * The receive of a call whose beginning was not seen, behind the copy of 'copied' bytes: in
 * tcp_cleanup_rbuf(), which others call too. False: it is none, or cannot be told from the user's
 * registers. Seen once more at its end, it does no harm: what was followed is known by its place in
 * the stream.
 */
static __always_inline bool receive_of_call(struct sock *sk, int copied, struct receive *ret)
{
	struct tcp_sock *tp = tcp_of(sk);
	const struct file *file;
	int flags;

	/*
	 * What the kernel itself takes from a socket, to make something else of it: TLS, MPTCP, maps
	 * of sockets.
	 */
	if (copied <= 0 || !tp || uses_io_uring() || READ(sk, sk_user_data) ||
	    READ((struct inet_connection_sock *)tp, icsk_ulp_ops))
		return false;
	/* One of the kernel's own has no file. */
	file = BPF_CORE_READ(sk, sk_socket, file);
	if (!file)
		return false;
	flags = call_flags(BPF_CORE_READ(file, f_flags));
	if (flags < 0)
		return false;
	*ret = (struct receive){.ret = copied, .flags = flags};
	return true;
}

/* Something happened on a socket of MPTCP, which a tap in TCP does not see. */
static __always_inline void on_mptcp(void)
{
	if (may_be_selected())
		count(COUNT_MPTCP);
}

#ifdef BASIC
/* A socket is no more: the next one may have its address. */
static __always_inline void on_destroy(struct sock *sk)
{
	struct conn *c = socket_conn(sk);

	if (!c)
		return;
	abandon(c);
	socket_drop(sk);
}
#else
/*
 * A socket begins a connection, and not its first: its sequence numbers begin anew, and its
 * addresses are others. Exchanges are counted on, since the socket keeps its cookie.
 */
static __always_inline void on_connect(struct sock *sk)
{
	struct conn *c = socket_conn(sk);

	if (!c)
		return;
	abandon(c);
	c->cookie = 0; /* it is drawn up again */
	c->known_pid = 0;
	c->role = ROLE_UNKNOWN;
	c->off = 0;
	c->is_pipelined = 0;
	__builtin_memset(&c->rx, 0, sizeof(c->rx));
	__builtin_memset(&c->tx, 0, sizeof(c->tx));
}
#endif

/*
 * A socket changed its state; at TCP_CLOSE nothing more comes, and all that was open on it is
 * forgotten. Where nothing is open and our end says its last word, that is the end already: what
 * follows happens in interrupts, and a busy machine was seen (6.18) to pass whole runs of them
 * without running a program.
 */
static __always_inline void on_state(struct sock *sk, int new_state, __u32 copy)
{
	struct tcp_sock *tp;
	struct conn *c;
	__u32 what;

	if (READ(sk, sk_protocol) != IPPROTO_TCP)
		return;
#ifdef BASIC
	/* A connection begins: what is known of a socket here is of one that is gone. */
	if (new_state == TCP_SYN_SENT || new_state == TCP_SYN_RECV) {
		on_destroy(sk);
		return;
	}
#else
	if (new_state == TCP_SYN_SENT) {
		on_connect(sk);
		return;
	}
#endif
	if (new_state == TCP_LISTEN) {
		__u32 pid = bpf_get_current_pid_tgid() >> 32;

		/* Only tasks listen: a copy is for interrupts. */
		if (copy)
			return;
		unjudged[pid % SELECTED_SLOTS] = 1;
		emit_process(PROCESS_LISTEN, current_task(), 0, READ(sk, __sk_common.skc_num));
		return;
	}
	if (new_state == TCP_CLOSE_WAIT)
		what = CLOSE_PEER_FIN;
	else if (new_state == TCP_FIN_WAIT1 || new_state == TCP_LAST_ACK)
		what = CLOSE_LOCAL_FIN;
	else if (new_state == TCP_CLOSE)
		what = CLOSE_DONE;
	else
		return;
	c = socket_conn(sk);
	if (!c || !c->opened || c->done == c->opened)
		return;
	if (c->closed == c->opened) {
		if (what == CLOSE_PEER_FIN)
			return;
		what = CLOSE_DONE;
	}
	if (what == CLOSE_DONE)
		c->done = c->opened;
	/*
	 * A response may have left to the last byte and its send not have returned: that comes
	 * first.
	 */
	tp = tcp_of(sk);
	if (tp && c->role == ROLE_SERVER)
		finish_sent(c, READ(tp, write_seq));
	emit_close(c, what, what == CLOSE_DONE ? READ(sk, sk_err) : 0, has_unseen(sk, c));
	/* A server that has said its last word answers nothing any more. */
	if (what == CLOSE_DONE || (what == CLOSE_LOCAL_FIN && c->role == ROLE_SERVER))
		abandon(c);
}
