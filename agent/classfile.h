/*
 * Rewrites a class file so that chosen methods call static methods of ours where they begin and
 * where they end. Knows nothing of the JVM or of any class. Used by the agent (agent.c), tests and
 * a fuzzer.
 *
 * Nothing is added but constants and instructions: no local variable, field or method, so the
 * result is legal for RetransformClasses. Whatever is not understood leaves the class as it was.
 * Facts: The Java Virtual Machine Specification, chapter 4; versions of class files are not looked
 * at, but for StackMapTable (4.7.4), which is needed from 50 on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A call of a static method. 'loads' are the arguments, in order, a letter and for locals a number:
 * "a1" loads the reference in local variable 1, "i2" an int, "l2" a long. At an exit also "r": the
 * value that is about to be returned, which then is the call's first argument; the call's own result,
 * of the same type, is returned instead, or the former again if the call gives none.
 */
struct class_call {
	const char *method; /* NULL: no call */
	const char *descriptor;
	const char *loads; /* NULL: none */
	const char *store; /* local variable that takes the result, as in 'loads'; NULL: none */
	const char *owner; /* internal name of the class that has the method; NULL: the default */
};

#define CLASS_ENTRY_CALLS 3

struct class_hook {
	const char *method;
	const char *descriptor; /* NULL: any */
	struct class_call entry[CLASS_ENTRY_CALLS];
	struct class_call exit; /* before each return */
	/*
	 * The exit's call is made too when the method throws. It then may load nothing; ignored in
	 * constructors.
	 */
	bool is_finally;
};

struct class_rewrite {
	const uint8_t *bytes;
	size_t size;
	const struct class_hook *hooks;
	size_t n_hooks;    /* at most 32 */
	const char *owner; /* default of struct class_call */
	/* The first hook is for every method with code but constructors and initialisers: for tests. */
	bool is_for_all;
};

/*
 * Returns how many methods were changed, with the new class in '*ret' (free() it) if that is not 0,
 * and a bit for each hook that found its method in '*ret_found'; -EBADMSG: the class file was not
 * understood, or is broken; -E2BIG: it would be too large for its format; -ENOMEM. A method that
 * would become too large, or jumps further than it can, is left alone.
 */
int class_rewrite(const struct class_rewrite *w, uint8_t **ret, size_t *ret_size,
		  uint32_t *ret_found);
