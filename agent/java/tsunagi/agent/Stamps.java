package tsunagi.agent;

import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;

/**
 * Which context an object was handed over with: a job, a message, a call. The object is not changed,
 * not kept alive, and not asked for its equals(). A bounded table: what is forgotten for want of room
 * is counted.
 *
 * What a hook stamps where it is made (put) keeps its stamp until it is taken. What is stamped where
 * it is passed on (pass) may be passed on by two requests at once, as a queue's one worker job is:
 * then it is nobody's. Where each hand-over comes back for sure they are counted (queue): the stamp
 * stays until the last has come back. What waits for a result is stamped with it (wait), and tells nothing
 * of others; what waits for two at once tells nothing at all any more.
 */
public final class Stamps {
	private static final int CHAIN_MAX = 16;
	private static final int LOCKS = 64;
	private static final int LOCK_APART = 16; /* a line of a cache each */
	private static final int SPINS = 256;
	private static final int GIVES_WAY_MAX = 2000; /* a third of a second */

	/* What a lock is. */
	private static final int FREE = 0;
	private static final int HELD = 1;
	private static final int STUCK = 2; /* for so long that nobody waits for it */

	/* What is not stamped; 0 is stamped, and nobody's. */
	static final long UNKNOWN = -1;

	/* Nobody's because several requests handed it over; only takeAll() tells. */
	static final long SEVERAL = -2;

	/* What becomes of a stamp that is found. */
	private static final int KEEPS = 0;
	private static final int KEEPS_MADE = 1; /* and what was stamped where it was passed on is none */
	private static final int TAKES = 2;
	private static final int TAKES_PASSED = 3; /* if it was not stamped where it was made */
	private static final int TAKES_ONE = 4; /* of the hand-overs that are counted */
	private static final int TAKES_ONE_PASSED = 5;
	private static final int TAKES_WAITER = 6; /* of one result */
	private static final int TAKES_ALL = 7;

	/* Where it is stamped. */
	private static final int MADE = 0;
	private static final int PASSED = 1;
	private static final int MIXED = 2; /* that it was for nothing is remembered too */
	private static final int QUEUED = 3; /* likewise, and it is counted */
	private static final int WAITS = 4; /* for one result */

	private static final Stamp[] chains = new Stamp[32768];

	/*
	 * No monitors, nor whatever else threads wait for in a queue: virtual threads come here, and the
	 * threads that run them do so on their own. If one of the former is the next in that queue, and
	 * those are behind it, none of them ever goes on. So all spin, for some instructions as a rule,
	 * and give up at last: whoever has the lock may be stopped by a debugger, or have met the end of
	 * its stack before it gave it back.
	 *
	 * Beside each lock stands how often a stamp was lost for that: those from before may be of other
	 * hand-overs by now, and are nobody's.
	 */
	private static final AtomicIntegerArray locks = new AtomicIntegerArray(LOCKS * LOCK_APART);
	private static final AtomicInteger expunging = new AtomicInteger();
	private static final AtomicInteger count = new AtomicInteger();
	private static final ReferenceQueue<Object> gone = new ReferenceQueue<Object>();

	private Stamps() {
	}

	/** With the current context, where the object is made; of 0 nothing is kept. */
	public static void put(Object object) {
		try {
			long context = Context.current();

			if (object != null && context != 0)
				store(object, context, MADE);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** With the current context, where the object is passed on. */
	static void pass(Object object) {
		long context = Context.current();

		if (object != null && (context != 0 || count.get() != 0))
			store(object, context, PASSED);
	}

	/** The same for what is used again and again: that it was used for nothing is remembered too. */
	static void mix(Object object) {
		if (object != null)
			store(object, Context.current(), MIXED);
	}

	/** The same for what takeOne() or oneRuns() is told of, each time: it may be there many times. */
	static void queue(Object object) {
		if (object != null)
			store(object, Context.current(), QUEUED);
	}

	/** One that waits for 'result'; it may be added there more than once. */
	static void wait(Object waiter, Object result) {
		long context = Context.current();

		if (waiter != null && (context != 0 || count.get() != 0))
			store(waiter, context, WAITS, System.identityHashCode(result) | 1);
	}

	/** For whom it waited there; 'none' too if it waits for others as well. */
	static long takeWaiter(Object waiter, Object result, long none) {
		int hash = System.identityHashCode(result) | 1;

		return Context.isOn() ? look(waiter, TAKES_WAITER, hash, none) : none;
	}

	static void put(Object object, long context) {
		if (object != null && context != 0)
			store(object, context, MADE);
	}

	/** 0: none. */
	public static long of(Object object) {
		try {
			return find(object, KEEPS, 0);
		} catch (Throwable cause) {
			Context.fail(cause);
			return 0;
		}
	}

	/** As of(), but where it was passed on says nothing. */
	static long ofMade(Object object) {
		return find(object, KEEPS_MADE, 0);
	}

	/** As of(), and it is no longer stamped. */
	public static long take(Object object) {
		try {
			return find(object, TAKES, 0);
		} catch (Throwable cause) {
			Context.fail(cause);
			return 0;
		}
	}

	/** The same, but 'none' if it is not stamped; 0: it is nobody's. */
	static long take(Object object, long none) {
		return find(object, TAKES, none);
	}

	/** The same, and SEVERAL where it is nobody's because several requests gave it. */
	static long takeAll(Object object, long none) {
		return find(object, TAKES_ALL, none);
	}

	/** Of what begins to run or is received: what was stamped where it was made keeps that. */
	static long ofRun(Object object, long none) {
		return find(object, TAKES_PASSED, none);
	}

	/** One hand-over came back, also while the agent is off; 0: of none. */
	static long takeOne(Object object) {
		return look(object, TAKES_ONE, 0);
	}

	/** The same, but what was stamped where it was made keeps that. */
	static long takeOnePassed(Object object) {
		return look(object, TAKES_ONE_PASSED, 0);
	}

	/** As ofRun(), for one hand-over. */
	static long oneRuns(Object object, long none) {
		return Context.isOn() ? look(object, TAKES_ONE_PASSED, none) : none;
	}

	private static int place(int hash) {
		return (hash ^ hash >>> 15) & chains.length - 1;
	}

	private static void store(Object object, long context, int how) {
		store(object, context, how, 0);
	}

	/* Nothing is allocated under the lock: a collection would have all that wait for it spin. */
	private static void store(Object object, long context, int how, int result) {
		int hash = System.identityHashCode(object);
		int place = place(hash);
		Stamp fresh = null;

		if (context != 0 || how == MIXED || how == QUEUED)
			fresh = new Stamp(object, gone, hash, how == MADE, result);
		expunge();
		if (!lock(place)) {
			locks.incrementAndGet(lockOf(place) + 1);
			return;
		}
		try {
			for (Stamp stamp = chains[place]; stamp != null; stamp = stamp.next) {
				if (!stamp.is(object, hash, result != 0))
					continue;
				if (stamp.result != result)
					stamp.result = Stamp.MANY;
				again(stamp, context, how, losses(place));
				return;
			}
			if (fresh != null)
				add(fresh, place, context, how == QUEUED || how == WAITS);
		} finally {
			unlock(place);
		}
	}

	private static void again(Stamp stamp, long context, int how, int losses) {
		if (how == MADE)
			stamp.context = context;
		else if (stamp.losses != losses)
			stamp.context = 0;
		else if (!stamp.isMade && stamp.context != context)
			stamp.context = both(stamp.context, context);
		stamp.losses = losses;
		if (how == QUEUED && !stamp.isMade || how == WAITS)
			stamp.queued++;
	}

	private static long both(long one, long other) {
		return one == SEVERAL || one != 0 && other != 0 ? SEVERAL : 0;
	}

	/* The newest stands first, the oldest goes where there are many: it has run by now, as a rule. */
	private static void add(Stamp stamp, int place, long context, boolean isQueued) {
		Stamp before = null;
		Stamp last = stamp;
		int length = 0;

		stamp.context = context;
		stamp.losses = losses(place);
		stamp.queued = isQueued ? 1 : 0;
		stamp.next = chains[place];
		chains[place] = stamp;
		count.incrementAndGet();
		for (; last.next != null; last = last.next, length++)
			before = last;
		if (length < CHAIN_MAX)
			return;
		if (last.get() != null)
			Context.lose();
		unlink(place, before, last);
	}

	private static long find(Object object, int what, long none) {
		return Context.isOn() ? look(object, what, none) : none;
	}

	private static long look(Object object, int what, long none) {
		return look(object, what, 0, none);
	}

	private static long look(Object object, int what, int result, long none) {
		int hash, place;

		if (object == null || count.get() == 0)
			return none;
		hash = System.identityHashCode(object);
		place = place(hash);
		if (!lock(place))
			return 0;
		try {
			Stamp before = null;

			for (Stamp s = chains[place]; s != null; before = s, s = s.next) {
				if (!s.is(object, hash, result != 0))
					continue;
				if (what == KEEPS_MADE && !s.isMade || s.result != result)
					return none;
				if (goes(s, what))
					unlink(place, before, s);
				if (s.losses != losses(place))
					return 0;
				return s.context == SEVERAL && what != TAKES_ALL ? 0 : s.context;
			}
		} finally {
			unlock(place);
		}
		return none;
	}

	private static boolean goes(Stamp stamp, int what) {
		boolean isOne = what == TAKES_ONE || what == TAKES_ONE_PASSED || what == TAKES_WAITER;

		if (what == KEEPS || what == KEEPS_MADE)
			return false;
		if (stamp.isMade)
			return what == TAKES || what == TAKES_ONE;
		if (isOne && stamp.queued > 0)
			stamp.queued--;
		return stamp.queued == 0;
	}

	private static void unlink(int place, Stamp before, Stamp stamp) {
		if (before == null)
			chains[place] = stamp.next;
		else
			before.next = stamp.next;
		count.decrementAndGet();
	}

	private static int lockOf(int place) {
		return place % LOCKS * LOCK_APART;
	}

	private static int losses(int place) {
		return locks.get(lockOf(place) + 1);
	}

	private static boolean lock(int place) {
		int lock = lockOf(place);

		for (int i = 0; i < SPINS + GIVES_WAY_MAX; i++) {
			int state = locks.get(lock);

			if (state == FREE && locks.compareAndSet(lock, FREE, HELD))
				return true;
			if (state == STUCK)
				break;
			if (i >= SPINS)
				Native.giveWay(i - SPINS);
		}
		locks.compareAndSet(lock, HELD, STUCK);
		Context.lose();
		return false;
	}

	private static void unlock(int place) {
		locks.set(lockOf(place), FREE);
	}

	/* One thread at a time: the queue has a lock of its own. */
	private static void expunge() {
		Reference<?> reference;

		if (expunging.get() != 0 || !expunging.compareAndSet(0, 1))
			return;
		try {
			while ((reference = gone.poll()) != null)
				expungeOne((Stamp) reference);
		} finally {
			expunging.set(0);
		}
	}

	private static void expungeOne(Stamp dead) {
		int place = place(dead.hash);
		Stamp before = null;
		Stamp s;

		if (!lock(place))
			return;
		try {
			for (s = chains[place]; s != null && s != dead; s = s.next)
				before = s;
			if (s != null)
				unlink(place, before, s);
		} finally {
			unlock(place);
		}
	}
}
