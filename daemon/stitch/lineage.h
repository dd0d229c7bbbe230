/*
 * Parents that are still in doubt, for stitch.c. That a thread works for the request it received is
 * borne out only when that thread answers it; until then a call's parent may be wrong, and with it
 * the trace of all that hangs on the call. So spans below such a call are held back. When the
 * answer comes from the thread that received the request they are let go as they are; when it comes
 * from another, the call begins a trace of its own, and what hangs on it goes with it.
 *
 * A goroutine that a request began may work for it, or be a worker that others hand their work to
 * as well. Its calls are borne out when it has ended by 250 ms after the request, and within 250 ms
 * of the last of them: workers that end for want of work do so later. So must the goroutine that
 * began it, if that was not the request's own, or the work may be anybody's that a worker does.
 *
 * A branch stands for an exchange that others may hang on, from its request until nothing about it
 * is in doubt. What is held is bounded in bytes and counted; main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/event.h"
#include "model/span.h"
#include "stitch/branch.h"
#include "stitch/exchange.h"

/* How long the first answers of a process wait for one that says the contrary. */
#define LINEAGE_GRACE_NS (250 * NSEC_PER_MSEC)

struct lineage {
	struct branch_table branches;
	struct wait_list graces; /* servers that have answered */
	size_t held_bytes, held_bytes_max;

	/* Takes the reference. */
	void (*emit)(void *userdata, struct span *span, enum parent_reason reason);
	void *userdata;
};

/*
 * A request came. Sets the exchange's branch if it needs one; may give it another trace. Returns 0
 * or -ENOMEM.
 */
int lineage_begin(struct lineage *l, struct exchange *x, const struct event *request);

/* The final response to a server's request has begun. */
void lineage_answered(struct lineage *l, struct exchange *x, const struct event *response);

/* A goroutine that had begun with a request and called for it has ended (EVENT_GOROUTINE). */
void lineage_goroutine_ended(struct lineage *l, const struct event *e);

/*
 * The exchange is over, at 'end_ns' (CLOCK_MONOTONIC). Takes its span, NULL when it has none: emits
 * it now, or when the doubt has ended.
 */
void lineage_end(struct lineage *l, struct exchange *x, struct span *span, uint64_t end_ns);

/* Settles what has waited long enough. */
void lineage_tick(struct lineage *l, uint64_t now_monotonic_ns);

/* At shutdown, when all exchanges have ended: nothing stays behind. */
void lineage_finish(struct lineage *l);

/* What is left is dropped, and counted. */
void lineage_done(struct lineage *l);
