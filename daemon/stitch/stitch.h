/*
 * From events to spans: pairs the heads that the kernel side copied into exchanges, knows when each
 * ended, and makes one span of it. daemon.c feeds it every event in the order of the ring and sends
 * on what it emits.
 *
 * Promises: one span for each request head that is HTTP/1 and whose process is known, or one named
 * counter (metrics.h) that says why not; never a status code that was not seen; parents are the
 * kernel side's decisions or absent; all tables are bounded. Main thread only; it never logs.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "model/event.h"
#include "model/resource.h"
#include "model/span.h"

struct stitch;

struct stitch_options {
	size_t connections_max;
	size_t bytes_max;          /* of all that connections and what is open on them take */
	uint32_t head_bytes_max;   /* of a head that comes in parts */
	uint64_t exchange_idle_ns; /* after that a request without a response is given up */

	/* Who a process is: borrowed, NULL when it is not known. */
	struct resource *(*resource)(void *userdata, uint32_t proc_id, uint32_t pid);

	/* Takes the reference. */
	void (*emit)(void *userdata, struct span *span);

	/*
	 * The kernel side opened a context for what is no request, or for one that will get no
	 * span: it must not become anybody's parent. May be called from stitch_event() alone.
	 */
	void (*revoke)(void *userdata, uint64_t connection, uint32_t exchange);
	void *userdata;
};

/* Returns 0 or -ENOMEM. The options are copied. */
int stitch_new(const struct stitch_options *options, struct stitch **ret);

/* Open exchanges are dropped without a span: call stitch_finish() first. NULL is allowed. */
void stitch_free(struct stitch *s);
DEFINE_CLEANUP(struct stitch *, stitch_free)

void stitch_event(struct stitch *s, const struct event *event);

/* CLOCK_REALTIME - CLOCK_MONOTONIC as of now: dates spans that end later. Call it often. */
void stitch_set_clock(struct stitch *s, int64_t wall_minus_monotonic_ns);

/* Gives up idle exchanges, the oldest first; bounded work a call. Call it every second or so. */
void stitch_tick(struct stitch *s, uint64_t now_monotonic_ns);

/* A process is gone: its exchanges end as its sockets are closed. */
void stitch_process_exit(struct stitch *s, uint32_t proc_id, uint64_t time_ns);

/* At shutdown: every open exchange becomes a span that ends now. */
void stitch_finish(struct stitch *s, uint64_t now_monotonic_ns);

size_t stitch_connections(const struct stitch *s);

/* Of the budget 'bytes_max'. */
size_t stitch_bytes(const struct stitch *s);
