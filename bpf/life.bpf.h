/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The programs that every tap needs besides its own: for the states of sockets and the lives of
 * processes. BTF tracepoints that all supported kernels have. Each tap_*.bpf.c includes this once.
 */
#pragma once

#include "core.bpf.h"

/*
 * Interrupts change states, too, and may come in the middle of this very program, which the kernel
 * does not run then: so there are two on every kernel, and more where tasks are preempted as well
 * (maps.bpf.h). What one has told the others do not tell again.
 */
#define STATE(name, copy)                                                 \
	SEC("tp_btf/inet_sock_set_state")                                 \
	int BPF_PROG(name, struct sock *sk, int old_state, int new_state) \
	{                                                                 \
		on_state(sk, new_state, copy);                            \
		return 0;                                                 \
	}

STATE(tp_state, 0)
STATE(tp_state_2, 1)
STATE(tp_state_3, 2)
STATE(tp_state_4, 3)

#ifdef BASIC
/* Four times: if one is skipped (maps.bpf.h), the others do it. */
#define DESTROY(name)                       \
	SEC("tp_btf/tcp_destroy_sock")      \
	int BPF_PROG(name, struct sock *sk) \
	{                                   \
		on_destroy(sk);             \
		return 0;                   \
	}

DESTROY(tp_destroy)
DESTROY(tp_destroy_2)
DESTROY(tp_destroy_3)
DESTROY(tp_destroy_4)
#endif

/* A thread is no more. */
static __always_inline void thread_forget(const struct unit_key *key)
{
#if defined(BASIC) || defined(WAITS)
	__u64 id = (__u64)key->pid << 32 | key->id;
#endif

#ifdef BASIC
	bpf_map_delete_elem(&receivings, &id);
#endif
#ifdef WAITS
	bpf_map_delete_elem(&waiting, &id);
#endif
	bpf_map_delete_elem(&units, key);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(tp_exec, struct task_struct *task, int old_tid)
{
	struct unit_key key = {.pid = READ(task, tgid), .kind = UNIT_THREAD, .id = old_tid};
	__u32 pid = READ(task, tgid);

	/* Another program now: what was known of it holds no longer. */
	if (selected[pid % SELECTED_SLOTS])
		thread_forget(&key);
	if (!bpf_map_delete_elem(&procs, &pid))
		__sync_fetch_and_add(&procs_generation, 1);
	unjudged[pid % SELECTED_SLOTS] = 1;
	emit_process(PROCESS_EXEC, task, 0, 0);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(tp_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 pid = READ(parent, tgid), child_pid = READ(child, tgid);
	struct proc *proc, own = {};

	/*
	 * Not for threads; and only the children of selected processes matter before they exec or
	 * listen, and of those that may be selected any moment.
	 */
	if (child_pid == pid)
		return 0;
	proc = bpf_map_lookup_elem(&procs, &pid);
	if (!proc) {
		if (unjudged[pid % SELECTED_SLOTS]) {
			unjudged[child_pid % SELECTED_SLOTS] = 1;
			emit_process(PROCESS_FORK, child, pid, 0);
		}
		return 0;
	}
	/*
	 * The child may have been forked to serve a connection that waits, and it runs before user
	 * space has heard of it. Who it is says its record, so without one it is not followed.
	 */
	own.flags = proc->flags;
	if (own.flags & PROC_PASSES_ON) {
		selected[child_pid % SELECTED_SLOTS] = 1;
		bpf_map_update_elem(&procs, &child_pid, &own, BPF_NOEXIST);
	}
	if (!emit_process(PROCESS_FORK, child, pid, 0) && (own.flags & PROC_PASSES_ON))
		bpf_map_delete_elem(&procs, &child_pid);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(tp_exit, struct task_struct *task)
{
	struct unit_key key = {.pid = READ(task, tgid), .kind = UNIT_THREAD, .id = READ(task, pid)};
	const struct signal_struct *signal = READ(task, signal);
	__u32 pid = READ(task, tgid);

	/*
	 * Not by 'procs': a thread that ends before may have taken the process out of it already.
	 */
	if (selected[pid % SELECTED_SLOTS])
		thread_forget(&key);
	if (READ(signal, live.counter))
		return 0;
	if (!bpf_map_delete_elem(&procs, &pid))
		__sync_fetch_and_add(&procs_generation, 1);
	unjudged[pid % SELECTED_SLOTS] = 0;
	emit_process(PROCESS_EXIT, task, 0, 0);
	return 0;
}
