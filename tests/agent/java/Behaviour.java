import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.*;

/**
 * What an application sees of its own jobs: prints the same with the agent and without it. Every job
 * is handed over by a thread that works for a request, if there is an agent. Source level 8.
 */
public class Behaviour {
	static final class Job implements Runnable, Comparable<Job> {
		final int number;

		Job(int number) {
			this.number = number;
		}

		@Override
		public void run() {
			if (number < 0)
				throw new IllegalStateException("job " + number);
		}

		@Override
		public int compareTo(Job other) {
			return Integer.compare(number, other.number);
		}

		@Override
		public boolean equals(Object other) {
			throw new AssertionError("equals() of a job was asked");
		}

		@Override
		public int hashCode() {
			throw new AssertionError("hashCode() of a job was asked");
		}

		@Override
		public String toString() {
			return "job " + number;
		}
	}

	static void mount() throws Exception {
		try {
			Class.forName("tsunagi.agent.Context", false, null)
				.getMethod("mount", long.class)
				.invoke(null, 7L);
		} catch (ClassNotFoundException without) {
		}
	}

	static ThreadPoolExecutor pool(BlockingQueue<Runnable> queue, List<String> seen) {
		return new ThreadPoolExecutor(1, 1, 1, TimeUnit.MINUTES, queue, (job, pool) -> {
			synchronized (seen) {
				seen.add("rejected " + job.getClass().getName() + " " + job);
			}
		}) {
			@Override
			protected void beforeExecute(Thread thread, Runnable job) {
				synchronized (seen) {
					seen.add("before " + job.getClass().getName() + " " + job);
				}
			}

			@Override
			protected void afterExecute(Runnable job, Throwable thrown) {
				synchronized (seen) {
					seen.add("after " + job.getClass().getName() + " " + job
						 + " " + thrown);
				}
			}
		};
	}

	static void queues() throws Exception {
		List<String> seen = new ArrayList<>();
		ThreadPoolExecutor pool = pool(new LinkedBlockingQueue<>(3), seen);
		CountDownLatch hold = new CountDownLatch(1), held = new CountDownLatch(1);
		Job[] jobs = {new Job(1), new Job(2), new Job(3), new Job(4)};

		pool.execute(new Blocker(hold, held));
		held.await();
		for (Job job : jobs)
			pool.execute(job);
		System.out.println("queue " + pool.getQueue());
		Object first = pool.getQueue().peek();
		System.out.println("same " + (first == jobs[0]));
		System.out.println("removed " + pool.getQueue().removeIf(job -> job == jobs[1]));
		List<Runnable> rest = pool.shutdownNow();
		System.out.println("rest " + rest + " " + (rest.get(0) == jobs[0]));
		hold.countDown();
		pool.awaitTermination(10, TimeUnit.SECONDS);
		System.out.println(seen);
	}

	static final class Blocker implements Runnable {
		final CountDownLatch hold, held;

		Blocker(CountDownLatch hold, CountDownLatch held) {
			this.hold = hold;
			this.held = held;
		}

		@Override
		public void run() {
			held.countDown();
			try {
				hold.await();
			} catch (InterruptedException end) {
			}
		}

		@Override
		public String toString() {
			return "blocker";
		}
	}

	static void priorities() throws Exception {
		List<String> seen = new ArrayList<>();
		ThreadPoolExecutor pool = pool(new PriorityBlockingQueue<>(), seen);
		CountDownLatch hold = new CountDownLatch(1), held = new CountDownLatch(1);

		pool.execute(new Blocker(hold, held));
		held.await();
		for (int number : new int[] {5, 3, 4, 1, 2})
			pool.execute(new Job(number));
		hold.countDown();
		pool.shutdown();
		pool.awaitTermination(10, TimeUnit.SECONDS);
		System.out.println(seen);

		pool = pool(new PriorityBlockingQueue<>(8, Comparator.comparing(Object::toString)), seen);
		for (int number : new int[] {5, 3})
			pool.execute(new Job(number));
		pool.shutdown();
		pool.awaitTermination(10, TimeUnit.SECONDS);
	}

	/* Stack traces have the application's frames and the JDK's. */
	static void thrown() throws Exception {
		ExecutorService pool = Executors.newSingleThreadExecutor();

		try {
			pool.submit(() -> {
				throw new IllegalStateException("thrown");
			}).get();
		} catch (ExecutionException e) {
			trace(e.getCause());
		}
		pool.shutdown();
		try {
			CompletableFuture.supplyAsync(() -> {
				throw new IllegalStateException("supplied");
			}).thenApply(x -> x).join();
		} catch (CompletionException e) {
			trace(e.getCause());
		}
		Thread thread = new Thread(() -> {
			throw new IllegalStateException("thread");
		});
		thread.setUncaughtExceptionHandler((t, e) -> trace(e));
		thread.start();
		thread.join();
	}

	static void trace(Throwable thrown) {
		StringBuilder text = new StringBuilder(thrown.toString());

		for (StackTraceElement frame : thrown.getStackTrace())
			text.append(' ').append(frame.getClassName()).append('.')
				.append(frame.getMethodName());
		System.out.println(text);
	}

	public static void main(String[] args) throws Exception {
		System.out.println("READY");
		if (args[0].equals("agent")) {
			while (!isThere())
				Thread.sleep(5);
			System.in.read(); /* it is ready a moment later, and the runner knows when */
		}
		mount();
		queues();
		priorities();
		thrown();
		System.exit(0);
	}

	static boolean isThere() {
		try {
			Class.forName("tsunagi.agent.Context", false, null);
			return true;
		} catch (ClassNotFoundException without) {
			return false;
		}
	}
}
