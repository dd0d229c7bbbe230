import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Requests' threads that run each other's jobs while they wait for their own, by a queue that they share; and
 * what looks alike and is none of that: pools, and what keeps caches in order. Judged as in Handovers: a line a
 * case. Source level 8.
 */
public class Helpers {
	static final AtomicInteger others = new AtomicInteger(), owns = new AtomicInteger();

	static void pause() {
		try {
			Thread.sleep(0, 100_000);
		} catch (InterruptedException e) {
			throw new Error(e);
		}
	}

	/* Another's job is nobody's, one's own is one's own; who finds none works for himself again. */
	static void help(Queue<Handovers.Message> queue, long request) {
		Handovers.Message own = new Handovers.Message(request);

		queue.add(own);
		if (request % 3 != 0)
			pause();
		while (own.done.getCount() > 0) {
			Handovers.Message message = queue.poll();

			if (message == null) {
				Handovers.judgeKnown(request);
				pause();
				continue;
			}
			if (message.request == request)
				Handovers.judge(request);
			else
				Handovers.judgeNone();
			(message.request == request ? owns : others).incrementAndGet();
			message.done.countDown();
		}
		/* As its next request would. */
		if (Handovers.now() == 0)
			Handovers.mount(request);
	}

	static void helps(String name, int n, Queue<Handovers.Message> queue) throws Exception {
		others.set(0);
		owns.set(0);
		Handovers.run(name, n, request -> help(queue, request));
		if (others.get() == 0 || owns.get() == 0)
			throw new IllegalStateException(name + " helps nobody");
	}

	/* Jobs run in frames of their own, and what is done there ends there. */
	static void nested(int n) throws Exception {
		Queue<Handovers.Message> queue = new ConcurrentLinkedQueue<>();
		Executor direct = new Executor() {
			@Override
			public void execute(Runnable job) {
				job.run();
			}
		};

		Handovers.run("helps-in-frame", n, request -> direct.execute(() -> help(queue, request)));
	}

	interface Pool {
		Object get() throws InterruptedException;

		void put(Object thing);
	}

	static Pool pool(Queue<Object> queue, boolean isLast) {
		return new Pool() {
			@Override
			public Object get() {
				return isLast ? ((Deque<Object>) queue).pollLast() : queue.poll();
			}

			@Override
			public void put(Object thing) {
				queue.offer(thing);
			}
		};
	}

	/* Each request uses it several times, and one thing or two at a time. */
	static void borrow(Pool pool, boolean isWrapped, long request) throws Exception {
		for (int i = 0; i < 4; i++) {
			Object[] things = new Object[1 + i % 2];

			for (int k = 0; k < things.length; k++) {
				things[k] = pool.get();
				if (things[k] == null)
					things[k] = new Object();
				Handovers.judgeKnown(request);
			}
			if (request % 5 == 0)
				pause();
			for (Object thing : things)
				pool.put(isWrapped ? new Object() : thing);
			Handovers.judgeKnown(request);
		}
	}

	static void pools(String name, int n, Queue<Object> queue, boolean isLast) throws Exception {
		Pool pool = pool(queue, isLast);

		Handovers.run(name, n, request -> borrow(pool, false, request));
		Handovers.run(name + "-wrapped", n, request -> borrow(pool, true, request));
	}

	/* What was used is noted, and whoever has noted enough looks through all notes. */
	static void recency(int n) throws Exception {
		Queue<Object> used = new ConcurrentLinkedQueue<>();

		Handovers.run("cache-order", n, request -> {
			for (int i = 0; i < 8; i++)
				used.add(new Object());
			if (request % 4 == 0)
				while (used.poll() != null)
					continue;
			Handovers.judgeKnown(request);
		});
	}

	/* The least used makes room for what is new. */
	static void evicts(int n) throws Exception {
		ConcurrentLinkedDeque<Object> order = new ConcurrentLinkedDeque<>();
		Object[] keys = new Object[64];

		for (int i = 0; i < keys.length; i++)
			keys[i] = new Object();
		Handovers.run("cache-evicts", n, request -> {
			for (int i = 0; i < 4; i++) {
				Object key = keys[ThreadLocalRandom.current().nextInt(keys.length)];

				if (order.removeLastOccurrence(key)) {
					order.offer(key);
				} else {
					if (order.size() >= 48)
						order.poll();
					order.offer(key);
				}
				Handovers.judgeKnown(request);
			}
		});
	}

	/* An answer comes by a queue, from a thread of no request, and from one that works for the same. */
	static void answers(int n) throws Exception {
		BlockingQueue<Handovers.Message> asked = new SynchronousQueue<>();
		ExecutorService pool = Executors.newFixedThreadPool(2);
		ConcurrentHashMap<Long, BlockingQueue<Object>> waiting = new ConcurrentHashMap<>();
		List<Object> kept = new ArrayList<>();
		Thread answering = new Thread(() -> {
			try {
				for (;;) {
					Handovers.Message message = asked.take();

					Handovers.mount(0);
					waiting.get(message.request).put(new Object());
				}
			} catch (InterruptedException end) {
				kept.clear();
			}
		});

		answering.setDaemon(true);
		answering.start();
		Handovers.run("answers", n, request -> {
			BlockingQueue<Object> queue = new LinkedBlockingQueue<>();

			waiting.put(request, queue);
			asked.put(new Handovers.Message(request));
			queue.take();
			Handovers.judgeKnown(request);
			pool.execute(() -> queue.add(new Object()));
			queue.take();
			Handovers.judgeKnown(request);
			waiting.remove(request);
		});
		pool.shutdown();
	}

	public static void main(String[] args) throws Exception {
		int n = Integer.parseInt(args[0]);

		System.out.println("READY");
		Handovers.awaitAgent();
		helps("helps", n, new ConcurrentLinkedQueue<>());
		helps("helps-deque", n, new ConcurrentLinkedDeque<>());
		helps("helps-linked", n, new LinkedBlockingQueue<>());
		helps("helps-array", n, new ArrayBlockingQueue<>(64));
		helps("helps-blocking-deque", n, new LinkedBlockingDeque<>());
		helps("helps-transfer", n, new LinkedTransferQueue<>());
		helps("helps-priority", n,
		      new PriorityBlockingQueue<>(16, (a, b) -> Long.compare(a.request, b.request)));
		nested(n);
		pools("pool", n, new ConcurrentLinkedQueue<>(), false);
		pools("pool-deque", n, new ConcurrentLinkedDeque<>(), true);
		pools("pool-linked", n, new LinkedBlockingQueue<>(), false);
		recency(n);
		evicts(n);
		answers(n);
		System.exit(0);
	}
}
