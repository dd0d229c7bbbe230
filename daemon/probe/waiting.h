/*
 * Threads that wait in a receive since before the tap was there. Where a tap sees a receive at its
 * function's exit, the one that they wait in would go unseen, and with it the next request of a
 * connection that was idle. So they are looked for when their process is first traced, and while
 * there are any a program of the tap sees what they receive (bpf/tap_fentry.bpf.c). Other taps need
 * none of this: for them it does nothing. Used by daemon.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "probe/probe.h"

struct waiting;

/* 'p' must outlive it. Before the first process is traced. Returns 0 or -ENOMEM. */
int waiting_new(const struct probe *p, struct waiting **ret);
void waiting_free(struct waiting *w); /* NULL is allowed */
DEFINE_CLEANUP(struct waiting *, waiting_free)

/*
 * A process is traced, perhaps not for the first time; 'start_ns' is when it began, on
 * CLOCK_BOOTTIME. Behind probe_process_set().
 */
void waiting_add(struct waiting *w, uint32_t pid, uint32_t proc_id, uint64_t start_ns);

/* Forgets who waits no longer. */
void waiting_tick(struct waiting *w, uint64_t now_monotonic_ns);

/* Why such receives are not seen; NULL: they are. A constant. */
const char *waiting_why_not(const struct waiting *w);

/* How many links of programs it holds. */
size_t waiting_links(const struct waiting *w);
