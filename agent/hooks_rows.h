/*
 * Words for the rows of the hook tables (hooks_*.c): what a method calls where it begins and ends.
 */
#pragma once

#include "hooks.h"

#define CLASS(internal, from, to, list)                                        \
	{                                                                      \
		.name = internal, .oldest = from, .newest = to, .hooks = list, \
		.n_hooks = sizeof(list) / sizeof(*list)                        \
	}

/* A method of 'with' that takes two objects, as in CALL(). */
#define CALL2(with, call, what)                                                          \
	{                                                                                \
		.method = call, .descriptor = "(Ljava/lang/Object;Ljava/lang/Object;)V", \
		.loads = what, .owner = with                                             \
	}

#define TASKS   "tsunagi/agent/Tasks"
#define HELPING "tsunagi/agent/Helping"
#define LOOPS   "tsunagi/agent/Loops"
#define SOCKETS "tsunagi/agent/Sockets"

/* A call of a method of 'class' with one object. */
#define CALL(class, call, with)                                                       \
	{                                                                             \
		.method = call, .descriptor = "(Ljava/lang/Object;)V", .loads = with, \
		.owner = class                                                        \
	}

#define TASK(call, with) CALL(TASKS, call, with)

/* A call without arguments. */
#define PLAIN(class, call)                                          \
	{                                                           \
		.method = call, .descriptor = "()V", .owner = class \
	}

#define AT_ENTRY(name, type, call)                                    \
	{                                                             \
		.method = name, .descriptor = type, .entry = { call } \
	}
#define AT_EXIT(name, type, call)                                \
	{                                                        \
		.method = name, .descriptor = type, .exit = call \
	}

/* The exit's call is made too when the method throws. */
#define AROUND(name, type, before, after)                                             \
	{                                                                             \
		.method = name, .descriptor = type, .entry = {before}, .exit = after, \
		.is_finally = true                                                    \
	}

/* The method works for whom 'before' tells. */
#define WORKS(name, type, before)                                      \
	{                                                              \
		.method = name, .descriptor = type, .entry = {before}, \
		.exit = PLAIN(TASKS, "leave"), .is_finally = true      \
	}
