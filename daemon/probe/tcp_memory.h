/*
 * How much memory TCP has in use and whether it is about to run out, for whoever uses insert.h: a
 * connection that is in its map needs memory where a plain one does without
 * (docs/decisions/header-insertion.md).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"

/* In pages; of the whole host, whatever network one asks in. */
struct tcp_memory_use {
	uint64_t used;          /* /proc/net/sockstat */
	uint64_t low, pressure; /* the first two numbers of net.ipv4.tcp_mem */
};

/*
 * The files that tell, held open: a process that has no file descriptor left is not one that TCP has no
 * memory for. 'proc' is "/proc". Returns 0, -EBADMSG if they have something else than was expected, or
 * another negative errno: -ENOENT in a network that is not the host's, which has no such limits.
 */
struct tcp_memory;
int tcp_memory_new(const char *proc, struct tcp_memory **ret);
void tcp_memory_free(struct tcp_memory *m); /* NULL is allowed */
DEFINE_CLEANUP(struct tcp_memory *, tcp_memory_free)

/* By any thread. Returns 0, -EBADMSG, or another negative errno. */
int tcp_memory_read(const struct tcp_memory *m, struct tcp_memory_use *ret);

/* Short from where the kernel sees pressure, until there has been enough for ten seconds. */
struct tcp_memory_watch {
	bool is_short;
	bool has_enough;
	uint64_t enough_since_ns;
};
void tcp_memory_judge(struct tcp_memory_watch *w, const struct tcp_memory_use *use,
		      uint64_t now_ns);

/*
 * Where the groups of the memory controller's first version are: they may have a limit of their own
 * for TCP, which those of the second have not. Empty: there are none.
 */
struct tcp_memory_groups {
	char root[256];
};
int tcp_memory_groups_find(const char *proc, struct tcp_memory_groups *ret);

/* Whether a process is in a group with such a limit; also if that cannot be told. */
bool tcp_memory_is_limited(const struct tcp_memory_groups *g, const char *proc, uint32_t pid);
