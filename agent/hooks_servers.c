/*
 * Servers that have pools and loops of their own, and what belongs to them. JBoss' threads, which are
 * Undertow's, WildFly's and Quarkus': each job is put into an object of its own. XNIO, Undertow's
 * loops. Grizzly's pools. The clients of Vert.x and Jetty: calls wait for a connection, and get it from whoever is done
 * with one, or from the loop that has made one.
 */
#include "hooks_rows.h"

#define JOB "(Ljava/lang/Runnable;)V"

static const struct class_hook pool_task[] = {
	AT_EXIT("<init>", NULL, TASK("made", "a0")),
	WORKS("run", "()V", TASK("resume", "a0")),
};

static const struct class_hook loop_thread[] = {
	AT_ENTRY("execute", JOB, TASK("passed", "a1")),
	AT_ENTRY("executeAfter", NULL, TASK("passed", "a1")),
	WORKS("safeRun", JOB, CALL(LOOPS, "task", "a0")),
};

/* Where a thread waits for a connection in the middle of its request's work, by a selector of its own. */
static const struct class_hook loop_wait[] = {
	{.method = "await",
	 .entry = {PLAIN(LOOPS, "awaiting")},
	 .exit = PLAIN(LOOPS, "awaited"),
	 .is_finally = true},
};

/* Jetty's. */
static const struct class_hook jetty_pool[] = {
	AT_ENTRY("execute", JOB, TASK("passed", "a1")),
	AT_ENTRY("tryExecute", "(Ljava/lang/Runnable;)Z", TASK("passed", "a1")),
	WORKS("runJob", JOB, CALL(LOOPS, "task", "a1")),
};

/*
 * Grizzly's, which is GlassFish's and Jersey's. Each pool that it has asks this before a job, as those of
 * the JDK do; a thread that read a request's body in its last job is not to keep that.
 */
static const struct class_hook grizzly_pool[] = {
	{.method = "beforeExecute",
	 .descriptor = "(Lorg/glassfish/grizzly/threadpool/AbstractThreadPool$Worker;"
		       "Ljava/lang/Thread;Ljava/lang/Runnable;)V",
	 .entry = {TASK("next", "a3")}},
};

static const struct class_hook grizzly_queue[] = {
	AT_ENTRY("execute", JOB, TASK("passed", "a1")),
};

/* The fourth argument is who waits; its class differs. */
static const struct class_hook pool_waiter[] = {
	AT_EXIT("<init>", NULL, TASK("made", "a4")),
};

static const struct class_hook pool_lease[] = {
	{.method = "<init>",
	 .exit = {"leased", "(Ljava/lang/Object;Ljava/lang/Object;)V", "a0a2", NULL, LOOPS}},
	WORKS("emit", "()V", TASK("resume", "a0")),
};

/* Micronaut's. */
static const struct class_hook pending_request[] = {
	AT_EXIT("<init>", NULL, TASK("made", "a0")),
	WORKS("tryComplete", NULL, TASK("resume", "a0")),
	WORKS("tryCompleteExceptionally", NULL, TASK("resume", "a0")),
};

/* One that came before the response of the last was done is handled when that is. */
static const struct class_hook vertx_request[] = {
	AT_EXIT("<init>", NULL, TASK("made", "a0")),
};

static const struct class_hook vertx_connection[] = {
	WORKS("handleNext", "(Lio/vertx/core/http/impl/Http1xServerRequest;)V",
	      TASK("resume", "a1")),
};

static const struct class_hook jetty_exchange[] = {
	AT_EXIT("<init>", NULL, TASK("made", "a0")),
};

/* A channel and the exchange, whose classes have moved. */
static const struct class_hook jetty_connection[] = {
	WORKS("send",
	      "(Lorg/eclipse/jetty/client/HttpChannel;Lorg/eclipse/jetty/client/HttpExchange;)"
	      "Lorg/eclipse/jetty/client/SendFailure;",
	      TASK("resume", "a2")),
};

#define TRANSPORT "org/eclipse/jetty/client/transport/"

static const struct class_hook jetty12_connection[] = {
	WORKS("send",
	      "(L" TRANSPORT "HttpChannel;L" TRANSPORT "HttpExchange;)L" TRANSPORT "SendFailure;",
	      TASK("resume", "a2")),
};

/* Whoever is at it sends the next call's head too, if that is asked for before he is done. */
static const struct class_hook jetty_sender[] = {
	WORKS("sendHeaders", NULL, TASK("resume", "a1")),
	WORKS("sendContent", NULL, TASK("resume", "a1")),
};

#define GRIZZLY   "org/glassfish/grizzly/threadpool/"
#define JETTY     "org/eclipse/jetty/client/"
#define MICRONAUT "io/micronaut/http/client/netty/"
#define VERTX4    "io/vertx/core/net/impl/pool/"
#define VERTX5    "io/vertx/core/internal/pool/"

static const struct hook_class classes[] = {
	CLASS("org/jboss/threads/EnhancedQueueExecutor$Task", "3.7.0.Final", "3.9.2", pool_task),
	CLASS("org/eclipse/jetty/util/thread/QueuedThreadPool", "9.4.57.v20241219", "12.0.25",
	      jetty_pool),
	CLASS(GRIZZLY "AbstractThreadPool", "2.4.4", "4.0.2", grizzly_pool),
	CLASS(GRIZZLY "FixedThreadPool", "2.4.4", "4.0.2", grizzly_queue),
	CLASS(GRIZZLY "SyncThreadPool", "2.4.4", "4.0.2", grizzly_queue),
	CLASS("org/xnio/nio/SelectorUtils", "3.8.16", "3.8.16", loop_wait),
	CLASS("org/xnio/nio/WorkerThread", "3.8.16", "3.8.16", loop_thread),
	CLASS(VERTX4 "PoolWaiter", "4.5.27", "4.5.27", pool_waiter),
	CLASS(VERTX4 "SimpleConnectionPool$LeaseImpl", "4.5.27", "4.5.27", pool_lease),
	CLASS(VERTX5 "PoolWaiter", "5.0.7", "5.0.7", pool_waiter),
	CLASS(VERTX5 "SimpleConnectionPool$LeaseImpl", "5.0.7", "5.0.7", pool_lease),
	CLASS(MICRONAUT "Pool40$PendingRequest", "4.10.15", "4.10.15", pending_request),
	CLASS(MICRONAUT "Pool49$PendingRequest", "4.10.15", "4.10.15", pending_request),
	CLASS("io/vertx/core/http/impl/Http1xServerRequest", "4.5.27", "5.0.7", vertx_request),
	CLASS("io/vertx/core/http/impl/Http1xServerConnection", "4.5.27", "5.0.7",
	      vertx_connection),
	CLASS(JETTY "HttpExchange", "9.4.57.v20241219", "11.0.26", jetty_exchange),
	CLASS(JETTY "HttpConnection", "9.4.57.v20241219", "11.0.26", jetty_connection),
	CLASS(JETTY "http/HttpSenderOverHTTP", "9.4.57.v20241219", "11.0.26", jetty_sender),
	CLASS(TRANSPORT "internal/HttpSenderOverHTTP", "12.0.25", "12.0.25", jetty_sender),
	CLASS(TRANSPORT "HttpExchange", "12.0.25", "12.0.25", jetty_exchange),
	CLASS(TRANSPORT "HttpConnection", "12.0.25", "12.0.25", jetty12_connection),
};

const struct hook_table hooks_servers = {classes, sizeof(classes) / sizeof(*classes)};
