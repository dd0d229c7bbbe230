/*
 * Netty: the turns of its event loops, the tasks and promises that go from one loop to another, and the
 * sockets of its native transport; and reactor-netty's client, whose requests wait for connections.
 */
#include "hooks_rows.h"

/* --- turns of a loop */

#define TURN(name) AROUND(name, "()V", PLAIN(LOOPS, "turn"), PLAIN(LOOPS, "turned"))

static const struct class_hook reads[] = {
	TURN("read"),
};

static const struct class_hook nio[] = {
	TURN("finishConnect"),
	TURN("forceFlush"),
};

static const struct class_hook epoll_in[] = {
	TURN("epollInReady"),
};

static const struct class_hook epoll_out[] = {
	TURN("epollOutReady"),
	TURN("epollRdHupReady"),
};

/* --- what is put into a channel is written when that is flushed, at the end of a turn perhaps */

static const struct class_hook buffer[] = {
	AT_ENTRY("addMessage", NULL, CALL(LOOPS, "buffered", "a0")),
};

static const struct class_hook writer[] = {
	AROUND("doWrite", "(Lio/netty/channel/ChannelOutboundBuffer;)V",
	       CALL(LOOPS, "flushing", "a1"), PLAIN(TASKS, "leave")),
};

/* --- sockets of the native transport; those of NIO are the JDK's */

#define SOCKET(call) CALL(SOCKETS, call, "a0")
#define READS(name, type)                                                             \
	{                                                                             \
		.method = name, .descriptor = type, .entry = {SOCKET("unixReading")}, \
		.exit = {"unixRead", "(ILjava/lang/Object;)V", "ra0", NULL, SOCKETS}, \
		.is_finally = true, .thrown = PLAIN(SOCKETS, "readFailed")            \
	}
#define WRITES(name, type) AT_ENTRY(name, type, SOCKET("unixWriting"))

static const struct class_hook descriptor[] = {
	READS("read", "(Ljava/nio/ByteBuffer;II)I"),      READS("readAddress", "(JII)I"),
	WRITES("write", "(Ljava/nio/ByteBuffer;II)I"),    WRITES("writeAddress", "(JII)I"),
	WRITES("writev", "([Ljava/nio/ByteBuffer;IIJ)J"), WRITES("writevAddresses", "(JI)J"),
	AT_ENTRY("close", "()V", SOCKET("unixClosing")),
};

static const struct class_hook unix_socket[] = {
	READS("recv", "(Ljava/nio/ByteBuffer;II)I"),
	READS("recvAddress", "(JII)I"),
	WRITES("send", "(Ljava/nio/ByteBuffer;II)I"),
	WRITES("sendAddress", "(JII)I"),
	AT_ENTRY("connect", "(Ljava/net/SocketAddress;)Z", SOCKET("unixConnecting")),
	AT_EXIT("finishConnect", "()Z", SOCKET("unixConnected")),
	{.method = "accept",
	 .descriptor = "([B)I",
	 .exit = {"accepted", "(I)V", "r", NULL, SOCKETS}},
};

/* --- tasks and promises */

#define TO_TASK             "()Ljava/lang/Runnable;"
#define TAKES(name, type)   AROUND(name, type, PLAIN(LOOPS, "taking"), PLAIN(LOOPS, "took"))
#define RUNS(name)          WORKS(name, "(Ljava/lang/Runnable;)V", CALL(LOOPS, "task", "a0"))
#define ACCEPTS(name, call) AT_ENTRY(name, "(Ljava/lang/Runnable;)V", CALL(TASKS, call, "a1"))

static const struct class_hook event_executor[] = {
	RUNS("safeExecute"),
	RUNS("runTask"),
};

static const struct class_hook loop_thread[] = {
	ACCEPTS("addTask", "queued"),
	TAKES("takeTask", TO_TASK),
	TAKES("pollTaskFrom", "(Ljava/util/Queue;)Ljava/lang/Runnable;"),
};

static const struct class_hook global_executor[] = {
	ACCEPTS("addTask", "queued"),
	TAKES("takeTask", TO_TASK),
};

static const struct class_hook ordered_executor[] = {
	ACCEPTS("execute", "passed"),
};

/* It is handed to its own loop before its time has come, and may have more than one. */
static const struct class_hook scheduled_task[] = {
	AT_EXIT("<init>", NULL, CALL(TASKS, "made", "a0")),
};

#define LISTENER                "Lio/netty/util/concurrent/GenericFutureListener;"
#define TO_LISTENER(call, with) CALL2(LOOPS, call, with)
#define LISTENS(name, type)                                            \
	AT_ENTRY(name, "(" type ")Lio/netty/util/concurrent/Promise;", \
		 TO_LISTENER("listens", "a0a1"))

static const struct class_hook promise[] = {
	LISTENS("addListener", LISTENER), LISTENS("addListeners", "[" LISTENER),
	WORKS("notifyListenersNow", "()V", CALL(LOOPS, "notifying", "a0")),
	WORKS("notifyListener0", "(Lio/netty/util/concurrent/Future;" LISTENER ")V",
	      TO_LISTENER("telling", "a0a1")), /* static */
};

/* --- reactor-netty: what waits for a connection of its pool, and gets it from whoever is done with one */

static const struct class_hook request_observer[] = {
	AT_EXIT("<init>", NULL, CALL(TASKS, "made", "a0")),
	AROUND("onStateChange",
	       "(Lreactor/netty/Connection;Lreactor/netty/ConnectionObserver$State;)V",
	       CALL(TASKS, "resume", "a0"), PLAIN(TASKS, "leave")),
};

#define CONCURRENT "io/netty/util/concurrent/"
#define NIO        "io/netty/channel/nio/"
#define EPOLL      "io/netty/channel/epoll/"
#define UNIX       "io/netty/channel/unix/"

static const struct hook_class classes[] = {
	CLASS(NIO "AbstractNioByteChannel$NioByteUnsafe", "4.1.94", "4.2.18", reads),
	CLASS(NIO "AbstractNioMessageChannel$NioMessageUnsafe", "4.1.94", "4.2.18", reads),
	CLASS(NIO "AbstractNioChannel$AbstractNioUnsafe", "4.1.94", "4.2.18", nio),
	CLASS(EPOLL "AbstractEpollStreamChannel$EpollStreamUnsafe", "4.1.94", "4.2.18", epoll_in),
	CLASS(EPOLL "AbstractEpollServerChannel$EpollServerSocketUnsafe", "4.1.94", "4.2.18",
	      epoll_in),
	CLASS(EPOLL "AbstractEpollChannel$AbstractEpollUnsafe", "4.1.94", "4.2.18", epoll_out),
	CLASS("io/netty/channel/ChannelOutboundBuffer", "4.1.94", "4.2.18", buffer),
	CLASS("io/netty/channel/socket/nio/NioSocketChannel", "4.1.94", "4.2.18", writer),
	CLASS(EPOLL "AbstractEpollStreamChannel", "4.1.94", "4.2.18", writer),
	CLASS(UNIX "FileDescriptor", "4.1.94", "4.2.18", descriptor),
	CLASS(UNIX "Socket", "4.1.94", "4.2.18", unix_socket),
	CLASS(CONCURRENT "AbstractEventExecutor", "4.1.94", "4.2.18", event_executor),
	CLASS(CONCURRENT "SingleThreadEventExecutor", "4.1.94", "4.2.18", loop_thread),
	CLASS(CONCURRENT "GlobalEventExecutor", "4.1.94", "4.2.18", global_executor),
	CLASS(CONCURRENT "NonStickyEventExecutorGroup$NonStickyOrderedEventExecutor", "4.1.94",
	      "4.2.18", ordered_executor),
	CLASS(CONCURRENT "ScheduledFutureTask", "4.1.94", "4.2.18", scheduled_task),
	CLASS(CONCURRENT "DefaultPromise", "4.1.94", "4.2.18", promise),
	CLASS("reactor/netty/http/client/HttpClientConnect$HttpIOHandlerObserver", "1.2.17",
	      "1.3.7", request_observer),
};

const struct hook_table hooks_netty = {classes, sizeof(classes) / sizeof(*classes)};
