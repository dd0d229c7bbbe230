package tsunagi.agent;

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
	private static final int ENABLED = 8; /* struct jvm_control: 32-bit words */
	private static final int LOST = 7; /* and 64-bit ones: 'handovers_lost' */

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
	 * An end of stack or of memory is the application's, and met our code by chance; anything else
	 * is our fault, and nothing here is to be trusted any more.
	 */
	static void fail(Throwable cause) {
		if (cause instanceof VirtualMachineError)
			Local.lose();
		else
			isBroken = true;
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
