/*
 * Carrying 'traceparent' to the next host, as the daemon holds it: bpf/inserter.bpf.c when it has been
 * loaded (insert_load.h), its map of sockets, and what is asked of this kernel before it is used
 * (docs/decisions/header-insertion.md).
 * A kernel that refuses it, or fails the test, costs traces their other hosts, nothing else.
 *
 * Nothing is pinned: at the daemon's end the map goes, and with it all that its sockets had of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/insert_load.h"
#include "probe/probe.h"

struct insert;

/*
 * What is tried with connections of our own to ourselves, when the programs are in place.
 */
enum insert_check {
	INSERT_CHECK_LINE,       /* a request is sent with the line, and an own header left alone */
	INSERT_CHECK_FRAGMENTED, /* 64 KiB from many pieces of memory */
	INSERT_CHECK_SENDFILE,
	INSERT_CHECK_SPLICE,
	INSERT_CHECK_EPOLL, /* edge-triggered */
	INSERT_CHECK_CLOSE, /* errors and ends are told */
	INSERT_CHECK_FIONREAD,
	_INSERT_CHECK_MAX,
};

struct insert_result {
	const char *name;
	bool matters;      /* to processes that are Go's */
	char failure[128]; /* empty: as it should be */
};

/*
 * Of what was loaded, when that is over, beside 'p', which must outlive it. No connection is taken in
 * before insert_check_begin(). Returns 0, INSERT_REFUSED with the reason in 'ret_refusal', or a
 * negative errno.
 */
enum { INSERT_REFUSED = 1 };
int insert_new(struct probe *p, struct insert_load *load, struct insert **ret,
	       struct probe_refusal *ret_refusal);
void insert_free(struct insert *i); /* NULL is allowed */
DEFINE_CLEANUP(struct insert *, insert_free)

struct bpf_object *insert_object(const struct insert *i);

/* Memory of its own maps as the kernel accounts for it, in bytes. */
uint64_t insert_map_bytes(const struct insert *i);

/*
 * The self-test, by a child of this process: it takes some milliseconds, and seconds if something
 * fails. The events of INSERT_CHECK_PROC_ID are nobody's, and no process propagates meanwhile, so that
 * the counters of insert.bpf.h, which begin again at its end, are those of the test alone.
 *
 * Returns as insert_new(). When it is over, for which insert_check_end() waits, insert_check_fd() is
 * readable. From then on connections are taken in if insert_why_not() has nothing against it.
 */
#define INSERT_CHECK_PROC_ID UINT32_MAX
int insert_check_begin(struct insert *i, struct probe_refusal *ret_refusal);
int insert_check_fd(const struct insert *i);
int insert_check_end(struct insert *i); /* 0 or a negative errno */

/* It was made at a time when its outcome says nothing: it is to be made again. */
void insert_check_again(struct insert *i);
bool insert_is_checked(const struct insert *i);

/* The outcome of the test, _INSERT_CHECK_MAX rows, also if a check failed; NULL: it has not been made. */
const struct insert_result *insert_results(const struct insert *i);

/*
 * Whether connections of every group of processes are seen: not from within a container that has a
 * namespace of groups of its own. Known when the test has been made.
 */
bool insert_has_all_groups(const struct insert *i);

/*
 * Whether the programs may be used for processes that never ask how many bytes are waiting
 * (FIONREAD): Go does not. Why not else.
 */
const char *insert_why_not(const struct insert *i);

/*
 * Takes in the connections that a process has made already, or is making, if it still propagates
 * then: a moment later, in a thread of its own, since the tables of its network may be long. None
 * while it is suspended.
 */
void insert_take_connections(struct insert *i, uint32_t pid);
/* What that thread does; 'is_cancelled' as in foreign_sockets.h. */
void insert_take_now(struct insert *i, const uint32_t *pids, size_t n, const bool *is_cancelled);

/*
 * Takes all connections out, and no new ones in: each has its own functions again. May be called
 * again for those that came in meanwhile. insert_resume() lets new ones in again. By any thread, but
 * by one at a time.
 */
void insert_suspend(struct insert *i);
void insert_resume(struct insert *i);
bool insert_is_suspended(const struct insert *i);

/* Takes the connections of one process out. It propagates no more: else some may come in again. */
void insert_drop_connections(struct insert *i, uint32_t pid);

/*
 * Takes those out that the kernel side has nothing to do with any more (enum leave_why in abi.h). To
 * be called now and then, by one thread.
 */
void insert_drop_leaving(struct insert *i);

/*
 * For connections that were taken out: a send that the kernel had no memory for may wait for room
 * that nobody would tell of. This tells.
 */
void insert_wake_connections(struct insert *i, uint32_t pid);
/* Of all processes that propagate; by any thread. 'is_cancelled' as in foreign_sockets.h. */
void insert_wake_all(struct insert *i, const bool *is_cancelled);
