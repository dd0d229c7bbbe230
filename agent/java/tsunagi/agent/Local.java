package tsunagi.agent;

import java.lang.ref.WeakReference;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * What one thread works for: each OS thread has one of these, and each virtual thread that ever
 * worked for something. Used by its thread alone. A reference must not be kept over anything that
 * may block: a virtual thread could go on elsewhere.
 */
final class Local {
	static final int CONTEXT = 1; /* words of struct jvm_slot */
	static final int RECEIVING = 2;

	/* Deeper nesting is counted, not remembered: what comes after it is nobody's, until all is over. */
	private static final int DEPTH_MAX = 1024;

	/* In the place of a job: see mark(). */
	private static final Object MARK = new Object();

	/* Likewise: see keep(). */
	private static final Object KEPT = new Object();

	private static final int TAKEN_MAX = 4;

	/* So many out of one queue, none of them put into any: they are messages, whose job it is. */
	private static final int CONSUMER_MIN = 4;

	/* JDK's own kind keeps to the OS thread, also while a virtual one runs on it. */
	private static final ThreadLocal<Local> THREAD = carrierLocal();
	private static final ThreadLocal<Local> VIRTUAL = new ThreadLocal<Local>();

	/*
	 * Which virtual threads may have one, by number: asking a ThreadLocal makes each thread that is
	 * asked a table of its own.
	 */
	private static final byte[] virtuals = new byte[1 << 16];

	private static final AtomicInteger numbers = new AtomicInteger();

	final LongBuffer slot; /* of an OS thread */
	final int number = numbers.incrementAndGet();
	private boolean isCarrying; /* an OS thread: a virtual one runs on it */
	private Local carried; /* and this is its; null: it has none */

	long context;
	private long receiving;
	boolean isOwn; /* not taken over with a birth, a job or a message */
	private Hold hold = Hold.LOOSE;
	boolean isTaking; /* it looks for its pool's next job */
	boolean hasBegun; /* it took one, and has not been told that it runs */
	int reads; /* the server's socket that it reads or read last, see Sockets */
	final AtomicInteger held = new AtomicInteger(); /* other threads that write its slot */
	private long readContext; /* what that socket's last request has */
	private long before; /* what the thread worked for before it read */
	private boolean wasOwn;
	private Hold heldBefore = Hold.LOOSE;
	int loops;
	boolean isAwaiting; /* it selects in the middle of its work */
	boolean selects; /* it has turns that nobody tells of: see Loops */
	int waits; /* the selector that it waits with in the middle of its work, by its hash */
	long waitContext; /* that work */
	boolean isWaitFresh; /* it has not waited yet */
	boolean writesForMany; /* what it writes was put together for several requests */
	Helping helping; /* null: it used no queue yet */
	Coroutine coroutine; /* runs on it, and keeps what it works for */
	private int depth;
	private boolean isLost; /* it was too deep */
	private long[] contexts;
	private boolean[] owns;
	private Hold[] holds;
	private Object[] jobs;
	private WeakReference<?>[] taken; /* the last messages, each with its queue behind it */
	private int takenLast;
	private int streak; /* how many it took from the last's queue, one after the other, and kept */
	long takenContext; /* what the last was sent with */

	/** What a message out of a queue does to a context that is not the thread's own. */
	private enum Hold {
		LOOSE, /* it was born with, or with a message, or is none: takes its place */
		FIRM, /* it runs a job for it: if it is of another's, the job is nobody's */
		MIXED, /* nobody's: nothing until the job ends */
		MINGLED, /* it was FIRM, and another's came: nobody's, unless its job is to take messages */
		IDLE, /* it runs a job that is nobody's: takes its place */
		HELPS, /* nobody's: it does another's work while it waits for its own, see Helping */
		SHARED, /* nobody's: a connection of many brought it; nothing until the turn ends */
	}

	private Local(LongBuffer slot) {
		this.slot = slot;
	}

	@SuppressWarnings("unchecked")
	private static ThreadLocal<Local> carrierLocal() {
		try {
			Class<?> kind = Class.forName("jdk.internal.misc.CarrierThreadLocal");

			return (ThreadLocal<Local>) kind.getConstructor().newInstance();
		} catch (Throwable olderJdk) {
			return new ThreadLocal<Local>();
		}
	}

	static Local ofThread() {
		Local local = THREAD.get();

		return local != null ? local : create();
	}

	/* The common pool's threads forget what they know after each task, and come here again. */
	private static Local create() {
		LongBuffer slot = Native.slot().order(ByteOrder.nativeOrder()).asLongBuffer();
		Local local = new Local(slot);

		local.isCarrying = isVirtual(Thread.currentThread());
		THREAD.set(local);
		return local;
	}

	/** Of an OS thread that ends; null: it has none. */
	static Local ofEnding() {
		return THREAD.get();
	}

	static boolean isVirtual(Thread thread) {
		return thread.getClass().getName().startsWith("java.lang.VirtualThread");
	}

	/** What the current thread, virtual or not, works for; null: a virtual one, for nothing yet. */
	static Local known() {
		Local thread = ofThread();

		return thread.isCarrying ? thread.carried : thread;
	}

	static Local current() {
		Local thread = ofThread();

		if (!thread.isCarrying)
			return thread;
		if (thread.carried == null)
			thread.carried = createVirtual();
		return thread.carried;
	}

	/** Whose context is to be this; null: it is to be none, and is. */
	static Local toTake(long context) {
		return context == 0 ? known() : current();
	}

	private static Local createVirtual() {
		Local local = new Local(null);

		virtuals[place(Thread.currentThread())] = 1;
		VIRTUAL.set(local);
		return local;
	}

	private static int place(Thread thread) {
		return (int) thread.getId() & virtuals.length - 1;
	}

	void set(long context, boolean isOwn) {
		this.context = context;
		this.isOwn = isOwn && context != 0;
		this.hold = context != 0 ? Hold.FIRM : Hold.LOOSE;
		this.writesForMany = false;
		show();
		if (coroutine != null)
			coroutine.follow(context, this.isOwn);
	}

	private void show() {
		ofThread().slot.put(CONTEXT, shown());
	}

	private long shown() {
		return isNobodys() ? Context.NOBODY : context;
	}

	private void hold(Hold hold) {
		this.hold = hold;
		if (isNobodys())
			show();
	}

	/** It came with a birth or a message: the next message replaces it. */
	void adopt(long context) {
		set(context, false);
		hold = Hold.LOOSE;
	}

	/** It is nobody's, as long as it runs the job that it runs. */
	void mix() {
		Hold next = hold == Hold.FIRM || hold == Hold.MINGLED ? Hold.MIXED : hold;

		set(0, false);
		hold(next);
	}

	/** It runs a job; without a context that is nobody's, and no message changes that. */
	void work(long context) {
		set(context, false);
		if (context == 0)
			hold(Hold.MIXED);
	}

	/** The same, but the job was handed over for no request: messages that it takes may be for one. */
	void serve(long context) {
		set(context, false);
		if (context == 0)
			hold(Hold.IDLE);
	}

	/** It reads what is for one of many, and nobody knows for whom: until it turns to something else. */
	void share() {
		set(0, false);
		hold(Hold.SHARED);
	}

	/** It does another's work while it waits for its own. */
	void help() {
		set(0, false);
		hold(Hold.HELPS);
	}

	boolean isHelping() {
		return hold == Hold.HELPS;
	}

	int depth() {
		return depth;
	}

	boolean isShared() {
		return hold == Hold.SHARED;
	}

	/** It writes what several requests gave it, all at once. */
	void workForMany() {
		work(0);
		writesForMany = true;
	}

	/** Whether it is known to work for no request. */
	boolean isNobodys() {
		return context == 0 && hold != Hold.LOOSE && hold != Hold.FIRM;
	}

	/** Whether it reads a request itself, or runs a job for one. */
	boolean isBusy() {
		return isOwn || hold == Hold.FIRM;
	}

	/** No message changes it, until pop(). */
	void call(long context) {
		set(context, true);
		if (context == 0)
			hold(Hold.MIXED);
	}

	/** A message came out of a queue, sent with 'context'; or a thing out of a pool. */
	void receive(long context, Object message, Object queue) {
		boolean isPool = Queues.isPool(queue);

		if (!isPool)
			take(message, queue);
		takenContext = context;
		if (isOwn || hold == Hold.MIXED || hold == Hold.HELPS || hold == Hold.SHARED)
			return;
		if (hold == Hold.LOOSE || hold == Hold.IDLE)
			adopt(isPool ? 0 : context);
		else if (!isPool && (hold == Hold.MINGLED || context != this.context))
			mingle(context);
	}

	/* A job that takes messages of others may be one that does nothing else, as long as it lives. */
	private void mingle(long context) {
		if (hold != Hold.MINGLED)
			streak = 1;
		set(streak < CONSUMER_MIN ? 0 : context, false);
		hold(Hold.MINGLED);
	}

	private void take(Object message, Object queue) {
		if (taken == null)
			taken = new WeakReference<?>[2 * TAKEN_MAX];
		streak = isFromLast(queue) ? streak + 1 : 1;
		takenLast = (takenLast + 1) % TAKEN_MAX;
		taken[2 * takenLast] = new WeakReference<Object>(message);
		taken[2 * takenLast + 1] = new WeakReference<Object>(queue);
	}

	/** Whether this is the last message that it took, with 'takenContext'. */
	boolean tookLast(Object message) {
		return taken != null && taken[2 * takenLast] != null && taken[2 * takenLast].get() == message;
	}

	private boolean isFromLast(Object queue) {
		WeakReference<?> last = taken[2 * takenLast + 1];

		return last != null && last.get() == queue;
	}

	/** Whether it puts back what it took out. */
	boolean gives(Object message, Object queue) {
		for (int i = 0; taken != null && i < 2 * TAKEN_MAX; i += 2) {
			if (taken[i] == null || taken[i].get() != message)
				continue;
			streak = 0;
			if (taken[i + 1].get() == queue)
				return true;
		}
		return false;
	}

	void setReceiving(long context) {
		this.receiving = context;
		ofThread().slot.put(RECEIVING, context);
	}

	/** It is about to read a server's socket, and to work for what that brings. */
	void readBegins(long context) {
		readContext = context;
		before = this.context;
		wasOwn = isOwn;
		heldBefore = hold;
	}

	/**
	 * That brought nothing: it works for what it did before. But a loop, or who met the end, is not to go
	 * on with another request than that socket's.
	 */
	void readNothing(boolean isEnd) {
		if (before != readContext && (selects || loops > 0 || isEnd))
			return;
		set(before, wasOwn);
		hold(heldBefore);
	}

	/** A virtual thread goes on, on this OS thread; it is the current thread already. */
	static void mounted(Thread virtual) {
		Local thread = ofThread();
		Local local = virtuals[place(virtual)] != 0 ? VIRTUAL.get() : null;

		thread.isCarrying = true;
		thread.carried = local;
		thread.slot.put(CONTEXT, local == null ? 0 : local.shown());
		thread.slot.put(RECEIVING, local == null ? 0 : local.receiving);
	}

	static void unmounting() {
		Local thread = ofThread();

		thread.isCarrying = false;
		thread.carried = null;
		thread.context = 0;
		thread.slot.put(CONTEXT, 0);
		thread.slot.put(RECEIVING, 0);
	}

	/** Remembers what the thread works for until pop(); 'job' comes back there. */
	void push(Object job) {
		int at = depth++;

		if (at >= DEPTH_MAX) {
			isLost = true;
			Context.lose();
			return;
		}
		if (contexts == null || at == contexts.length)
			grow();
		contexts[at] = context;
		owns[at] = isOwn;
		holds[at] = hold;
		jobs[at] = job;
	}

	/** As push(), for what changes nothing: nothing comes back with its pop() either. */
	void keep() {
		push(KEPT);
	}

	/**
	 * As push(), and unmark() comes in any case. What is pushed in between may lack its pop() where
	 * something is thrown: cut() drops that.
	 */
	void mark() {
		push(MARK);
	}

	/* Who has read a request meanwhile keeps that: what was remembered is another's. */
	void unmark() {
		cut();
		if (isOwn && isRunning(MARK) && !isLost && contexts[depth - 1] != context)
			jobs[--depth] = null;
		else
			pop();
	}

	/** As unmark(), and the thread goes on with what it works for by now. */
	void drop() {
		cut();
		if (isRunning(MARK) && !isLost)
			jobs[--depth] = null;
		else
			pop();
	}

	void cut() {
		while (depth > 0 && !isLost && !isRunning(MARK))
			pop();
	}

	/** What was remembered may not fit what comes any more: nobody's, until all is over. */
	static void lose() {
		try {
			Local local = known();

			if (local != null && local.slot != null)
				Sockets.leave(local);
			if (local == null || local.depth == 0)
				return;
			local.isLost = true;
			local.work(0);
		} catch (Throwable again) {
			return;
		}
	}

	/** Of an OS thread: its slot says nothing. */
	void silence() {
		slot.put(CONTEXT, 0);
		slot.put(RECEIVING, 0);
	}

	/** Whether the last that was remembered is of this job. */
	boolean isRunning(Object job) {
		return jobs != null && depth > 0 && depth <= jobs.length && jobs[depth - 1] == job;
	}

	private void grow() {
		int size = contexts == null ? 4 : contexts.length * 2;
		long[] moreContexts = new long[size];
		boolean[] moreOwns = new boolean[size];
		Hold[] moreHolds = new Hold[size];
		Object[] moreJobs = new Object[size];

		if (contexts != null) {
			System.arraycopy(contexts, 0, moreContexts, 0, contexts.length);
			System.arraycopy(owns, 0, moreOwns, 0, owns.length);
			System.arraycopy(holds, 0, moreHolds, 0, holds.length);
			System.arraycopy(jobs, 0, moreJobs, 0, jobs.length);
		}
		contexts = moreContexts;
		owns = moreOwns;
		holds = moreHolds;
		jobs = moreJobs;
	}

	Object pop() {
		Object job;
		int at;

		if (depth == 0)
			return null;
		at = --depth;
		if (isLost) {
			if (jobs != null && at < jobs.length)
				jobs[at] = null;
			isLost = depth > 0;
			work(0);
			return null;
		}
		job = jobs[at];
		jobs[at] = null;
		if (job == KEPT)
			return null;
		set(contexts[at], owns[at]);
		hold(holds[at]);
		if (helping != null)
			helping.popped(depth);
		return job;
	}

	/** What a worker does between two jobs: nothing of the former is left. */
	void reset(long context) {
		while (depth > 0)
			if (--depth < (jobs == null ? 0 : jobs.length))
				jobs[depth] = null;
		isLost = false;
		coroutine = null;
		set(context, false);
	}
}
