package tsunagi.agent;

import java.io.FileDescriptor;
import java.nio.ByteBuffer;

/**
 * What the other classes cannot do themselves, in slot.c and sockets.c. None of it blocks or makes a
 * system call, but classify() and giveWay().
 */
final class Native {
	private Native() {
	}

	/** This OS thread's struct jvm_slot, empty but for its magic number. */
	static native ByteBuffer slot();

	/** The agent's struct jvm_control. */
	static native ByteBuffer control();

	/** A word for each file descriptor: Sockets says what is in it. */
	static native ByteBuffer sockets();

	/** Finds out what a descriptor is that no hook has seen; returns its word. */
	static native long classify(int fd);

	/** Lets other threads run first, for the n-th time; also the thread that runs a virtual one. */
	static native void giveWay(int n);

	static native int fd(FileDescriptor descriptor);

	/** Of a sun.nio.ch.SocketChannelImpl; -1: it is none. */
	static native int channel(Object channel);

	/** Of a sun.nio.ch.UnixAsynchronousSocketChannelImpl; -1: it is none. */
	static native int asyncChannel(Object channel);

	/** Of a java.net.SocketImpl; -1: it has none. */
	static native int socket(Object socket);

	/** Of an io.netty.channel.unix.FileDescriptor; -1: it is none. */
	static native int unix(Object descriptor);

	/** Of a java.net.SocketOutputStream, which JDK 12 was the last to have. */
	static native int stream(Object stream);

	/** The task a java.util.concurrent.ThreadPoolExecutor$Worker was made with, or null. */
	static native Object firstTask(Object worker);

	/** Whether a java.util.concurrent.CompletableFuture$UniCompletion has not run yet. */
	static native boolean isWaiting(Object dependent);

	/** What a thread that is not virtual was told to run, or null. */
	static native Object target(Thread thread);
}
