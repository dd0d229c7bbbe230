/*
 * Looks at TCP's memory (tcp_memory.h) five times a second in a thread of its own, for whoever must
 * not wait until the daemon's loop has time (propagation.c).
 */
#pragma once

#include <stdbool.h>

#include "base/util.h"
#include "probe/tcp_memory.h"

/*
 * In that thread, after each look. Whoever does much here looks less often, and ends it when
 * 'is_cancelled' becomes true, atomically.
 */
typedef void (*tcp_watch_fn)(void *userdata, bool is_short, const bool *is_cancelled);

struct tcp_watch_options {
	const struct tcp_memory *memory; /* must live as long */
	bool is_short;                   /* what is known already */
	int nice;                        /* of the thread, where it may have it */
	tcp_watch_fn looked;
	void *userdata;
};

struct tcp_watch;

/* Returns 0 or a negative errno. What cannot be looked at counts as short. */
int tcp_watch_new(const struct tcp_watch_options *options, struct tcp_watch **ret);
/* No call of 'looked' runs or comes any more. NULL is allowed. */
void tcp_watch_free(struct tcp_watch *w);
DEFINE_CLEANUP(struct tcp_watch *, tcp_watch_free)
