package tsunagi.agent;

import java.lang.ref.WeakReference;

/**
 * Which queues are no way to hand messages over, but pools: what is taken out is given back. Known by
 * that, once a thread has done so. A bounded number of them.
 */
final class Queues {
	private static final int POOLS_MAX = 64;

	private static final WeakReference<?>[] pools = new WeakReference<?>[POOLS_MAX];
	private static volatile int count;

	private Queues() {
	}

	static boolean isPool(Object queue) {
		for (int i = 0; i < count; i++)
			if (pools[i].get() == queue)
				return true;
		return false;
	}

	static synchronized void addPool(Object queue) {
		int place = 0;

		if (isPool(queue))
			return;
		while (place < count && pools[place].get() != null)
			place++;
		if (place == POOLS_MAX) {
			Context.lose();
			return;
		}
		pools[place] = new WeakReference<Object>(queue);
		if (place == count)
			count = place + 1;
	}
}
