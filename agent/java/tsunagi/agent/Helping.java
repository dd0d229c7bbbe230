package tsunagi.agent;

import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Requests that help each other: whoever waits with something of his own in a queue and takes out of it
 * what another request put in, does that one's work, whatever kind of object it is. From then on he works
 * for nobody, until the queue gives him what is his own, or nothing, or he gives the thing back.
 *
 * A pool is used in another order: one looks there first, and puts in no more than one has taken out or
 * not found. What keeps a cache in order takes all there is. What was put in for no request, or is not
 * known any more, changes nothing.
 */
public final class Helping {
	private static final int QUEUES_MAX = 4;
	private static final int PLACES = 1 << 13;
	private static final int WAYS = 4;
	private static final int RECENT = 64;
	private static final int MISSED_MAX = 16;
	private static final long BUSY = -1;

	/*
	 * What is in the queues: which thing and which queue, by their hashes, and which context it was put in
	 * with; 0: two put the same. Without locks, for the same reason as in Stamps: who comes at the same
	 * moment is not remembered.
	 */
	private static final AtomicLongArray given = new AtomicLongArray(2 * PLACES);

	/* What one request has put into the last queues that it used, less what it took out. */
	private final int[] queues = new int[QUEUES_MAX];
	private final int[] counts = new int[QUEUES_MAX];
	private int last;
	private long request;

	/* While it helps: for whom it works else, and where the thing came from. */
	private long own;
	private boolean isOwn;
	private int queue;
	private int thing;
	private int depth;

	/** 'thing' is about to be put in; of a job's thread too. */
	public static void put(Object thing, Object queue) {
		try {
			if (Context.isOn())
				put(Local.known(), thing, queue, true);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** 'thing' was taken out; null: there was none. */
	public static void took(Object thing, Object queue) {
		try {
			if (Context.isOn())
				took(Local.known(), thing, queue, true);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** The same for queues whose method tells of what is there in another place. */
	public static void sought(Object thing, Object queue) {
		try {
			if (thing == null && Context.isOn())
				took(Local.known(), null, queue, false);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/** One thing is taken out that is known, if it is there. */
	public static void removing(Object queue) {
		try {
			Local local = Context.isOn() ? Local.known() : null;

			if (isOf(local, true))
				of(local).add(hash(queue), -1);
		} catch (Throwable cause) {
			Context.fail(cause);
		}
	}

	/* An event loop waits for nothing. A job that takes messages is followed elsewhere, see Local.receive(). */
	private static boolean isOf(Local local, boolean isJobs) {
		if (local == null || local.loops > 0)
			return false;
		return local.isOwn || local.isHelping() || isJobs && local.isBusy();
	}

	private static Helping of(Local local) {
		Helping helping = local.helping;
		long request;

		if (helping == null)
			local.helping = helping = new Helping();
		request = local.isHelping() ? helping.own : local.context;
		if (helping.request != request) {
			helping.request = request;
			for (int i = 0; i < QUEUES_MAX; i++)
				helping.queues[i] = 0;
		}
		return helping;
	}

	/* Whoever puts something into a queue of that kind goes on when it has been taken out. */
	private static boolean isWaitedFor(Object queue) {
		return queue instanceof SynchronousQueue;
	}

	static void put(Local local, Object thing, Object queue, boolean isJobs) {
		Helping helping;
		int hash;

		if (!isOf(local, isJobs) || thing == null || isWaitedFor(queue))
			return;
		helping = of(local);
		hash = hash(queue);
		if (helping.isIn(local, hash) && helping.thing == hash(thing))
			helping.back(local);
		else
			helping.add(hash, 1);
		store(key(thing, hash), helping.request);
	}

	static void took(Local local, Object thing, Object queue, boolean isJobs) {
		int hash = hash(queue);
		long context = thing == null ? 0 : take(key(thing, hash));
		Helping helping;
		boolean isIn;

		if (!isOf(local, isJobs) || isWaitedFor(queue))
			return;
		helping = of(local);
		isIn = helping.isIn(local, hash);
		if (isIn && (thing == null || context == helping.request))
			helping.back(local);
		if (thing == null) {
			if (helping.count(hash) <= 0 && helping.count(hash) > -MISSED_MAX)
				helping.add(hash, -1);
		} else if (helping.count(hash) <= 0 || context == helping.request) {
			helping.add(hash, -1);
		} else if (isIn) {
			helping.thing = hash(thing);
		} else if (context != 0 && !local.isHelping()) {
			helping.begin(local, hash, hash(thing));
		}
	}

	private void begin(Local local, int queue, int thing) {
		own = local.context;
		isOwn = local.isOwn;
		depth = local.depth();
		this.queue = queue;
		this.thing = thing;
		local.help();
	}

	/* It came to the end of another's work. */
	private void back(Local local) {
		local.set(own, isOwn);
	}

	private boolean isIn(Local local, int queue) {
		return local.isHelping() && depth == local.depth() && this.queue == queue;
	}

	/** What was remembered above this depth is gone. */
	void popped(int depth) {
		if (this.depth > depth)
			queue = 0;
	}

	private int count(int queue) {
		for (int i = 0; i < QUEUES_MAX; i++)
			if (queues[i] == queue)
				return counts[i];
		return 0;
	}

	private void add(int queue, int n) {
		for (int i = 0; i < QUEUES_MAX; i++)
			if (queues[i] == queue) {
				counts[i] += n;
				return;
			}
		last = (last + 1) % QUEUES_MAX;
		queues[last] = queue;
		counts[last] = n;
	}

	private static int hash(Object object) {
		return System.identityHashCode(object);
	}

	private static long key(Object thing, int queue) {
		return (long) hash(thing) << 32 | queue;
	}

	/* The first of WAYS that lie beside each other. */
	private static int places(long key) {
		int hash = (int) (key >>> 32) ^ (int) key * 31;

		return 2 * WAYS * ((hash ^ hash >>> 13) & PLACES / WAYS - 1);
	}

	private static int find(long key, int first) {
		for (int at = first; at < first + 2 * WAYS; at += 2)
			if (given.get(at) == key)
				return at;
		return -1;
	}

	private static void store(long key, long context) {
		int first = places(key);
		int at = find(key, first);
		long seen, was;

		if (at < 0)
			at = find(0, first);
		if (at < 0)
			at = first + 2 * (int) (context % WAYS);
		seen = given.get(at);
		was = given.get(at + 1);
		if (seen == BUSY || !given.compareAndSet(at, seen, BUSY)) {
			Context.lose();
			return;
		}
		/* What left its queue in an unknown way stays here, until it is in the way. */
		if (seen != 0 && seen != key && Context.isOfLast(was, RECENT))
			Context.lose();
		given.set(at + 1, seen == key && was != context ? 0 : context);
		given.set(at, key);
	}

	private static long take(long key) {
		int at = find(key, places(key));
		long context;

		if (at < 0 || !given.compareAndSet(at, key, BUSY))
			return 0;
		context = given.get(at + 1);
		given.set(at, 0);
		return context;
	}
}
