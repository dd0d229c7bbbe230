package tsunagi.agent;

import java.lang.ref.WeakReference;

/**
 * What one of Kotlin's coroutines works for, wherever it runs: while it does, what its thread works
 * for is kept here, and is found again when it goes on elsewhere. Used by the hooks of
 * kotlinx.coroutines, through the helper classes that know Kotlin's types (java-kotlin).
 */
public final class Coroutine {
	long context;
	boolean isOwn;

	/* The channel that it waits for a message of. */
	Object source;

	/* The channel whose messages it goes through, and by what. */
	private WeakReference<Object> iterated;
	private WeakReference<Object> iterator;

	/* Older than the agent: what it works for is kept with this, between its turns. */
	private final Object job;

	private final Kind kind;

	enum Kind {
		PLAIN,
		FOLLOWER, /* works for who set it going, each time */
		THREAD, /* none: what the thread worked for before one ran on it */
	}

	private Coroutine(long context, boolean isOwn, Kind kind, Object job) {
		this.context = context;
		this.isOwn = isOwn;
		this.kind = kind;
		this.job = job;
	}

	public static boolean isOn() {
		return Context.isOn();
	}

	/** An application's context or continuation was asked, and threw. */
	public static void failForeign(Throwable cause) {
		Context.failForeign(cause);
	}

	/**
	 * One that is started by the current thread. Its context is its own if the thread's is, and no
	 * other such coroutine has started it: so is the one that answers a request.
	 */
	public static Coroutine born() {
		try {
			Local local = Local.known();
			boolean isFirst;

			if (local == null)
				return new Coroutine(0, false, Kind.PLAIN, null);
			isFirst = local.coroutine == null || local.coroutine.isFollower();
			return new Coroutine(local.context, local.isOwn && isFirst, Kind.PLAIN, null);
		} catch (Throwable cause) {
			Context.fail(cause);
			return new Coroutine(0, false, Kind.PLAIN, null);
		}
	}

	/** One that is started in this one's scope. */
	public Coroutine child() {
		long current = 0;

		try {
			Local local = Local.known();

			if (local != null)
				current = local.context;
		} catch (Throwable cause) {
			Context.fail(cause);
		}
		return new Coroutine(current != 0 ? current : context, false, Kind.PLAIN, null);
	}

	/** It goes on, on the current thread; the result is for unmount(). */
	public Object mount() {
		try {
			Local local;
			Object before;

			if (!Context.isOn())
				return null;
			local = Local.current();
			before = local.coroutine;
			if (before == null && (local.context != 0 || local.isNobodys()))
				before = new Coroutine(local.context, local.isOwn, Kind.THREAD, null);
			local.coroutine = null;
			local.set(context, isOwn);
			local.coroutine = this;
			return before;
		} catch (Throwable cause) {
			Context.fail(cause);
			return null;
		}
	}

	public static void unmount(Object before) {
		try {
			Coroutine outer = (Coroutine) before;
			Local local = outer == null ? Local.known() : Local.current();

			if (local == null)
				return;
			local.coroutine = null;
			if (outer == null) {
				local.set(0, false);
				return;
			}
			local.set(outer.context, outer.isOwn);
			if (outer.kind == Kind.THREAD && outer.context == 0)
				local.work(0);
			local.coroutine = outer.kind == Kind.THREAD ? null : outer;
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** What its thread works for has changed. */
	void follow(long context, boolean isOwn) {
		this.context = context;
		this.isOwn = isOwn;
		if (job == null)
			return;
		Stamps.take(job);
		Stamps.put(job, context);
	}

	/**
	 * Around a turn of any; what it works for is mounted in there: by its element, or by one of the
	 * next two.
	 */
	public static void begin() {
		try {
			Local local = Local.current();

			local.push(local.coroutine);
			local.coroutine = null;
			local.set(0, false);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** The one whose turn it is works for who set it going, see hand(). */
	public static void follow(Object job) {
		try {
			long context = Stamps.take(job);
			Local local = Local.current();

			local.set(context, true);
			local.coroutine = new Coroutine(context, true, Kind.FOLLOWER, null);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** It is older than the agent: what it works for is kept with 'job', the same at each turn. */
	public static void remember(Object job) {
		try {
			long context = Stamps.of(job);
			Local local = Local.current();

			local.set(context, false);
			local.coroutine = new Coroutine(context, false, Kind.PLAIN, job);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	public static void end() {
		try {
			Local local = Local.current();

			local.coroutine = null;
			local.coroutine = (Coroutine) local.pop();
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** For who goes on with 'job' next: it is to work for what the current thread works for. */
	public static void hand(Object job) {
		try {
			long context = Context.current();

			Stamps.take(job);
			Stamps.put(job, context);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	void iterates(Object channel, Object by) {
		iterated = new WeakReference<Object>(channel);
		iterator = new WeakReference<Object>(by);
	}

	/** The channel that 'by' goes through; null: not known. */
	Object iteratedBy(Object by) {
		return iterator != null && iterator.get() == by ? iterated.get() : null;
	}

	boolean isLate() {
		return job != null;
	}

	boolean isFollower() {
		return kind == Kind.FOLLOWER;
	}

	/** It goes on with 'value', which is a message if it waits for one. */
	public void resumed(Object value) {
		try {
			if (source != null)
				goesOn(value);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	private void goesOn(Object value) {
		long sent = Channels.contextOf(value, source);
		Local local;

		source = null;
		if (isOwn)
			return;
		local = Local.known();
		if (local != null && local.coroutine == this)
			local.set(sent, false);
		else
			context = sent;
	}

	/** The same for one that is older than the agent: what it waits for is not known. */
	public static void resumedLate(Object value) {
		try {
			Local local = Local.known();

			if (local == null || local.coroutine == null || !local.coroutine.isLate())
				return;
			if (!local.isOwn && !Tasks.isShared(value)) {
				long sent = Stamps.take(value);

				if (sent != 0)
					local.set(sent, false);
			}
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}
}
