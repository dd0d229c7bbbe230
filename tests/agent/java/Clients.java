import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
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
				System.in.read(); /* it is ready a moment later, and the runner knows when */
				words = (LongBuffer) field.get(null);
			} catch (ClassNotFoundException notYet) {
				Thread.sleep(5);
			}
		}
	}

	/* A head up to its empty line; of those that are sent here none has a body. Empty: the end. */
	static String head(InputStream in) throws IOException {
		StringBuilder head = new StringBuilder();

		while (head.indexOf("\r\n\r\n") < 0) {
			int c = in.read();

			if (c < 0)
				return "";
			head.append((char) c);
		}
		return head.toString();
	}

	/* Not every JDK has the module with an HTTP server in it. */
	static void serve(Socket socket) {
		byte[] response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".getBytes(StandardCharsets.US_ASCII);

		try (Socket closed = socket) {
			String head;

			while (!(head = head(socket.getInputStream())).isEmpty()) {
				if (words != null)
					judge(Long.parseLong(head.split(" ")[1].substring(1)));
				socket.getOutputStream().write(response);
			}
		} catch (IOException e) {
			/* the client ended the connection its way */
		}
	}

	static void accept(ServerSocket server) {
		try {
			while (true) {
				Socket socket = server.accept();

				new Thread(() -> serve(socket)).start();
			}
		} catch (IOException e) {
			throw new IllegalStateException(e);
		}
	}

	public static void main(String[] args) throws Exception {
		int n = Integer.parseInt(args[0]);
		ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
		HttpClient client = HttpClient.newHttpClient();
		HttpResponse.BodyHandler<String> text = HttpResponse.BodyHandlers.ofString();
		String base = "http://127.0.0.1:" + server.getLocalPort() + "/";

		new Thread(() -> accept(server)).start();
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
