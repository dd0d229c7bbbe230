import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.time.Instant;

/** The service's own record of its requests and calls, a JSON object a line, as the other services write it. */
final class RequestLog {
	private final PrintWriter out;

	RequestLog(String file) throws IOException {
		out = new PrintWriter(file, StandardCharsets.UTF_8);
		Runtime.getRuntime().addShutdownHook(new Thread(this::close));
	}

	static long now() {
		Instant now = Instant.now();
		return now.getEpochSecond() * 1_000_000_000L + now.getNano();
	}

	/** The id of a request: the last part of its path. */
	static String id(String path) {
		return path.substring(path.lastIndexOf('/') + 1);
	}

	synchronized void write(String role, String path, int status, long start) {
		out.println("{\"id\":\"" + id(path) + "\",\"role\":\"" + role + "\",\"path\":\"" + path
			+ "\",\"status\":" + status + ",\"start\":" + start + ",\"end\":" + now() + "}");
	}

	private synchronized void close() {
		out.close();
	}
}
