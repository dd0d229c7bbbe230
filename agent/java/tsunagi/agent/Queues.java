package tsunagi.agent;

import java.lang.ref.WeakReference;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Which queues are no way to hand messages over, but pools: what is taken out is given back. Known by
 * that, once a thread has done so. A bounded number of them, which is only ever added to: no lock, for
 * the same reason as in Stamps.
 */
final class Queues {
	private static final int POOLS_MAX = 64;

	private static final AtomicReferenceArray<WeakReference<Object>> pools =
		new AtomicReferenceArray<WeakReference<Object>>(POOLS_MAX);

	private Queues() {
	}

	static boolean isPool(Object queue) {
		WeakReference<Object> pool;

		for (int i = 0; i < POOLS_MAX && (pool = pools.get(i)) != null; i++)
			if (pool.get() == queue)
				return true;
		return false;
	}

	static void addPool(Object queue) {
		WeakReference<Object> added = new WeakReference<Object>(queue);

		if (isPool(queue))
			return;
		for (int i = 0; i < POOLS_MAX; i++) {
			WeakReference<Object> pool = pools.get(i);

			if ((pool == null || pool.get() == null) && pools.compareAndSet(i, pool, added))
				return;
		}
		Context.lose();
	}
}
