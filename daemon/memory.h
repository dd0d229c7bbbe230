/*
 * The daemon's own memory: what malloc holds of it that is in use no more. Used by daemon.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* All zero at the start. */
struct memory {
	size_t open_bytes_most; /* since memory was given back */
	uint64_t next_ns;       /* when to do that again in any case */
};

/*
 * Before all else: what is large lives for moments (a process's environment, the batches of an
 * export), what is small for long. In one heap the small settles in the gaps of the large, and the
 * heap grows.
 */
void memory_keep_large_apart(void);

/*
 * Gives back what is in use no more: now and then, at once when a crowd of open requests is gone, and
 * once more a moment later for its rest. 'open_bytes': what they take now; 'now': monotonic.
 */
void memory_give_back(struct memory *m, size_t open_bytes, uint64_t now);
