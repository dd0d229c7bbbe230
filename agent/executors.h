/*
 * Executors of libraries that no table has (hooks.h): known by their shape. Used by agent.c.
 *
 * One is a class outside of the boot loader that has a method execute(), submit(), schedule() or start()
 * of its own whose first parameter is a Runnable. What it is given is stamped; and in it, and in the
 * classes inside it ("X$..."), each call of somebody's run() is done for who handed that over:
 * Drains.java. So is a future that has listeners as Guava's have: addListener(), executeListener().
 */
#pragma once

#include <jvmti.h>

#include "hooks.h"

extern const struct class_site executors_site;

/* What is hooked in each of them. */
extern const struct hook_class executors_hooks;

/*
 * Whether the class, not the boot loader's, is an executor, or inside of one that came before it. Asked
 * for each class that is loaded; 'name' is internal. It is remembered.
 */
bool executors_find(const char *name, const uint8_t *bytes, size_t size);

/* A class that was loaded earlier. */
struct executors_class {
	jvmtiEnv *jvmti;
	JNIEnv *env;
	jclass class;
	const char *name; /* internal, 'length' without a terminator */
	size_t length;
};

/* Whether it is an executor. It is remembered. */
bool executors_find_loaded(const struct executors_class *loaded);

/* Whether a class of that name is inside of one that is remembered. */
bool executors_is_inside(const char *name, size_t length);

/* Whether the class may call a run(). */
bool executors_may_run(const struct executors_class *loaded);
