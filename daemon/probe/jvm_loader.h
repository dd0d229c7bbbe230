/*
 * Loads agents into JVMs and switches them on and off, each in a process of its own (jvm_attach.h,
 * jvm_control.h): a JVM may answer late, a file system not at all, and memory may be of a file there. The
 * process is this program, called with JVM_LOADER_OPTION; it outlives the daemon if it must. Used by
 * daemon's jvm_agents.c; main.c is the other end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "probe/jvm_attach.h"

#define JVM_LOADER_OPTION "--load-agent" /* WORD PID START_NS */

#define JVM_LOADER_UNKNOWN UINT64_MAX

enum jvm_loader_task {
	JVM_LOADER_LOAD, /* one that waits to be switched on, if there is none yet */
	JVM_LOADER_ON,   /* the one that is there is switched on */
	JVM_LOADER_OFF,  /* the one that is there, if there is one, is switched off */
	JVM_LOADER_READ, /* nothing is done to the one that is there */
	_JVM_LOADER_TASK_MAX,
};

struct jvm_loader_result {
	enum jvm_attach_outcome
		outcome; /* JVM_ATTACH_LOADED: there is one, or the task was to have none */
	bool is_new;     /* it was loaded now */
	int64_t slot;    /* of struct jvm_control_view; 0: it is not in use */
	uint64_t
		handovers_lost; /* likewise, as it was at the end; JVM_LOADER_UNKNOWN: it was not read */
	uint64_t newly_lost; /* of these more than when the task was given */
	char reason[224];    /* printable; also of one that is in use: what it lacks */
};

struct jvm_loader;

struct jvm_loader_order {
	enum jvm_loader_task task;
	uint32_t pid;
	uint64_t start_ns;    /* as in struct process */
	int quit_handlers;    /* as quit_handlers_fd() */
	uint64_t lost_before; /* handovers_lost as last read; JVM_LOADER_UNKNOWN: never */
};

/* Returns 0 or a negative errno. */
int jvm_loader_new(const struct jvm_loader_order *order, struct jvm_loader **ret);
/* The process goes on by itself. NULL is allowed. */
void jvm_loader_free(struct jvm_loader *l);
DEFINE_CLEANUP(struct jvm_loader *, jvm_loader_free)

/* Whether it came to an end; 'ret' then says to which. Does not block. */
bool jvm_loader_has_ended(struct jvm_loader *l, struct jvm_loader_result *ret);

/*
 * The other end: what the process does. Returns its exit status; 'arguments' are those behind the
 * option.
 */
int jvm_loader_main(int n, char **arguments, const struct jvm_library *library);
