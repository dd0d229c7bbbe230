/*
 * What every JVM has: threads, executors, futures, timers, queues, sockets. Nothing is wrapped: jobs
 * and messages are stamped where they are handed over (Stamps.java) and found again where they run.
 */
#include "hooks_rows.h"

#define OBJECT "(Ljava/lang/Object;)V"

#define SOCKET(call, with) CALL(SOCKETS, call, with)

/* A job's own run. */
#define JOB(name, type) WORKS(name, type, TASK("enter", "a0"))

/* With what the method returns as well. */
#define RESULT(class, call, type, with)                                                       \
	{                                                                                     \
		.method = call, .descriptor = "(" type "Ljava/lang/Object;)V", .loads = with, \
		.owner = class                                                                \
	}
#define READ                                                                           \
	{                                                                              \
		"descriptorRead", "(ILjava/io/FileDescriptor;)V", "ra1", NULL, SOCKETS \
	}
/* With what was read, an int or a long. */
#define READS(name, type, call, after)                                              \
	{                                                                           \
		.method = name, .descriptor = type, .entry = {call}, .exit = after, \
		.is_finally = true, .thrown = PLAIN(SOCKETS, "readFailed")          \
	}
#define READS_CHANNEL(name, type, result)                 \
	READS(name, type, SOCKET("channelReading", "a0"), \
	      RESULT(SOCKETS, "channelRead", result, "ra0"))

/* --- threads */

static const struct class_hook thread[] = {
	{.method = "start",
	 .descriptor = "()V",
	 .entry = {{"starting", "(Ljava/lang/Thread;)V", "a0", NULL, TASKS}}},
	{.method = "start",
	 .descriptor = "(Ljdk/internal/vm/ThreadContainer;)V", /* 21: of a thread factory's */
	 .entry = {{"starting", "(Ljava/lang/Thread;)V", "a0", NULL, TASKS}}},
	AT_ENTRY("exit", "()V", PLAIN(SOCKETS, "ending")), /* called by the JVM */
	{.method = "runWith", /* 21: each thread's, a virtual one's too */
	 .descriptor = "(Ljava/lang/Object;Ljava/lang/Runnable;)V",
	 .entry = {{"runs", "(Ljava/lang/Thread;)V", "a0", NULL, TASKS}}},
};

static const struct class_hook virtual_thread[] = {
	{.method = "start",
	 .descriptor = "(Ljdk/internal/vm/ThreadContainer;)V",
	 .entry = {{"starting", "(Ljava/lang/Thread;)V", "a0", NULL, TASKS}}},
	{.method = "mount",
	 .descriptor = "()V",
	 .exit = {"virtualMounted", "(Ljava/lang/Thread;)V", "a0", NULL, NULL}},
	{.method = "unmount",
	 .descriptor = "()V",
	 .entry = {{"virtualUnmounting", "()V", NULL, NULL, NULL}}},
};

/* --- executors and futures */

#define TO_JOB "()Ljava/lang/Runnable;"

static const struct class_hook thread_pool[] = {
	AT_ENTRY("execute", "(Ljava/lang/Runnable;)V", TASK("queued", "a1")),
	AT_EXIT("remove", "(Ljava/lang/Runnable;)Z", RESULT(TASKS, "removed", "Z", "ra1")),
	AT_ENTRY("reject", "(Ljava/lang/Runnable;)V", TASK("dropped", "a1")),
	AT_ENTRY("runWorker", NULL, TASK("workerBegins", "a1")),
	/* Of a worker that has waited in getTask() since before it was rewritten. */
	AT_ENTRY("beforeExecute", NULL, TASK("begins", "a2")),
	{.method = "getTask",
	 .descriptor = TO_JOB,
	 .entry = {PLAIN(TASKS, "taking")},
	 .exit = TASK("taken", "r")},
};

#define SCHEDULED "(Ljava/util/concurrent/RunnableScheduledFuture;)V"

static const struct class_hook scheduled_pool[] = {
	AT_ENTRY("delayedExecute", SCHEDULED, TASK("passed", "a1")),
	AT_ENTRY("reExecutePeriodic", SCHEDULED, TASK("passed", "a1")),
};

static const struct class_hook future_task[] = {
	AT_EXIT("<init>", "(Ljava/util/concurrent/Callable;)V", TASK("made", "a0")),
	AT_EXIT("<init>", "(Ljava/lang/Runnable;Ljava/lang/Object;)V", TASK("made", "a0")),
	JOB("run", "()V"),
	JOB("runAndReset", "()Z"),
};

/* Its methods differ with each JDK; each of them has those that all jobs pass. */
static const struct class_hook fork_join_pool[] = {
	AT_ENTRY("externalPush", "(Ljava/util/concurrent/ForkJoinTask;)V", TASK("passed", "a1")),
	AT_ENTRY("externalSubmit", NULL, TASK("passed", "a1")),
	AT_ENTRY("poolSubmit",
		 "(ZLjava/util/concurrent/ForkJoinTask;)"
		 "Ljava/util/concurrent/ForkJoinTask;",
		 TASK("passed", "a2")),
};

static const struct class_hook fork_join_task[] = {
	AT_ENTRY("fork", NULL, TASK("passed", "a0")),
	{.method = "doExec",
	 .entry = {TASK("helping", "a0")},
	 .exit = PLAIN(TASKS, "leave"),
	 .is_finally = true},
	/* Run by the caller itself, and never forked. */
	AT_ENTRY("invoke", NULL, TASK("passed", "a0")),
	AT_ENTRY("quietlyInvoke", "()V", TASK("passed", "a0")),
	AT_ENTRY("invokeAll",
		 "(Ljava/util/concurrent/ForkJoinTask;Ljava/util/concurrent/ForkJoinTask;)V",
		 TASK("passed", "a0")),
	AT_ENTRY("invokeAll", "([Ljava/util/concurrent/ForkJoinTask;)V", TASK("invoking", "a0")),
	AT_ENTRY("invokeAll", "(Ljava/util/Collection;)Ljava/util/Collection;",
		 TASK("invoking", "a0")),
};

/*
 * What depends on a future is of whoever asked for it, not of who completes the future. So is what the
 * common pool has on its own schedule (25).
 */
static const struct class_hook made[] = {
	AT_EXIT("<init>", NULL, TASK("made", "a0")),
};

static const struct class_hook fires[] = {
	AROUND("tryFire", "(I)Ljava/util/concurrent/CompletableFuture;", TASK("firing", "a0"),
	       PLAIN(TASKS, "fired")),
};

/* java.net.http: sends the next bytes of a request, in any thread. */
static const struct class_hook write_task[] = {
	AT_EXIT("<init>", NULL, TASK("made", "a0")),
	WORKS("run", "()V", TASK("resume", "a0")),
};

/* SubmissionPublisher: one job gives a subscriber what many publish. */
static const struct class_hook subscription[] = {
	AT_EXIT("<init>", NULL, TASK("made", "a0")),
	{.method = "consume",
	 .descriptor = "()V",
	 .entry = {TASK("resume", "a0")},
	 .exit = PLAIN(TASKS, "leave"),
	 .is_finally = true},
};

static const struct class_hook timer[] = {
	AT_ENTRY("sched", "(Ljava/util/TimerTask;JJ)V", TASK("passed", "a1")),
};

static const struct class_hook timer_queue[] = {
	AT_EXIT("getMin", "()Ljava/util/TimerTask;", TASK("timerNext", "r")),
};

/* --- queues */

#define PUT    "(Ljava/lang/Object;)V"
#define OFFER  "(Ljava/lang/Object;)Z"
#define OFFER2 "(Ljava/lang/Object;JLjava/util/concurrent/TimeUnit;)Z"
/* With the queue itself. */
#define MESSAGE(call, with) CALL2(TASKS, call, with)
#define TAKE                "()Ljava/lang/Object;"
#define POLL                "(JLjava/util/concurrent/TimeUnit;)Ljava/lang/Object;"

/* Many messages at once are nobody's. */
#define DRAINS AT_EXIT("drainTo", NULL, PLAIN(TASKS, "drained"))

#define HELP(call, with) CALL2(HELPING, call, with)
#define REMOVES(name)    AT_ENTRY(name, OFFER, CALL(HELPING, "removing", "a0"))

/*
 * Where they are taken out, not where that was asked for: a receiver may have waited there since before
 * it was rewritten.
 */
static const struct class_hook queue[] = {
	AT_ENTRY("put", PUT, MESSAGE("sent", "a1a0")),
	AT_ENTRY("offer", OFFER, MESSAGE("sent", "a1a0")),
	AT_ENTRY("offer", OFFER2, MESSAGE("sent", "a1a0")),
	AT_EXIT("dequeue", TAKE, MESSAGE("received", "ra0")),
	AT_EXIT("poll", TAKE, HELP("sought", "ra0")),
	AT_EXIT("poll", POLL, HELP("sought", "ra0")),
	REMOVES("remove"),
	DRAINS,
};

/* Its other methods end in these. */
static const struct class_hook deque[] = {
	AT_ENTRY("putFirst", PUT, MESSAGE("sent", "a1a0")),
	AT_ENTRY("putLast", PUT, MESSAGE("sent", "a1a0")),
	AT_ENTRY("offerFirst", OFFER, MESSAGE("sent", "a1a0")),
	AT_ENTRY("offerLast", OFFER, MESSAGE("sent", "a1a0")),
	AT_ENTRY("offerFirst", OFFER2, MESSAGE("sent", "a1a0")),
	AT_ENTRY("offerLast", OFFER2, MESSAGE("sent", "a1a0")),
	AT_EXIT("unlinkFirst", TAKE, MESSAGE("received", "ra0")),
	AT_EXIT("unlinkLast", TAKE, MESSAGE("received", "ra0")),
	REMOVES("removeFirstOccurrence"),
	REMOVES("removeLastOccurrence"),
	DRAINS,
};

/* Whoever waits in these has no other place where it goes on. */
#define HANDED_OVER                                                \
	AT_EXIT("take", TAKE, MESSAGE("received", "ra0")),         \
		AT_EXIT("poll", POLL, MESSAGE("received", "ra0")), \
		AT_EXIT("poll", TAKE, MESSAGE("received", "ra0")), DRAINS

static const struct class_hook synchronous_queue[] = {
	AT_ENTRY("put", PUT, MESSAGE("sent", "a1a0")),
	AT_ENTRY("offer", OFFER, MESSAGE("sent", "a1a0")),
	AT_ENTRY("offer", OFFER2, MESSAGE("sent", "a1a0")),
	HANDED_OVER,
};

static const struct class_hook transfer_queue[] = {
	AT_ENTRY("put", PUT, MESSAGE("sent", "a1a0")),
	AT_ENTRY("offer", OFFER, MESSAGE("sent", "a1a0")),
	AT_ENTRY("offer", OFFER2, MESSAGE("sent", "a1a0")),
	AT_ENTRY("add", OFFER, MESSAGE("sent", "a1a0")),
	AT_ENTRY("transfer", PUT, MESSAGE("sent", "a1a0")),
	AT_ENTRY("tryTransfer", OFFER, MESSAGE("sent", "a1a0")),
	AT_ENTRY("tryTransfer", OFFER2, MESSAGE("sent", "a1a0")),
	HANDED_OVER,
};

/*
 * Nobody waits in these, so they are seldom ways to hand messages over; who helps others looks here.
 */
static const struct class_hook concurrent_queue[] = {
	AT_ENTRY("offer", OFFER, HELP("put", "a1a0")),
	AT_EXIT("poll", TAKE, HELP("took", "ra0")),
	REMOVES("remove"),
};

static const struct class_hook concurrent_deque[] = {
	AT_ENTRY("linkFirst", PUT, HELP("put", "a1a0")),
	AT_ENTRY("linkLast", PUT, HELP("put", "a1a0")),
	AT_EXIT("pollFirst", TAKE, HELP("took", "ra0")),
	AT_EXIT("pollLast", TAKE, HELP("took", "ra0")),
	REMOVES("removeFirstOccurrence"),
	REMOVES("removeLastOccurrence"),
};

/* --- sockets */

static const struct class_hook server_channel[] = {
	AT_EXIT("finishAccept",
		"(Ljava/io/FileDescriptor;Ljava/net/SocketAddress;)"
		"Ljava/nio/channels/SocketChannel;",
		SOCKET("channelAccepted", "r")),
	AT_EXIT("accept", "()Ljava/nio/channels/SocketChannel;", SOCKET("channelAccepted", "r")),
};

/* Each way to select comes here. */
static const struct class_hook selector[] = {
	AT_EXIT("lockAndDoSelect", NULL, CALL(LOOPS, "selected", "a0")),
	AT_ENTRY("register", NULL, CALL(LOOPS, "registering", "a0")),
};

static const struct class_hook channel[] = {
	AT_ENTRY("connect", "(Ljava/net/SocketAddress;)Z", SOCKET("channelConnecting", "a0")),
	AT_ENTRY("blockingConnect", NULL, SOCKET("channelConnecting", "a0")),
	AT_EXIT("finishConnect", "()Z", RESULT(SOCKETS, "channelConnected", "Z", "ra0")),
	READS_CHANNEL("read", "(Ljava/nio/ByteBuffer;)I", "I"),
	READS_CHANNEL("read", "([Ljava/nio/ByteBuffer;II)J", "J"),
	READS_CHANNEL("blockingRead", NULL, "I"),
	AT_ENTRY("write", "(Ljava/nio/ByteBuffer;)I", SOCKET("channelWriting", "a0")),
	AT_ENTRY("write", "([Ljava/nio/ByteBuffer;II)J", SOCKET("channelWriting", "a0")),
	AT_ENTRY("blockingWriteFully", NULL, SOCKET("channelWriting", "a0")),
	AT_ENTRY("implCloseSelectableChannel", "()V", SOCKET("channelClosing", "a0")),
};

/* --- asynchronous channels */

#define ASYNC            "tsunagi/agent/Async"
#define ON_CHANNEL(call) CALL(ASYNC, call, "a0")

/* Begins an operation, and may call its handler at once; without one it gives a future. */
#define BEGINS(name, call)                                                            \
	{                                                                             \
		.method = name, .entry = {PLAIN(ASYNC, "calling"), call},             \
		.exit = CALL(ASYNC, "called", "r"), .thrown = PLAIN(ASYNC, "called"), \
		.is_finally = true                                                    \
	}

/* Called by whichever thread of the group was told of it. */
#define ON_EVENT AROUND("onEvent", "(IZ)V", PLAIN(ASYNC, "event"), PLAIN(ASYNC, "called"))

static const struct class_hook async_channel[] = {
	ON_EVENT,
	BEGINS("implRead", ON_CHANNEL("reading")),
	BEGINS("implWrite", ON_CHANNEL("writing")),
	BEGINS("implConnect", ON_CHANNEL("connecting")),
	AT_ENTRY("finishRead", "(Z)V", ON_CHANNEL("reading")),
	AT_ENTRY("finishWrite", "(Z)V", ON_CHANNEL("writesOn")),
	AT_ENTRY("finishConnect", "(Z)V", ON_CHANNEL("goesOn")),
	AT_ENTRY("implClose", "()V", ON_CHANNEL("closing")),
};

/* What each read comes to, before its handler: the first unless there was nothing to read. */
static const struct class_hook async_state[] = {
	AT_ENTRY("enableReading", "()V", ON_CHANNEL("done")),
	AT_ENTRY("end", "()V", PLAIN(ASYNC, "ended")),
};

static const struct class_hook async_server[] = {
	ON_EVENT,
	BEGINS("implAccept", {0}),
	AT_EXIT("finishAccept", NULL, CALL(ASYNC, "accepted", "r")),
};

static const struct class_hook async_group[] = {
	AT_ENTRY("offerTask", "(Ljava/lang/Runnable;)V", TASK("passed", "a1")),
	AT_EXIT("pollTask", TO_JOB, CALL(ASYNC, "task", "r")),
};

static const struct class_hook async_future[] = {
	AT_ENTRY("setResult", "(Ljava/lang/Object;)V", CALL(ASYNC, "completing", "a0")),
	AT_ENTRY("setResult", "(Ljava/lang/Object;Ljava/lang/Throwable;)V",
		 CALL(ASYNC, "completing", "a0")),
	AT_EXIT("get", NULL, CALL(ASYNC, "awaited", "a0")),
};

#define DESCRIPTOR(call)                                                                    \
	{                                                                                   \
		.method = call, .descriptor = "(Ljava/io/FileDescriptor;)V", .loads = "a1", \
		.owner = SOCKETS                                                            \
	}

static const struct class_hook nio_socket[] = {
	AT_EXIT("accept", "(Ljava/net/SocketImpl;)V", SOCKET("socketAccepted", "a1")),
	AT_ENTRY("connect", "(Ljava/net/SocketAddress;I)V", SOCKET("socketConnecting", "a0")),
	READS("tryRead", "(Ljava/io/FileDescriptor;[BII)I", DESCRIPTOR("descriptorReading"), READ),
	AT_ENTRY("tryWrite", "(Ljava/io/FileDescriptor;[BII)I", DESCRIPTOR("descriptorWriting")),
	AT_ENTRY("close", "()V", SOCKET("socketClosing", "a0")),
};

/* Until JDK 12, and by a switch until 17. */
static const struct class_hook plain_socket[] = {
	AT_EXIT("accept", "(Ljava/net/SocketImpl;)V", SOCKET("socketAccepted", "a1")),
	AT_ENTRY("doConnect", "(Ljava/net/InetAddress;II)V", SOCKET("socketConnecting", "a0")),
	AT_ENTRY("close", "()V", SOCKET("socketClosing", "a0")),
};

static const struct class_hook socket_input[] = {
	READS("socketRead", "(Ljava/io/FileDescriptor;[BIII)I", DESCRIPTOR("descriptorReading"),
	      READ),
};

static const struct class_hook socket_output[] = {
	AT_ENTRY("socketWrite", "([BII)V", SOCKET("streamWriting", "a0")),
};

#define FUTURE "java/util/concurrent/CompletableFuture$"

static const struct hook_class classes[] = {
	CLASS("java/lang/Thread", "8", "25", thread),
	CLASS("java/lang/VirtualThread", "21", "25", virtual_thread),
	CLASS("java/util/concurrent/ThreadPoolExecutor", "8", "25", thread_pool),
	CLASS("java/util/concurrent/ScheduledThreadPoolExecutor", "8", "25", scheduled_pool),
	CLASS("java/util/concurrent/FutureTask", "8", "25", future_task),
	CLASS("java/util/concurrent/ForkJoinPool", "8", "25", fork_join_pool),
	CLASS("java/util/concurrent/ForkJoinTask", "8", "25", fork_join_task),
	CLASS("java/util/concurrent/DelayScheduler$ScheduledForkJoinTask", "25", "25", made),
	CLASS(FUTURE "UniCompletion", "8", "25", made),
	CLASS(FUTURE "UniApply", "8", "25", fires),
	CLASS(FUTURE "UniAccept", "8", "25", fires),
	CLASS(FUTURE "UniRun", "8", "25", fires),
	CLASS(FUTURE "UniWhenComplete", "8", "25", fires),
	CLASS(FUTURE "UniHandle", "8", "25", fires),
	CLASS(FUTURE "UniExceptionally", "8", "25", fires),
	CLASS(FUTURE "UniComposeExceptionally", "17", "25", fires),
	CLASS(FUTURE "UniCompose", "8", "25", fires),
	CLASS(FUTURE "UniRelay", "8", "25", fires),
	CLASS(FUTURE "BiApply", "8", "25", fires),
	CLASS(FUTURE "BiAccept", "8", "25", fires),
	CLASS(FUTURE "BiRun", "8", "25", fires),
	CLASS(FUTURE "BiRelay", "8", "25", fires),
	CLASS(FUTURE "OrApply", "8", "25", fires),
	CLASS(FUTURE "OrAccept", "8", "25", fires),
	CLASS(FUTURE "OrRun", "8", "25", fires),
	CLASS("jdk/internal/net/http/Http1Exchange$Http1Publisher$WriteTask", "11", "25",
	      write_task),
	CLASS("java/util/concurrent/SubmissionPublisher$BufferedSubscription", "11", "25",
	      subscription),
	CLASS("java/util/Timer", "8", "25", timer),
	CLASS("java/util/TaskQueue", "8", "25", timer_queue),
	CLASS("java/util/concurrent/LinkedBlockingQueue", "8", "25", queue),
	CLASS("java/util/concurrent/ArrayBlockingQueue", "8", "25", queue),
	CLASS("java/util/concurrent/PriorityBlockingQueue", "8", "25", queue),
	CLASS("java/util/concurrent/SynchronousQueue", "8", "25", synchronous_queue),
	CLASS("java/util/concurrent/LinkedTransferQueue", "8", "25", transfer_queue),
	CLASS("java/util/concurrent/LinkedBlockingDeque", "8", "25", deque),
	CLASS("java/util/concurrent/ConcurrentLinkedQueue", "8", "25", concurrent_queue),
	CLASS("java/util/concurrent/ConcurrentLinkedDeque", "8", "25", concurrent_deque),
	CLASS("sun/nio/ch/ServerSocketChannelImpl", "8", "25", server_channel),
	CLASS("sun/nio/ch/SelectorImpl", "8", "25", selector),
	CLASS("sun/nio/ch/SocketChannelImpl", "8", "25", channel),
	CLASS("sun/nio/ch/UnixAsynchronousSocketChannelImpl", "8", "25", async_channel),
	CLASS("sun/nio/ch/AsynchronousSocketChannelImpl", "8", "25", async_state),
	CLASS("sun/nio/ch/UnixAsynchronousServerSocketChannelImpl", "8", "25", async_server),
	CLASS("sun/nio/ch/AsynchronousChannelGroupImpl", "8", "25", async_group),
	CLASS("sun/nio/ch/PendingFuture", "8", "25", async_future),
	CLASS("sun/nio/ch/NioSocketImpl", "17", "25", nio_socket),
	CLASS("java/net/AbstractPlainSocketImpl", "8", "17", plain_socket),
	CLASS("java/net/SocketInputStream", "8", "17", socket_input),
	CLASS("java/net/SocketOutputStream", "8", "17", socket_output),
};

const struct hook_table hooks_jdk = {classes, sizeof(classes) / sizeof(*classes)};
