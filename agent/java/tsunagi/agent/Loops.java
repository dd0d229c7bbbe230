package tsunagi.agent;

import java.nio.channels.DatagramChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;

/**
 * Event loops: threads that serve many sockets, a turn for each that is ready, and in between run the
 * tasks that were handed to them. Netty's, and the I/O reactor of Apache's client.
 *
 * What a turn or a task works for ends with it. A turn begins with nothing, and learns from the socket
 * that it reads; a task has what it was handed over with, or nothing.
 */
public final class Loops {
	/* Keys of a selector that are looked at one by one. */
	private static final int FEW = 4;

	private Loops() {
	}

	public static void turn() {
		try {
			Local local = Local.current();

			local.push(null);
			local.set(0, false);
			local.loops++;
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	public static void turned() {
		try {
			Local local = Local.current();

			if (local.loops > 0)
				local.loops--;
			local.pop();
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/*
	 * Around a task's run. Of the library's two methods that run a task one calls the other, not in
	 * each version.
	 */
	public static void task(Object task) {
		try {
			Local local = Local.current();
			boolean isInner = local.isRunning(task);
			long context;

			local.push(task);
			if (isInner)
				return;
			context = Stamps.oneRuns(task, Stamps.UNKNOWN);
			if (context == Stamps.UNKNOWN)
				local.set(0, false);
			else
				local.work(context);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** Around what the loop takes out of its queue to run it: that is no message of the application. */
	public static void taking() {
		Tasks.taking();
	}

	public static void took() {
		try {
			Local local = Local.known();

			if (local != null)
				local.isTaking = false;
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/**
	 * Around what depends on a promise: it is of whoever waited for that, not of who keeps it. Where
	 * several requests wait it is nobody's.
	 */
	public static void notifying(Object promise) {
		try {
			Local local = Local.current();
			long context = Stamps.take(promise, Stamps.UNKNOWN);

			local.push(null);
			if (context != Stamps.UNKNOWN)
				local.work(context);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/**
	 * What waits for a promise is added there, one object or an array of them: what it does is of whoever
	 * added it, also where several requests wait.
	 */
	public static void listens(Object promise, Object listener) {
		try {
			if (!Context.isOn())
				return;
			Stamps.pass(promise);
			if (!(listener instanceof Object[])) {
				Stamps.wait(listener, promise);
				return;
			}
			for (Object one : (Object[]) listener)
				Stamps.wait(one, promise);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** Around one of them. If it cannot be told it works for whom notifying() told. */
	public static void telling(Object promise, Object listener) {
		try {
			Local local = Local.current();
			long context = Stamps.takeWaiter(listener, promise, Stamps.UNKNOWN);

			local.push(null);
			if (context != Stamps.UNKNOWN)
				local.work(context);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** The turn goes on for this command; nobody's, if it was given for no request. */
	public static void executing(Object command) {
		try {
			if (Context.isOn())
				Local.current().call(Stamps.ofMade(command));
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/**
	 * It selected: what is ready now has nothing to do with what was ready before, unless it only waits
	 * in the middle of its work.
	 */
	public static void selected(Object selector) {
		try {
			Local local = Context.isOn() ? Local.current() : null;

			if (local == null || local.isAwaiting)
				return;
			if (local.context != 0 && local.isBusy() && isWait(local, (Selector) selector))
				return;
			if (local.isHelping() && !local.selects)
				return;
			local.selects = true;
			if (local.context != 0 || local.isShared() || local.isHelping())
				local.set(0, false);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/*
	 * A loop selects what others registered, or itself in an earlier turn. Who waits in the middle of a
	 * request does so for the one channel that it registered for that, with a selector that had nothing
	 * else: a pool of selectors is shared by all. A job that goes on selecting after that is a loop.
	 * Datagrams, a resolver's, are no requests.
	 */
	private static boolean isWait(Local local, Selector selector) {
		boolean isRegistered = local.waits == hash(selector) && local.waitContext == local.context;
		boolean wasFresh = local.isWaitFresh;
		int n = count(selector);

		if (isRegistered && n <= 1) {
			local.isWaitFresh = false;
			return local.isOwn || wasFresh || n == 0;
		}
		return n > 0 && n <= FEW && areDatagrams(selector);
	}

	/** A channel is about to be registered there. */
	public static void registering(Object selector) {
		try {
			Local local = Context.isOn() ? Local.known() : null;

			if (local == null || local.context == 0 || !local.isBusy()
			    || !isFree((Selector) selector))
				return;
			local.waits = hash(selector);
			local.waitContext = local.context;
			local.isWaitFresh = true;
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	private static int hash(Object selector) {
		return System.identityHashCode(selector) | 1;
	}

	/* It may be closed by now; then it has as many as a loop has. */
	private static int count(Selector selector) {
		try {
			return selector.keys().size();
		} catch (RuntimeException closed) {
			return Integer.MAX_VALUE;
		}
	}

	/* Before JDK 11 the keys may not be gone through while another thread changes them. */
	private static boolean isFree(Selector selector) {
		try {
			if (count(selector) > FEW)
				return false;
			for (SelectionKey key : selector.keys())
				if (key.isValid())
					return false;
			return true;
		} catch (RuntimeException changed) {
			return false;
		}
	}

	private static boolean areDatagrams(Selector selector) {
		try {
			for (SelectionKey key : selector.keys())
				if (!(key.channel() instanceof DatagramChannel))
					return false;
			return true;
		} catch (RuntimeException changed) {
			return false;
		}
	}

	/** Around a wait by which no turn ends. */
	public static void awaiting() {
		await(true);
	}

	public static void awaited() {
		await(false);
	}

	private static void await(boolean isAwaiting) {
		try {
			Local local = Local.known();

			if (local != null)
				local.isAwaiting = isAwaiting;
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** What a pool of connections gives is for whoever waited with that handler. */
	public static void leased(Object lease, Object handler) {
		try {
			Stamps.put(lease, Stamps.take(handler));
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** A message waits in a channel's buffer, which may be flushed in another's turn. */
	public static void buffered(Object buffer) {
		try {
			if (Context.isOn())
				Stamps.mix(buffer);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** Around that: what is written is of whoever put it there; of several, nobody's. */
	public static void flushing(Object buffer) {
		try {
			Local local = Local.current();
			long context = Stamps.takeAll(buffer, Stamps.UNKNOWN);

			local.push(null);
			if (context == Stamps.SEVERAL)
				local.workForMany();
			else if (context != Stamps.UNKNOWN)
				local.work(context);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}
}
