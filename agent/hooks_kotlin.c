/*
 * Kotlin's coroutines (kotlinx.coroutines). What one works for is kept in an element of its context,
 * which the library itself mounts and takes away around each of its turns; helper classes
 * (java-kotlin) say which coroutine gets one. Messages are stamped as those of the JDK's queues are.
 *
 * Names and descriptors are from the libraries' class files. A suspending function that calls another
 * as its last act returns "suspended", and is not entered again: what it waited for passes
 * getSuccessfulResult().
 */
#include "hooks_rows.h"

extern const struct hook_helper helper_kotlin_ContextKey;
extern const struct hook_helper helper_kotlin_ContextElement;
extern const struct hook_helper helper_kotlin_Coroutines;

/* One whose hooks call the helpers. */
#define HELPED(internal, from, to, list)                                       \
	{                                                                      \
		.name = internal, .oldest = from, .newest = to, .hooks = list, \
		.n_hooks = sizeof(list) / sizeof(*list), .helpers = {          \
			&helper_kotlin_ContextKey,                             \
			&helper_kotlin_ContextElement,                         \
			&helper_kotlin_Coroutines                              \
		}                                                              \
	}

#define OBJECT   "(Ljava/lang/Object;)V"
#define OBJECTS  "(Ljava/lang/Object;Ljava/lang/Object;)V"
#define HELPER   "tsunagi/agent/kotlin/Coroutines"
#define TURN     "tsunagi/agent/Coroutine"
#define CHANNELS "tsunagi/agent/Channels"

#define CALLS(class, call, type, with)                                            \
	{                                                                         \
		.method = call, .descriptor = type, .loads = with, .owner = class \
	}
#define HANDED(name, type, with) AT_ENTRY(name, type, CALLS(HELPER, "handed", OBJECT, with))

/* --- turns */

#define CONTEXT "Lkotlin/coroutines/CoroutineContext;"

static const struct class_hook starts[] = {
	AT_EXIT("newCoroutineContext", "(Lkotlinx/coroutines/CoroutineScope;" CONTEXT ")" CONTEXT,
		CALLS(HELPER, "born", "(" CONTEXT ")" CONTEXT, "r")),
};

static const struct class_hook continuation[] = {
	HANDED("resumeWith", OBJECT, "a0"),
	HANDED("dispatchYield$kotlinx_coroutines_core", NULL, "a0"),
};

static const struct class_hook continuations[] = {
	HANDED("resumeCancellableWith", NULL, "a0"),
	HANDED("resumeCancellableWithInternal", NULL, "a0"), /* 1.11 */
};

static const struct class_hook dispatches[] = {
	HANDED("dispatch", NULL, "a0"),
};

static const struct class_hook event_loop[] = {
	HANDED("dispatchUnconfined", NULL, "a1"),
};

static const struct class_hook dispatched[] = {
	{.method = "run",
	 .descriptor = "()V",
	 .entry = {CALLS(HELPER, "begin", OBJECT, "a0")},
	 .exit = CALLS(TURN, "end", "()V", NULL),
	 .is_finally = true},
};

static const struct class_hook waiting[] = {
	AT_EXIT("getSuccessfulResult$kotlinx_coroutines_core",
		"(Ljava/lang/Object;)Ljava/lang/Object;", CALLS(HELPER, "resumed", OBJECTS, "ra0")),
};

/* --- messages */

#define SEND     "(Ljava/lang/Object;Lkotlin/coroutines/Continuation;)Ljava/lang/Object;"
#define TRY_SEND "(Ljava/lang/Object;)Ljava/lang/Object;"
#define RECEIVE  "(Lkotlin/coroutines/Continuation;)Ljava/lang/Object;"
#define TAKE     "()Ljava/lang/Object;"
#define SELECTED "(Ljava/lang/Object;Ljava/lang/Object;)Ljava/lang/Object;"

#define SENT(with)    CALLS(CHANNELS, "sent", OBJECTS, with)
#define CHANNEL(call) CALLS(CHANNELS, call, OBJECTS, "ra0")
#define SENDS \
	AT_ENTRY("send", SEND, SENT("a1a0")), AT_ENTRY("trySend-JP2dKIU", TRY_SEND, SENT("a1a0"))
#define RECEIVES                                                                       \
	{.method = "receive",                                                          \
	 .descriptor = RECEIVE,                                                        \
	 .entry = {CALLS(CHANNELS, "receiving", OBJECT, "a0")},                        \
	 .exit = CHANNEL("received")},                                                 \
		AT_EXIT("tryReceive-PtdJZtk", TAKE, CHANNEL("got")),                   \
		AT_EXIT("iterator", "()Lkotlinx/coroutines/channels/ChannelIterator;", \
			CHANNEL("iterator"))

static const struct class_hook buffered_channel[] = {
	SENDS,
	AT_ENTRY("registerSelectForSend", NULL, SENT("a2a0")),
	RECEIVES,
	/* It is entered again where it had to wait; 1.11 then has something else in place of a0. */
	AT_EXIT("receiveCatching-JP2dKIU$suspendImpl", NULL, CALLS(CHANNELS, "got", OBJECT, "r")),
	AT_EXIT("processResultSelectReceive", SELECTED, CHANNEL("got")),
	AT_EXIT("processResultSelectReceiveCatching", SELECTED, CHANNEL("got")),
};

static const struct class_hook conflated_channel[] = {
	SENDS,
	AT_ENTRY("registerSelectForSend", NULL, SENT("a2a0")),
};

static const struct class_hook iterator[] = {
	AT_EXIT("next", TAKE, CHANNEL("next")),
};

/* Until 1.6. */
static const struct class_hook sending_channel[] = {
	SENDS,
};

static const struct class_hook receiving_channel[] = {
	RECEIVES,
	AT_EXIT("receiveCatching-JP2dKIU", RECEIVE, CHANNEL("got")),
};

static const struct class_hook shared_flow[] = {
	AT_ENTRY("tryEmit", "(Ljava/lang/Object;)Z", SENT("a1a0")),
	AT_EXIT("tryTakeValue", NULL, CHANNEL("flowed")),
};

/* --- Ktor's bytes between a connection and who serves it */

/* In this order: who takes bytes out finds what they came with, and perhaps of more that follow. */
static const struct class_hook byte_channel[] = {
	AT_ENTRY("flushWriteBuffer", "()V", CALLS(CHANNELS, "flushed", OBJECT, "a0")),
	AT_EXIT("moveFlushToReadBuffer", "()V", CALLS(CHANNELS, "drained", OBJECT, "a0")),
};

/* Until Ktor 2. */
static const struct class_hook byte_buffer_channel[] = {
	AT_ENTRY("flushImpl", "(I)V", CALLS(CHANNELS, "flushed", OBJECT, "a0")),
	AT_EXIT("bytesRead", NULL, CALLS(CHANNELS, "drained", OBJECT, "a0")),
};

#define KOTLINX "kotlinx/coroutines/"

static const struct hook_class classes[] = {
	HELPED(KOTLINX "CoroutineContextKt", "1.6.4", "1.11.0", starts),
	HELPED(KOTLINX "internal/DispatchedContinuation", "1.6.4", "1.11.0", continuation),
	HELPED(KOTLINX "internal/DispatchedContinuationKt", "1.6.4", "1.11.0", continuations),
	HELPED(KOTLINX "DispatchedTaskKt", "1.6.4", "1.11.0", dispatches),
	HELPED(KOTLINX "EventLoop", "1.6.4", "1.11.0", event_loop),
	HELPED(KOTLINX "DispatchedTask", "1.6.4", "1.11.0", dispatched),
	HELPED(KOTLINX "CancellableContinuationImpl", "1.6.4", "1.11.0", waiting),
	CLASS(KOTLINX "channels/BufferedChannel", "1.7.3", "1.11.0", buffered_channel),
	CLASS(KOTLINX "channels/BufferedChannel$BufferedChannelIterator", "1.7.3", "1.11.0",
	      iterator),
	CLASS(KOTLINX "channels/ConflatedBufferedChannel", "1.7.3", "1.11.0", conflated_channel),
	CLASS(KOTLINX "channels/AbstractSendChannel", "1.6.4", "1.6.4", sending_channel),
	CLASS(KOTLINX "channels/AbstractChannel", "1.6.4", "1.6.4", receiving_channel),
	CLASS(KOTLINX "channels/AbstractChannel$Itr", "1.6.4", "1.6.4", iterator),
	CLASS(KOTLINX "flow/SharedFlowImpl", "1.6.4", "1.11.0", shared_flow),
	CLASS("io/ktor/utils/io/ByteChannel", "3.5.2", "3.5.2", byte_channel),
	CLASS("io/ktor/utils/io/ByteBufferChannel", "2.3.7", "2.3.13", byte_buffer_channel),
};

const struct hook_table hooks_kotlin = {classes, sizeof(classes) / sizeof(*classes)};
