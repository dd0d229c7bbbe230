/*
 * The first service of the chain: a pool of threads, and each request makes one call to the second service on
 * its own thread by HttpURLConnection with kept-alive connections. Fails (502) where the call failed (5xx).
 *
 * java -Dhttp.maxConnections=N Front PORT BACK_PORT LOG [THREADS]
 */
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

public final class Front {
	private final RequestLog log;
	private final String back;

	private Front(String file, String port) throws IOException {
		log = new RequestLog(file);
		back = "http://127.0.0.1:" + port;
	}

	private int call(String path) throws IOException {
		long start = RequestLog.now();
		HttpURLConnection connection = (HttpURLConnection) new URL(back + path).openConnection();
		int status = connection.getResponseCode();

		try (InputStream body = status < 400 ? connection.getInputStream() : connection.getErrorStream()) {
			body.readAllBytes();
		}
		log.write("client", path, status, start, RequestLog.now());
		return status;
	}

	private void handle(HttpExchange exchange) throws IOException {
		long start = RequestLog.now();
		String path = exchange.getRequestURI().getPath();
		int status = call("/back/" + RequestLog.id(path)) < 500 ? 200 : 502;
		byte[] body = ("front " + path + "\n").getBytes(StandardCharsets.UTF_8);

		exchange.sendResponseHeaders(status, body.length);
		log.write("server", path, status, start, RequestLog.now());
		exchange.getResponseBody().write(body);
		exchange.close();
	}

	public static void main(String[] args) throws IOException {
		int threads = args.length > 3 ? Integer.parseInt(args[3]) : 64;
		Front front = new Front(args[2], args[1]);
		HttpServer server = HttpServer.create(
			new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 1024);

		server.createContext("/", front::handle);
		server.setExecutor(Executors.newFixedThreadPool(threads));
		server.start();
		System.out.println("ready");
	}
}
