package tsunagi.agent;

import java.util.List;
import java.util.RandomAccess;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.FutureTask;

/**
 * Work that is handed over: whoever runs it works for what it was handed over with, as long as it
 * runs. Jobs are stamped and never wrapped, so that a pool's queue, its handlers, comparators and
 * stack traces see the application's objects and frames alone.
 */
public final class Tasks {
	private static final Class<?> TIMER = timerThread();

	/* Their threads serve whoever comes: the request that was the reason to start one is chance. */
	private static final String[] WORKERS = {
		"java.util.concurrent.ForkJoin", "java.util.concurrent.ThreadPoolExecutor",
		"jdk.internal.misc.CarrierThread", "io.netty.util.",
		"kotlinx.coroutines.", "org.apache.hc.core5.", "jdk.internal.net.http.",
		"com.lmax.disruptor.",
	};

	private Tasks() {
	}

	private static Class<?> timerThread() {
		try {
			return Class.forName("java.util.TimerThread");
		} catch (Throwable none) {
			return null;
		}
	}

	private static boolean isWorker(Object object) {
		String name = object == null ? "" : object.getClass().getName();

		for (String worker : WORKERS)
			if (name.startsWith(worker))
				return true;
		return false;
	}

	public static void made(Object job) {
		Stamps.put(job);
	}

	/*
	 * Whoever passes these on does so by chance: a virtual thread has its context with it; a call of
	 * OkHttp that had to wait is of whoever made it, also if that was before the agent came, and not
	 * of whoever ends and lets it go.
	 */
	static boolean isPassedByChance(Object job) {
		String name = job.getClass().getName();

		return name.startsWith("java.lang.VirtualThread") || name.startsWith("okhttp3.");
	}

	public static void passed(Object job) {
		try {
			if (Context.isOn() && job != null && !isPassedByChance(job))
				Stamps.pass(job);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/**
	 * Somebody waits for a result, or is made to wait for one: what runs when it is there is of him, not of
	 * who brings it; see Loops.notifying(). Of several for one object it is nobody's.
	 */
	public static void waits(Object result) {
		try {
			if (Context.isOn())
				Stamps.mix(result);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** As passed(), to who gives it back for sure: runs it, or drops it. A job may be there many times. */
	public static void queued(Object job) {
		try {
			if (!Context.isOn() || job == null || isPassedByChance(job))
				return;
			if (Context.current() != 0 || !isMadeForOne(job))
				Stamps.queue(job);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/* Nobody hands it over twice: if that is for no request it needs no stamp. */
	private static boolean isMadeForOne(Object job) {
		return job instanceof FutureTask
		       || job instanceof CompletableFuture.AsynchronousCompletionTask;
	}

	/** A job that the pool gives back. */
	public static void dropped(Object job) {
		try {
			Stamps.takeOne(job);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	public static void removed(boolean is, Object job) {
		if (is)
			dropped(job);
	}

	/* What depends on a future and is run by a pool: its own run wants the stamp that it was made with. */
	private static boolean isDependent(Object job) {
		return job instanceof CompletableFuture.AsynchronousCompletionTask;
	}

	/* So does whatever else was stamped where it was made, and may be handed to a pool again and again. */
	private static long takeOne(Object job) {
		return job instanceof FutureTask ? Stamps.takeOne(job) : Stamps.takeOnePassed(job);
	}

	/* Until pop(), which brings 'job' back. */
	private static void run(long context, Object job) {
		Local local = Local.current();

		local.push(job);
		if (context != 0)
			local.set(context, false);
	}

	/** Around a job's own run, whoever calls it: its pool as a rule, which took its stamp a moment ago. */
	public static void enter(Object job) {
		try {
			run(Stamps.take(job), null);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/**
	 * The same, but whoever waits for another may be the one who runs it: without a stamp it is not his. It
	 * was forked for no request, or before the agent came, or its stamp was lost.
	 */
	public static void helping(Object job) {
		try {
			runOwn(isDependent(job) ? Stamps.ofRun(job, 0) : Stamps.take(job), null);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	private static void runOwn(long context, Object job) {
		Local local = Local.current();

		local.push(job);
		if (context != 0 || local.context != 0 && Context.isOn())
			local.serve(context);
	}

	/** Of an array or a list of jobs the first is not forked, but run at once. */
	public static void invoking(Object jobs) {
		if (jobs instanceof Object[])
			passed(((Object[]) jobs).length == 0 ? null : ((Object[]) jobs)[0]);
		else if (jobs instanceof RandomAccess && jobs instanceof List)
			passed(first((List<?>) jobs));
	}

	/* A list of the application's own is not asked: its code is not to be run once more than it was. */
	private static Object first(List<?> jobs) {
		try {
			return jobs.getClass().getClassLoader() == null ? jobs.get(0) : null;
		} catch (RuntimeException empty) {
			return null;
		}
	}

	public static void leave() {
		Context.pop();
	}

	/**
	 * Around an attempt to run what depends on a future, by whoever completes it. Not each attempt
	 * is the last, and others may try meanwhile: it keeps its stamp until it is done. Without one it is
	 * nobody's: it was asked for by no request, or before the agent came.
	 */
	public static void firing(Object dependent) {
		try {
			long context = Stamps.of(dependent);

			runOwn(context, context != 0 ? dependent : null);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	public static void fired() {
		try {
			Object dependent = Local.current().pop();

			if (dependent != null && !Native.isWaiting(dependent))
				Stamps.take(dependent);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/**
	 * Around a part of a job that has more of them, and was stamped where it was made. Without a stamp
	 * it is nobody's: it was made for no request, or before the agent came, and whoever lets it go on
	 * does so by chance.
	 */
	public static void resume(Object job) {
		try {
			Local local = Local.current();

			local.push(null);
			local.work(Stamps.ofMade(job));
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** Around a job that does the work of many, and is nobody's itself. */
	public static void deliver() {
		resume(null);
	}

	/**
	 * Around a call that a thread makes and waits for, for its own request or the one that the call was
	 * made for: what it hears meanwhile from the client's other threads is no message to it, and
	 * changes nothing, also if it is nobody's: made before the agent came, or for no request.
	 */
	public static void calling(Object call) {
		try {
			long context = Stamps.of(call);
			Local local = Local.current();

			local.push(null);
			local.call(context != 0 ? context : local.context);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** A pool's thread begins, with its first job. */
	public static void workerBegins(Object worker) {
		try {
			beginJob(Native.firstTask(worker));
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/* Also while it is off: it may be on when the job comes. */
	public static void taking() {
		try {
			Local local = Local.known();

			if (local != null)
				local.isTaking = true;
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	public static void taken(Object job) {
		try {
			Local local = Local.known();

			if (local != null)
				local.isTaking = false;
			beginJob(job);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/* Also while it is off, so that all are counted that come back. */
	private static void beginJob(Object job) {
		long context = takeOne(job);

		if (!Context.isOn())
			return;
		begin(context);
		if (job != null)
			Local.current().hasBegun = true;
	}

	/** A pool's thread is about to run a job, which it took as a rule a moment ago: see taken(). */
	public static void begins(Object job) {
		try {
			Local local = Local.known();
			boolean hasBegun = local != null && local.hasBegun;
			long context = hasBegun ? 0 : takeOne(job);

			if (local != null)
				local.hasBegun = false;
			if (context != 0 && Context.isOn())
				begin(context);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** A thread that takes one job after the other runs the next; its stamp may be gone where it took it. */
	public static void next(Object job) {
		try {
			Local local = Context.isOn() ? Local.current() : null;

			if (local == null)
				return;
			begin(!local.isOwn && local.tookLast(job) ? local.takenContext : Stamps.oneRuns(job, 0));
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	private static void begin(long context) {
		Local local = Local.toTake(context);

		if (local != null)
			local.reset(context);
	}

	/** A message came out of a queue: its receiver goes on with what it was sent with, see Local. */
	public static void received(Object message, Object queue) {
		try {
			Local local;
			long context;

			if (!Context.isOn())
				return;
			local = Local.known();
			if (local != null && local.isTaking)
				return;
			Helping.took(local, message, queue, false);
			if (message == null)
				return;
			context = local != null && local.isOwn ? 0 : Stamps.oneRuns(message, 0);
			if (local == null && context != 0)
				local = Local.current();
			if (local != null)
				local.receive(context, message, queue);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** Any number of messages came out of a queue at once. */
	public static void drained() {
		try {
			Local local = Context.isOn() ? Local.known() : null;

			if (local != null && !local.isOwn)
				local.mix();
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** Values that are shared by their nature say nothing of who sent them. */
	static boolean isShared(Object message) {
		return message == null || message instanceof String || message instanceof Number
		       || message instanceof Enum || message instanceof Boolean
		       || message instanceof Character || message instanceof Class
		       || message.getClass().getName().equals("kotlin.Unit");
	}

	public static void sent(Object message, Object queue) {
		try {
			Local local;

			if (!Context.isOn())
				return;
			local = Local.known();
			Helping.put(local, message, queue, false);
			if (isShared(message) || isPassedByChance(message))
				return;
			if (local != null && local.gives(message, queue))
				Queues.addPool(queue);
			if (!Queues.isPool(queue))
				Stamps.pass(message);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** The timer's next job, also if its time has not come. */
	public static void timerNext(Object job) {
		try {
			if (Context.isOn() && Thread.currentThread().getClass() == TIMER)
				begin(Stamps.of(job));
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	public static void starting(Thread thread) {
		try {
			if (Context.current() != 0 && !isWorker(thread))
				Stamps.put(thread);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** Called by the JVM in a new thread, before anything else (agent.c). */
	static void started(Thread thread) {
		try {
			long context = Stamps.take(thread);

			if (context != 0 && !isWorker(Native.target(thread)))
				Context.adopt(context);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/**
	 * A thread begins with what it was told to run; the others were seen already. A virtual one was
	 * started for one job: what it takes out of a pool of connections, say, is no other.
	 */
	public static void runs(Thread thread) {
		try {
			long context = Context.isOn() && Local.isVirtual(thread) ? Stamps.take(thread) : 0;

			if (context != 0)
				Local.current().set(context, false);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}
}
