/*
 * What a HotSpot JVM has set its flags to, read from its memory: it knows what came of its command line,
 * of variables, of files with options and of its own defaults, and nobody else does. For JVMs without
 * performance data; used by jvm_target.c.
 *
 * The way there is that of the JDK's serviceability agent: symbols that libjvm.so exports (HotSpot's
 * vmStructs.hpp) lead to a table of its types' fields, by name, and those to the table of flags. The memory is a
 * stranger's: whatever is in it, a bounded part of it is read, and what does not fit in every point
 * counts as unknown.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jvm_memory {
	/* All of it or nothing: 0 or a negative errno. */
	int (*read)(void *userdata, uint64_t address, void *ret, size_t size);
	void *userdata;
};

struct jvm_flags {
	bool attach_off;       /* DisableAttachMechanism */
	bool few_signals;      /* ReduceSignalUsage, -Xrs */
	bool dynamic_load_off; /* not EnableDynamicAgentLoading, which JDK 8 has not and does not need */
	bool reopens_socket; /* asked to listen again, it looks whether its socket's file is gone */
	const char *archive; /* the flag that has it write its classes to a file; NULL: none has */
};

/*
 * 'base': where the first byte of libjvm.so is. They are as they will stay once the JVM catches SIGQUIT:
 * that it begins to after it has read its options. Returns 0 or JVM_FLAGS_UNKNOWN.
 */
enum { JVM_FLAGS_UNKNOWN = 1 };
int jvm_flags_read(const struct jvm_memory *memory, uint64_t base, struct jvm_flags *ret);
