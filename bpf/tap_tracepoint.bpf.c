/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The tap for kernels that refuse trampolines: BTF tracepoints at the socket layer (sock_send_length and
 * sock_recv_length, Linux 6.3 and newer) and in TCP (tcp_sendmsg_locked, before the copy). Also the programs for
 * processes and socket states, which every tap needs.
 */
#include "core.bpf.h"

char LICENSE[] SEC("license") = LICENSE_TEXT;

SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(tp_send_start, struct sock *sk, struct msghdr *msg, struct sk_buff *skb, int size_goal)
{
	/*
	 * No room: nothing leaves now, and the application may never send this. The tracepoint fires again behind the
	 * wait for room.
	 */
	if ((!skb || size_goal - (int)skb->len <= 0) && sk->sk_wmem_queued >= sk->sk_sndbuf)
		return 0;
	on_send_start(sk, msg);
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
	on_recv(sk, ret, flags);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(tp_state, struct sock *sk, int old_state, int new_state)
{
	on_state(sk, new_state);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(tp_exec, struct task_struct *task, int old_tid)
{
	struct unit_key key = {.pid = task->tgid, .kind = UNIT_THREAD, .id = old_tid};
	__u32 pid = task->tgid;

	/* Another program now: what was known of it holds no longer. */
	if (selected[pid % SELECTED_SLOTS])
		bpf_map_delete_elem(&units, &key);
	if (!bpf_map_delete_elem(&procs, &pid))
		__sync_fetch_and_add(&procs_generation, 1);
	emit_process(PROCESS_EXEC, task, 0, 0);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(tp_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 pid = parent->tgid;

	/* Not for threads; and only the children of selected processes matter before they exec or listen. */
	if (child->tgid == parent->tgid || !bpf_map_lookup_elem(&procs, &pid))
		return 0;
	emit_process(PROCESS_FORK, child, pid, 0);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(tp_exit, struct task_struct *task)
{
	struct unit_key key = {.pid = task->tgid, .kind = UNIT_THREAD, .id = task->pid};
	__u32 pid = task->tgid;

	/* Not by 'procs': a thread that ends before may have taken the process out of it already. */
	if (selected[pid % SELECTED_SLOTS])
		bpf_map_delete_elem(&units, &key);
	if (task->signal->live.counter)
		return 0;
	if (!bpf_map_delete_elem(&procs, &pid))
		__sync_fetch_and_add(&procs_generation, 1);
	emit_process(PROCESS_EXIT, task, 0, 0);
	return 0;
}
