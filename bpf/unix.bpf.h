/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * HTTP over Unix sockets, which is not followed: that a traced process speaks it shows by what it
 * sends there, and is told to who asks why there are no spans. Called by the taps for each send on
 * such a socket, once, with or before its bytes.
 */
#pragma once

#include "core.bpf.h"

#define AF_UNIX 1

#if defined(__TARGET_ARCH_x86)
#define NR_WRITE   1
#define NR_WRITEV  20
#define NR_SENDTO  44
#define NR_SENDMSG 46
#elif defined(__TARGET_ARCH_arm64)
#define NR_WRITE   64
#define NR_WRITEV  66
#define NR_SENDTO  206
#define NR_SENDMSG 211
#endif

/* The first eight bytes, where the first segment has so many. */
static __always_inline bool first_word(const struct source *source, __u64 *ret)
{
	struct piece piece = {};

	switch (source->kind) {
	case SOURCE_BUFFER:
		/* As a number: to a pointer of the kernel's types nothing may be added. */
		bpf_probe_read_kernel(&piece.base, sizeof(piece.base), &source->base);
		piece.length = source->skip + sizeof(*ret);
		break;
	case SOURCE_USER_IOVEC:
		bpf_probe_read_user(&piece, sizeof(piece), (const void *)source->base);
		break;
	case SOURCE_KERNEL_IOVEC:
		bpf_probe_read_kernel(&piece, sizeof(piece), (const void *)source->base);
		break;
	}
	return piece.length >= source->skip + sizeof(*ret) &&
	       bpf_probe_read_user(ret, sizeof(*ret), (const void *)(piece.base + source->skip)) ==
		       0;
}

static __always_inline void on_unix_send(const struct source *source)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32;
	struct proc *proc = bpf_map_lookup_elem(&procs, &pid);
	__u64 first;

	if (!proc || !first_word(source, &first) || !http_word_is_known(first, sizeof(first)))
		return;
	count(COUNT_UNIX_HTTP);
	proc->seen |= PROC_SEEN_UNIX_HTTP;
}

/* For taps that are given the message, before it leaves. */
static __always_inline void on_unix_message(const struct msghdr *msg)
{
	struct source source = {};

	if (!may_be_selected())
		return;
	source_of_iter(&source, msg);
	on_unix_send(&source);
}

/* For the tap that is told of a send behind it. */
static __always_inline void on_unix_sent(void)
{
	struct source source = {};
	struct call call;

	if (!may_be_selected() || uses_io_uring() || !current_call(&call))
		return;
	source.base = call.second;
	switch (call.number) {
	case NR_WRITE:
	case NR_SENDTO:
		source.kind = SOURCE_BUFFER;
		break;
	case NR_WRITEV:
		source.kind = SOURCE_USER_IOVEC;
		break;
	case NR_SENDMSG:
		source_of_msghdr(&source, call.second);
		break;
	}
	on_unix_send(&source);
}
