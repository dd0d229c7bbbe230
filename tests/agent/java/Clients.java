import com.sun.net.httpserver.HttpServer;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.LongBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Calls a server by the JDK's own HTTP clients, from eight threads, each with a request of its own.
 * While the server has a call in hand it looks whether exactly one client's socket was written in the
 * name of the request that the call's path names. Prints a line a case: name, right, wrong, absent.
 * Source level 11.
 */
public class Clients {
	static final AtomicInteger right = new AtomicInteger(), wrong = new AtomicInteger();
	static final AtomicLong requests = new AtomicLong(1L << 40);
	static LongBuffer words;
	static Method mount, current;

	interface Call {
		void run(URI uri, long request) throws Exception;
	}

	static void judge(long request) {
		int found = 0;

		for (int fd = 0; fd < 1024; fd++) {
			long word = words.get(fd);

			if ((word & 3) == 2 && word >>> 3 == request)
				found++;
		}
		(found == 1 ? right : wrong).incrementAndGet();
	}

	static void run(String name, String base, int n, Call call) throws Exception {
		Thread[] threads = new Thread[8];

		right.set(0);
		wrong.set(0);
		for (int i = 0; i < threads.length; i++) {
			threads[i] = new Thread(() -> {
				for (int k = 0; k < n / threads.length; k++) {
					long request = requests.incrementAndGet();

					try {
						mount.invoke(null, request);
						call.run(URI.create(base + request), request);
					} catch (Exception e) {
						e.printStackTrace(System.out);
						System.exit(1);
					}
				}
			});
			threads[i].start();
		}
		for (Thread thread : threads)
			thread.join();
		System.out.println(name + " " + right + " " + wrong + " 0");
	}

	static CompletableFuture<HttpResponse<String>> second(HttpClient client, String base,
							      long request) {
		long next = requests.incrementAndGet();

		try {
			if ((Long) current.invoke(null) != request)
				wrong.incrementAndGet();
			mount.invoke(null, next);
		} catch (ReflectiveOperationException e) {
			throw new IllegalStateException(e);
		}
		return client.sendAsync(HttpRequest.newBuilder(URI.create(base + next)).build(),
					HttpResponse.BodyHandlers.ofString());
	}

	static void await() throws Exception {
		while (words == null) {
			try {
				Class<?> sockets = Class.forName("tsunagi.agent.Sockets", false, null);
				Field field = sockets.getDeclaredField("words");

				current = Class.forName("tsunagi.agent.Context", false, null)
						  .getMethod("current");
				mount = Class.forName("tsunagi.agent.Context", false, null)
						.getMethod("mount", long.class);
				field.setAccessible(true);
				Thread.sleep(1500);
				words = (LongBuffer) field.get(null);
			} catch (ClassNotFoundException notYet) {
				Thread.sleep(5);
			}
		}
	}

	public static void main(String[] args) throws Exception {
		int n = Integer.parseInt(args[0]);
		HttpServer server = HttpServer.create(
			new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 50);
		HttpClient client = HttpClient.newHttpClient();
		HttpResponse.BodyHandler<String> text = HttpResponse.BodyHandlers.ofString();
		String base = "http://127.0.0.1:" + server.getAddress().getPort() + "/";

		server.setExecutor(Executors.newFixedThreadPool(12));
		server.createContext("/", exchange -> {
			if (words != null)
				judge(Long.parseLong(exchange.getRequestURI().getPath().substring(1)));
			exchange.sendResponseHeaders(200, 2);
			exchange.getResponseBody().write(new byte[] {'o', 'k'});
			exchange.close();
		});
		server.start();
		client.send(HttpRequest.newBuilder(URI.create(base + 1)).build(), text);
		System.out.println("READY");
		await();

		run("url-connection", base, n, (uri, request) -> {
			HttpURLConnection connection = (HttpURLConnection) uri.toURL().openConnection();

			connection.getInputStream().readAllBytes();
		});
		run("send", base, n, (uri, request) ->
			client.send(HttpRequest.newBuilder(uri).build(), text));
		run("send-async", base, n, (uri, request) ->
			client.sendAsync(HttpRequest.newBuilder(uri).build(), text).get());
		/*
		 * The second call is made by whoever has the first one's answer; it has a number of its own,
		 * for the first one's connection still bears the old one.
		 */
		run("send-async-then", base, n, (uri, request) ->
			client.sendAsync(HttpRequest.newBuilder(uri).build(), text)
				.thenCompose(first -> second(client, base, request)).get());
		System.exit(0);
	}
}
