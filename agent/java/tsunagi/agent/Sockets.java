package tsunagi.agent;

import java.io.FileDescriptor;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * What each of the process's sockets works for, by its file descriptor. Called where the JDK or a
 * library accepts, connects, reads and writes, with the descriptor, or with the JDK's object that has
 * it.
 *
 * A server's socket gets a new context each time that it is read for the first time since it was
 * written; the thread that reads works for it. A client's has the context of whoever wrote last, as long
 * as one waits for an answer at a time.
 */
public final class Sockets {
	/* A descriptor's word, see sockets.c: what it is, whether it was written, its context. */
	private static final int SERVER = 1;
	private static final int CLIENT = 2;
	private static final int KIND = 3;
	private static final int WRITTEN = 4;
	private static final int SHIFT = 3;

	private static final LongBuffer words =
		Native.sockets().order(ByteOrder.nativeOrder()).asLongBuffer();

	/*
	 * Which OS thread reads a server's socket right now. It may be told a context and sleep before it
	 * gets to read, or wait in there, until the response was written and the next request has come.
	 */
	private static final AtomicReferenceArray<Local> readers =
		new AtomicReferenceArray<Local>(words.capacity());

	/*
	 * Who read a server's socket first since it was written, by number, as long as nobody else has: it
	 * may have found nothing, and have turned to something else with the context that it was told. So
	 * who is next gets another; if both received parts of one request, either leads to it.
	 */
	private static final int[] firsts = new int[words.capacity()];

	/*
	 * Of a client's socket, by number: it was written, and nothing was read since. And: it was written
	 * for one while another waited there for an answer, so it is shared by many, and until it is closed
	 * nobody can tell whose it is what comes. Apart from the words, so that who reads and who writes at
	 * once undo nothing of each other's.
	 */
	private static final boolean[] awaits = new boolean[words.capacity()];
	private static final boolean[] shared = new boolean[words.capacity()];

	/* So often an ending thread lets others go first: whoever holds it met the end of its stack then. */
	private static final int HELD_MAX = 1000;

	private Sockets() {
	}

	private static boolean isKnown(int fd) {
		boolean isOn = Context.isOn();

		if (!isOn)
			Context.silence();
		return isOn && fd >= 0 && fd < words.capacity();
	}

	private static boolean isInTable(int fd) {
		return fd >= 0 && fd < words.capacity();
	}

	/*
	 * The number is another socket's now, also while the agent is off: when it is on again the word is not
	 * to be of one that is gone. Whoever was reading there is not found any more.
	 */
	private static void begin(int fd, long word) {
		words.put(fd, word);
		firsts[fd] = 0;
		awaits[fd] = false;
		shared[fd] = false;
		readers.set(fd, null);
	}

	/** A server's connection; who accepts it works for what comes first. */
	public static void accepted(int fd) {
		try {
			if (!isInTable(fd))
				return;
			begin(fd, SERVER);
			if (isKnown(fd))
				Context.mount(renew(fd));
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	private static long renew(int fd) {
		long context = Context.next();

		words.put(fd, context << SHIFT | SERVER);
		return context;
	}

	public static void connecting(int fd) {
		try {
			if (isInTable(fd))
				begin(fd, Context.current() << SHIFT | CLIENT);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	private static void connected(int fd) {
		try {
			if (isKnown(fd) && (words.get(fd) & KIND) == CLIENT)
				readClient(fd);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	public static void reading(int fd) {
		try {
			long word;

			if (!isKnown(fd))
				return;
			word = words.get(fd);
			if ((word & KIND) == 0)
				word = Native.classify(fd);
			if ((word & KIND) == SERVER)
				readServer(fd, word);
			else if ((word & KIND) == CLIENT)
				readClient(fd);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** The next, also if it is not ready yet: a client's socket works for whoever wrote there. */
	static void asyncReading(int fd) {
		if (isServer(fd))
			reading(fd);
		else
			asyncGoesOn(fd);
	}

	static void asyncGoesOn(int fd) {
		try {
			long context = isKnown(fd) ? clientContext(fd) : 0;

			if (isKnown(fd))
				Local.current().work(context == Context.NOBODY ? 0 : context);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** It is about to call who waits for what it has read. */
	static void asyncRead(int fd) {
		answered(fd, 1);
		done(1);
	}

	/* A client's socket has its writer's context already. */
	static void asyncWritesOn(int fd) {
		if (isServer(fd))
			writing(fd);
	}

	private static boolean isServer(int fd) {
		try {
			long word = isKnown(fd) ? words.get(fd) : 0;

			if (isKnown(fd) && (word & KIND) == 0)
				word = Native.classify(fd);
			return (word & KIND) == SERVER;
		} catch (Throwable cause) {
			Context.fail(cause);
			return false;
		}
	}

	private static void readServer(int fd, long word) {
		Local local = Local.current();

		local.readBegins(word >>> SHIFT);
		do {
			long context = word >>> SHIFT;

			if (context == 0 || (word & WRITTEN) != 0) {
				context = renew(fd);
				firsts[fd] = local.number;
			} else if (firsts[fd] != 0 && firsts[fd] != local.number) {
				context = renew(fd);
				firsts[fd] = 0;
			}
			local.set(context, true);
			local.setReceiving(context);
			if (local.slot == null)
				return;
			/* It may have found the end of its stack before it could say that it had read. */
			if (local.reads != fd)
				leave(local);
			local.reads = fd;
			readers.set(fd, local);
			/* Written before this thread was to be found there? */
			word = words.get(fd);
		} while ((word & WRITTEN) != 0);
	}

	/*
	 * A thread that selects serves many sockets, a turn for each that is ready, and nobody says where
	 * one ends: what a client's socket brings is of whoever wrote there, not of the turn before. Its end
	 * may be met by who only asks whether it is open still, in a turn for another: then that is nobody's.
	 */
	private static void turn(int fd, long n) {
		try {
			Local local = isKnown(fd) && (words.get(fd) & KIND) == CLIENT ? Local.known() : null;
			long context;

			if (local == null || !local.selects || local.loops > 0 || isNothing(n))
				return;
			context = clientContext(fd);
			if (context == Context.NOBODY && n > 0)
				local.share();
			else if (local.context != context)
				local.set(n > 0 || local.context == 0 ? context : 0, false);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/* What a read that found nothing gives: 0, or what sun.nio.ch.IOStatus has for it. */
	private static boolean isNothing(long n) {
		return n == 0 || n < -1;
	}

	/* For whom is what comes there: 0 is not known, NOBODY what is known to be for no one request. */
	private static long clientContext(int fd) {
		return shared[fd] ? Context.NOBODY : words.get(fd) >>> SHIFT;
	}

	/* A thread that waits for its own response needs nobody to say whose it is. */
	private static void readClient(int fd) {
		long context = clientContext(fd);
		Local local;

		if (context == 0 || !Context.inLoop())
			return;
		local = Local.current();
		if (local.context != 0 || local.isNobodys())
			return;
		if (context == Context.NOBODY)
			local.share();
		else
			local.set(context, false);
	}

	/** It threw. */
	public static void readFailed() {
		done(0);
	}

	/* Who waited there, waits no longer. */
	private static void answered(int fd, long n) {
		if (n > 0 && fd >= 0 && fd < awaits.length)
			awaits[fd] = false;
	}

	static void done(long n) {
		try {
			Local local = Local.known();

			if (local == null || Local.ofThread().slot.get(Local.RECEIVING) == 0)
				return;
			if (local.slot != null)
				renewed(local);
			local.setReceiving(0);
			if (n <= 0)
				local.readNothing(!isNothing(n));
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/* While it read, somebody may have written. */
	private static void renewed(Local local) {
		long context;

		leave(local);
		context = local.slot.get(Local.RECEIVING);
		if (context != local.context)
			local.set(context, true);
	}

	/* Before the response is sent, so before the next request can come. */
	private static void writeServer(int fd, long word) {
		Local reader;

		words.put(fd, word | WRITTEN);
		reader = readers.get(fd);
		if (reader == null)
			return;
		/* Its slot is memory of its thread, which does not end before it is let go: see ending(). */
		reader.held.incrementAndGet();
		try {
			if (readers.compareAndSet(fd, reader, null)) {
				reader.slot.put(Local.RECEIVING, renew(fd));
				firsts[fd] = reader.number;
			}
		} finally {
			reader.held.decrementAndGet();
		}
	}

	/** It is not to be found where it read last; nowhere else it is. */
	static void leave(Local local) {
		readers.compareAndSet(local.reads, local, null);
	}

	/** A thread is about to end, and its slot with it. */
	public static void ending() {
		try {
			Local local = Local.ofEnding();

			if (local == null)
				return;
			leave(local);
			for (int i = 0; i < HELD_MAX && local.held.get() != 0; i++)
				Native.giveWay(i);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	public static void writing(int fd) {
		try {
			long word;

			if (!isKnown(fd)) {
				writtenOff(fd);
				return;
			}
			word = words.get(fd);
			if ((word & KIND) == 0)
				word = Native.classify(fd);
			if ((word & KIND) == SERVER)
				writeServer(fd, word);
			else if ((word & KIND) == CLIENT)
				writeClient(fd);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/* It was answered while the agent is off: what comes next has another context. */
	private static void writtenOff(int fd) {
		long word = isInTable(fd) ? words.get(fd) : 0;

		if ((word & KIND) == SERVER)
			words.put(fd, word | WRITTEN);
	}

	/* What a loop writes in a turn of its own is what is left of the last one's. */
	private static void writeClient(int fd) {
		Local local = Local.known();
		long context = local == null ? 0 : local.context;

		if (context == 0 && Context.inLoop() && !local.isNobodys())
			readClient(fd);
		else
			written(fd, context, local != null && local.writesForMany);
	}

	/*
	 * A pool lends a connection to one request after the other: the next one writes when the last one's
	 * answer is there. Where two wait at once it is no such pool's, also if for whom the first wrote is not
	 * known. What is written for no request that is known may be part of the one's before (a body, a
	 * handshake): that alone does not tell.
	 */
	private static void written(int fd, long context, boolean isForMany) {
		long before = words.get(fd) >>> SHIFT;
		boolean isOfTwo = context != 0 && before != Context.NOBODY && before != context;

		if (isForMany || awaits[fd] && isOfTwo)
			shared[fd] = true;
		else if (context == 0 && before != 0)
			words.put(fd, Context.NOBODY << SHIFT | CLIENT);
		else if (!awaits[fd] || before != Context.NOBODY)
			words.put(fd, context << SHIFT | CLIENT);
		awaits[fd] = true;
	}

	/** A descriptor that is given back: the next to have its number is another. */
	public static void closing(int fd) {
		try {
			if (isInTable(fd))
				begin(fd, 0);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	public static void channelAccepted(Object channel) {
		if (channel != null)
			accepted(Native.channel(channel));
	}

	public static void channelConnecting(Object channel) {
		connecting(Native.channel(channel));
	}

	public static void channelConnected(boolean is, Object channel) {
		int fd = Native.channel(channel);

		connected(fd);
		turn(fd, is ? 1 : 0);
	}

	public static void channelReading(Object channel) {
		reading(Native.channel(channel));
	}

	public static void channelRead(int n, Object channel) {
		channelRead((long) n, channel);
	}

	public static void channelRead(long n, Object channel) {
		int fd = Native.channel(channel);

		done(n);
		answered(fd, n);
		turn(fd, n);
	}

	public static void channelWriting(Object channel) {
		writing(Native.channel(channel));
	}

	public static void channelClosing(Object channel) {
		closing(Native.channel(channel));
	}

	public static void socketAccepted(Object socket) {
		if (socket != null)
			accepted(Native.socket(socket));
	}

	public static void socketConnecting(Object socket) {
		connecting(Native.socket(socket));
	}

	public static void socketClosing(Object socket) {
		closing(Native.socket(socket));
	}

	public static void descriptorReading(FileDescriptor descriptor) {
		if (descriptor != null)
			reading(Native.fd(descriptor));
	}

	public static void descriptorRead(int n, FileDescriptor descriptor) {
		done(n);
		if (descriptor != null)
			answered(Native.fd(descriptor), n);
	}

	public static void descriptorWriting(FileDescriptor descriptor) {
		if (descriptor != null)
			writing(Native.fd(descriptor));
	}

	public static void streamWriting(Object stream) {
		writing(Native.stream(stream));
	}

	public static void unixConnecting(Object descriptor) {
		connecting(Native.unix(descriptor));
	}

	public static void unixConnected(Object descriptor) {
		connected(Native.unix(descriptor));
	}

	public static void unixReading(Object descriptor) {
		reading(Native.unix(descriptor));
	}

	public static void unixRead(int n, Object descriptor) {
		done(n);
		answered(Native.unix(descriptor), n);
	}

	public static void unixWriting(Object descriptor) {
		writing(Native.unix(descriptor));
	}

	public static void unixClosing(Object descriptor) {
		closing(Native.unix(descriptor));
	}
}
