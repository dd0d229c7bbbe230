/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Where a receiving system call put its bytes, from the user's registers: for taps that are not
 * given the msghdr, and for calls whose beginning a tap did not see. The six calls read, readv,
 * recvfrom, recvmsg, recvmmsg (recv is recvfrom) of the native ABI; anything else, and 32-bit
 * processes, have bytes that cannot be seen.
 */
#pragma once

#include "maps.bpf.h"

#if defined(__TARGET_ARCH_x86)
#define NR_READ     0
#define NR_READV    19
#define NR_RECVFROM 45
#define NR_RECVMSG  47
#define NR_RECVMMSG 299
#define TS_COMPAT   2
#define ENOSYS      38
#elif defined(__TARGET_ARCH_arm64)
#define NR_READ     63
#define NR_READV    65
#define NR_RECVFROM 207
#define NR_RECVMSG  212
#define NR_RECVMMSG 243
#endif

struct call {
	__u64 number;
	__u64 second; /* argument: the buffer, vector or msghdr */
	__u64 third;
	__u64 fourth;
};

/* False: not a system call of the native ABI. */
static __always_inline bool current_call(struct call *ret)
{
	const struct pt_regs *regs = user_registers();

	if (!regs)
		return false;
#if defined(__TARGET_ARCH_x86)
	if (READ(current_task(), thread_info.status) & TS_COMPAT)
		return false;
	/*
	 * Set until the call returns: behind it run io_uring's receives, with registers that are
	 * not theirs.
	 */
	if ((long)READ(regs, ax) != -ENOSYS)
		return false;
	ret->number = READ(regs, orig_ax);
	ret->second = READ(regs, si);
	ret->third = READ(regs, dx);
	ret->fourth = READ(regs, r10);
#elif defined(__TARGET_ARCH_arm64)
	ret->number = READ(regs, syscallno);
	ret->second = READ(regs, regs[1]);
	ret->third = READ(regs, regs[2]);
	ret->fourth = READ(regs, regs[3]);
#endif
	return true;
}

/*
 * The flags that the current system call receives with, from a socket whose file has those flags;
 * negative: it does not receive.
 */
SUBPROGRAM1(call_flags, __u64, file_flags)
{
	int flags = file_flags & O_NONBLOCK ? MSG_DONTWAIT : 0;
	struct call call;

	if (!current_call(&call))
		return -1;
	switch (call.number) {
	case NR_READ:
	case NR_READV:
		return flags;
	case NR_RECVFROM:
	case NR_RECVMMSG:
		return flags | (call.fourth & 0x7fffffff);
	case NR_RECVMSG:
		return flags | (call.third & 0x7fffffff);
	}
	return -1;
}

/*
 * struct msghdr of user space, 64 bits: the vector is its third word, the length of it the fourth.
 */
static __always_inline void source_of_msghdr(struct source *source, __u64 msghdr)
{
	__u64 words[2];

	if (bpf_probe_read_user(words, sizeof(words), (const void *)(msghdr + 16)))
		return;
	source->kind = SOURCE_USER_IOVEC;
	source->base = words[0];
	source->segments = words[1];
}

/*
 * Which message of recvmmsg's vector this is nobody tells. It is the first one unless the same
 * thread was here with the same vector before and nothing was sent since: then it may be a later
 * one of the same call, and the bytes count as not seen.
 */
static __always_inline bool is_first_of_mmsg(struct conn *c, __u64 vector)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	bool again = c->mmsg == vector && c->mmsg_tid == tid && c->mmsg_sent == c->tx.spoken;

	c->mmsg = vector;
	c->mmsg_tid = tid;
	c->mmsg_sent = c->tx.spoken;
	return !again;
}

SUBPROGRAM2(source_of_registers, struct work *, w, struct conn *, c)
{
	struct source *source;
	struct call call;

	if (!w || !c)
		return 0;
	source = &w->source;
	source->kind = SOURCE_NONE;
	source->skip = 0;
	/* Its receives run in the middle of other system calls, also of other receives. */
	if (uses_io_uring())
		return 0;
	if (!current_call(&call))
		return 0;
	switch (call.number) {
	case NR_READ:
	case NR_RECVFROM:
		source->kind = SOURCE_BUFFER;
		source->base = call.second;
		break;
	case NR_READV:
		source->kind = SOURCE_USER_IOVEC;
		source->base = call.second;
		source->segments = call.third;
		break;
	case NR_RECVMSG:
		source_of_msghdr(source, call.second);
		break;
	case NR_RECVMMSG:
		if (call.third == 1 || is_first_of_mmsg(c, call.second))
			source_of_msghdr(source, call.second);
		break;
	}
	return 0;
}
