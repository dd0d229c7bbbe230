package zoo;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.time.Instant;

/**
 * What the services of the zoo have in common: the back end that they call once for each request, GET /WAY/ID, and
 * their own record of requests and calls, a JSON object a line, as the other services of the tests write it.
 */
public final class Zoo {
	public static int port;
	public static int backPort;
	private static PrintWriter log;

	private Zoo() {
	}

	/** From the arguments PORT BACK_PORT LOG that every service begins with. */
	public static void begin(String[] args) throws IOException {
		port = Integer.parseInt(args[0]);
		backPort = Integer.parseInt(args[1]);
		log = new PrintWriter(args[2], StandardCharsets.UTF_8);
		Runtime.getRuntime().addShutdownHook(new Thread(Zoo::end));
	}

	/** Said when the service can be called. */
	public static void ready() {
		System.out.println("ready");
	}

	public static String back() {
		return "http://127.0.0.1:" + backPort;
	}

	static long now() {
		Instant now = Instant.now();
		return now.getEpochSecond() * 1_000_000_000L + now.getNano();
	}

	static void write(String role, String path, int status, long start) {
		String line = "{\"id\":\"" + path.substring(path.lastIndexOf('/') + 1) + "\",\"role\":\"" + role
			+ "\",\"path\":\"" + path + "\",\"status\":" + status + ",\"start\":" + start
			+ ",\"end\":" + now() + "}";

		synchronized (log) {
			log.println(line);
		}
	}

	private static void end() {
		synchronized (log) {
			log.close();
		}
	}
}
