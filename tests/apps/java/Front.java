/*
 * The first service of the chain: a pool of threads, and each request makes one call to the second service on
 * its own thread by HttpURLConnection with kept-alive connections. Fails (502) where the call failed (5xx).
 *
 * java -Dhttp.maxConnections=N Front PORT BACK_PORT LOG [THREADS [MODE]]
 *
 * MODE "same" (default): as above. "virtual": a virtual thread for each request (Java 21). "handover": the thread
 * that received the request returns at once, and a task in the same pool makes the call and answers. "late": so
 * from the hundredth request on, and all before as above.
 */
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

public final class Front {
	private final RequestLog log;
	private final String back;
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
			body.readAllBytes();
		}
		log.write("client", path, status, start, RequestLog.now());
		return status;
	}

	private void handle(HttpExchange exchange) throws IOException {
		long start = RequestLog.now();
		String path = exchange.getRequestURI().getPath();
		int status = call("/back/" + RequestLog.id(path)) < 500 ? 200 : 502;
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

	private void handleLate(HttpExchange exchange, ExecutorService pool) throws IOException {
		if (requests.incrementAndGet() > 100)
			pool.execute(() -> handleUnchecked(exchange));
		else
			handle(exchange);
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

		if (mode.equals("handover"))
			server.createContext("/", exchange -> pool.execute(() -> front.handleUnchecked(exchange)));
		else if (mode.equals("late"))
			server.createContext("/", exchange -> front.handleLate(exchange, pool));
		else
			server.createContext("/", front::handle);
		server.setExecutor(pool);
		server.start();
		System.out.println("ready");
	}
}
