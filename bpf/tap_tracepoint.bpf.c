/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The tap for kernels that refuse trampolines: BTF tracepoints at the socket layer
 * (sock_send_length and sock_recv_length, Linux 6.3 and newer) and in TCP (tcp_sendmsg_locked,
 * before the copy).
 */
#include "life.bpf.h"

char LICENSE[] SEC("license") = LICENSE_TEXT;

SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(tp_send_start, struct sock *sk, struct msghdr *msg, struct sk_buff *skb, int size_goal)
{
	/*
	 * No room: nothing leaves now, and the application may never send this. The tracepoint
	 * fires again behind the wait for room.
	 */
	if ((!skb || size_goal - (int)skb->len <= 0) && !has_room(sk))
		return 0;
	on_send_start(sk, msg, msg->msg_iter.count, 0);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(tp_send, struct sock *sk)
{
	on_send(sk);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(tp_recv, struct sock *sk, int ret, int flags)
{
	on_recv(sk, (struct receive){.ret = ret, .flags = flags});
	return 0;
}
