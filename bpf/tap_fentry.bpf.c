/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The tap for kernels that take trampolines: entry and exit of tcp_sendmsg_locked(), which holds
 * the socket's lock, and the exits of tcp_sendmsg() and tcp_recvmsg(). It is given the kernel's own
 * iterators, so it also sees what io_uring and recvmmsg receive.
 *
 * Programs named fe_if_* and fx_if_* are for functions that not every kernel has; probe/ loads
 * those that it finds. Those with a number at the end are copies (maps.bpf.h), which it loads where
 * the kernel may be preemptible.
 */
#define WAITS
#include "life.bpf.h"
#include "unix.bpf.h"

char LICENSE[] SEC("license") = LICENSE_TEXT;

/* How many arguments tcp_recvmsg() has: 6 before Linux 5.19, then 5, 4 of late. Set by probe/. */
const volatile __u32 recvmsg_arguments = 5;

/*
 * The n-th word of a program's context. In assembler lest the compiler make one load at a computed
 * place of several alternative ones, which the verifier refuses.
 */
#define CONTEXT_WORD(ctx, n)                                                             \
	({                                                                               \
		__u64 word_;                                                             \
		asm volatile("%0 = *(u64 *)(%1 + " #n " * 8)" : "=r"(word_) : "r"(ctx)); \
		word_;                                                                   \
	})

/*
 * Nothing leaves, or the little that fits behind the last bytes: not before the end is it known. Nor
 * where the bytes will be of a socket that this very send connects (MSG_FASTOPEN).
 */
static __always_inline bool may_leave(const struct sock *sk, const struct msghdr *msg)
{
	__u8 state = READ(sk, __sk_common.skc_state);

	if (state == TCP_CLOSE || state == TCP_SYN_SENT)
		return false;
	return has_room(sk) || !(READ(msg, msg_flags) & MSG_DONTWAIT);
}

#define SEND_START(name, copy)                                                      \
	SEC("fentry/tcp_sendmsg_locked")                                            \
	int BPF_PROG(name, struct sock *sk, struct msghdr *msg, unsigned long size) \
	{                                                                           \
		if (size && may_send(sk) && may_leave(sk, msg))                     \
			on_send_start(sk, msg, size, copy);                         \
		return 0;                                                           \
	}

SEND_START(fe_send_start, 0)
SEND_START(fe_send_start_2, 1)
SEND_START(fe_send_start_3, 2)
SEND_START(fe_send_start_4, 3)

#define SEND_END(name, copy)                                                                 \
	SEC("fexit/tcp_sendmsg_locked")                                                      \
	int BPF_PROG(name, struct sock *sk, struct msghdr *msg, unsigned long size, int ret) \
	{                                                                                    \
		on_send_end(sk, msg, ret, copy);                                             \
		return 0;                                                                    \
	}

SEND_END(fx_send_end, 0)
SEND_END(fx_send_end_2, 1)
SEND_END(fx_send_end_3, 2)
SEND_END(fx_send_end_4, 3)

SEC("fexit/tcp_sendmsg")
int BPF_PROG(fx_send, struct sock *sk)
{
	on_send(sk);
	return 0;
}

SEC("fexit/tcp_sendmsg")
int BPF_PROG(fx_send_2, struct sock *sk)
{
	on_send(sk);
	return 0;
}

/*
 * sendfile and splice, before Linux 6.5. Not tcp_sendpage_locked(), which compilers put into
 * tcp_sendpage().
 */
SEC("fentry/do_tcp_sendpages")
int BPF_PROG(fe_if_sendpage_start, struct sock *sk, void *page, int offset, unsigned long size)
{
	if (size && may_send(sk))
		on_send_start(sk, NULL, size, 0);
	return 0;
}

SEC("fexit/tcp_sendpage")
int BPF_PROG(fx_if_sendpage, struct sock *sk)
{
	on_send(sk);
	return 0;
}

static __always_inline void received(__u64 *ctx, __u32 copy)
{
	struct receive r = {.msg = (const struct msghdr *)ctx[1], .copy = copy};
	__u64 flags = ctx[3], ret = 0;

	if (recvmsg_arguments == 6) {
		/* The fourth argument is 'nonblock' there. */
		flags = CONTEXT_WORD(ctx, 4) | ((__u32)flags ? MSG_DONTWAIT : 0);
		ret = CONTEXT_WORD(ctx, 6);
	} else if (recvmsg_arguments == 5) {
		ret = CONTEXT_WORD(ctx, 5);
	} else if (recvmsg_arguments == 4) {
		ret = CONTEXT_WORD(ctx, 4);
	}
	r.ret = (int)ret;
	r.flags = (int)flags;
	on_recv((struct sock *)ctx[0], r);
}

#define RECEIVED(name, copy)         \
	SEC("fexit/tcp_recvmsg")     \
	int name(__u64 *ctx)         \
	{                            \
		received(ctx, copy); \
		return 0;            \
	}

RECEIVED(fx_recv, 0)
RECEIVED(fx_recv_2, 1)
RECEIVED(fx_recv_3, 2)
RECEIVED(fx_recv_4, 3)

/*
 * Bytes have been received by a thread that waited for them before the exit of its function was
 * probed: that will not show its end. Attached while there are such threads (probe/waiting.h).
 */
static __always_inline void waited(struct sock *sk, int copied)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct receive r;
	__u32 *seen;

	if (!may_be_selected())
		return;
	seen = bpf_map_lookup_elem(&waiting, &id);
	if (!seen)
		return;
	/* What has moved nothing more is over, or the call behind it: from then on all is seen. */
	if (copied < 0 || (!copied && (READ(sk, sk_shutdown) & RCV_SHUTDOWN)) ||
	    (*seen && copied <= (int)*seen)) {
		bpf_map_delete_elem(&waiting, &id);
		return;
	}
	*seen = copied;
	if (receive_of_call(sk, copied, &r))
		on_recv(sk, r);
}

SEC("fentry/tcp_cleanup_rbuf")
int BPF_PROG(fe_waited, struct sock *sk, int copied)
{
	waited(sk, copied);
	return 0;
}

/* What tcp_cleanup_rbuf() does, since Linux 6.0, when that is part of its caller. */
SEC("fentry/__tcp_cleanup_rbuf")
int BPF_PROG(fe_waited_inner, struct sock *sk, int copied)
{
	waited(sk, copied);
	return 0;
}

SEC("fentry/unix_stream_sendmsg")
int BPF_PROG(fe_if_unix_send, struct socket *socket, struct msghdr *msg)
{
	on_unix_message(msg);
	return 0;
}

/* MPTCP sockets never come to TCP's own functions: counted, as the other taps do. */
SEC("fentry/mptcp_sendmsg")
int BPF_PROG(fe_if_mptcp_send, struct sock *sk)
{
	on_mptcp();
	return 0;
}

SEC("fentry/mptcp_recvmsg")
int BPF_PROG(fe_if_mptcp_recv, struct sock *sk)
{
	on_mptcp();
	return 0;
}
