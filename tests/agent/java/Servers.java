import java.io.InputStream;
import java.io.OutputStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Two servers, one that blocks and one with a selector, and clients that keep their connections, half
 * of them from before the agent came. Judges that each request is received under a context that no
 * other request had, and that its second part, which comes by itself, has the same. Prints a line a
 * case: name, right, wrong, absent. Source level 8.
 */
public class Servers {
	static final AtomicInteger right = new AtomicInteger(), wrong = new AtomicInteger(),
				   absent = new AtomicInteger();
	static final Set<Long> seen = ConcurrentHashMap.newKeySet();
	static volatile Method current;
	static volatile boolean isJudged;

	static long now() throws Exception {
		return current == null ? 0 : (Long) current.invoke(null);
	}

	/* A request is two bytes, sent apart; the answer one. */
	static void judge(long first, long second) {
		if (!isJudged)
			return;
		if (first == 0 || second == 0)
			absent.incrementAndGet();
		else if (first != second || !seen.add(first))
			wrong.incrementAndGet();
		else
			right.incrementAndGet();
	}

	static void serve(Socket socket) {
		try (Socket s = socket) {
			InputStream in = s.getInputStream();
			OutputStream out = s.getOutputStream();

			while (in.read() >= 0) {
				long first = now();

				in.read();
				judge(first, now());
				out.write(1);
			}
		} catch (Exception end) {
			end.printStackTrace(System.out);
		}
	}

	static int blocking() throws Exception {
		ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());

		start(() -> {
			for (;;) {
				Socket socket = server.accept();

				start(() -> serve(socket));
			}
		});
		return server.getLocalPort();
	}

	static int selecting() throws Exception {
		ServerSocketChannel server = ServerSocketChannel.open();
		Selector selector = Selector.open();

		server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
		server.configureBlocking(false);
		server.register(selector, SelectionKey.OP_ACCEPT);
		start(() -> {
			for (;;) {
				selector.select();
				for (SelectionKey key : selector.selectedKeys())
					handle(server, selector, key);
				selector.selectedKeys().clear();
			}
		});
		return server.socket().getLocalPort();
	}

	static void handle(ServerSocketChannel server, Selector selector, SelectionKey key)
		throws Exception {
		ByteBuffer byteRead = ByteBuffer.allocate(1);

		if (key.isAcceptable()) {
			SocketChannel channel = server.accept();

			channel.configureBlocking(false);
			channel.register(selector, SelectionKey.OP_READ);
			return;
		}
		SocketChannel channel = (SocketChannel) key.channel();
		int n = channel.read(byteRead);

		if (n < 0)
			channel.close();
		if (n <= 0)
			return;
		if (key.attachment() == null) {
			key.attach(now());
			return;
		}
		judge((Long) key.attachment(), now());
		key.attach(null);
		channel.write(ByteBuffer.wrap(new byte[] {1}));
	}

	interface Body {
		void run() throws Exception;
	}

	static Thread start(Body body) {
		Thread thread = new Thread(() -> {
			try {
				body.run();
			} catch (Exception e) {
				e.printStackTrace(System.out);
			}
		});

		thread.setDaemon(true);
		thread.start();
		return thread;
	}

	static void request(Socket socket) throws Exception {
		OutputStream out = socket.getOutputStream();

		out.write(1);
		out.flush();
		Thread.yield();
		out.write(2);
		if (socket.getInputStream().read() != 1)
			throw new IllegalStateException("no answer");
	}

	static void load(String name, Socket[] sockets, int n) throws Exception {
		Thread[] threads = new Thread[sockets.length];

		right.set(0);
		wrong.set(0);
		absent.set(0);
		for (int i = 0; i < sockets.length; i++) {
			Socket socket = sockets[i];

			threads[i] = start(() -> {
				for (int k = 0; k < n / sockets.length; k++)
					request(socket);
			});
		}
		for (Thread thread : threads)
			thread.join();
		System.out.println(name + " " + right + " " + wrong + " " + absent);
	}

	static Socket[] connect(int port) throws Exception {
		Socket[] sockets = new Socket[4];

		for (int i = 0; i < sockets.length; i++) {
			sockets[i] = new Socket(InetAddress.getLoopbackAddress(), port);
			sockets[i].setTcpNoDelay(true);
		}
		return sockets;
	}

	/* Those of clients have the context of their writer, or none; never a server's word. */
	static int kind(Socket socket, String wanted) throws Exception {
		Field words = Class.forName("tsunagi.agent.Sockets", false, null)
				      .getDeclaredField("words");
		int found = 0;

		words.setAccessible(true);
		LongBuffer buffer = (LongBuffer) words.get(null);
		for (int fd = 0; fd < 1024; fd++)
			if ((buffer.get(fd) & 3) == 2 && buffer.get(fd) >>> 3 == Long.parseLong(wanted))
				found++;
		return found;
	}

	static void client(int port) throws Exception {
		Class<?> context = Class.forName("tsunagi.agent.Context", false, null);
		Method mount = context.getMethod("mount", long.class);
		Socket[] sockets = connect(port);
		long number = 1L << 40;
		int good = 0;

		for (Socket socket : sockets) {
			mount.invoke(null, ++number);
			request(socket);
			/* Waiting for an answer is no reason to work for anything else. */
			if (now() == number && kind(socket, "" + number) == 1)
				good++;
		}
		System.out.println("client-writes " + good + " " + (sockets.length - good) + " 0");
	}

	public static void main(String[] args) throws Exception {
		int n = Integer.parseInt(args[0]);
		int blocking = blocking(), selecting = selecting();
		Socket[] oldBlocking = connect(blocking), oldSelecting = connect(selecting);

		for (int i = 0; i < 4; i++) {
			request(oldBlocking[i]);
			request(oldSelecting[i]);
		}
		System.out.println("READY");
		while (current == null) {
			try {
				current = Class.forName("tsunagi.agent.Context", false, null)
						  .getMethod("current");
			} catch (ClassNotFoundException notYet) {
				Thread.sleep(5);
			}
		}
		System.in.read(); /* it is ready a moment later, and the runner knows when */
		/* What a thread was blocked in when the agent came, it finishes as it began. */
		for (int i = 0; i < 4; i++) {
			request(oldBlocking[i]);
			request(oldSelecting[i]);
		}
		isJudged = true;
		load("blocking-old", oldBlocking, n);
		load("blocking-new", connect(blocking), n);
		load("selecting-old", oldSelecting, n);
		load("selecting-new", connect(selecting), n);
		client(blocking);
		System.exit(0);
	}
}
