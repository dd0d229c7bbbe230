/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Units of work that the agent in a JVM tells of (struct jvm_slot): who works here by its word, and
 * the contexts under which the requests of a connection are received. Used by goroutine.bpf.h for
 * the former, by stream.bpf.h and follow.bpf.h for the latter (docs/decisions/logical-units.md).
 *
 * The kernel side alone says where a request begins and ends. A context that two requests of a
 * connection came under leads to neither.
 */
#pragma once

#include "unit.bpf.h"

/* What is read of struct jvm_slot. */
struct jvm_words {
	__u64 magic, context, receiving;
};
_Static_assert(__builtin_offsetof(struct jvm_slot, own) == sizeof(struct jvm_words), "jvm_words");

/*
 * Who works here. Without the agent's word it is the thread, as it stands in 'unit' already: a
 * receive that it does not tell of, by a thread of which it knows something, is nobody's.
 */
static __always_inline void jvm_unit_find(struct work *w)
{
	struct jvm_words slot = {};
	__u64 id;

	if (!w->thread_pointer ||
	    bpf_probe_read_user(&slot, sizeof(slot),
				(const void *)(w->thread_pointer + w->jvm_slot)) ||
	    slot.magic != JVM_SLOT_MAGIC)
		return;
	id = w->is_tx ? slot.context : slot.receiving;
	if (id) {
		w->unit.kind = UNIT_LOGICAL;
		w->unit.id = id;
	} else if (slot.context) {
		w->unit.kind = UNIT_NONE;
	}
}

static __always_inline bool is_received_logically(const struct work *w)
{
	return !w->is_tx && w->unit.kind == UNIT_LOGICAL;
}

static __always_inline bool is_published(const struct conn *c, __u32 exchange)
{
	return exchange && exchange - c->closed - 1 < PIPELINE_MAX &&
	       (c->published & exchange_bit(exchange));
}

/* The oldest makes room: whoever works under it has no parent any more. Not before it has to. */
static __always_inline void logical_drop(struct conn *c, struct logical *l)
{
	struct unit_key key = {.pid = c->pid, .kind = UNIT_LOGICAL, .id = l->id};

	if (l->id > c->logical_dropped)
		c->logical_dropped = l->id;
	if (!is_published(c, l->exchange))
		return;
	count(COUNT_JVM_CONTEXTS_FULL);
	bpf_map_delete_elem(&units, &key);
}

/*
 * Bytes of the exchange came under the current unit; 0: bytes of which nobody knows whose they are.
 * 1: the exchange has a context in 'requests', to be found by this unit too; negative: so had
 * another one, and the unit is to be lost.
 */
SUBPROGRAM3(logical_note, struct work *, w, struct conn *, c, __u32, exchange)
{
	struct logical *l;
	__u32 i, old;

	if (!w || !c)
		return 0;
	for (i = 0; i < LOGICAL_MAX; i++) {
		l = &c->logical[i];
		if (l->id != w->unit.id)
			continue;
		old = l->exchange;
		if (old == exchange)
			return 0;
		if (!l->is_ambiguous)
			count(COUNT_JVM_AMBIGUOUS);
		l->is_ambiguous = 1;
		if (exchange)
			l->exchange = exchange;
		return is_published(c, old) ? -1 : 0;
	}
	/* The agent counts upwards: this one was dropped, and what it led to is not known any more. */
	if (w->unit.id <= c->logical_dropped)
		return 0;
	i = c->logical_next++;
	asm volatile("" : "+r"(i));
	i &= LOGICAL_MAX - 1;
	l = &c->logical[i];
	if (l->id)
		logical_drop(c, l);
	l->id = w->unit.id;
	l->exchange = exchange;
	l->is_ambiguous = 0;
	return is_published(c, exchange);
}

/*
 * A request begins. What has its number already was taken for a request, and was none: what came
 * under those contexts may have been anybody's.
 */
SUBPROGRAM2(logical_begin, struct work *, w, struct conn *, c)
{
	__u32 i;

	if (!w || !c)
		return 0;
	for (i = 0; i < LOGICAL_MAX; i++)
		if (c->logical[i].id && c->logical[i].exchange == c->rx.exchange)
			c->logical[i].is_ambiguous = 1;
	return 0;
}

/*
 * Makes the i-th context of the connection the current unit, if the newest request came under it.
 * 1: it leads to that request, negative: to none. 0: it is another one's.
 */
SUBPROGRAM3(logical_pick, struct work *, w, struct conn *, c, __u32, i)
{
	const struct logical *l;

	if (!w || !c)
		return 0;
	/* As in copy_user(): the bound must be seen where it is used. */
	asm volatile("" : "+r"(i));
	i &= LOGICAL_MAX - 1;
	l = &c->logical[i];
	if (!l->id || l->exchange != c->rx.exchange)
		return 0;
	w->unit.id = l->id;
	return l->is_ambiguous ? -1 : 1;
}

/*
 * The exchange is over: its contexts lead to nothing. The connection remembers them, for the agent
 * may not have seen the answer and give them to the next request.
 */
SUBPROGRAM2(logical_close, struct conn *, c, __u32, exchange)
{
	struct unit_key key = {.kind = UNIT_LOGICAL};
	__u32 i;

	if (!c)
		return 0;
	key.pid = c->pid;
	for (i = 0; i < LOGICAL_MAX; i++) {
		if (!c->logical[i].id || c->logical[i].exchange != exchange)
			continue;
		key.id = c->logical[i].id;
		bpf_map_delete_elem(&units, &key);
	}
	return 0;
}
