/*
 * The newest traces in memory, for when no collector is configured: the daemon adds each span,
 * draws finished traces for `--print` and answers `tsunagictl traces` from here. Bounded by traces
 * and by bytes: the trace that has been quiet longest makes room (METRIC_STORE_EVICTED counts its
 * spans). One thread.
 *
 * Times are CLOCK_MONOTONIC and given by the caller.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "model/span.h"

struct store;

struct store_options {
	uint32_t traces_max;
	size_t bytes_max; /* of spans and of the store's own tables, without resources */
};

/* Read only, and valid until the next call that may change the store. */
struct store_trace {
	struct trace_id id;
	struct span **spans; /* in the order they were added */
	size_t n_spans;
};

/* Returns 0 or -ENOMEM. */
int store_new(const struct store_options *options, struct store **ret);
void store_free(struct store *s); /* NULL is allowed */
DEFINE_CLEANUP(struct store *, store_free)

/*
 * Takes the reference in any case. A span for which no room can be made (its own trace fills the
 * store) is dropped and counted as METRIC_STORE_EVICTED. Returns 0, or -ENOMEM with the span lost
 * (METRIC_SPANS_NO_MEMORY).
 */
int store_add(struct store *s, struct span *span, uint64_t now_ns);

/*
 * Calls 'finished' for each trace that has become finished. A trace is finished when no span was
 * added for a second and none waits for a parent that is still open, and in any case 10 s after its
 * newest span. A server span does not wait: its parent may be on another host, and one on this host
 * ends right after it. A span that comes later makes the trace unfinished again, once: 'finished'
 * is called at most twice for a trace. It must not change the store. With 'now_ns' UINT64_MAX every
 * trace finishes.
 *
 * Returns true when a trace is unfinished still, so that it is worth calling again.
 */
typedef void (*store_finished_fn)(const struct store_trace *trace, void *userdata);
bool store_tick(struct store *s, uint64_t now_ns, store_finished_fn finished, void *userdata);

/* NULL: not there. */
const struct store_trace *store_find(const struct store *s, const struct trace_id *id);

/*
 * From the trace that a span was added to last to the one that has been quiet longest; NULL: no
 * (more) trace.
 */
const struct store_trace *store_newest(const struct store *s);
const struct store_trace *store_older(const struct store_trace *trace);

/* The span that stands for a trace in a list: its root, else the earliest one. */
const struct span *store_trace_root(const struct store_trace *trace);
