/*
 * Clients that hand calls over in ways of their own. OkHttp: a call that has to wait for others to its
 * host is handed to a thread by whichever of them ends. Apache's HttpClient: connections are waited for
 * likewise, and its I/O reactor's threads send what they are told by commands.
 */
#include "hooks_rows.h"

#define MADE                                                                       \
	{                                                                          \
		.method = "<init>", .descriptor = NULL, .exit = TASK("made", "a0") \
	}
/* In the name of whoever made the object. */
#define RESUMES(name, type) WORKS(name, type, TASK("resume", "a0"))
#define CALLS(name, type)   WORKS(name, type, TASK("calling", "a0"))
#define TURN(name, type)    AROUND(name, type, PLAIN(LOOPS, "turn"), PLAIN(LOOPS, "turned"))

/* --- OkHttp */

static const struct class_hook async_call[] = {
	MADE,
	CALLS("run", "()V"),
};

/* Its superclass's run() calls this. */
static const struct class_hook async_call_3[] = {
	MADE,
	CALLS("execute", "()V"),
};

/* 5 connects by threads of its own, and waits for them at a queue. */
static const struct class_hook call[] = {
	CALLS("execute", "()Lokhttp3/Response;"),
};

/* --- Apache HttpClient 5 */

/* What is made for an execution, in the thread that asks for it. A context may be shared by many. */
static const struct class_hook execution[] = {
	MADE,
	RESUMES("execute", NULL),
	RESUMES("connectEndpoint", NULL),
};

static const struct class_hook command[] = {
	MADE,
};

static const struct class_hook duplexer[] = {
	{.method = "execute",
	 .descriptor = "(Lorg/apache/hc/core5/http/nio/command/RequestExecutionCommand;)V",
	 .entry = {CALL(LOOPS, "executing", "a1")}},
};

static const struct class_hook channel[] = {
	TURN("handleIOEvent", "(I)V"),
};

/* Its callback is of whoever gave it, not of the request whose end completes it. */
static const struct class_hook future[] = {
	MADE,
	RESUMES("completed", "(Ljava/lang/Object;)Z"),
	RESUMES("failed", "(Ljava/lang/Exception;)Z"),
	RESUMES("cancel", "(Z)Z"),
};

#define CLIENT "org/apache/hc/client5/http/impl/async/"
#define CORE   "org/apache/hc/core5/"

static const struct hook_class classes[] = {
	CLASS("okhttp3/RealCall$AsyncCall", "3.14.9", "3.14.9", async_call_3),
	CLASS("okhttp3/internal/connection/RealCall$AsyncCall", "4.12.0", "5.3.2", async_call),
	CLASS("okhttp3/RealCall", "3.14.9", "3.14.9", call),
	CLASS("okhttp3/internal/connection/RealCall", "4.12.0", "5.3.2", call),
	CLASS(CLIENT "InternalHttpAsyncExecRuntime", "5.2.3", "5.5.1", execution),
	CLASS(CORE "http/nio/command/RequestExecutionCommand", "5.2.4", "5.3.6", command),
	CLASS(CORE "http/impl/nio/ClientHttp1StreamDuplexer", "5.2.4", "5.3.6", duplexer),
	CLASS(CORE "reactor/InternalChannel", "5.2.4", "5.3.6", channel),
	CLASS(CORE "concurrent/BasicFuture", "5.2.4", "5.3.6", future),
};

const struct hook_table hooks_clients = {classes, sizeof(classes) / sizeof(*classes)};
