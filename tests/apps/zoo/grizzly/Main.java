package zoo;

import java.io.IOException;
import java.io.InputStream;
import org.glassfish.grizzly.http.server.HttpHandler;
import org.glassfish.grizzly.http.server.HttpServer;
import org.glassfish.grizzly.http.server.NetworkListener;
import org.glassfish.grizzly.http.server.Request;
import org.glassfish.grizzly.http.server.Response;

/**
 * Grizzly, whose threads wait for the rest of a request by selectors that they lend each other:
 * java zoo.Main PORT BACK_PORT LOG
 */
public final class Main {
	private Main() {
	}

	/** At /body, once the request's body was read, and at /own, before that. */
	private static final class Own extends HttpHandler {
		private static void read(Request request) throws IOException {
			try (InputStream in = request.getInputStream()) {
				in.readAllBytes();
			}
		}

		@Override
		public void service(Request request, Response response) throws IOException {
			Exchange one = new Exchange(request.getRequestURI());
			boolean isFirst = request.getRequestURI().startsWith("/own/");
			int status;

			if (!isFirst)
				read(request);
			status = UrlConnection.get(one.url());
			if (isFirst)
				read(request);
			response.setStatus(one.end(status));
			response.setContentType("text/plain");
			response.setContentLength(6);
			response.getWriter().write("front\n");
		}
	}

	public static void main(String[] args) throws Exception {
		Zoo.begin(args);

		HttpServer server = new HttpServer();

		server.addListener(new NetworkListener("zoo", "127.0.0.1", Zoo.port));
		server.getServerConfiguration().addHttpHandler(new Own(), "/");
		server.start();
		Zoo.ready();
		Thread.currentThread().join();
	}
}
