package tsunagi.agent;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.util.concurrent.atomic.AtomicLong;

/**
 * What the current thread works for: a context is the number of what a server's socket received, 0
 * is nothing. Called by the code that hooks put into classes of the JDK and of libraries, and by the
 * agent's other classes. Nothing here throws, blocks or makes a system call; nothing happens while
 * the daemon has the agent switched off.
 *
 * A thread's context is its *own* if it read the request itself, or a hook knows for sure (mount());
 * it is *adopted* if it came with the thread's birth, a job or a message: then the next one replaces
 * it.
 */
public final class Context {
	private static final int STATE = 7; /* struct jvm_control: 32-bit words */
	private static final int ENABLED = 8;
	private static final int LOST = 7; /* 64-bit ones: 'handovers_lost' */
	private static final int REASON = 104; /* and bytes */
	private static final int REASON_END = 256;
	private static final int BROKEN = 3; /* enum jvm_agent_state */

	private static final IntBuffer control =
		Native.control().order(ByteOrder.nativeOrder()).asIntBuffer();
	private static final LongBuffer counters =
		Native.control().order(ByteOrder.nativeOrder()).asLongBuffer();
	/* Of no request, and known to be: the kernel side takes 0 for "ask the thread". */
	static final long NOBODY = 1;

	private static final AtomicLong last = new AtomicLong(NOBODY);
	private static final AtomicLong lost = new AtomicLong();
	private static volatile boolean isBroken;

	private Context() {
	}

	static boolean isOn() {
		return control.get(ENABLED) != 0 && !isBroken;
	}

	static long next() {
		return last.incrementAndGet();
	}

	/** Whether it is the number of one of the last n requests. */
	static boolean isOfLast(long context, int n) {
		return last.get() - context < n;
	}

	/* Whoever writes an older number than another thread writes the newer one behind it. */
	static void lose() {
		long n;

		lost.incrementAndGet();
		do {
			n = lost.get();
			counters.put(LOST, n);
		} while (n != lost.get());
	}

	/*
	 * An end of stack or of memory is the application's, and met our code by chance. So is
	 * Thread.stop(), which is to stop the thread. Anything else is our fault, and nothing here is to be
	 * trusted any more.
	 */
	static void fail(Throwable cause) {
		boolean isStop = isStop(cause);

		if (isStop || cause instanceof VirtualMachineError)
			Local.lose();
		else
			giveUp(cause);
		if (isStop)
			Context.<RuntimeException>rethrow(cause);
	}

	/** The same, but the application's own code was called, and threw: there is no context then. */
	static void failForeign(Throwable cause) {
		/* A library's types are not what they were taken for. */
		boolean isOurs = cause instanceof LinkageError;

		if (isOurs || isStop(cause) || cause instanceof VirtualMachineError)
			fail(cause);
		else
			lose();
	}

	/* By name: some day a JDK may be without it. */
	private static boolean isStop(Throwable cause) {
		return cause.getClass().getName().equals("java.lang.ThreadDeath");
	}

	@SuppressWarnings("unchecked")
	private static <T extends Throwable> void rethrow(Throwable cause) throws T {
		throw (T) cause;
	}

	/* For good: what the daemon switches on afterwards stays off, and it reads why. */
	private static void giveUp(Throwable cause) {
		if (isBroken)
			return;
		explain("it failed by " + cause.getClass().getName() + placeOf(cause));
		isBroken = true;
		control.put(STATE, BROKEN);
		control.put(ENABLED, 0);
		silence();
	}

	private static String placeOf(Throwable cause) {
		try {
			StackTraceElement[] trace = cause.getStackTrace();

			return trace.length == 0 ? "" : " in " + trace[0];
		} catch (Throwable none) {
			return "";
		}
	}

	private static void explain(String reason) {
		ByteBuffer bytes = Native.control();
		int n = Math.min(reason.length(), REASON_END - REASON - 1);

		for (int i = 0; i < n; i++)
			bytes.put(REASON + i, (byte) reason.charAt(i));
		bytes.put(REASON + n, (byte) 0);
	}

	/*
	 * Once it has given up no slot is written any more, and the daemon hears of it after a while: until
	 * then a thread that comes to a socket is not to have worked for its last request for ever.
	 */
	static void silence() {
		try {
			if (isBroken)
				Local.ofThread().silence();
		} catch (Throwable again) {
			return;
		}
	}

	public static long current() {
		try {
			long context = isOn() ? Local.ofThread().slot.get(Local.CONTEXT) : 0;

			return context == NOBODY ? 0 : context;
		} catch (Throwable cause) {
			fail(cause);
			return 0;
		}
	}

	public static void mount(long context) {
		put(context, true);
	}

	public static void clear() {
		put(0, false);
	}

	private static void put(long context, boolean isOwn) {
		try {
			Local local;

			if (!isOn())
				return;
			local = Local.toTake(context);
			if (local != null)
				local.set(context, isOwn);
		} catch (Throwable cause) {
			fail(cause);
		}
	}

	/** What came with a birth, a job or a message, also if that is 0: not for an own context. */
	public static void adopt(long context) {
		try {
			Local local;

			if (!isOn())
				return;
			local = Local.toTake(context);
			if (local != null && !local.isOwn)
				local.adopt(context);
		} catch (Throwable cause) {
			fail(cause);
		}
	}

	/*
	 * Each push() has its pop(), also if the agent is switched on or off between the two: else a
	 * later pop() would bring back what is not its own.
	 */
	public static void push() {
		try {
			Local.current().push(null);
		} catch (Throwable cause) {
			fail(cause);
		}
	}

	public static void pop() {
		try {
			Local.current().pop();
		} catch (Throwable cause) {
			fail(cause);
		}
	}

	/** Reads of clients tell whose turn it is there. */
	public static boolean inLoop() {
		try {
			Local local = isOn() ? Local.known() : null;

			return local != null && local.loops > 0;
		} catch (Throwable cause) {
			fail(cause);
			return false;
		}
	}

	/* Also while it is off: what a thread then remembers must be of the virtual one that it carries. */
	public static void virtualMounted(Thread virtual) {
		try {
			Local.mounted(virtual);
		} catch (Throwable cause) {
			fail(cause);
		}
	}

	public static void virtualUnmounting() {
		try {
			Local.unmounting();
		} catch (Throwable cause) {
			fail(cause);
		}
	}
}
