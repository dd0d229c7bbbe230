/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Bytes of a call, wherever they lie: gather() copies a range of a message from one buffer or up to
 * 1,024 vectors into the window of the work buffer.
 */
#pragma once

#include "maps.bpf.h"

#define SEGMENTS_MAX 1024 /* UIO_MAXIOV */

static __always_inline bool copy_user(struct work *w, __u64 from)
{
	__u64 at = w->copied, n = w->want;

	/* 'n' is what is missing at most; the masks bound both for the verifier. */
	n -= at;
	if (at >= HEAD_WINDOW || n > HEAD_WINDOW)
		return false;
	asm volatile("" : "+r"(at), "+r"(n));
	at &= HEAD_WINDOW - 1;
	if (n > HEAD_WINDOW)
		return false;
#ifndef BASIC
	if (w->source.kind == SOURCE_MESSAGE)
		return bpf_probe_read_kernel(w->scan.bytes + WINDOW_AT + at, n,
					     (const void *)from) == 0;
#endif
	return bpf_probe_read_user(w->scan.bytes + WINDOW_AT + at, n, (const void *)from) == 0;
}

STEP(gather_segment)
{
	__u64 vector[2], skip, n, full;
	const void *entry;
	__u32 index;

	if (!w || w->segment >= w->source.segments)
		return 1;
	index = w->segment++;
	entry = (const void *)(w->source.base + (__u64)index * 16);
	if (w->source.kind != SOURCE_USER_IOVEC ? bpf_probe_read_kernel(vector, 16, entry)
						: bpf_probe_read_user(vector, 16, entry)) {
		w->failed = 1;
		return 1;
	}
	if (index == 0) {
		skip = w->source.skip;
		if (skip > vector[1])
			skip = vector[1];
		vector[0] += skip;
		vector[1] -= skip;
	}
	n = vector[1];
	/* The part of this segment that is wanted: from 'want_from + copied' on. */
	skip = w->want_from + w->copied - w->segment_at;
	w->segment_at += n;
	if (skip >= n) {
		/* Wholly in front of this window, so of all later ones. */
		if (!w->copied) {
			w->source.first = index + 1;
			w->source.first_at = w->segment_at;
		}
		return 0;
	}
	n -= skip;
	full = w->want;
	if (n > full - w->copied)
		n = full - w->copied;
	w->want = w->copied + n;
	if (!copy_user(w, vector[0] + skip)) {
		w->failed = 1;
		return 1;
	}
	w->copied += n;
	w->want = full;
	return w->copied >= full ? 1 : 0;
}

/* Copies 'want' (≤ HEAD_WINDOW) bytes from 'from' on. False: they cannot be read. */
SUBPROGRAM3(gather, struct work *, w, __u64, from, __u32, want)
{
	if (!w || want > HEAD_WINDOW)
		return false;
	w->want_from = from;
	w->want = want;
	w->copied = 0;
	w->failed = 0;
	switch (w->source.kind) {
	case SOURCE_BUFFER:
		return copy_user(w, w->source.base + w->source.skip + from);
	case SOURCE_USER_IOVEC:
	case SOURCE_KERNEL_IOVEC:
	case SOURCE_MESSAGE:
		w->segment = w->source.first;
		w->segment_at = w->source.first_at;
		if (w->source.segments > SEGMENTS_MAX)
			return false;
		LOOP_STEPS(SEGMENTS_MAX, gather_segment, w, NULL);
		return !w->failed && w->copied == want;
	default:
		return false;
	}
}
