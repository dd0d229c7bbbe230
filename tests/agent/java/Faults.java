import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * What the agent does where something is thrown inside of it. A thread that is stopped in there ends, and the agent goes
 * on; after a fault of its own it is off for good, its block says why, and a thread that comes to a socket works for
 * nothing. Prints a line a case: name, right, wrong, absent. Source level 8.
 */
public class Faults {
	private static final int STOPS = 400;

	private static Class<?> ours(String name) throws Exception {
		return Class.forName("tsunagi.agent." + name, false, null);
	}

	private static Method method(String owner, String name, Class<?>... types) throws Exception {
		Method method = ours(owner).getDeclaredMethod(name, types);

		method.setAccessible(true);
		return method;
	}

	private static void print(String name, int right, int wrong) {
		System.out.println(name + " " + right + " " + wrong + " 0");
	}

	/* Most of what it does is done in the agent. */
	private static void work() {
		LinkedBlockingQueue<Object> queue = new LinkedBlockingQueue<>();

		try {
			while (true) {
				queue.offer(new Object());
				queue.poll();
			}
		} catch (ThreadDeath end) {
			return;
		}
	}

	/* Until JDK 19; by reflection, since compilers complain of it. */
	private static void stop() throws Exception {
		Method stop = Thread.class.getMethod("stop");
		LinkedBlockingQueue<Object> queue = new LinkedBlockingQueue<>();
		int ended = 0;

		/* A class whose initialiser is stopped can never be used again. */
		queue.offer(queue);
		queue.poll();
		for (int i = 0; i < STOPS; i++) {
			Thread thread = new Thread(Faults::work);

			thread.setDaemon(true);
			thread.start();
			Thread.sleep(1);
			stop.invoke(thread);
			thread.join(5000);
			if (thread.isAlive())
				break;
			ended++;
		}
		print("stopped", ended, STOPS - ended);
		print("still-on", isOn() ? 1 : 0, isOn() ? 0 : 1);
	}

	private static boolean isOn() throws Exception {
		return (Boolean) method("Context", "isOn").invoke(null);
	}

	private static void giveUp() throws Exception {
		ByteBuffer control = ((ByteBuffer) method("Native", "control").invoke(null))
					     .order(ByteOrder.nativeOrder());
		byte[] bytes = new byte[152];
		boolean isSaid;

		method("Context", "fail", Throwable.class).invoke(null, new IllegalStateException("not told"));
		for (int i = 0; i < bytes.length; i++)
			bytes[i] = control.get(104 + i);
		isSaid = new String(bytes, "US-ASCII")
				 .startsWith("it failed by java.lang.IllegalStateException in Faults.giveUp(");
		isSaid &= control.getInt(28) == 3 && control.getInt(32) == 0;
		control.putInt(32, 1); /* as the next daemon might */
		isSaid &= !isOn();
		print("gives-up", isSaid ? 1 : 0, isSaid ? 0 : 1);
	}

	private static void silence() throws Exception {
		Object local = method("Local", "ofThread").invoke(null);
		Field field = ours("Local").getDeclaredField("slot");

		field.setAccessible(true);
		LongBuffer slot = (LongBuffer) field.get(local);
		method("Context", "mount", long.class).invoke(null, 7L);
		boolean was = slot.get(1) == 7;
		try (ServerSocket server = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
		     Socket socket = new Socket(server.getInetAddress(), server.getLocalPort())) {
			giveUp();
			slot.put(1, 7); /* as that of a thread which was elsewhere */
			socket.getOutputStream().write(1);
		}
		boolean is = was && slot.get(1) == 0;
		print("silence", is ? 1 : 0, is ? 0 : 1);
	}

	public static void main(String[] args) throws Exception {
		System.out.println("READY");
		System.in.read();
		String version = System.getProperty("java.specification.version");
		if (version.startsWith("1.") || Integer.parseInt(version) < 20)
			stop();
		silence();
		System.exit(0);
	}
}
