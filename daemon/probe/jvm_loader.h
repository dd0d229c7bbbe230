/*
 * Loads agents into JVMs, each in a process of its own (jvm_attach.h): a JVM may answer late, and a
 * file system not at all. The process is this program, called with JVM_LOADER_OPTION; it outlives the
 * daemon if it must, and puts away what it made. Used by daemon's jvm_agents.c; main.c is the other
 * end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "probe/jvm_attach.h"

#define JVM_LOADER_OPTION "--load-agent" /* PID START_NS */

struct jvm_loader;

/* Begins to load it. Returns 0 or a negative errno. */
int jvm_loader_new(uint32_t pid, uint64_t start_ns, struct jvm_loader **ret);
/* The process goes on by itself. NULL is allowed. */
void jvm_loader_free(struct jvm_loader *l);
DEFINE_CLEANUP(struct jvm_loader *, jvm_loader_free)

/* Whether it came to an end; 'ret' then says to which. Does not block. */
bool jvm_loader_has_ended(struct jvm_loader *l, struct jvm_attach_result *ret);

/*
 * The other end: what the process does. Returns its exit status; 'arguments' are those behind the
 * option.
 */
int jvm_loader_main(int n, char **arguments, const struct jvm_library *library);
