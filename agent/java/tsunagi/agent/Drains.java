package tsunagi.agent;

/**
 * Executors that nobody knows by name: whatever has execute(Runnable) of its own, and the classes inside
 * it. Many have a queue, and one job in somebody else's pool, or whoever comes first, runs what is in it.
 * So each Runnable is stamped where it is handed over, and wherever such a class calls run() that is done
 * for who handed it over. What was handed over for no request is remembered too: it is not of whoever
 * runs it.
 *
 * A run that throws comes back without ran(). So a method that runs others begins with a mark, and what
 * was remembered above it is dropped where the method catches that, by the next run and at its end.
 */
public final class Drains {
	private Drains() {
	}

	public static void handed(Object job) {
		try {
			if (Context.isOn() && job != null && !Tasks.isPassedByChance(job))
				Stamps.mix(job);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** A method begins that calls somebody's run(). */
	public static void enter() {
		try {
			Local.current().mark();
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** One that does so in a loop: between the runs it works for nobody, but in a request's own thread. */
	public static void enterLoop() {
		try {
			Local local = Local.current();

			local.mark();
			if (Context.isOn() && local.context != 0 && !local.isOwn)
				local.work(0);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	public static void leave() {
		try {
			Local.current().unmark();
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/**
	 * Around one of many runs: what is not stamped was handed over before the agent came, or is part of
	 * the library's works. It is not of whoever happens to run it.
	 */
	public static void running(Object job) {
		run(job, false);
	}

	/** Around a run by itself: it may be a callback, and the thread's own request stays what it is. */
	public static void calling(Object job) {
		run(job, true);
	}

	private static void run(Object job, boolean mayBeCallback) {
		try {
			Local local = Local.current();
			long context;

			local.cut();
			local.push(null);
			if (!Context.isOn())
				return;
			context = Stamps.ofRun(job, Stamps.UNKNOWN);
			/* Its stamp may have been taken where it came out of a queue of the JDK. */
			if (context == Stamps.UNKNOWN && !local.isOwn && local.tookLast(job))
				context = local.takenContext;
			if (context == Stamps.UNKNOWN && mayBeCallback && local.isOwn)
				return;
			if (context == Stamps.UNKNOWN)
				local.work(0);
			else if (context == 0 || context != local.context)
				local.serve(context);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/**
	 * Around a run by who is no executor, as the objects are that an executor puts its jobs into: what was
	 * handed over is of who did that, in there too. What was not says nothing: it may be any callback. Who
	 * read a request himself and comes upon another's is nobody's.
	 */
	public static void passing(Object job) {
		try {
			Local local = Local.current();
			long context;

			local.cut();
			context = Stamps.ofRun(job, Stamps.UNKNOWN);
			if (context == Stamps.UNKNOWN || context != 0 && context == local.context) {
				local.keep();
				return;
			}
			local.push(null);
			local.serve(local.isOwn ? 0 : context);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** The method ends in which such runs were: what its thread received meanwhile it keeps. */
	public static void passed() {
		try {
			Local.current().drop();
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/**
	 * Around the handing of what waited for a future to its executor, which may run it here and now: by who
	 * completes that future, for who waited.
	 */
	public static void listening(Object listener) {
		try {
			Local local = Local.current();

			local.push(null);
			if (Context.isOn())
				local.work(Stamps.oneRuns(listener, 0));
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** Whatever a run threw is caught in the method that called it. */
	public static void caught() {
		try {
			Local.current().cut();
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	public static void ran() {
		Context.pop();
	}
}
