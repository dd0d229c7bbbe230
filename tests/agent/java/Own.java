import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Executors that an application has made itself: one job of a pool drains what many requests handed over, and
 * threads of their own wait at a queue of the JDK. Judged as in Handovers: a line a case. Source level 8.
 */
public class Own {
	static final ExecutorService POOL = Executors.newFixedThreadPool(2);

	/** One after the other, in whatever thread of the pool; a job that throws is not the others' harm. */
	static final class Serial implements Executor {
		private final ArrayDeque<Runnable> jobs = new ArrayDeque<>();
		private boolean runs;

		@Override
		public void execute(Runnable job) {
			synchronized (jobs) {
				jobs.add(job);
				if (runs)
					return;
				runs = true;
			}
			POOL.execute(this::drain);
		}

		private Runnable next() {
			synchronized (jobs) {
				runs = !jobs.isEmpty();
				return jobs.poll();
			}
		}

		private void drain() {
			for (Runnable job = next(); job != null; job = next()) {
				try {
					job.run();
				} catch (IllegalStateException failed) {
					/* Between two jobs it works for nobody. */
					if (isJudged && Handovers.now() != 0)
						Handovers.wrong.incrementAndGet();
				}
			}
		}
	}

	/** Threads that take what comes. */
	static final class Workers implements Executor {
		private final LinkedBlockingQueue<Runnable> jobs = new LinkedBlockingQueue<>();

		Workers(int n) {
			for (int i = 0; i < n; i++) {
				Thread thread = new Thread(this::work);

				thread.setDaemon(true);
				thread.start();
			}
		}

		@Override
		public void execute(Runnable job) {
			jobs.add(job);
		}

		private void work() {
			try {
				while (true)
					jobs.take().run();
			} catch (InterruptedException end) {
				return;
			}
		}
	}

	/** A future with listeners as Guava's has them, which whoever comes next completes. */
	static final class Future {
		private final ArrayDeque<Runnable> listeners = new ArrayDeque<>();

		public void addListener(Runnable listener, Executor executor) {
			synchronized (listeners) {
				listeners.add(() -> executeListener(listener, executor));
			}
		}

		void complete() {
			for (;;) {
				Runnable one;

				synchronized (listeners) {
					one = listeners.poll();
				}
				if (one == null)
					return;
				one.run();
			}
		}

		private static void executeListener(Runnable listener, Executor executor) {
			executor.execute(listener);
		}
	}

	static final AtomicReference<Future> last = new AtomicReference<>(new Future());

	/* The same listener waits twice. */
	static void listen(Executor executor, long request) {
		Future future = new Future();
		Runnable listener = () -> Handovers.judge(request);

		future.addListener(listener, executor);
		future.addListener(listener, executor);
		last.getAndSet(future).complete();
		Handovers.judge(request);
	}

	/** Who reads a request in the middle of a method that also runs jobs. */
	static final class Reader implements Executor {
		private final ArrayDeque<Runnable> jobs = new ArrayDeque<>();

		@Override
		public void execute(Runnable job) {
			jobs.add(job);
		}

		/** Returns what it works for. */
		long read(SocketChannel channel) throws Exception {
			while (!jobs.isEmpty())
				jobs.poll().run();
			channel.read(ByteBuffer.allocate(1));
			return Handovers.now();
		}
	}

	/* Before it read, the thread was another request's. */
	static void reader(int n) throws Exception {
		SocketChannel[] ends = Turns.pair();
		Reader reader = new Reader();

		Handovers.clearJudged();
		for (int i = 0; i < n; i++) {
			Handovers.mount(0);
			Turns.send(ends[1]);
			Handovers.mount(Handovers.requests.incrementAndGet());
			reader.execute(() -> {
			});
			Handovers.judgeKnown(reader.read(ends[0]));
			Handovers.mount(0);
			Turns.send(ends[0]);
			Turns.read(ends[1]);
		}
		Handovers.print("reader");
	}

	static volatile boolean isJudged;

	static void through(Executor executor, boolean throwing, long request) throws Exception {
		CountDownLatch done = new CountDownLatch(1);

		executor.execute(() -> {
			Handovers.judge(request);
			done.countDown();
			if (throwing)
				throw new IllegalStateException("as the test wants it");
		});
		if (!done.await(60, TimeUnit.SECONDS))
			throw new IllegalStateException("a job was lost");
	}

	public static void main(String[] args) throws Exception {
		int n = Integer.parseInt(args[0]);
		Serial serial = new Serial();
		CountDownLatch used = new CountDownLatch(1);

		/* Its lambdas are there before the agent is. */
		serial.execute(used::countDown);
		used.await();
		System.out.println("READY");
		Handovers.awaitAgent();
		isJudged = true;
		Handovers.run("serial", n, request -> through(serial, false, request));
		Handovers.run("serial-throws", n, request -> through(serial, request % 4 == 0, request));
		Workers workers = new Workers(2);
		Handovers.run("workers", n, request -> through(workers, false, request));
		reader(n / 10);
		Handovers.run("listeners", n, request -> listen(request % 2 == 0 ? POOL : Runnable::run, request));
		System.exit(0);
	}
}
