/*
 * Executors of libraries that no table has (hooks.h): known by their shape. Used by agent.c.
 *
 * One is a class outside of the boot loader that has a method execute(), submit(), schedule() or start()
 * of its own whose first parameter is a Runnable. What it is given is stamped; and in it, and in the
 * classes inside it ("X$..."), each call of somebody's run() is done for who handed that over:
 * Drains.java. So is a future that has listeners as Guava's have: addListener(), executeListener().
 *
 * A relay is any other class outside of the boot loader that calls Runnable.run(): an executor may put what it
 * is given into an object of another's, which carries something of the application's own from thread to
 * thread, and run that. What is stamped is done for who handed it over there too; what is not says nothing.
 */
#pragma once

#include <jvmti.h>

#include "hooks.h"

extern const struct class_site executors_site;
extern const struct class_site executors_relays_site;

/* What is hooked in each of them; in a relay nothing but those calls. */
extern const struct hook_class executors_hooks;
extern const struct hook_class executors_relays;

/*
 * Whether the class, not the boot loader's, is an executor, or inside of one that came before it. Asked
 * for each class that is loaded; 'name' is internal. It is remembered.
 */
bool executors_find(const char *name, const uint8_t *bytes, size_t size);

/* Whether the class, which is none of those, is a relay. */
bool executors_is_relay(const char *name, const uint8_t *bytes, size_t size);

/* A class that was loaded earlier. */
struct executors_class {
	jvmtiEnv *jvmti;
	JNIEnv *env;
	jclass class;
	const char *name; /* internal, 'length' without a terminator */
	size_t length;
};

/* Whether it is an executor, which is remembered, or may be a relay. */
bool executors_find_loaded(const struct executors_class *loaded);

/* Whether a class of that name is inside of one that is remembered. */
bool executors_is_inside(const char *name, size_t length);

/* Whether the class may call a run(). */
bool executors_may_run(const struct executors_class *loaded);
