/*
 * What the agent's own files share: the classes embedded in it, and the native half of them. It runs
 * in somebody else's process: nothing here prints, aborts, leaves a Java exception pending, or makes
 * a system call once the agent is loaded (but for a socket that no hook has seen, and to give the CPU to
 * who holds a lock that is waited for).
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>

#include "abi.h"

struct agent_class {
	const char *name; /* internal */
	const uint8_t *bytes;
	size_t size;
};

extern const struct agent_class agent_classes[];
extern const size_t agent_n_classes;
extern const char agent_build[];

extern struct jvm_control agent_control;

/* The native methods of tsunagi.agent.Native. */
extern const JNINativeMethod agent_natives[];
extern const size_t agent_n_natives;

/* Where a thread's slot lies, from its thread pointer. */
int64_t slot_distance(void);

/* A word for each file descriptor of the process; Sockets.java says how they change. */
#define SOCKETS_MAX 65536

extern uint64_t sockets[SOCKETS_MAX];

/* Judges 'fd' if no hook has seen it yet; returns its word. */
uint64_t sockets_classify(int fd);
/* All sockets that the process has now. */
void sockets_classify_all(void);
