/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Units of work: who works for a request, and for which one. A unit is a thread, a goroutine of a Go
 * program, or a context of the agent in a JVM; each has its entry in 'units', which only it writes.
 * Used by context.bpf.h, and by the probes in Go programs.
 */
#pragma once

#include "maps.bpf.h"

static const struct unit unit_without_requests;
static const struct unit unit_lost = {.is_loop = 1, .is_lost = 1};

/* An exchange in a connection's sets of them. */
static __always_inline __u64 exchange_bit(__u32 exchange)
{
	return 1ULL << (exchange & (PIPELINE_MAX - 1));
}

/*
 * The one open request of a unit. Returns the reason: DECISION_UNIT with its key in 'ret', or why
 * none.
 */
static __always_inline __u8 unit_open(const struct unit_key *key, struct request_key *ret)
{
	const struct unit *unit = bpf_map_lookup_elem(&units, key);
	const struct request *r;
	__u32 alive = 0, blind = 0, i;

	if (!unit)
		return DECISION_NONE_NO_REQUEST;
	if (unit->is_loop)
		return DECISION_NONE_AMBIGUOUS;
	for (i = 0; i < UNIT_REQUESTS_MAX; i++) {
		struct request_key request = unit->requests[i];

		r = bpf_map_lookup_elem(&requests, &request);
		if (!request.connection || !r)
			continue;
		*ret = request;
		blind |= r->is_blind;
		alive++;
	}
	/* An entry that was deleted meanwhile may be another unit's by now. */
	if (!alive || bpf_map_lookup_elem(&units, key) != unit)
		return DECISION_NONE_NO_REQUEST;
	return alive == 1 && !blind ? DECISION_UNIT : DECISION_NONE_AMBIGUOUS;
}

/*
 * Adds the newest request to the current unit's; dead ones make room. A unit that has one open and
 * takes up another, on whatever connection, is a loop: which of them it works for at any moment
 * cannot be told, now or later. A goroutine that does so on one connection is its server: until all
 * are answered there is more than one, or a blind one.
 */
SUBPROGRAM2(unit_add, struct work *, w, const struct conn *, c)
{
	struct unit_key key;
	__u32 placed = 0, i;
	struct unit *unit;

	if (!w || !c)
		return 0;
	key = w->unit;
	unit = bpf_map_lookup_elem(&units, &key);
	if (!unit) {
		bpf_map_update_elem(&units, &key, &unit_without_requests, BPF_ANY);
		unit = bpf_map_lookup_elem(&units, &key);
	}
	if (!unit) {
		count(COUNT_UNITS_FULL);
		return 0;
	}
	/* The request that was lost is over when the connection's next one is the only one. */
	if (key.kind == UNIT_GOROUTINE && unit->is_lost &&
	    unit->requests[0].connection == c->cookie && c->opened - c->closed == 1)
		unit->is_loop = unit->is_lost = 0;
	for (i = 0; i < UNIT_REQUESTS_MAX; i++) {
		struct request_key *request = &unit->requests[i];

		if (request->connection && bpf_map_lookup_elem(&requests, request)) {
			if (key.kind == UNIT_GOROUTINE && request->connection == c->cookie)
				continue;
			unit->is_loop = 1;
			unit->is_lost = 0;
		} else if (placed) {
			request->connection = 0;
		} else {
			request->connection = c->cookie;
			request->exchange = c->rx.exchange;
			placed = 1;
		}
	}
	return 0;
}

/*
 * The current unit works for a request that has no entry: whatever it has else is not what it works
 * for.
 */
SUBPROGRAM2(unit_lose, struct work *, w, const struct conn *, c)
{
	struct unit_key key;
	struct unit *unit;

	if (!w || !c)
		return 0;
	key = w->unit;
	if (bpf_map_update_elem(&units, &key, &unit_lost, BPF_ANY))
		count(COUNT_UNITS_FULL);
	unit = bpf_map_lookup_elem(&units, &key);
	if (unit)
		unit->requests[0].connection = c->cookie;
	return 0;
}

/*
 * The connection has ended that this goroutine served last. Nobody tells when a goroutine ends, so
 * its entry goes now: not before, since the next request on the connection would make it again. And
 * not that of a loop, which must be known for one; user space drops it with its process.
 */
static __always_inline void unit_leave(const struct unit_key *key, __u64 connection)
{
	const struct unit *unit = bpf_map_lookup_elem(&units, key);

	if (unit && (!unit->is_loop || unit->is_lost) && unit->requests[0].connection == connection)
		bpf_map_delete_elem(&units, key);
}
