/*
 * What a JVM was told at its start that matters to whoever wants to load an agent into it. Pure: the
 * texts are another process's, and may be anything. Used by jvm_target.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct jvm_options {
	bool dynamic_load_off; /* -XX:-EnableDynamicAgentLoading */
	bool few_signals;      /* -Xrs: a SIGQUIT is not the JVM's */
	const char *archive;   /* the option that has it write its classes to a file; NULL: none */
	const char *tracer;    /* another agent that traces it, by its vendor's name; NULL: none */
};

/*
 * Takes note of a text's words, which stand between blanks and NULs; of one option that is there
 * twice the last counts, as in the JVM.
 */
void jvm_options_read(struct str text, struct jvm_options *options);

/*
 * Whose tracing agent a file is, judged by its name alone; NULL: nobody's that is known here. Takes a
 * path.
 */
const char *jvm_options_tracer(struct str path);

/*
 * A JVM's performance data: the block that its tools read (jdk/internal/perf, HotSpot's
 * perfMemory.hpp). 'size' bytes at 'data'. Returns the text of the entry with that name, which ends
 * at its first NUL or its end, or an empty one that has no pointer if there is none, or the block is
 * broken.
 */
struct str jvm_perfdata_find(const void *data, size_t size, const char *name);
