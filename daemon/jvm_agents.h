/*
 * Agents in JVMs. Has one loaded into each JVM that serves requests, unless it is configured not to, or
 * the JVM takes none; takes one that is there already into use; and switches them off at the daemon's
 * end. With an agent calls have the parents that it tells, without it those of threads. Used by
 * daemon.c.
 *
 * A JVM that does not serve (a compiler, a build) is never touched: it has to listen on a port, and to
 * have had an HTTP exchange or have listened for a second.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "model/process.h"

struct jvm_agents;

struct jvm_agents_options {
	/* Whether a JVM listens now, and whether it had an HTTP exchange. */
	void (*look)(void *userdata, uint32_t proc_id, bool *ret_listens, bool *ret_had_exchange);
	/* Its agent was taken into use, or out of it: jvm_agents_add() now has another slot, or none. */
	void (*used)(void *userdata, uint32_t proc_id);
	void *userdata;
};

/* Returns 0 or -ENOMEM. */
int jvm_agents_new(const struct jvm_agents_options *options, struct jvm_agents **ret);
void jvm_agents_free(struct jvm_agents *a); /* NULL is allowed; switches nothing off */
DEFINE_CLEANUP(struct jvm_agents *, jvm_agents_free)

/*
 * A JVM is to be traced, perhaps not for the first time. 'ret_slot' is struct probe_process's. Returns 0
 * or -ENOMEM.
 */
int jvm_agents_add(struct jvm_agents *a, const struct process *p, int64_t *ret_slot);
/* It is gone, or left alone from now on. */
void jvm_agents_remove(struct jvm_agents *a, uint32_t proc_id);

/* Does what is due; 'now_ns' is CLOCK_MONOTONIC. */
void jvm_agents_tick(struct jvm_agents *a, uint64_t now_ns);

/* What the agent of a JVM is about: "in use", or why not; NULL: it is no JVM. Valid until the next call. */
const char *jvm_agents_state(const struct jvm_agents *a, uint32_t proc_id);

/*
 * How many jobs and messages its agent has lost since it was loaded, by any daemon, as far as it was
 * looked at: it is every few seconds. Returns false if it was not.
 */
bool jvm_agents_lost(const struct jvm_agents *a, uint32_t proc_id, uint64_t *ret);

/* Has all that are in use switched off, so that they no longer write their slots; waits for that a moment. */
void jvm_agents_stop(struct jvm_agents *a);
