import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;

/**
 * Hands work over in every way the JDK has, for requests that are all open at once, and judges where
 * it runs whether the thread works for the request that handed it over. A request is a number mounted
 * as a library's hook would. Prints a line a case: name, right, wrong, absent. Pools and threads live
 * before the agent comes. Source level 8.
 */
public class Handovers {
	static MethodHandle current, mount, clear;
	static final AtomicLong requests = new AtomicLong(1L << 40);
	static final AtomicInteger right = new AtomicInteger(), wrong = new AtomicInteger(),
				   absent = new AtomicInteger();
	static int count;

	interface Job {
		void run(long request) throws Exception;
	}

	static long now() {
		try {
			return (long) current.invokeExact();
		} catch (Throwable e) {
			throw new Error(e);
		}
	}

	static void judge(long request) {
		long now = now();

		(now == request || request == 0 ? right : now == 0 ? absent : wrong).incrementAndGet();
	}

	/* One that must have a number, too. */
	static void judgeKnown(long request) {
		if (request == 0)
			absent.incrementAndGet();
		else
			judge(request);
	}

	/* Works for nobody. */
	static void judgeNone() {
		(now() == 0 ? right : wrong).incrementAndGet();
	}

	static void clearJudged() {
		right.set(0);
		wrong.set(0);
		absent.set(0);
	}

	static void print(String name) {
		System.out.println(name + " " + right + " " + wrong + " " + absent);
	}

	static void awaitAgent() throws Exception {
		Class<?> context = null;

		while (context == null) {
			try {
				context = Class.forName("tsunagi.agent.Context", false, null);
			} catch (ClassNotFoundException notYet) {
				Thread.sleep(5);
			}
		}
		System.in.read(); /* it is ready a moment later, and the runner knows when */
		MethodHandles.Lookup lookup = MethodHandles.publicLookup();

		current = lookup.findStatic(context, "current", MethodType.methodType(long.class));
		mount = lookup.findStatic(context, "mount",
					  MethodType.methodType(void.class, long.class));
		clear = lookup.findStatic(context, "clear", MethodType.methodType(void.class));
	}

	/* Eight threads, each a request at a time. */
	static void run(String name, int n, Job job) throws Exception {
		Thread[] threads = new Thread[8];

		clearJudged();
		for (int i = 0; i < threads.length; i++) {
			threads[i] = new Thread(() -> {
				for (int k = 0; k < n / threads.length; k++) {
					long request = requests.incrementAndGet();

					try {
						mount.invokeExact(request);
						job.run(request);
						if (now() != request)
							wrong.incrementAndGet();
						clear.invokeExact();
					} catch (Throwable e) {
						System.out.println(name + " threw " + e);
						e.printStackTrace(System.out);
						System.exit(1);
					}
				}
			});
			threads[i].start();
		}
		for (Thread thread : threads)
			thread.join();
		print(name);
	}

	static void await(CountDownLatch latch) throws Exception {
		if (!latch.await(60, TimeUnit.SECONDS))
			throw new TimeoutException();
	}

	static void through(ExecutorService pool, long request) throws Exception {
		CountDownLatch done = new CountDownLatch(3);
		Runnable job = () -> {
			judge(request);
			done.countDown();
		};

		pool.execute(job);
		pool.submit(() -> {
			judge(request);
			pool.execute(() -> {
				judge(request);
				done.countDown();
			});
			done.countDown();
		});
		await(done);
	}

	static final class Message {
		final long request;
		final CountDownLatch done = new CountDownLatch(1);

		Message(long request) {
			this.request = request;
		}
	}

	static Object sleep(long ms) throws Exception {
		Thread.sleep(ms);
		return null;
	}

	static void serve(BlockingQueue<Message> queue) {
		try {
			for (;;) {
				Message message = queue.take();

				judge(message.request);
				message.done.countDown();
			}
		} catch (InterruptedException end) {
		}
	}

	static void queue(String name, int n, BlockingQueue<Message> queue) throws Exception {
		List<Thread> workers = new ArrayList<>();

		/* Started under an open request, as pools that start lazily are. */
		mount(requests.incrementAndGet());
		for (int i = 0; i < 2; i++) {
			Thread worker = new Thread(() -> serve(queue));

			worker.setDaemon(true);
			worker.start();
			workers.add(worker);
		}
		mount(0);
		run(name, n, request -> {
			Message message = new Message(request);

			queue.put(message);
			await(message.done);
		});
		for (Thread worker : workers)
			worker.interrupt();
	}

	/* One job, many times at once. */
	static void same(ExecutorService pool, long request) throws Exception {
		CountDownLatch done = new CountDownLatch(4);
		Runnable job = () -> {
			judge(request);
			done.countDown();
		};

		for (int i = 0; i < 4; i++)
			pool.execute(job);
		await(done);
	}

	static final ConcurrentLinkedQueue<Long> handed = new ConcurrentLinkedQueue<>();

	/* For which hand-over this is the pool does not tell, but the order does. */
	static void runShared() {
		long request = handed.remove();

		(now() == 0 || now() == request ? right : wrong).incrementAndGet();
	}

	/* One job of several requests and of none, many times at once: as many as there are, one after the other. */
	static void shared(int n) throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(1);
		Runnable job = Handovers::runShared;

		clearJudged();
		for (int k = 0; k < n; k++) {
			CountDownLatch gate = new CountDownLatch(1);
			long first = requests.incrementAndGet(), second = requests.incrementAndGet();
			long[][] orders = {{0, first}, {first, 0}, {first, second}, {first, first, second}};

			pool.submit(() -> {
				await(gate);
				return null;
			});
			for (long request : orders[k % orders.length]) {
				mount(request);
				handed.add(request);
				pool.execute(job);
			}
			mount(0);
			/* Another, when some have run perhaps. */
			gate.countDown();
			mount(second);
			handed.add(second);
			pool.execute(job);
			mount(0);
			pool.submit(() -> null).get();
		}
		print("shared-job");
		pool.shutdown();
	}

	/* A job of a request, which is open as long as it runs, that does nothing but take what others send. */
	static void consumer(String name, ExecutorService pool) throws Exception {
		BlockingQueue<Message> queue = new LinkedBlockingQueue<>();
		Future<?> job;

		mount(requests.incrementAndGet());
		job = pool.submit(() -> serve(queue));
		mount(0);
		/* From the fourth on it is known to. */
		for (int i = 0; i < 4; i++) {
			Message message = new Message(0);

			queue.put(message);
			await(message.done);
		}
		run(name, count, request -> {
			Message message = new Message(request);

			queue.put(message);
			await(message.done);
		});
		job.cancel(true);
	}

	/* What a job takes out of a pool says nothing of who gave it back, whose request may be open still. */
	static void borrow(BlockingQueue<Object> pool, long request, boolean isKnown) throws Exception {
		Object thing = pool.poll();

		if (thing == null)
			thing = new Object();
		judge(isKnown || now() != 0 ? request : 0);
		pool.offer(thing);
		judge(isKnown || now() != 0 ? request : 0);
	}

	static void objectPool(String name, ExecutorService executor, boolean isKnown) throws Exception {
		BlockingQueue<Object> pool = new ArrayBlockingQueue<>(2);

		if (isKnown) {
			pool.put(new Object());
			pool.put(pool.take());
		}
		run(name, count, request -> {
			Future<?> job = executor.submit(() -> {
				borrow(pool, request, isKnown);
				return null;
			});

			job.get();
		});
	}

	/* So that one goes straight from who gives it back to who waits. */
	static void handedOver(ExecutorService executor) throws Exception {
		SynchronousQueue<Object> waiting = new SynchronousQueue<>();
		BlockingQueue<Object> free = new LinkedBlockingQueue<>();

		AtomicInteger made = new AtomicInteger();

		run("pool-handed-over", count, request -> {
			Future<?> job = executor.submit(() -> {
				Object thing = made.incrementAndGet() <= 2 ? new Object() : free.poll();

				while (thing == null) {
					thing = waiting.poll(1, TimeUnit.MILLISECONDS);
					if (thing == null)
						thing = free.poll();
				}
				judge(now() != 0 ? request : 0);
				if (!waiting.offer(thing))
					free.put(thing);
				return null;
			});

			job.get();
		});
	}

	static void mount(long context) {
		try {
			mount.invokeExact(context);
		} catch (Throwable e) {
			throw new Error(e);
		}
	}

	static void futures(long request) throws Exception {
		CompletableFuture<Integer> stage = CompletableFuture.supplyAsync(() -> {
			judge(request);
			return 1;
		}).thenApplyAsync(x -> {
			judge(request);
			return x + 1;
		}).thenCompose(x -> CompletableFuture.supplyAsync(() -> {
			judge(request);
			return x;
		}));

		stage.get(60, TimeUnit.SECONDS);
	}

	/* What depends on a future that a stranger completes belongs to who asked for it. */
	static void dependents(ExecutorService stranger, long request) throws Exception {
		CompletableFuture<Integer> source = new CompletableFuture<>();
		CompletableFuture<Void> all = source.thenApply(x -> {
			judge(request);
			return x;
		}).thenAccept(x -> judge(request));
		CompletableFuture<Integer> other = source.handle((x, e) -> {
			judge(request);
			return x;
		});
		CompletableFuture<Void> both = other.thenAcceptBoth(source, (x, y) -> judge(request));

		strangers.add(source);
		all.get(60, TimeUnit.SECONDS);
		both.get(60, TimeUnit.SECONDS);
	}

	/* What was asked for by no request is none's, whichever completes it. */
	static void nobodysDependents(ExecutorService pool, long request) throws Exception {
		CompletableFuture<Integer> source = new CompletableFuture<>();
		CountDownLatch done = new CountDownLatch(2);
		CompletableFuture<Void> all;

		mount(0);
		all = source.thenAccept(x -> judgeNone())
			      .thenCompose(x -> CompletableFuture.runAsync(Handovers::judgeNone, pool))
			      .thenRunAsync(Handovers::judgeNone, pool);
		source.thenRunAsync(() -> {
			judgeNone();
			pool.execute(() -> {
				judgeNone();
				done.countDown();
			});
			done.countDown();
		}, pool);
		mount(request);
		source.complete(1);
		judge(request);
		all.get(60, TimeUnit.SECONDS);
		await(done);
	}

	/* Nor is a task of no request that of one that waits for it, and so comes to run it. */
	static void nobodysForked(ForkJoinPool pool, long request) throws Exception {
		mount(0);
		pool.submit(() -> {
			ForkJoinTask<?> joined = ForkJoinTask.adapt(Handovers::judgeNone).fork();
			ForkJoinTask<?> helped = ForkJoinTask.adapt(Handovers::judgeNone).fork();

			mount(request);
			ForkJoinTask.helpQuiesce();
			judge(request);
			joined = ForkJoinTask.adapt(joined::join).fork();
			joined.join();
			helped.join();
			judge(request);
			mount(0);
		}).get();
		mount(request);
	}

	static ForkJoinTask<?> judging(long request) {
		return ForkJoinTask.adapt(() -> judge(request));
	}

	/* What is not forked is the caller's. */
	static void invoked(long request) {
		judging(request).invoke();
		judging(request).quietlyInvoke();
		ForkJoinTask.invokeAll(judging(request), judging(request));
		ForkJoinTask.invokeAll(judging(request), judging(request), judging(request));
		ForkJoinTask.invokeAll(new ArrayList<>(Arrays.asList(judging(request), judging(request))));
		ForkJoinTask.invokeAll(Arrays.asList(judging(request), judging(request)));
		ForkJoinTask.invokeAll(new HashSet<>(Arrays.asList(judging(request), judging(request))));
	}

	static final ConcurrentLinkedQueue<CompletableFuture<Integer>> strangers =
		new ConcurrentLinkedQueue<>();

	static void complete() {
		for (;;) {
			CompletableFuture<Integer> source = strangers.poll();

			mount(requests.incrementAndGet());
			if (source != null)
				source.complete(1);
			else
				Thread.yield();
		}
	}

	public static void main(String[] args) throws Exception {
		ExecutorService fixed = Executors.newFixedThreadPool(3);
		ExecutorService cached = Executors.newCachedThreadPool();
		ExecutorService forkJoin = new ForkJoinPool(3);
		ScheduledExecutorService scheduled = Executors.newScheduledThreadPool(2);
		Timer timer = new Timer(true);
		Thread stranger = new Thread(Handovers::complete);

		for (int i = 0; i < 3; i++)
			fixed.submit(() -> sleep(20));
		count = Integer.parseInt(args[0]);
		System.out.println("READY");
		awaitAgent();
		/* Workers that wait for a job since before the agent came do one as they would without. */
		for (int i = 0; i < 30; i++) {
			fixed.submit(() -> sleep(5));
			scheduled.submit(() -> sleep(5));
		}
		Thread.sleep(300);

		run("fixed-pool", count, request -> through(fixed, request));
		run("cached-pool", count, request -> through(cached, request));
		run("fork-join-pool", count, request -> through(forkJoin, request));
		run("common-pool", count, request -> through(ForkJoinPool.commonPool(), request));
		run("scheduled", count / 4, request -> {
			CountDownLatch done = new CountDownLatch(1);

			through(scheduled, request);
			scheduled.schedule(() -> {
				judge(request);
				done.countDown();
			}, 1, TimeUnit.MILLISECONDS);
			await(done);
		});
		run("periodic", count / 50, request -> {
			CountDownLatch done = new CountDownLatch(3);
			Future<?> job = scheduled.scheduleAtFixedRate(() -> {
				judge(request);
				done.countDown();
			}, 0, 1, TimeUnit.MILLISECONDS);

			await(done);
			job.cancel(false);
		});
		run("completable-future", count, Handovers::futures);
		stranger.setDaemon(true);
		stranger.start();
		run("dependents", count, request -> dependents(fixed, request));
		run("nobodys-dependents", count / 4, request -> nobodysDependents(fixed, request));
		run("nobodys-forked", count / 4, request -> nobodysForked((ForkJoinPool) forkJoin, request));
		run("invoked", count / 4, request -> {
			invoked(request);
			forkJoin.submit(() -> invoked(request)).get();
		});
		run("thread", count / 20, request -> {
			Thread thread = new Thread(() -> judge(request));
			Thread own = new Thread() {
				@Override
				public void run() {
					judge(request);
				}
			};

			thread.start();
			own.start();
			thread.join();
			own.join();
		});
		run("timer", count / 20, request -> {
			CountDownLatch done = new CountDownLatch(1);

			timer.schedule(new TimerTask() {
				@Override
				public void run() {
					judge(request);
					done.countDown();
				}
			}, 1);
			await(done);
		});
		run("parallel-stream", count / 10,
		    request -> IntStream.range(0, 64).parallel().forEach(i -> judge(request)));
		queue("linked-queue", count, new LinkedBlockingQueue<>());
		queue("array-queue", count, new ArrayBlockingQueue<>(16));
		queue("deque", count, new LinkedBlockingDeque<>());
		queue("synchronous-queue", count, new SynchronousQueue<>());
		queue("transfer-queue", count, new LinkedTransferQueue<>());
		queue("priority-queue", count,
		      new PriorityBlockingQueue<>(16, (a, b) -> Long.compare(a.request, b.request)));
		objectPool("object-pool", fixed, true);
		objectPool("object-pool-new", fixed, false);
		handedOver(fixed);
		run("same-job", count, request -> same(fixed, request));
		shared(count / 10);
		consumer("consumer-job", cached);
		virtual();
		System.exit(0);
	}

	static void virtual() throws Exception {
		ExecutorService virtual;

		try {
			virtual = (ExecutorService) Executors.class
					  .getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
		} catch (NoSuchMethodException olderJdk) {
			return;
		}
		run("virtual", count, request -> {
			CountDownLatch done = new CountDownLatch(4);

			for (int i = 0; i < 4; i++)
				virtual.execute(() -> {
					try {
						judge(request);
						Thread.sleep(1);
						judge(request);
						Thread.yield();
						judge(request);
					} catch (InterruptedException e) {
					}
					done.countDown();
				});
			await(done);
		});
		consumer("virtual-consumer", virtual);
	}
}
