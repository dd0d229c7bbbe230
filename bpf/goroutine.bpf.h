/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Goroutines as units of work, and the calls that net/http's transport makes for them: it writes a
 * request in a goroutine of the connection, so a probe where the caller hands the request over
 * (go.bpf.c) leaves in 'go_calls' what the send will find (docs/decisions/goroutines.md).
 *
 * Where the fields of Go's structures lie says the program's own layout ('go_layouts').
 */
#pragma once

#include "jvm.bpf.h"

static __always_inline bool read_word(__u64 *ret, __u64 address)
{
	return bpf_probe_read_user(ret, sizeof(*ret), (const void *)address) == 0;
}

/*
 * The id of goroutine 'g', a pointer from a register that Go keeps for it. 0: it is none. What a
 * thread does outside of Go, in C, leaves anything there; a goroutine's thread leads back to it.
 */
static __always_inline __u64 goroutine_id(const struct go_layout *l, __u64 g)
{
	__u64 m = 0, current = 0, id = 0;

	if (!g || !read_word(&m, g + l->g_m) || !m)
		return 0;
	if (!read_word(&current, m + l->m_curg) || current != g)
		return 0;
	return read_word(&id, g + l->g_goid) ? id : 0;
}

static __always_inline const struct go_layout *go_layout_of(__u32 index)
{
	return index ? bpf_map_lookup_elem(&go_layouts, &index) : NULL;
}

/* Who works here, before anything is decided. Of a thread that is known already. */
SUBPROGRAM1(unit_find, struct work *, w)
{
	const struct go_layout *l;

	if (!w)
		return 0;
	if (w->jvm_slot)
		jvm_unit_find(w);
	if (!w->go_layout)
		return 0;
	l = go_layout_of(w->go_layout);
	if (!l)
		return 0;
	w->has_children = l->has_contexts;
	w->unit.id = goroutine_id(l, w->g);
	w->unit.kind = w->unit.id ? UNIT_GOROUTINE : UNIT_NONE;
	return 0;
}

/* Where the first byte of this call lay; 0: unknown. */
static __always_inline __u64 first_byte(const struct work *w)
{
	__u64 base = 0;

	if (w->source.kind == SOURCE_BUFFER)
		return w->source.base;
#ifndef BASIC
	if (w->source.kind == SOURCE_MESSAGE)
		return w->user_buffer;
#endif
	if (w->source.kind == SOURCE_KERNEL_IOVEC)
		bpf_probe_read_kernel(&base, sizeof(base), (const void *)w->source.base);
	return base;
}

/*
 * Whether the connection that the call was handed to lives, and the buffer is its own: one that has
 * ended may leave a call behind that was never sent from its buffer (those over TLS are not), and
 * memory that somebody else sends from.
 */
static __always_inline bool is_handed_over(const struct work *w, const struct go_call *call,
					   __u64 buffer)
{
	const struct go_layout *l = go_layout_of(w->go_layout);
	__u64 word = 0;

	if (!l || !read_word(&word, call->persist_conn + l->persist_conn_closed) || word)
		return false;
	return read_word(&word, call->persist_conn + l->persist_conn_bw) &&
	       read_word(&word, word + l->writer_buf) && word == buffer;
}

/* What a string or a slice begins with. */
struct go_string {
	__u64 address;
	__u64 length;
};

static __always_inline bool read_string(struct go_string *ret, __u64 at)
{
	return bpf_probe_read_user(ret, sizeof(*ret), (const void *)at) == 0 && ret->address;
}

/* Whose an object of a router is; false: it cannot be read. */
static __always_inline bool route_owner(const struct go_route_layout *r, __u64 object, __u64 *ret)
{
	if (r->has_via && (!read_word(&object, object + r->via) || !object))
		return false;
	return read_word(ret, object + r->owner) && *ret;
}

/* What a goroutine, or a call, works for. */
struct go_work {
	struct request_key request;
	__u8 reason;       /* as unit_open() */
	__u8 is_inherited; /* struct decision */
	__u64 elder;       /* likewise */
};

/* The request that a goroutine has itself, else the one that it was begun for. */
static __always_inline void goroutine_work(struct unit_key *key, bool is_call, struct go_work *ret)
{
	const struct request *r;
	struct go_child *child;
	__u64 id, elder;

	ret->reason = unit_open(key, &ret->request);
	if (ret->reason != DECISION_NONE_NO_REQUEST)
		return;
	child = bpf_map_lookup_elem(&go_children, key);
	if (!child)
		return;
	ret->request = child->request;
	r = bpf_map_lookup_elem(&requests, &ret->request);
	if (!r)
		return; /* it has been answered: whoever outlives it does not keep it */
	ret->reason = r->is_blind ? DECISION_NONE_AMBIGUOUS : DECISION_UNIT;
	ret->is_inherited = 1;
	if (is_call)
		child->has_called = 1;
	if (!child->elder)
		return;
	/* One key for both: Linux 6.1 has no stack for two. */
	id = key->id;
	elder = child->elder;
	key->id = elder;
	child = bpf_map_lookup_elem(&go_children, key);
	key->id = id;
	if (!child)
		return; /* it has ended, and may do nothing for others */
	ret->elder = elder;
	if (is_call)
		child->has_called = 1;
}

/*
 * The request that a call of a Go program is made for. The goroutine's own request comes first: the
 * transport's goroutines have none.
 */
static __always_inline void go_work_of(struct work *w, struct go_work *ret)
{
	struct go_call_key key = {.pid = w->pid};
	struct unit_key unit = w->unit;
	const struct go_call *call;
	bool is_sender = false;

	ret->reason = DECISION_NONE_NO_REQUEST;
	if (unit.kind == UNIT_GOROUTINE)
		ret->reason = unit_open(&unit, &ret->request);
	key.buffer = first_byte(w);
	call = bpf_map_lookup_elem(&go_calls, &key);
	if (call && ret->reason == DECISION_NONE_NO_REQUEST &&
	    is_handed_over(w, call, key.buffer)) {
		ret->request = call->request;
		ret->reason = call->reason;
		ret->is_inherited = call->is_inherited;
		ret->elder = call->elder;
		w->caller = call->goroutine;
		is_sender = unit.kind == UNIT_GOROUTINE && unit.id != call->goroutine;
	} else if (unit.kind == UNIT_GOROUTINE) {
		w->caller = unit.id;
		if (ret->reason == DECISION_NONE_NO_REQUEST)
			goroutine_work(&unit, true, ret);
	}
	if (call && !call->is_shared)
		bpf_map_delete_elem(&go_calls, &key);
	/* It sends what others hand to it, whoever had it begun by dialing. */
	if (is_sender)
		bpf_map_delete_elem(&go_children, &unit);
}
