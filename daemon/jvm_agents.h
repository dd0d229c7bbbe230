/*
 * Agents in JVMs: takes one that is in a process already into use, when the process begins to be
 * traced, and switches it off at the daemon's end. With it calls have the parents that the agent
 * tells, without it those of threads. Used by daemon.c.
 */
#pragma once

#include <stdint.h>

#include "base/util.h"
#include "model/process.h"

struct jvm_agents;

/* Returns 0 or -ENOMEM. */
int jvm_agents_new(struct jvm_agents **ret);
void jvm_agents_free(struct jvm_agents *a); /* NULL is allowed; switches nothing off */
DEFINE_CLEANUP(struct jvm_agents *, jvm_agents_free)

/*
 * A JVM is to be traced, perhaps not for the first time. 'ret_slot' is struct probe_process's. Returns 0
 * or -ENOMEM.
 */
int jvm_agents_add(struct jvm_agents *a, const struct process *p, int64_t *ret_slot);
/* It is gone, or left alone from now on: then its agent is switched off. */
void jvm_agents_remove(struct jvm_agents *a, uint32_t proc_id);

/* What the agent of a JVM is about: "in use", or why not; NULL: there is none. Valid until the next call. */
const char *jvm_agents_state(const struct jvm_agents *a, uint32_t proc_id);

/* All that are in use no longer write their slots. */
void jvm_agents_stop(struct jvm_agents *a);
