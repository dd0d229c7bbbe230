/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Which function of a process takes SIGQUIT. /proc shows only that there is one: HotSpot's opens its
 * attach socket, another's may do anything. Writes a record for each process that there is;
 * probe/quit_handlers.c runs it, before a JVM is signalled.
 */
#include "abi.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define SIGQUIT 3

SEC("iter/task")
int quit_handlers(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct quit_handler found = {};

	/* The threads of a process share them. */
	if (!task || task->pid != task->tgid)
		return 0;
	found.pid = (__u32)task->tgid;
	found.handler = (__u64)BPF_CORE_READ(task, sighand, action[SIGQUIT - 1].sa.sa_handler);
	bpf_seq_write(ctx->meta->seq, &found, sizeof(found));
	return 0;
}
