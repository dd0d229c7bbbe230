/*
 * Every place where the agent takes part in an application or in the JDK, as one table. A class that
 * an application does not have, or has in another shape, is no error; what is not found is counted.
 * Used by agent.c, and by the test that runs each row on the oldest and the newest version seen.
 */
#pragma once

#include "classfile.h"

/* A class of ours beside the boot loader's: one that refers to classes of the application's library. */
struct hook_helper {
	const char *name; /* internal, of the one that must be defined first */
	const uint8_t *bytes;
	size_t size;
};

#define HOOK_HELPERS_MAX 4

/* A hooked class. */
struct hook_class {
	const char *name;            /* internal: "java/util/concurrent/FutureTask" */
	const char *module;          /* that it is in since JDK 9; NULL: none, or java.base */
	const char *oldest, *newest; /* versions of the library or JDK it was seen in */
	const struct class_hook *hooks;
	size_t n_hooks;
	/* Defined in the class's own loader before it is rewritten; each refers only to earlier ones. */
	const struct hook_helper *helpers[HOOK_HELPERS_MAX];
};

struct hook_table {
	const struct hook_class *classes;
	size_t n_classes;
};

extern const struct hook_table hooks_jdk;      /* what every JVM has */
extern const struct hook_table hooks_netty;    /* Netty's transports, reactor-netty */
extern const struct hook_table hooks_kotlin;   /* kotlinx.coroutines, Ktor */
extern const struct hook_table hooks_clients;  /* OkHttp, Apache HttpClient */
extern const struct hook_table hooks_messages; /* actors, Reactor, RxJava */
extern const struct hook_table hooks_servers;  /* JBoss threads, XNIO, Jetty, Vert.x, Micronaut */

/* NULL: none is hooked. 'length' without a terminator. */
const struct hook_class *hooks_find(const char *name, size_t length);
