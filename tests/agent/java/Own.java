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
import java.util.function.Consumer;
import java.util.function.UnaryOperator;

/**
 * Executors that an application has made itself: one job of a pool drains what many requests handed over, and
 * threads of their own wait at a queue of the JDK. Judged as in Handovers: a line a case. Source level 8.
 */
public class Own {
	static final ExecutorService POOL = Executors.newFixedThreadPool(2);

	/** One after the other, in whatever thread of the pool; a job that throws is not the others' harm. */
	static final class Serial implements Executor {
		private final ArrayDeque<Runnable> jobs = new ArrayDeque<>();
		private final UnaryOperator<Runnable> carrier;
		private boolean runs;

		/** What each job is put into. */
		Serial(UnaryOperator<Runnable> carrier) {
			this.carrier = carrier;
		}

		@Override
		public void execute(Runnable job) {
			synchronized (jobs) {
				jobs.add(carrier.apply(job));
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

	/** Each job is put into something else, and passed on as what is no job: to whatever thread is free. */
	static final class Carrying implements Executor {
		private final LinkedBlockingQueue<Consumer<Void>> handlers = new LinkedBlockingQueue<>();

		Carrying(int n) {
			for (int i = 0; i < n; i++) {
				Thread thread = new Thread(this::work);

				thread.setDaemon(true);
				thread.start();
			}
		}

		@Override
		public void execute(Runnable job) {
			Runnable carried = Carried.object(job);

			handlers.add(nothing -> carried.run());
		}

		private void work() {
			try {
				while (true)
					handlers.take().accept(null);
			} catch (InterruptedException end) {
				return;
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

	/* Threads that take messages in a method that calls back as well. */
	static void callbacks(int n) throws Exception {
		LinkedBlockingQueue<Handovers.Message> queue = new LinkedBlockingQueue<>();

		for (int i = 0; i < 2; i++) {
			Thread thread = new Thread(() -> {
				try {
					for (;;) {
						Handovers.Message message = Carried.next(queue, Thread::yield);

						Handovers.judge(message.request);
						message.done.countDown();
					}
				} catch (InterruptedException end) {
					return;
				}
			});

			thread.setDaemon(true);
			thread.start();
		}
		Handovers.run("callbacks", n, request -> {
			Handovers.Message message = new Handovers.Message(request);

			queue.put(message);
			Handovers.await(message.done);
		});
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
		Serial serial = new Serial(job -> job);
		CountDownLatch used = new CountDownLatch(1);

		/* Its lambdas are there before the agent is. */
		serial.execute(used::countDown);
		used.await();
		System.out.println("READY");
		Handovers.awaitAgent();
		isJudged = true;
		Handovers.run("serial", n, request -> through(serial, false, request));
		Handovers.run("serial-throws", n, request -> through(serial, request % 4 == 0, request));
		Serial objects = new Serial(Carried::object), lambdas = new Serial(Carried::lambda);
		Serial both = new Serial(job -> Carried.lambda(Carried.object(job)));
		Carrying carrying = new Carrying(2);
		Handovers.run("carried", n, request -> through(objects, request % 4 == 0, request));
		Handovers.run("carried-lambda", n, request -> through(lambdas, request % 4 == 0, request));
		Handovers.run("carried-twice", n, request -> through(both, false, request));
		Handovers.run("carried-by-handler", n, request -> through(carrying, false, request));
		Workers workers = new Workers(2);
		Handovers.run("workers", n, request -> through(workers, false, request));
		callbacks(n);
		reader(n / 10);
		Handovers.run("listeners", n, request -> listen(request % 2 == 0 ? POOL : Runnable::run, request));
		System.exit(0);
	}
}
