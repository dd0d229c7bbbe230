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
	const char *method;     /* "execute*": each that is not static and whose name begins so */
	const char *descriptor; /* NULL: any; "(I*": all that begin so */
	struct class_call entry[CLASS_ENTRY_CALLS];
	struct class_call exit; /* before each return */
	/*
	 * The exit's call is made too when the method throws, or 'thrown', if there is one. That may load
	 * nothing; ignored in constructors.
	 */
	bool is_finally;
	struct class_call thrown; /* in the exit's place there; without arguments or result */
};

/*
 * Calls of an interface's method without arguments, wherever they stand: 'before' gets the object it is
 * called on; 'after' comes when it has returned, not when it has thrown. So there may be 'caught',
 * where the method catches what the call has thrown, and 'enter' and 'leave', at the entry and at each
 * exit of a method that has such a call: also when it throws. Those two are not for constructors and
 * initialisers, whose calls then are left alone, nor for methods whose hook has an exit itself.
 */
struct class_site {
	const char *method; /* NULL: any */
	const char *descriptor;
	struct class_call before;
	struct class_call before_in_loop; /* in its place where a jump leads back over the call */
	struct class_call after;
	struct class_call enter, leave;
	struct class_call enter_loop; /* in its place where a call is in a loop; may be none */
	struct class_call caught;     /* without arguments */
};

struct class_rewrite {
	const uint8_t *bytes;
	size_t size;
	const struct class_hook *hooks;
	size_t n_hooks;                /* at most 32 */
	const struct class_site *site; /* NULL: none */
	const char *owner;             /* default of struct class_call */
	/* The first hook is for every method with code but constructors and initialisers: for tests. */
	bool is_for_all;
};

/* As they stand in a class file, and in what JVMTI tells of a class. */
struct class_constants {
	const uint8_t *bytes;
	size_t size;
	uint32_t n; /* one more than there are */
};

struct class_constants class_constants(const uint8_t *bytes, size_t size);

/*
 * Whether a string among the constants begins so. For every class that is loaded: reads no further than
 * it must, and takes no memory. False too if they are not understood.
 */
bool class_mentions(const struct class_constants *constants, const char *prefix);

/* A method of an interface, by internal names. */
struct class_reference {
	const char *owner, *method, *descriptor;
};

/* Whether the class calls it through the interface. As above. */
bool class_calls(const struct class_constants *constants, const struct class_reference *wanted);

/* Whether one of the hooks finds a method, with code and not static. False too as above. */
bool class_declares(const struct class_rewrite *w);

/*
 * Returns how many methods were changed, with the new class in '*ret' (free() it) if that is not 0,
 * and a bit for each hook that found its method in '*ret_found'; -EBADMSG: the class file was not
 * understood, or is broken; -E2BIG: it would be too large for its format; -ENOMEM. A method that
 * would become too large, or jumps further than it can, is left alone.
 */
int class_rewrite(const struct class_rewrite *w, uint8_t **ret, size_t *ret_size,
		  uint32_t *ret_found);
