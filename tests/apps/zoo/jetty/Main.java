package zoo;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;

/** Jetty 12, handlers and servlets, with Jetty's client: java zoo.Main PORT BACK_PORT LOG */
public final class Main {
	private static final HttpClient CLIENT = new HttpClient();

	private Main() {
	}

	private static int blocking(Exchange one) {
		try {
			return CLIENT.GET(one.url()).getStatus();
		} catch (Exception e) {
			throw new IllegalStateException(e);
		}
	}

	/** Jetty's own kind of handler, at /handler and /listener. */
	private static final class Own extends Handler.Abstract {
		private static void answer(Response response, Callback callback, int status) {
			response.setStatus(status);
			Content.Sink.write(response, true, "front\n", callback);
		}

		@Override
		public boolean handle(Request request, Response response, Callback callback) {
			String path = request.getHttpURI().getPath();

			if (path.startsWith("/handler/")) {
				Exchange one = new Exchange(path);

				answer(response, callback, one.end(blocking(one)));
				return true;
			}
			if (path.startsWith("/listener/")) {
				Exchange one = new Exchange(path);

				CLIENT.newRequest(one.url()).send(result ->
					answer(response, callback, one.end(result.getResponse().getStatus())));
				return true;
			}
			return false;
		}
	}

	/** At /servlet and /async. */
	private static final class Servlet extends HttpServlet {
		private static void answer(HttpServletResponse response, int status) {
			try {
				response.setStatus(status);
				response.getOutputStream().print("front\n");
			} catch (IOException e) {
				throw new IllegalStateException(e);
			}
		}

		@Override
		protected void doGet(HttpServletRequest request, HttpServletResponse response) {
			Exchange one = new Exchange(request.getRequestURI());

			if (request.getServletPath().equals("/servlet")) {
				answer(response, one.end(UrlConnection.get(one.url())));
				return;
			}
			AsyncContext context = request.startAsync();
			context.start(() -> {
				answer(response, one.end(blocking(one)));
				context.complete();
			});
		}
	}

	public static void main(String[] args) throws Exception {
		Zoo.begin(args);
		CLIENT.setMaxConnectionsPerDestination(64);
		CLIENT.start();

		Server server = new Server();
		ServerConnector connector = new ServerConnector(server);
		ServletContextHandler servlets = new ServletContextHandler();
		Servlet servlet = new Servlet();

		connector.setHost("127.0.0.1");
		connector.setPort(Zoo.port);
		server.addConnector(connector);
		ServletHolder holder = new ServletHolder(servlet);
		holder.setAsyncSupported(true);
		servlets.addServlet(holder, "/servlet/*");
		servlets.addServlet(holder, "/async/*");
		server.setHandler(new Handler.Sequence(new Own(), servlets));
		server.start();
		Zoo.ready();
	}
}
