package tsunagi.agent;

import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Which context an object was handed over with: a job, a message, a call. The object is not changed,
 * not kept alive, and not asked for its equals(). A bounded table: what is forgotten for want of room
 * is counted.
 *
 * What a hook stamps where it is made (put) keeps its stamp until it is taken. What is stamped where
 * it is passed on (pass) may be passed on by two requests at once, as a queue's one worker job is:
 * then it is nobody's. Where each hand-over comes back for sure they are counted (queue): the stamp
 * stays until the last has come back.
 */
public final class Stamps {
	private static final int CHAIN_MAX = 4;
	private static final int LOCKS = 64;

	/* What is not stamped; 0 is stamped, and nobody's. */
	static final long UNKNOWN = -1;

	/* What becomes of a stamp that is found. */
	private static final int KEEPS = 0;
	private static final int KEEPS_MADE = 1; /* and what was stamped where it was passed on is none */
	private static final int TAKES = 2;
	private static final int TAKES_PASSED = 3; /* if it was not stamped where it was made */
	private static final int TAKES_ONE = 4; /* of the hand-overs that are counted */
	private static final int TAKES_ONE_PASSED = 5;

	/* Where it is stamped. */
	private static final int MADE = 0;
	private static final int PASSED = 1;
	private static final int MIXED = 2; /* that it was for nothing is remembered too */
	private static final int QUEUED = 3; /* likewise, and it is counted */

	private static final Stamp[] chains = new Stamp[32768];
	private static final Object[] locks = new Object[LOCKS];
	private static final AtomicInteger count = new AtomicInteger();
	private static final ReferenceQueue<Object> gone = new ReferenceQueue<Object>();

	static {
		for (int i = 0; i < LOCKS; i++)
			locks[i] = new Object();
	}

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

	/** The same for what takeOne() or oneRuns() is told of, each time: one object may be there many times. */
	static void queue(Object object) {
		if (object != null)
			store(object, Context.current(), QUEUED);
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

	/** Of what begins to run or is received: what was stamped where it was made keeps that. */
	static long ofRun(Object object, long none) {
		return find(object, TAKES_PASSED, none);
	}

	/** One hand-over came back, also while the agent is off; 0: of none. */
	static long takeOne(Object object) {
		return look(object, TAKES_ONE, 0);
	}

	/** As ofRun(), for one hand-over. */
	static long oneRuns(Object object, long none) {
		return Context.isOn() ? look(object, TAKES_ONE_PASSED, none) : none;
	}

	private static int place(int hash) {
		return (hash ^ hash >>> 15) & chains.length - 1;
	}

	private static void store(Object object, long context, int how) {
		int hash = System.identityHashCode(object);
		int place = place(hash);

		expunge();
		synchronized (locks[place % LOCKS]) {
			for (Stamp stamp = chains[place]; stamp != null; stamp = stamp.next) {
				if (stamp.hash != hash || stamp.get() != object)
					continue;
				again(stamp, context, how);
				return;
			}
			if (context != 0 || how == MIXED || how == QUEUED)
				add(object, context, hash, how);
		}
	}

	private static void again(Stamp stamp, long context, int how) {
		if (how == MADE)
			stamp.context = context;
		else if (!stamp.isMade && stamp.context != context)
			stamp.context = 0;
		if (how == QUEUED && !stamp.isMade)
			stamp.queued++;
	}

	/* The newest stands first, and the oldest goes where there are many: by now it has run, as a rule. */
	private static void add(Object object, long context, int hash, int how) {
		int place = place(hash);
		Stamp stamp = new Stamp(object, gone, hash, how == MADE);
		Stamp before = null;
		Stamp last = stamp;
		int length = 0;

		stamp.context = context;
		stamp.queued = how == QUEUED ? 1 : 0;
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
		int hash, place;

		if (object == null || count.get() == 0)
			return none;
		hash = System.identityHashCode(object);
		place = place(hash);
		synchronized (locks[place % LOCKS]) {
			Stamp before = null;

			for (Stamp s = chains[place]; s != null; before = s, s = s.next) {
				if (s.hash != hash || s.get() != object)
					continue;
				if (what == KEEPS_MADE && !s.isMade)
					return none;
				if (goes(s, what))
					unlink(place, before, s);
				return s.context;
			}
		}
		return none;
	}

	private static boolean goes(Stamp stamp, int what) {
		boolean isOne = what == TAKES_ONE || what == TAKES_ONE_PASSED;

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

	private static void expunge() {
		Reference<?> reference;

		while ((reference = gone.poll()) != null) {
			Stamp dead = (Stamp) reference;
			int place = place(dead.hash);

			synchronized (locks[place % LOCKS]) {
				Stamp before = null;
				Stamp s = chains[place];

				while (s != null && s != dead) {
					before = s;
					s = s.next;
				}
				if (s != null)
					unlink(place, before, s);
			}
		}
	}
}
