/*
 * Loads a library into a running JVM by HotSpot's attach mechanism, as the JDK's own jcmd does it.
 * Blocks for seconds if the JVM does, so it runs in a process of its own (jvm_loader.h).
 *
 * Promises: nothing is asked of a JVM that would answer with its end or with a thread dump on its
 * standard output; what is not known for sure counts as no. It is asked once. Files are made with the
 * rights of the JVM's own user, and removed, unless the JVM may still look for them: it does not answer
 * for minutes, or this process is killed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum jvm_attach_outcome {
	JVM_ATTACH_LOADED,  /* it was, or has been before: the library says itself how it is */
	JVM_ATTACH_NOT_YET, /* it is starting, stopped, or attached to by somebody else: later */
	JVM_ATTACH_REFUSED, /* by the JVM, its options or its file system, for good */
	JVM_ATTACH_FAILED,  /* it did not answer, or not as expected */
	JVM_ATTACH_GONE,    /* the process has ended */
	_JVM_ATTACH_OUTCOME_MAX,
};

struct jvm_attach_result {
	enum jvm_attach_outcome outcome;
	char reason[192]; /* printable; empty if it was loaded, or is gone */
};

struct jvm_library {
	const void *bytes;
	size_t size;
	const char *options; /* handed to its Agent_OnAttach() */
};

struct jvm_attach_order {
	uint32_t pid;
	uint64_t start_ns; /* as in struct process */
	const struct jvm_library *library;
	int quit_handlers; /* as quit_handlers_fd() */
};

void jvm_attach(const struct jvm_attach_order *order, struct jvm_attach_result *ret);

/*
 * Judges a JVM's reply to "load". JDK 9 to 20 give the result of the operation, then the library's; JDK 8
 * only numbers; JDK 21 and later a 0 whatever happened, and then what did (HotSpot's attachListener.cpp).
 * 'reply' is text of any length; its words end up in the reason.
 */
void jvm_attach_judge(const char *reply, size_t size, struct jvm_attach_result *ret);
