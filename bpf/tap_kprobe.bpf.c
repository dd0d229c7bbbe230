/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The tap for kernels that take neither trampolines nor have the tracepoints: kprobes at the entries
 * of TCP's functions. No kretprobes: the kernel has few places for calls that have not returned yet
 * (as few as one for each CPU), and receives wait for long; one too many is not seen at its end
 * (docs/decisions/basic.md). So the ends of calls are seen at functions that TCP calls there, with
 * the socket's lock held: tcp_cleanup_rbuf() behind a receive, release_sock() behind everything.
 *
 * Programs named kp_if_* are for functions that not every kernel has; probe/ loads those that it
 * finds.
 */
#define BASIC
#include "life.bpf.h"
#include "unix.bpf.h"

char LICENSE[] SEC("license") = LICENSE_TEXT;

/* How many arguments tcp_recvmsg() has: 6 before Linux 5.19, then 5, 4 of late. Set by probe/. */
const volatile __u32 recvmsg_arguments = 5;

#if defined(__TARGET_ARCH_x86)
#define ARGUMENT_1(regs)    ((regs)->di)
#define ARGUMENT_2(regs)    ((regs)->si)
#define ARGUMENT_3(regs)    ((regs)->dx)
#define ARGUMENT_4(regs)    ((regs)->cx)
#define ARGUMENT_5(regs)    ((regs)->r8)
#define STACK_POINTER(regs) ((regs)->sp)
#elif defined(__TARGET_ARCH_arm64)
#define USER_REGS(r)        ((struct user_pt_regs *)(r))
#define ARGUMENT_1(r)       (USER_REGS(r)->regs[0])
#define ARGUMENT_2(r)       (USER_REGS(r)->regs[1])
#define ARGUMENT_3(r)       (USER_REGS(r)->regs[2])
#define ARGUMENT_4(r)       (USER_REGS(r)->regs[3])
#define ARGUMENT_5(r)       (USER_REGS(r)->regs[4])
#define STACK_POINTER(regs) (USER_REGS(regs)->sp)
#endif

/*
 * A send begins at 'seq'. If the one before began at this very place nothing of it was taken: it
 * failed, or it waits for room and this one is ahead of it.
 */
static __always_inline struct conn *before_start(struct sock *sk, __u32 seq)
{
	struct conn *c = socket_conn(sk);

	if (!c)
		return NULL;
	if (c->has_start && c->start_seq == seq)
		send_failed(c, seq);
	c->withheld_msg = 0;
	return c;
}

/* 'c': as before_start() returned it; the first send of a connection makes it. */
static __always_inline void note_start(struct sock *sk, struct conn *c, __u32 seq)
{
	if (!c)
		c = socket_conn(sk);
	if (!c)
		return;
	c->start_seq = seq;
	c->has_start = 1;
}

/*
 * No room, and it does not wait: nothing leaves, or the little that fits behind the last bytes. What
 * it was is seen when the lock is released.
 */
static __always_inline void withhold(struct conn *c, struct msghdr *msg, __u64 bytes)
{
	if (!c)
		return;
	c->withheld_msg = (__u64)msg;
	c->withheld_bytes = bytes;
}

SEC("kprobe/tcp_sendmsg_locked")
int kp_send_start(struct pt_regs *ctx)
{
	struct sock *sk = (struct sock *)ARGUMENT_1(ctx);
	struct msghdr *msg = (struct msghdr *)ARGUMENT_2(ctx);
	__u64 bytes = ARGUMENT_3(ctx);
	struct conn *c;
	__u32 seq;

	if (!may_be_selected() || !bytes || !may_send(sk))
		return 0;
	seq = READ(tcp_of(sk), write_seq);
	c = before_start(sk, seq);
	if (has_room(sk) || !(READ(msg, msg_flags) & MSG_DONTWAIT))
		on_send_start(sk, msg, bytes, 0);
	else
		withhold(c, msg, bytes);
	note_start(sk, c, seq);
	return 0;
}

/* sendfile and splice, before Linux 6.5. */
SEC("kprobe/do_tcp_sendpages")
int kp_if_sendpage_start(struct pt_regs *ctx)
{
	struct sock *sk = (struct sock *)ARGUMENT_1(ctx);
	__u64 bytes = ARGUMENT_4(ctx);
	struct conn *c;
	__u32 seq;

	if (!may_be_selected() || !bytes || !may_send(sk))
		return 0;
	seq = READ(tcp_of(sk), write_seq);
	c = before_start(sk, seq);
	on_send_start(sk, NULL, bytes, 0);
	note_start(sk, c, seq);
	return 0;
}

/*
 * The socket's lock is about to be released, by whatever call took it. A send that does not wait
 * ends here at the latest.
 */
SEC("kprobe/release_sock")
int kp_release(struct pt_regs *ctx)
{
	struct sock *sk = (struct sock *)ARGUMENT_1(ctx);
	const struct msghdr *msg;
	struct conn *c;
	__u64 left;

	if (!may_be_selected())
		return 0;
	c = socket_conn(sk);
	if (!c)
		return 0;
	msg = (const struct msghdr *)c->withheld_msg;
	if (msg) {
		c->withheld_msg = 0;
		left = READ(msg, msg_iter.count);
		if (left < c->withheld_bytes)
			on_send_end(sk, msg, c->withheld_bytes - left, 0);
	}
	on_sent(sk, c);
	return 0;
}

/* A receive begins; another one that this thread made before is over. */
SEC("kprobe/tcp_recvmsg")
int kp_recv_start(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), flags = ARGUMENT_4(ctx);
	struct receiving new = {}, *there;

	if (!may_be_selected())
		return 0;
	/* The fourth argument is 'nonblock' there. */
	if (recvmsg_arguments == 6)
		flags = ARGUMENT_5(ctx) | ((__u32)flags ? MSG_DONTWAIT : 0);
	new.sk = ARGUMENT_1(ctx);
	new.msg = ARGUMENT_2(ctx);
	new.bytes = ARGUMENT_3(ctx);
	new.stack = STACK_POINTER(ctx);
	new.flags = flags;
	new.is_over = (flags & (MSG_PEEK | MSG_OOB | MSG_ERRQUEUE)) != 0;
	there = bpf_map_lookup_elem(&receivings, &id);
	if (there)
		*there = new;
	else if (bpf_map_update_elem(&receivings, &id, &new, BPF_ANY))
		count(COUNT_RECEIVINGS_FULL);
	return 0;
}

/*
 * Whether tcp_cleanup_rbuf(), which others call too, is called by the receive 'r'. A receive that
 * fails ends unseen, and so its entry may be that of a call that is over: then it has either moved
 * nothing, or no more than what was dealt with.
 */
static __always_inline bool is_of_receive(const struct receiving *r, __u64 sk, __u64 stack,
					  __u32 copied)
{
	const struct msghdr *msg = (const struct msghdr *)r->msg;

	if (r->is_over || r->sk != sk || stack >= r->stack || (copied && copied == r->seen))
		return false;
	return (r->flags & MSG_TRUNC) || r->bytes - READ(msg, msg_iter.count) == copied;
}

/*
 * Bytes have been received: at the end of the call, or before it waits for more. Seen more than
 * once, which does no harm: what was followed is known by its place in the stream. A thread of which
 * nothing is known has waited since before this tap was there, or its process was selected.
 */
static __always_inline void received(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), sk = ARGUMENT_1(ctx);
	__u32 copied = ARGUMENT_2(ctx);
	struct receiving *there;
	struct receive r;

	if (!may_be_selected())
		return;
	there = bpf_map_lookup_elem(&receivings, &id);
	if (there) {
		if (!is_of_receive(there, sk, STACK_POINTER(ctx), copied))
			return;
		there->seen = copied;
		r = (struct receive){.msg = (const struct msghdr *)there->msg,
				     .ret = copied,
				     .flags = there->flags};
	} else if (!receive_of_call((struct sock *)sk, copied, &r)) {
		return;
	}
	on_recv((struct sock *)sk, r);
}

SEC("kprobe/tcp_cleanup_rbuf")
int kp_recv(struct pt_regs *ctx)
{
	received(ctx);
	return 0;
}

/* What tcp_cleanup_rbuf() does, since Linux 6.0, when that is part of its caller. */
SEC("kprobe/__tcp_cleanup_rbuf")
int kp_recv_inner(struct pt_regs *ctx)
{
	received(ctx);
	return 0;
}

SEC("kprobe/unix_stream_sendmsg")
int kp_if_unix_send(struct pt_regs *ctx)
{
	on_unix_message((const struct msghdr *)ARGUMENT_2(ctx));
	return 0;
}

/* MPTCP sockets never come to TCP's own functions: counted, as the other taps do. */
SEC("kprobe/mptcp_sendmsg")
int kp_if_mptcp_send(struct pt_regs *ctx)
{
	on_mptcp();
	return 0;
}

SEC("kprobe/mptcp_recvmsg")
int kp_if_mptcp_recv(struct pt_regs *ctx)
{
	on_mptcp();
	return 0;
}
