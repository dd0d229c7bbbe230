import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/** Executors as applications write them. */
final class Homemade {
	private Homemade() {
	}

	/** One job in a pool does what is in the queue, until there is nothing left. */
	static final class Sequential implements Executor {
		private final Queue<Runnable> queue = new ArrayDeque<>();
		private final Executor pool;
		private boolean isRunning;

		Sequential(Executor pool) {
			this.pool = pool;
		}

		@Override
		public void execute(Runnable work) {
			synchronized (queue) {
				queue.add(work);
				if (isRunning)
					return;
				isRunning = true;
			}
			pool.execute(new Drain());
		}

		private Runnable next() {
			synchronized (queue) {
				Runnable work = queue.poll();

				isRunning = work != null;
				return work;
			}
		}

		private final class Drain implements Runnable {
			@Override
			public void run() {
				Runnable work;

				while ((work = next()) != null)
					work.run();
			}
		}
	}

	/** The same, with a list of its own. */
	static final class Nodes implements Executor {
		private final Executor pool;
		private Node first;
		private Node last;

		Nodes(Executor pool) {
			this.pool = pool;
		}

		private static final class Node {
			private final Runnable work;
			private Node next;

			Node(Runnable work) {
				this.work = work;
			}
		}

		@Override
		public void execute(Runnable work) {
			Node node = new Node(work);

			synchronized (this) {
				Node before = last;

				last = node;
				if (before != null) {
					before.next = node;
					return;
				}
				first = node;
			}
			pool.execute(this::drain);
		}

		private void drain() {
			for (Node node = first; node != null; node = after(node))
				node.work.run();
		}

		private synchronized Node after(Node node) {
			first = node.next;
			if (first == null)
				last = null;
			return first;
		}
	}

	/** Whoever comes first does what others bring meanwhile. */
	static final class ByCaller implements Executor {
		private final Queue<Runnable> queue = new ConcurrentLinkedQueue<>();
		private final AtomicInteger waiting = new AtomicInteger();

		@Override
		public void execute(Runnable work) {
			queue.add(work);
			if (waiting.getAndIncrement() != 0)
				return;
			do
				runQuietly(queue.poll());
			while (waiting.decrementAndGet() != 0);
		}

		private static void runQuietly(Runnable work) {
			try {
				work.run();
			} catch (RuntimeException e) {
				e.printStackTrace();
			}
		}
	}

	/** As in the documentation of java.util.concurrent.Executor: each job hands the next one on. */
	static final class Serial implements Executor {
		private final Queue<Runnable> queue = new ArrayDeque<>();
		private final Executor pool;
		private Runnable active;

		Serial(Executor pool) {
			this.pool = pool;
		}

		@Override
		public synchronized void execute(Runnable work) {
			queue.add(() -> {
				try {
					work.run();
				} finally {
					next();
				}
			});
			if (active == null)
				next();
		}

		private synchronized void next() {
			active = queue.poll();
			if (active != null)
				pool.execute(active);
		}
	}

	/** Threads of its own; the first request starts them. It is no java.util.concurrent.Executor by its type. */
	static final class Threads {
		private final Queue<Runnable> queue = new ArrayDeque<>();
		private int missing;

		Threads(int n) {
			missing = n;
		}

		public synchronized void execute(Runnable work) {
			for (; missing > 0; missing--)
				new Thread(this::work).start();
			queue.add(work);
			notify();
		}

		private synchronized Runnable next() throws InterruptedException {
			while (queue.isEmpty())
				wait();
			return queue.poll();
		}

		private void work() {
			try {
				while (true)
					next().run();
			} catch (InterruptedException e) {
				Thread.currentThread().interrupt();
			}
		}
	}

	/** Whoever waits for his own work does that of others meanwhile; what is in the queue is no job by its type. */
	static final class Helping {
		private final Queue<Piece> queue = new ConcurrentLinkedQueue<>();

		private static final class Piece {
			private final Runnable work;
			private final CountDownLatch done = new CountDownLatch(1);

			Piece(Runnable work) {
				this.work = work;
			}
		}

		void help(Runnable work) {
			Piece own = new Piece(work);

			queue.add(own);
			LockSupport.parkNanos(500_000);
			while (own.done.getCount() > 0) {
				Piece piece = queue.poll();

				if (piece == null) {
					LockSupport.parkNanos(100_000);
				} else {
					piece.work.run();
					piece.done.countDown();
				}
			}
		}
	}
}
