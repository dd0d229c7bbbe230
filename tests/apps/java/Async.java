/*
 * The first service of the chain on asynchronous channels (java.nio.channels): each request makes one call to the
 * second service. Kept-alive connections on both sides; a request is read to its empty line, a response by its
 * Content-Length.
 *
 * java Async PORT BACK_PORT LOG [GROUP [WAY]]
 *
 * GROUP: what runs completions: "default", the JDK's own group; "fixed", "cached", a group of 4 threads, or of a pool
 * that grows. WAY: "channels" (default): the call goes over an asynchronous channel out of a pool, and its completions
 * answer. "inline": the completion of the read makes the call by HttpURLConnection. "waits": a thread for each
 * connection waits for the Future of each read and write.
 */
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URL;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousChannelGroup;
import java.nio.channels.AsynchronousServerSocketChannel;
import java.nio.channels.AsynchronousSocketChannel;
import java.nio.channels.CompletionHandler;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.ExecutorService;

public final class Async {
	private final RequestLog log;
	private final int backPort;
	private final String way;
	private final AsynchronousChannelGroup group;
	private final ConcurrentLinkedQueue<AsynchronousSocketChannel> idle = new ConcurrentLinkedQueue<>();
	private final ExecutorService waiting = Executors.newCachedThreadPool();

	private interface Done<T> {
		void with(T result) throws Exception;
	}

	private Async(String[] args) throws IOException {
		backPort = Integer.parseInt(args[1]);
		log = new RequestLog(args[2]);
		way = args.length > 4 ? args[4] : "channels";
		group = group(args.length > 3 ? args[3] : "default");
	}

	private static AsynchronousChannelGroup group(String name) throws IOException {
		if (name.equals("fixed"))
			return AsynchronousChannelGroup.withFixedThreadPool(4, Executors.defaultThreadFactory());
		if (name.equals("cached"))
			return AsynchronousChannelGroup.withCachedThreadPool(Executors.newCachedThreadPool(), 1);
		return null;
	}

	private static <T> CompletionHandler<T, Void> then(AsynchronousSocketChannel of, Done<T> done) {
		return new CompletionHandler<T, Void>() {
			@Override
			public void completed(T result, Void nothing) {
				try {
					done.with(result);
				} catch (Exception e) {
					failed(e, null);
				}
			}

			@Override
			public void failed(Throwable cause, Void nothing) {
				if (!(cause instanceof IOException))
					cause.printStackTrace();
				close(of);
			}
		};
	}

	private static void close(AsynchronousSocketChannel channel) {
		try {
			channel.close();
		} catch (IOException ignored) {
			return;
		}
	}

	private static void write(AsynchronousSocketChannel to, ByteBuffer bytes, Done<Void> done) {
		to.write(bytes, null, then(to, n -> {
			if (bytes.hasRemaining())
				write(to, bytes, done);
			else
				done.with(null);
		}));
	}

	/* A whole message; at the end of the stream it is closed. */
	private static void read(AsynchronousSocketChannel from, ByteBuffer into, Done<String> done) {
		from.read(into, null, then(from, n -> {
			String text = new String(into.array(), 0, into.position(), StandardCharsets.ISO_8859_1);

			if (n < 0)
				close(from);
			else if (isWhole(text))
				done.with(text);
			else
				read(from, into, done);
		}));
	}

	private static boolean isWhole(String message) {
		int end = message.indexOf("\r\n\r\n");
		String head = end < 0 ? "" : message.substring(0, end).toLowerCase();
		int length = head.indexOf("content-length:");

		if (end < 0)
			return false;
		if (length < 0)
			return true;
		return message.length() >= end + 4 + Integer.parseInt(head.substring(length + 15).trim().split("\r\n")[0].trim());
	}

	private static ByteBuffer bytes(String text) {
		return ByteBuffer.wrap(text.getBytes(StandardCharsets.ISO_8859_1));
	}

	private ByteBuffer response(String path) {
		String body = "front " + path + "\n";

		return bytes("HTTP/1.1 200 OK\r\nContent-Length: " + body.length() + "\r\n\r\n" + body);
	}

	/* The test's connections live as long as it does. */
	private void serve(AsynchronousSocketChannel connection) {
		read(connection, ByteBuffer.allocate(8192), head -> {
			long start = RequestLog.now();
			String path = head.split(" ")[1];
			String called = "/back/" + RequestLog.id(path);

			if (way.equals("inline")) {
				callBlocking(called);
				answer(connection, path, start);
			} else {
				call(called, () -> answer(connection, path, start));
			}
		});
	}

	private void answer(AsynchronousSocketChannel connection, String path, long start) {
		log.write("server", path, 200, start, RequestLog.now());
		write(connection, response(path), nothing -> serve(connection));
	}

	private void callBlocking(String path) throws IOException {
		long start = RequestLog.now();
		HttpURLConnection connection =
			(HttpURLConnection) new URL("http://127.0.0.1:" + backPort + path).openConnection();
		int status = connection.getResponseCode();

		try (InputStream body = status < 400 ? connection.getInputStream() : connection.getErrorStream()) {
			while (body.read() >= 0)
				continue;
		}
		log.write("client", path, status, start, RequestLog.now());
	}

	private void call(String path, Runnable after) throws IOException {
		long start = RequestLog.now();
		AsynchronousSocketChannel pooled = idle.poll();
		AsynchronousSocketChannel fresh;

		if (pooled != null) {
			exchange(pooled, path, start, after);
			return;
		}
		fresh = AsynchronousSocketChannel.open(group);
		fresh.connect(new InetSocketAddress("127.0.0.1", backPort), null,
			      then(fresh, nothing -> exchange(fresh, path, start, after)));
	}

	private void exchange(AsynchronousSocketChannel over, String path, long start, Runnable after) {
		write(over, bytes("GET " + path + " HTTP/1.1\r\nHost: back\r\n\r\n"), nothing ->
		      read(over, ByteBuffer.allocate(8192), response -> {
			      log.write("client", path, Integer.parseInt(response.split(" ")[1]), start, RequestLog.now());
			      idle.add(over);
			      after.run();
		      }));
	}

	private void serveWaiting(AsynchronousSocketChannel connection) throws Exception {
		ByteBuffer into = ByteBuffer.allocate(8192);

		while (connection.read(into).get() >= 0) {
			String head = new String(into.array(), 0, into.position(), StandardCharsets.ISO_8859_1);
			ByteBuffer response;
			long start;
			String path;

			if (!isWhole(head))
				continue;
			start = RequestLog.now();
			path = head.split(" ")[1];
			callBlocking("/back/" + RequestLog.id(path));
			response = response(path);
			log.write("server", path, 200, start, RequestLog.now());
			while (response.hasRemaining())
				connection.write(response).get();
			into.clear();
		}
		connection.close();
	}

	private void accept(AsynchronousServerSocketChannel server) {
		server.accept(null, new CompletionHandler<AsynchronousSocketChannel, Void>() {
			@Override
			public void completed(AsynchronousSocketChannel connection, Void nothing) {
				server.accept(null, this);
				if (way.equals("waits"))
					waiting.execute(() -> waitFor(connection));
				else
					serve(connection);
			}

			@Override
			public void failed(Throwable cause, Void nothing) {
				cause.printStackTrace();
			}
		});
	}

	private void waitFor(AsynchronousSocketChannel connection) {
		try {
			serveWaiting(connection);
		} catch (Exception ended) {
			close(connection);
		}
	}

	public static void main(String[] args) throws Exception {
		Async async = new Async(args);
		AsynchronousServerSocketChannel server = AsynchronousServerSocketChannel.open(async.group);

		server.bind(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 1024);
		async.accept(server);
		System.out.println("ready");
		Thread.currentThread().join();
	}
}
