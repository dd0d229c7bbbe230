/*
 * The second service of the chain: answers every request from a pool of threads. The answer's status follows
 * from the request's id, so that a status taken from a neighbouring request shows.
 *
 * java Back PORT LOG [THREADS]
 */
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

public final class Back {
	private final RequestLog log;

	private Back(String file) throws IOException {
		log = new RequestLog(file);
	}

	private static int status(String id) {
		switch (Math.floorMod(id.hashCode(), 16)) {
		case 3:
			return 404;
		case 7:
			return 201;
		case 11:
			return 500;
		default:
			return 200;
		}
	}

	private void handle(HttpExchange exchange) throws IOException {
		long start = RequestLog.now();
		String path = exchange.getRequestURI().getPath();
		int status = status(RequestLog.id(path));
		byte[] body = ("back " + path + "\n").getBytes(StandardCharsets.UTF_8);

		exchange.sendResponseHeaders(status, body.length);
		log.write("server", path, status, start, RequestLog.now());
		exchange.getResponseBody().write(body);
		exchange.close();
	}

	public static void main(String[] args) throws IOException {
		int threads = args.length > 2 ? Integer.parseInt(args[2]) : 64;
		Back back = new Back(args[1]);
		HttpServer server = HttpServer.create(
			new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 1024);

		server.createContext("/", back::handle);
		server.setExecutor(Executors.newFixedThreadPool(threads));
		server.start();
		System.out.println("ready");
	}
}
