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
