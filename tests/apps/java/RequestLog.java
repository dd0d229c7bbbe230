/*
 * The services' own record of what they did, one JSON object a line, for the judge of the end-to-end tests:
 * {"id", "role": "server"|"client", "path", "status", "start", "end"}, times in nanoseconds of the wall clock.
 * A server's interval lies inside the exchange (first statement of the handler, last before the response is
 * finished), a client's lies around it. Lines are complete on disk at the latest when the process has ended.
 */
import java.io.IOException;
import java.io.PrintWriter;
import java.time.Instant;

final class RequestLog {
	private final PrintWriter out;

	RequestLog(String file) throws IOException {
		out = new PrintWriter(file, "UTF-8");
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

	void write(String role, String path, int status, long start, long end) {
		String line = "{\"id\":\"" + id(path) + "\",\"role\":\"" + role + "\",\"path\":\"" + path
			+ "\",\"status\":" + status + ",\"start\":" + start + ",\"end\":" + end + "}";
		synchronized (this) {
			out.println(line);
		}
	}

	private synchronized void close() {
		out.close();
	}
}
