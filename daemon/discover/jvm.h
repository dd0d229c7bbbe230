/*
 * Is there a JVM in a process? By its mapped libjvm.so, in whatever directory and under whatever
 * launcher; names and arguments prove nothing. Used by look.c.
 */
#pragma once

#include <stdbool.h>

struct jvm {
	bool is_openj9;   /* libj9vm is mapped as well */
	char version[32]; /* JAVA_VERSION of the release file beside the library; empty: unknown */
};

/*
 * Returns 0, JVM_NONE, JVM_GONE when the process has ended or may not be looked into, or a negative
 * errno.
 */
enum { JVM_NONE = 1, JVM_GONE };
int jvm_find(int dir, struct jvm *ret);
