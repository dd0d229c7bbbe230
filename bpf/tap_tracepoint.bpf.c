/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The tap for kernels that refuse trampolines: BTF tracepoints at the socket layer
 * (sock_send_length and sock_recv_length, Linux 6.3 and newer) and in TCP (tcp_sendmsg_locked,
 * before the copy). Those with a number at the end are copies (maps.bpf.h), which probe/ loads where
 * the kernel may be preemptible.
 */
#include "life.bpf.h"
#include "unix.bpf.h"

char LICENSE[] SEC("license") = LICENSE_TEXT;

static __always_inline void send_start(struct sock *sk, struct msghdr *msg, struct sk_buff *skb,
				       int size_goal, __u32 copy)
{
	/*
	 * No room: nothing leaves now, and the application may never send this. The tracepoint
	 * fires again behind the wait for room.
	 */
	if ((!skb || size_goal - (int)skb->len <= 0) && !has_room(sk))
		return;
	on_send_start(sk, msg, msg->msg_iter.count, copy);
}

#define SEND_START(name, copy)                                                       \
	SEC("tp_btf/tcp_sendmsg_locked")                                             \
	int BPF_PROG(name, struct sock *sk, struct msghdr *msg, struct sk_buff *skb, \
		     int size_goal)                                                  \
	{                                                                            \
		send_start(sk, msg, skb, size_goal, copy);                           \
		return 0;                                                            \
	}

SEND_START(tp_send_start, 0)
SEND_START(tp_send_start_2, 1)
SEND_START(tp_send_start_3, 2)
SEND_START(tp_send_start_4, 3)

static __always_inline void sent(struct sock *sk, int ret, __u32 copy)
{
	if (sk->__sk_common.skc_family != AF_UNIX)
		on_send_returned(sk, ret);
	else if (ret > 0 && !copy)
		on_unix_sent();
}

#define SENT(name, copy)                             \
	SEC("tp_btf/sock_send_length")               \
	int BPF_PROG(name, struct sock *sk, int ret) \
	{                                            \
		sent(sk, ret, copy);                 \
		return 0;                            \
	}

SENT(tp_send, 0)
SENT(tp_send_2, 1)
SENT(tp_send_3, 2)
SENT(tp_send_4, 3)

#define RECEIVED(name, number)                                                             \
	SEC("tp_btf/sock_recv_length")                                                     \
	int BPF_PROG(name, struct sock *sk, int ret, int flags)                            \
	{                                                                                  \
		on_recv(sk, (struct receive){.ret = ret, .flags = flags, .copy = number}); \
		return 0;                                                                  \
	}

RECEIVED(tp_recv, 0)
RECEIVED(tp_recv_2, 1)
RECEIVED(tp_recv_3, 2)
RECEIVED(tp_recv_4, 3)
