/*
 * Finding the processes to trace: one pass over /proc at the start, then events of the kernel side.
 * Driven by daemon.c (events, time) and asked by stitch through daemon.c (who is process N?). Main
 * thread only; does not log.
 *
 * Promises: a process that ends within 30 ms is never looked at; one that is not selected is looked
 * at once, and again only while a JVM could still be loaded into it (0.2, 1, 3, 10 s after its
 * exec) or when it begins to listen. Reads of /proc are bounded, what ends in mid-read is counted
 * and forgotten. Identity is {pid, start time, exec}: each exec makes a new process, with a proc_id
 * that is never given twice.
 *
 * A child that was forked and has not executed anything is the same program as its parent: the fork
 * of a selected process is selected with it, under its own identity. Whatever executes something is
 * judged by itself, so selecting a process never selects what it starts.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "model/event.h"
#include "model/process.h"

struct discover;

struct discover_options {
	const struct config *config; /* must outlive the discover */
	size_t processes_max;        /* 0: as in the config */
	uint32_t self_pid;

	/*
	 * A process is to be traced. Again with the same proc_id when its language became known or
	 * its resource changed since. A negative result means that it cannot be traced: it is left
	 * alone, and 'why' says so.
	 */
	int (*select)(void *userdata, const struct process *p);
	/* It ended, executed another program, or was given up. It can still be found for 30 s. */
	void (*unselect)(void *userdata, const struct process *p);
	/*
	 * It was decided about a process, behind the call of select if it is to be traced. Until
	 * then its forks are to be reported, since they may be workers of a server.
	 */
	void (*judged)(void *userdata, uint32_t pid);
	void *userdata;
};

/* Returns 0 or -ENOMEM. */
int discover_new(const struct discover_options *options, struct discover **ret);
void discover_free(struct discover *d); /* NULL is allowed; unselects nothing */
DEFINE_CLEANUP(struct discover *, discover_free)

/*
 * One pass over /proc: at the start, and whenever events were lost. Processes that are known
 * already are kept as they are; those that have ended are dropped. Returns 0 or a negative errno.
 */
int discover_scan(struct discover *d);

/* An event of type EVENT_PROCESS. */
void discover_event(struct discover *d, const struct event *event);

/* Does what is due; 'now_ns' is CLOCK_MONOTONIC, as all times here. */
void discover_tick(struct discover *d, uint64_t now_ns);

/* When the next tick is due; UINT64_MAX: only after another event. */
uint64_t discover_next_ns(const struct discover *d);

/*
 * The live process with this pid, or NULL. Pointers are valid until the next call that changes
 * something.
 */
const struct process *discover_find(const struct discover *d, uint32_t pid);

/*
 * A selected process, also one that ended less than 30 s ago: its last spans come later. NULL:
 * none.
 */
const struct process *discover_find_id(const struct discover *d, uint32_t proc_id);

/* Its resource, or NULL: borrowed, take a reference to keep it. */
struct resource *discover_resource(const struct discover *d, uint32_t proc_id);

/*
 * Calls 'visit' for each live process that was looked at, in no order; ends with the first non-zero
 * result.
 */
typedef int (*discover_visit_fn)(const struct process *p, void *userdata);
int discover_walk(struct discover *d, discover_visit_fn visit, void *userdata);
