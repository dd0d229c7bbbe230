/*
 * The agent in a JVM as the daemon sees it: a block in the process's memory (struct jvm_control of
 * bpf/abi.h) that says how it is, and one word that the daemon writes. The memory is the
 * application's; whatever is in it, nothing else of the process is written. Where it is of a file,
 * reading it may take for ever: used by jvm_loader.c, in a process of its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct jvm_control_view {
	uint64_t address;          /* of the block */
	bool is_loading, is_ready; /* neither: it failed */
	bool is_broken;            /* it was ready, and gave itself up for good */
	bool is_enabled;
	uint64_t handovers_lost; /* since it was loaded */
	int64_t slot;            /* distance of a thread's slot from its thread pointer, bytes */
	char reason[160]; /* why it is not ready, or what could not be hooked; may be empty */
};

/*
 * Looks for the block in the writable memory of files that are named like the agent's. Returns 0;
 * JVM_CONTROL_NONE: there is no agent; JVM_CONTROL_OTHER: it is not one that this daemon
 * understands, and 'ret' has its address alone; or a negative errno.
 */
enum { JVM_CONTROL_NONE = 1, JVM_CONTROL_OTHER };
int jvm_control_find(uint32_t pid, struct jvm_control_view *ret);

/* Has the agent write its slots or not. Returns 0; JVM_CONTROL_NONE: there is none at the address any more; -errno. */
int jvm_control_enable(uint32_t pid, uint64_t address, bool is_enabled);
