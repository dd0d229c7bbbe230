import java.io.InputStream;
import java.io.RandomAccessFile;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Numbers of sockets that others have afterwards. While the agent is off all connections are closed and made again, so
 * that those of servers and of clients change numbers: on again, each request is received under one of its own, and
 * keeps it over its calls. And whoever was told to read somewhere, and never came to say that it had, is not found there
 * once the socket or the thread is gone. Prints a line a case: name, right, wrong, absent. Source level 8.
 */
public class Numbers {
	private static final int PAIRS = 8;

	private static Method current, clear;
	private static final Set<Long> seen = new HashSet<>();
	private static int right, wrong, absent;

	/** A connection, both ends here. */
	static class Pair {
		final Socket client, server;

		Pair(ServerSocket listener) throws Exception {
			client = new Socket(listener.getInetAddress(), listener.getLocalPort());
			server = listener.accept();
			client.setTcpNoDelay(true);
			server.setTcpNoDelay(true);
		}

		void answer() {
			Thread thread = new Thread(() -> {
				try {
					for (int b; (b = server.getInputStream().read()) >= 0;)
						server.getOutputStream().write(b);
				} catch (Exception closed) {
					return;
				}
			});

			thread.setDaemon(true);
			thread.start();
		}
	}

	private static Class<?> ours(String name) throws Exception {
		return Class.forName("tsunagi.agent." + name, false, null);
	}

	private static void enable(int value) throws Exception {
		Method control = ours("Native").getDeclaredMethod("control");

		control.setAccessible(true);
		((ByteBuffer) control.invoke(null)).order(ByteOrder.nativeOrder()).putInt(32, value);
	}

	private static void judge(boolean isRight, long now) {
		if (now == 0)
			absent++;
		else if (isRight)
			right++;
		else
			wrong++;
	}

	private static long now() throws Exception {
		return (Long) current.invoke(null);
	}

	/* A request, and a call while it lasts. */
	private static void request(Pair front, Pair back) throws Exception {
		long request;

		clear.invoke(null);
		front.client.getOutputStream().write(1);
		front.server.getInputStream().read();
		request = now();
		judge(seen.add(request), request);
		back.client.getOutputStream().write(2);
		back.client.getInputStream().read();
		judge(now() == request, now());
		front.server.getOutputStream().write(3);
		front.client.getInputStream().read();
	}

	private static void print(String name) {
		System.out.println(name + " " + right + " " + wrong + " " + absent);
		right = wrong = absent = 0;
	}

	private static void reused(ServerSocket listener) throws Exception {
		for (int round = 0; round < 4; round++) {
			List<Pair> pairs = new ArrayList<>();
			RandomAccessFile shift = null;

			enable(0);
			if (round % 2 == 1)
				shift = new RandomAccessFile("/dev/null", "r");
			for (int i = 0; i < 2 * PAIRS; i++)
				pairs.add(new Pair(listener));
			for (int i = PAIRS; i < 2 * PAIRS; i++)
				pairs.get(i).answer();
			enable(1);
			for (int i = 0; i < PAIRS; i++)
				for (int n = 0; n < 3; n++)
					request(pairs.get(i), pairs.get(PAIRS + i));
			enable(0);
			for (Pair pair : pairs) {
				pair.client.close();
				pair.server.close();
			}
			if (shift != null)
				shift.close();
			enable(1);
		}
		print("reused");
	}

	@SuppressWarnings("unchecked")
	private static AtomicReferenceArray<Object> readers() throws Exception {
		Field readers = ours("Sockets").getDeclaredField("readers");

		readers.setAccessible(true);
		return (AtomicReferenceArray<Object>) readers.get(null);
	}

	/* Who has just accepted it works for it. */
	private static int numberOf(long context) throws Exception {
		Field words = ours("Sockets").getDeclaredField("words");
		LongBuffer buffer;

		words.setAccessible(true);
		buffer = (LongBuffer) words.get(null);
		for (int fd = 0; fd < 1024; fd++)
			if (buffer.get(fd) >>> 3 == context && (buffer.get(fd) & 3) == 1)
				return fd;
		throw new IllegalStateException("not found");
	}

	/* One that does not come to say that it has read. */
	private static Thread reader(CountDownLatch stays, int... fds) throws Exception {
		Method reading = ours("Sockets").getMethod("reading", int.class);
		CountDownLatch hasRead = new CountDownLatch(1);
		Thread thread = new Thread(() -> {
			try {
				for (int fd : fds)
					reading.invoke(null, fd);
				hasRead.countDown();
				stays.await();
			} catch (Exception broken) {
				broken.printStackTrace(System.out);
			}
		});

		thread.start();
		hasRead.await();
		return thread;
	}

	private static void found(int fd, boolean isWanted) throws Exception {
		judge(readers().get(fd) != null == isWanted, 1);
	}

	private static void readers(ServerSocket listener) throws Exception {
		Pair first = new Pair(listener);
		int fd = numberOf(now());
		Pair second = new Pair(listener);
		int other = numberOf(now());
		CountDownLatch end = new CountDownLatch(1);
		Thread thread = reader(end, fd, other);

		found(fd, false); /* it reads elsewhere */
		found(other, true);
		end.countDown();
		thread.join();
		found(other, false); /* it is gone */
		print("reader-gone");

		end = new CountDownLatch(1);
		thread = reader(end, fd);
		found(fd, true);
		first.server.close();
		found(fd, false);
		end.countDown();
		thread.join();
		second.client.close();
		print("reader-closed");
	}

	public static void main(String[] args) throws Exception {
		ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
		InputStream runner = System.in;

		/* What a JDK opens for the first of its sockets is open from now on. */
		new Pair(listener);
		System.out.println("READY");
		runner.read();
		current = ours("Context").getMethod("current");
		clear = ours("Context").getMethod("clear");
		reused(listener);
		readers(listener);
		System.exit(0);
	}
}
