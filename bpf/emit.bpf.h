/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The one place that puts records into the ring. A record that does not fit is lost and counted by
 * the caller's counter; nothing that it announced may be published then.
 */
#pragma once

#include "maps.bpf.h"

SUBPROGRAM int wakeup_flag(void)
{
	/*
	 * Wake a sleeping reader, once; and one that is awake when the ring fills faster than it
	 * polls.
	 */
	if (reader_sleeps) {
		reader_sleeps = 0;
		return BPF_RB_FORCE_WAKEUP;
	}
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >
	    bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE) / 2)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

static __always_inline bool emit(void *record, __u32 length, __u32 lost_counter)
{
	if (bpf_ringbuf_output(&ring, record, length, wakeup_flag())) {
		count(lost_counter);
		return false;
	}
	return true;
}

SUBPROGRAM3(emit_end, struct conn *, c, __u32, exchange, __u64, now_ns)
{
	struct record_end r = {};

	if (!c)
		return 0;
	r.header.type = RECORD_END;
	r.header.role = c->role;
	r.header.length = sizeof(r);
	r.header.time_ns = now_ns;
	r.header.connection = c->cookie;
	r.header.pid = c->pid;
	r.header.proc_id = c->proc_id;
	r.header.exchange = exchange;
	if (!emit(&r, sizeof(r), COUNT_LOST_END))
		c->unreported = exchange;
	return 0;
}

SUBPROGRAM4(emit_close, struct conn *, c, __u32, what, __u32, error, bool, has_unseen)
{
	struct record_close r = {};

	if (!c)
		return 0;
	r.header.type = RECORD_CLOSE;
	r.header.role = c->role;
	r.header.length = sizeof(r);
	r.header.time_ns = bpf_ktime_get_ns();
	r.header.connection = c->cookie;
	r.header.pid = c->pid;
	r.header.proc_id = c->proc_id;
	r.header.exchange = c->opened;
	r.what = what;
	r.error = error;
	r.has_unseen = has_unseen;
	emit(&r, sizeof(r), COUNT_LOST_CLOSE);
	return 0;
}

static __always_inline bool emit_process(__u32 what, struct task_struct *task, __u32 parent_pid,
					 __u32 port)
{
	const struct task_struct *leader = READ(task, group_leader);
	struct record_process r = {};

	r.header.type = RECORD_PROCESS;
	r.header.length = sizeof(r);
	r.header.time_ns = bpf_ktime_get_ns();
	r.header.pid = READ(task, tgid);
	r.header.tid = READ(task, pid);
	r.what = what;
	r.parent_pid = parent_pid;
	r.start_ns = READ(leader, start_boottime);
	r.exec_id = READ(task, self_exec_id);
	r.port = port;
	return emit(&r, sizeof(r), COUNT_LOST_PROCESS);
}
