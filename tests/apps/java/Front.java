/*
 * The first service of the chain: a pool of threads, and each request makes one call to the second service on
 * its own thread by HttpURLConnection with kept-alive connections. Fails (502) where the call failed (5xx).
 *
 * java -Dhttp.maxConnections=N Front PORT BACK_PORT LOG [THREADS [MODE]]
 *
 * MODE "same" (default): as above. "virtual": a virtual thread for each request (Java 21). "handover": the thread
 * that received the request returns at once, and a task in the same pool makes the call and answers. "late": so
 * from the hundredth request on, and all before as above. "long": it answers 3 s after its call. "deep": as above, when
 * 1,100 jobs have run one inside the other. Likewise, with what calls and answers in place of that
 * task: "future", a CompletableFuture's job in the common pool and what depends on it; "scheduled", a job 1 ms
 * later; "thread", a thread of its own; "queue", two threads that the first request starts and that take jobs from
 * a queue for ever; "timer", a java.util.Timer's one thread; "client", java.net.http's sendAsync() and what depends
 * on its response (AsyncCalls, Java 11).
 */
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

public final class Front {
	final RequestLog log;
	final String back;
	private final AtomicLong requests = new AtomicLong();

	private Front(String file, String port) throws IOException {
		log = new RequestLog(file);
		back = "http://127.0.0.1:" + port;
	}

	private int call(String path) throws IOException {
		long start = RequestLog.now();
		HttpURLConnection connection = (HttpURLConnection) new URL(back + path).openConnection();
		int status = connection.getResponseCode();

		try (InputStream body = status < 400 ? connection.getInputStream() : connection.getErrorStream()) {
			while (body.read() >= 0)
				continue;
		}
		log.write("client", path, status, start, RequestLog.now());
		return status;
	}

	static String target(HttpExchange exchange) {
		return "/back/" + RequestLog.id(exchange.getRequestURI().getPath());
	}

	private void handle(HttpExchange exchange) throws IOException {
		long start = RequestLog.now();

		answer(exchange, start, call(target(exchange)));
	}

	private void answer(HttpExchange exchange, long start, int called) throws IOException {
		String path = exchange.getRequestURI().getPath();
		int status = called < 500 ? 200 : 502;
		byte[] body = ("front " + path + "\n").getBytes(StandardCharsets.UTF_8);

		exchange.sendResponseHeaders(status, body.length);
		log.write("server", path, status, start, RequestLog.now());
		exchange.getResponseBody().write(body);
		exchange.close();
	}

	private void handleUnchecked(HttpExchange exchange) {
		try {
			handle(exchange);
		} catch (IOException e) {
			throw new java.io.UncheckedIOException(e);
		}
	}

	private int callUnchecked(String path) {
		try {
			return call(path);
		} catch (IOException e) {
			throw new java.io.UncheckedIOException(e);
		}
	}

	void answerUnchecked(HttpExchange exchange, long start, int called) {
		try {
			answer(exchange, start, called);
		} catch (IOException e) {
			throw new java.io.UncheckedIOException(e);
		}
	}

	private void handleInFuture(HttpExchange exchange) {
		long start = RequestLog.now();

		CompletableFuture.supplyAsync(() -> callUnchecked(target(exchange)))
			.thenAccept(status -> answerUnchecked(exchange, start, status));
	}

	private void handleByTimer(HttpExchange exchange, Timer timer) {
		timer.schedule(new TimerTask() {
			@Override
			public void run() {
				handleUnchecked(exchange);
			}
		}, 1);
	}

	private static void work(BlockingQueue<Runnable> jobs) {
		try {
			while (true)
				jobs.take().run();
		} catch (InterruptedException e) {
			Thread.currentThread().interrupt();
		}
	}

	private void handleByQueue(HttpExchange exchange, BlockingQueue<Runnable> jobs, AtomicBoolean isStarted) {
		if (isStarted.compareAndSet(false, true))
			for (int i = 0; i < 2; i++)
				new Thread(() -> work(jobs)).start();
		jobs.add(() -> handleUnchecked(exchange));
	}

	private void handleLate(HttpExchange exchange, ExecutorService pool) throws IOException {
		if (requests.incrementAndGet() > 100)
			pool.execute(() -> handleUnchecked(exchange));
		else
			handle(exchange);
	}

	private void handleLong(HttpExchange exchange) throws IOException {
		long start = RequestLog.now();
		int called = call(target(exchange));

		try {
			Thread.sleep(3_000);
		} catch (InterruptedException e) {
			Thread.currentThread().interrupt();
		}
		answer(exchange, start, called);
	}

	private static void nest(int depth) {
		if (depth > 0)
			new FutureTask<Void>(() -> nest(depth - 1), null).run();
	}

	private void handleDeep(HttpExchange exchange) throws IOException {
		nest(1_100);
		handle(exchange);
	}

	private HttpHandler handler(String mode, ExecutorService pool) {
		switch (mode) {
		case "handover":
			return exchange -> pool.execute(() -> handleUnchecked(exchange));
		case "late":
			return exchange -> handleLate(exchange, pool);
		case "long":
			return this::handleLong;
		case "deep":
			return this::handleDeep;
		case "future":
			return this::handleInFuture;
		case "scheduled":
			ScheduledExecutorService scheduler = Executors.newScheduledThreadPool(4);

			return exchange -> scheduler.schedule(() -> handleUnchecked(exchange), 1, TimeUnit.MILLISECONDS);
		case "thread":
			return exchange -> new Thread(() -> handleUnchecked(exchange)).start();
		case "queue":
			BlockingQueue<Runnable> jobs = new LinkedBlockingQueue<>();
			AtomicBoolean isStarted = new AtomicBoolean();

			return exchange -> handleByQueue(exchange, jobs, isStarted);
		case "timer":
			Timer timer = new Timer();

			return exchange -> handleByTimer(exchange, timer);
		case "client":
			AsyncCalls calls = new AsyncCalls(this);

			return calls::handle;
		default:
			return this::handle;
		}
	}

	/* Compiled by Java 17 too, which has no virtual threads. */
	private static ExecutorService virtualThreads() throws IOException {
		try {
			return (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
		} catch (ReflectiveOperationException e) {
			throw new IOException(e);
		}
	}

	public static void main(String[] args) throws IOException {
		int threads = args.length > 3 ? Integer.parseInt(args[3]) : 64;
		String mode = args.length > 4 ? args[4] : "same";
		ExecutorService pool = mode.equals("virtual") ? virtualThreads() : Executors.newFixedThreadPool(threads);
		Front front = new Front(args[2], args[1]);
		HttpServer server = HttpServer.create(
			new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 1024);

		server.createContext("/", front.handler(mode, pool));
		server.setExecutor(pool);
		server.start();
		System.out.println("ready");
	}
}
