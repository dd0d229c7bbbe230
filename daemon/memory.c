/* The daemon's own memory; see memory.h. */
#include "memory.h"

#include <malloc.h>
#include <stdbool.h>

#include "base/util.h"

#define GIVE_BACK_BYTES (2 << 20)
#define GIVE_BACK_NS    (30 * NSEC_PER_SEC)
#define GIVE_REST_NS    NSEC_PER_SEC /* after a crowd, for those of it that were still open */
/* More than a request with a head of any length takes: there may be many of those. */
#define LARGE_BYTES (32 << 10)

/* Fixed, the limit is not raised each time that something larger is freed. */
void memory_keep_large_apart(void)
{
	mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
}

/*
 * malloc keeps what lies between pieces that are still in use, and with processes and requests that
 * come and go these pages become more, slowly.
 */
void memory_give_back(struct memory *m, size_t open_bytes, uint64_t now)
{
	bool crowd;

	m->open_bytes_most = MAX(m->open_bytes_most, open_bytes);
	crowd = m->open_bytes_most - open_bytes >= GIVE_BACK_BYTES;
	if (!crowd && now < m->next_ns)
		return;
	m->next_ns = now + (crowd ? GIVE_REST_NS : GIVE_BACK_NS);
	m->open_bytes_most = open_bytes;
	malloc_trim(0);
}
