import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Threads that select: loops, whose turns end there, and those that wait for the rest of a request, or for
 * an answer, in the middle of it. Judges what the thread works for behind it. Prints a line a case: name,
 * right, wrong, absent. Source level 8.
 */
public class Turns {
	static final ConcurrentLinkedQueue<Selector> selectors = new ConcurrentLinkedQueue<>();

	interface Body {
		void run() throws Exception;
	}

	static Thread start(Body body) {
		Thread thread = new Thread(() -> {
			try {
				body.run();
			} catch (Exception e) {
				e.printStackTrace(System.out);
				System.exit(1);
			}
		});

		thread.setDaemon(true);
		thread.start();
		return thread;
	}

	/** Both ends of a connection: a server's, which does not block, and its client's. */
	static SocketChannel[] pair() throws Exception {
		try (ServerSocketChannel server = ServerSocketChannel.open()) {
			SocketChannel[] ends = new SocketChannel[2];

			server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
			ends[1] = SocketChannel.open(server.getLocalAddress());
			ends[0] = server.accept();
			ends[0].configureBlocking(false);
			return ends;
		}
	}

	static void send(SocketChannel channel) throws Exception {
		channel.write(ByteBuffer.wrap(new byte[] {1}));
	}

	static int read(SocketChannel channel) throws Exception {
		return channel.read(ByteBuffer.allocate(1));
	}

	/* As servers wait that lend out selectors: the next to have it may be any thread. */
	static void await(SocketChannel channel) throws Exception {
		Selector selector = selectors.poll();
		SelectionKey key;

		if (selector == null)
			selector = Selector.open();
		key = channel.register(selector, SelectionKey.OP_READ);
		if (selector.select(10_000) != 1)
			throw new IllegalStateException("nothing came");
		key.cancel();
		selector.selectNow();
		selectors.add(selector);
	}

	static void sendLater(SocketChannel channel) {
		start(() -> {
			Thread.sleep(2);
			send(channel);
		});
	}

	/* The rest of each request comes in parts, waited for with selectors that all threads share. */
	static void waits(int n) throws Exception {
		List<Thread> threads = new ArrayList<>();

		Handovers.clearJudged();
		for (int i = 0; i < 4; i++)
			threads.add(start(() -> {
				SocketChannel[] ends = pair();

				for (int k = 0; k < n / 4; k++) {
					long request;

					send(ends[1]);
					await(ends[0]);
					read(ends[0]);
					request = Handovers.now();
					for (int part = 0; part < 3; part++) {
						sendLater(ends[1]);
						await(ends[0]);
						Handovers.judge(request);
						read(ends[0]);
						Handovers.judgeKnown(request);
					}
					send(ends[0]);
					read(ends[1]);
				}
			}));
		for (Thread thread : threads)
			thread.join();
		Handovers.print("wait-in-request");
	}

	/* A loop that waits likewise in a turn ends that turn none the less where it selects again. */
	static void loop(int n) throws Exception {
		SocketChannel[] ends = pair();
		Selector selector = Selector.open();
		Thread loop;

		Handovers.clearJudged();
		ends[0].register(selector, SelectionKey.OP_READ);
		loop = start(() -> {
			for (int k = 0; k < n; k++) {
				long request;

				selector.select(10_000);
				selector.selectedKeys().clear();
				Handovers.judgeNone();
				read(ends[0]);
				request = Handovers.now();
				SocketChannel[] other = pair();
				Handovers.mount(request);
				sendLater(other[1]);
				await(other[0]);
				Handovers.judgeKnown(request);
				other[0].close();
				other[1].close();
				send(ends[0]);
			}
		});
		for (int k = 0; k < n; k++) {
			send(ends[1]);
			read(ends[1]);
		}
		loop.join();
		Handovers.print("loop-that-waits");
	}

	/* The request that was the reason to start a loop is not the one that it serves. */
	static void born() throws Exception {
		Selector selector = Selector.open();
		SocketChannel[] ends = pair();

		Handovers.clearJudged();
		ends[0].register(selector, SelectionKey.OP_READ);
		Handovers.mount(Handovers.requests.incrementAndGet());
		Thread loop = start(() -> {
			selector.select(10_000);
			Handovers.judgeNone();
		});
		Handovers.mount(0);
		send(ends[1]);
		loop.join();
		Handovers.print("loop-born-in-request");
	}

	/* Who only asks whether a connection to another is open still, in the middle of a turn, stays in it. */
	static void probe(int n) throws Exception {
		SocketChannel[] ends = pair(), other = pair();
		Selector selector = Selector.open();

		Handovers.clearJudged();
		other[1].configureBlocking(false);
		ends[0].register(selector, SelectionKey.OP_READ);
		for (int k = 0; k < n; k++) {
			long called = Handovers.requests.incrementAndGet(), request;

			Handovers.mount(called);
			send(other[1]);
			Handovers.mount(0);
			send(ends[1]);
			selector.select(10_000);
			selector.selectedKeys().clear();
			read(ends[0]);
			request = Handovers.now();
			read(other[1]);
			Handovers.judgeKnown(request);
			send(other[0]);
			while (read(other[1]) == 0)
				Thread.yield();
			Handovers.judge(called);
			send(ends[0]);
			read(ends[1]);
		}
		Handovers.print("probe-in-turn");
	}

	/* What the next select() brings there. */
	static void answered(SocketChannel[] ends, Selector selector) throws Exception {
		send(ends[0]);
		selector.select(10_000);
		selector.selectedKeys().clear();
		if (read(ends[1]) != 1)
			throw new IllegalStateException("no answer");
	}

	static void call(SocketChannel[] ends, long request) throws Exception {
		Handovers.mount(request);
		send(ends[1]);
		Handovers.mount(0);
	}

	/* A pool's connection has one request's calls at a time, several of one perhaps: their answers are its own. */
	static void kept(int n) throws Exception {
		SocketChannel[] ends = pair();
		Selector selector = Selector.open();

		Handovers.clearJudged();
		ends[1].configureBlocking(false);
		ends[1].register(selector, SelectionKey.OP_READ);
		for (int k = 0; k < n; k++) {
			long request = Handovers.requests.incrementAndGet();

			for (int i = 0; i < 3; i++)
				call(ends, request);
			for (int i = 0; i < 3; i++) {
				answered(ends, selector);
				Handovers.judge(request);
			}
		}
		Handovers.print("kept-connection");
	}

	/* Where two requests wait for answers at a time the reader cannot tell whose it is that comes, nor later on. */
	static void shared(int n) throws Exception {
		Selector selector = Selector.open();

		Handovers.clearJudged();
		for (int k = 0; k < n; k++) {
			SocketChannel[] ends = pair();

			ends[1].configureBlocking(false);
			SelectionKey key = ends[1].register(selector, SelectionKey.OP_READ);
			for (int i = 0; i < 2; i++)
				call(ends, Handovers.requests.incrementAndGet());
			for (int i = 0; i < 2; i++) {
				answered(ends, selector);
				Handovers.judgeNone();
				call(ends, Handovers.requests.incrementAndGet());
			}
			answered(ends, selector);
			Handovers.judgeNone();
			key.cancel();
			ends[0].close();
			ends[1].close();
			selector.selectNow();
			Handovers.judgeNone();
		}
		Handovers.print("shared-connection");
	}

	/* Reading what is not there changes nothing: for who helps with a request, and once part is answered. */
	static void nothing(int n) throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(1);
		SocketChannel[] ends = pair();

		Handovers.clearJudged();
		start(() -> {
			for (int k = 0; k < n; k++) {
				long request;

				send(ends[1]);
				while (read(ends[0]) == 0)
					Thread.yield();
				request = Handovers.now();
				Handovers.judgeKnown(request);
				pool.submit(() -> {
					Handovers.judgeKnown(request);
					read(ends[0]);
					Handovers.judgeKnown(request);
					return null;
				}).get();
				send(ends[0]);
				read(ends[0]);
				Handovers.judgeKnown(request);
			}
		}).join();
		pool.shutdown();
		Handovers.print("reads-nothing");
	}

	public static void main(String[] args) throws Exception {
		int n = Integer.parseInt(args[0]);

		System.out.println("READY");
		Handovers.awaitAgent();
		waits(n);
		loop(n / 10);
		born();
		nothing(n / 10);
		probe(n / 10);
		shared(n / 10);
		kept(n / 10);
		System.exit(0);
	}
}
