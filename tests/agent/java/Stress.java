import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * An application that is deployed again and again, each time by a class loader of its own, while memory is
 * collected all the time: its classes hand work to the JDK's pools, to their own, to futures, queues and threads.
 * Stress SECONDS agent|none. With "agent" requests are mounted and judged as in Handovers.
 * Prints: rounds, right, wrong, absent, loaders still there, kilobytes of metaspace, classes. Source level 8.
 */
public class Stress {
	public static final ExecutorService shared = Executors.newFixedThreadPool(4);
	static volatile byte[] garbage;
	static boolean hasAgent;

	/** What the runner knows of an application. */
	public interface Deployed {
		void serve(long request) throws Exception;

		void end() throws Exception;
	}

	/** Loaded again for each deployment. */
	public static class Application implements Deployed {
		private final ExecutorService own = Executors.newCachedThreadPool();
		private final LinkedBlockingQueue<Runnable> jobs = new LinkedBlockingQueue<>();
		private final ConcurrentHashMap<Long, Object> kept = new ConcurrentHashMap<>();
		private final ThreadLocal<Object> local = new ThreadLocal<>();
		private final Thread worker = new Thread(this::work);

		public Application() {
			worker.start();
		}

		private void work() {
			try {
				while (true)
					jobs.take().run();
			} catch (InterruptedException end) {
				return;
			}
		}

		private void run(long request, CountDownLatch done) {
			kept.put(request, new byte[256]);
			local.set(this);
			Stress.judge(request);
			local.remove();
			done.countDown();
		}

		@Override
		public void serve(long request) throws Exception {
			CountDownLatch done = new CountDownLatch(5);

			shared.execute(() -> run(request, done));
			own.submit(() -> run(request, done));
			jobs.add(() -> run(request, done));
			CompletableFuture.supplyAsync(() -> request, own).thenAccept(r -> run(r, done));
			new Thread(() -> run(request, done)).start();
			if (!done.await(60, TimeUnit.SECONDS))
				throw new IllegalStateException("work was lost");
			kept.remove(request);
		}

		@Override
		public void end() throws Exception {
			own.shutdown();
			worker.interrupt();
			worker.join();
			if (!own.awaitTermination(60, TimeUnit.SECONDS))
				throw new IllegalStateException("the pool does not end");
		}
	}

	/** Has the application's classes for itself. */
	static class Loader extends ClassLoader {
		@Override
		protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
			if (!name.startsWith("Stress$Application"))
				return super.loadClass(name, resolve);
			synchronized (getClassLoadingLock(name)) {
				Class<?> known = findLoadedClass(name);

				return known != null ? known : define(name);
			}
		}

		private Class<?> define(String name) throws ClassNotFoundException {
			ByteArrayOutputStream bytes = new ByteArrayOutputStream();

			try (InputStream in = Stress.class.getResourceAsStream("/" + name + ".class")) {
				for (int b = in.read(); b >= 0; b = in.read())
					bytes.write(b);
			} catch (Exception e) {
				throw new ClassNotFoundException(name, e);
			}
			return defineClass(name, bytes.toByteArray(), 0, bytes.size());
		}
	}

	public static void judge(long request) {
		if (hasAgent)
			Handovers.judge(request);
		else
			Handovers.right.incrementAndGet();
	}

	static void collect(long end) {
		while (System.nanoTime() < end) {
			for (int i = 0; i < 200; i++)
				garbage = new byte[16384];
			System.gc();
		}
	}

	static void serve(Deployed application) throws Exception {
		long request = Handovers.requests.incrementAndGet();

		try {
			if (hasAgent)
				Handovers.mount.invokeExact(request);
			application.serve(request);
			if (hasAgent)
				Handovers.clear.invokeExact();
		} catch (Exception | Error e) {
			throw e;
		} catch (Throwable e) {
			throw new Error(e);
		}
	}

	static WeakReference<ClassLoader> deploy() throws Exception {
		Loader loader = new Loader();
		Deployed application =
			(Deployed) loader.loadClass("Stress$Application").getConstructor().newInstance();

		for (int i = 0; i < 50; i++)
			serve(application);
		application.end();
		return new WeakReference<>(loader);
	}

	static long metaspace() {
		for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans())
			if (pool.getName().equals("Metaspace"))
				return pool.getUsage().getUsed() / 1024;
		return 0;
	}

	/* Whoever served it last may hold on to it on its stack, or a pool's thread in its last job. */
	static void settle() throws Exception {
		((ThreadPoolExecutor) shared).setKeepAliveTime(1, TimeUnit.MILLISECONDS);
		((ThreadPoolExecutor) shared).allowCoreThreadTimeOut(true);
		for (int i = 0; i < 20; i++) {
			System.gc();
			Thread.sleep(50);
		}
	}

	public static void main(String[] args) {
		try {
			run(Long.parseLong(args[0]) * 1_000_000_000L, args[1].equals("agent"));
			System.exit(0);
		} catch (Throwable e) {
			e.printStackTrace(System.out);
			System.exit(1); /* whatever threads there are */
		}
	}

	static void run(long ns, boolean withAgent) throws Exception {
		List<WeakReference<ClassLoader>> loaders = new ArrayList<>();
		final long end;
		int there = 0;

		hasAgent = withAgent;
		System.out.println("READY");
		if (hasAgent)
			Handovers.awaitAgent();
		end = System.nanoTime() + ns;
		Thread collector = new Thread(() -> collect(end));
		collector.start();
		while (System.nanoTime() < end)
			loaders.add(deploy());
		collector.join();
		settle();
		for (WeakReference<ClassLoader> loader : loaders)
			if (loader.get() != null)
				there++;
		System.out.println(loaders.size() + " " + Handovers.right + " " + Handovers.wrong + " " + Handovers.absent + " "
				   + there + " " + metaspace() + " "
				   + ManagementFactory.getClassLoadingMXBean().getLoadedClassCount());
	}
}
