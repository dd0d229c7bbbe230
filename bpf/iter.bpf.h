/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Where a call's bytes are, by the kernel's own iterator: source_of_iter() for what lies ahead of
 * it, and source_rewind() for what it has passed. The iterator's type and fields changed often;
 * enumerators and fields are found by name in the running kernel.
 */
#pragma once

#include "source.bpf.h"

static __always_inline bool iter_is_buffer(__u32 type)
{
	return bpf_core_enum_value_exists(enum iter_type, ITER_UBUF) &&
	       type == bpf_core_enum_value(enum iter_type, ITER_UBUF);
}

static __always_inline __u32 iter_type_of(const struct iov_iter *iter)
{
	if (bpf_core_field_exists(iter->iter_type))
		return READ(iter, iter_type);
	return READ((const struct iov_iter___before_5_14 *)iter, type) & ~1U;
}

static __always_inline __u64 iter_vector(const struct iov_iter *iter)
{
	if (bpf_core_field_exists(iter->__iov))
		return (__u64)READ(iter, __iov);
	return (__u64)READ((const struct iov_iter___before_6_4 *)iter, iov);
}

static __always_inline void source_of_iter(struct source *source, const struct msghdr *msg)
{
	__u32 type = iter_type_of(&msg->msg_iter);

	source->skip = READ(msg, msg_iter.iov_offset);
	if (iter_is_buffer(type)) {
		source->kind = SOURCE_BUFFER;
		source->base = (__u64)READ(msg, msg_iter.ubuf);
	} else if (type == bpf_core_enum_value(enum iter_type, ITER_IOVEC)) {
		source->kind = SOURCE_KERNEL_IOVEC;
		source->base = iter_vector(&msg->msg_iter);
		source->segments = READ(msg, msg_iter.nr_segs);
	} else {
		source->kind = SOURCE_NONE; /* pages: sendfile, splice */
	}
}

struct rewind {
	__u64 base, back, skip;
	__u32 segments;
};

SMALL_STEP rewind_segment(__u32 i, struct rewind *r)
{
	__u64 length;

	r->base -= sizeof(struct iovec);
	r->segments++;
	if (bpf_probe_read_kernel(&length, sizeof(length), (const void *)(r->base + 8)))
		return 1;
	if (length < r->back) {
		r->back -= length;
		return 0;
	}
	r->skip = length - r->back;
	r->back = 0;
	return 1;
}

/*
 * The source is that of an iterator which has passed all bytes of this call: goes back to the first
 * of them. A vector's entries lie before the one where the iterator stands, as the kernel itself
 * relies on (iov_iter_revert).
 */
SUBPROGRAM1(source_rewind, struct work *, w)
{
	struct rewind r = {.segments = 1};

	if (!w || w->source.kind == SOURCE_NONE)
		return 0;
	if (w->source.skip >= w->bytes) {
		w->source.skip -= w->bytes;
		w->source.segments = 1;
		return 0;
	}
	r.base = w->source.base;
	r.back = w->bytes - w->source.skip;
	if (w->source.kind == SOURCE_KERNEL_IOVEC)
		LOOP_SMALL(SEGMENTS_MAX, rewind_segment, &r);
	if (r.back) {
		w->source.kind = SOURCE_NONE;
		return 0;
	}
	w->source.base = r.base;
	w->source.skip = r.skip;
	w->source.segments = r.segments;
	return 0;
}
