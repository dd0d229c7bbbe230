package zoo;

import io.undertow.Undertow;
import io.undertow.client.ClientCallback;
import io.undertow.client.ClientConnection;
import io.undertow.client.ClientExchange;
import io.undertow.client.ClientRequest;
import io.undertow.client.UndertowClient;
import io.undertow.server.HttpHandler;
import io.undertow.server.HttpServerExchange;
import io.undertow.server.handlers.BlockingHandler;
import io.undertow.server.handlers.PathHandler;
import io.undertow.util.Headers;
import io.undertow.util.Methods;
import io.undertow.util.StringReadChannelListener;
import java.io.IOException;
import java.net.URI;
import org.xnio.ChannelListeners;
import org.xnio.IoUtils;
import org.xnio.OptionMap;

/** Undertow: java zoo.Main PORT BACK_PORT LOG */
public final class Main {
	private Main() {
	}

	private static void answer(HttpServerExchange exchange, int status) {
		exchange.setStatusCode(status);
		exchange.getResponseHeaders().put(Headers.CONTENT_TYPE, "text/plain");
		exchange.getResponseSender().send("front\n");
	}

	private static void worker(HttpServerExchange exchange) {
		Exchange one = new Exchange(exchange.getRequestPath());

		answer(exchange, one.end(UrlConnection.get(one.url())));
	}

	private static void send(HttpServerExchange exchange) {
		Exchange one = new Exchange(exchange.getRequestPath());

		answer(exchange, one.end(JdkClient.send(one.url())));
	}

	private static void future(HttpServerExchange exchange) {
		Exchange one = new Exchange(exchange.getRequestPath());

		exchange.dispatch(() -> {
			JdkClient.sendAsync(one.url()).whenComplete((status, failure) ->
				answer(exchange, one.end(failure == null ? status : 599)));
		});
	}

	/** Undertow's own client in the I/O thread, a connection for each call. */
	private static void own(HttpServerExchange exchange) {
		Exchange one = new Exchange(exchange.getRequestPath());

		exchange.dispatch(exchange.getIoThread(), () -> UndertowClient.getInstance().connect(
			new Connected(exchange, one), URI.create(Zoo.back()), exchange.getIoThread(),
			exchange.getConnection().getByteBufferPool(), OptionMap.EMPTY));
	}

	private record Connected(HttpServerExchange exchange, Exchange one)
		implements ClientCallback<ClientConnection> {
		@Override
		public void completed(ClientConnection connection) {
			ClientRequest request = new ClientRequest().setMethod(Methods.GET).setPath(one.path());

			request.getRequestHeaders().put(Headers.HOST, "127.0.0.1");
			connection.sendRequest(request, new Sent(exchange, one, connection));
		}

		@Override
		public void failed(IOException e) {
			answer(exchange, one.end(599));
		}
	}

	private record Sent(HttpServerExchange exchange, Exchange one, ClientConnection connection)
		implements ClientCallback<ClientExchange> {
		@Override
		public void completed(ClientExchange call) {
			call.setResponseListener(new ClientCallback<>() {
				@Override
				public void completed(ClientExchange answered) {
					new Body(exchange, one, connection, answered.getResponse().getResponseCode())
						.setup(answered.getResponseChannel());
				}

				@Override
				public void failed(IOException e) {
					Sent.this.failed(e);
				}
			});
			try {
				call.getRequestChannel().shutdownWrites();
				if (!call.getRequestChannel().flush()) {
					call.getRequestChannel().getWriteSetter().set(
						ChannelListeners.flushingChannelListener(null, null));
					call.getRequestChannel().resumeWrites();
				}
			} catch (IOException e) {
				failed(e);
			}
		}

		@Override
		public void failed(IOException e) {
			answer(exchange, one.end(599));
		}
	}

	private static final class Body extends StringReadChannelListener {
		private final HttpServerExchange exchange;
		private final Exchange one;
		private final ClientConnection connection;
		private final int status;

		Body(HttpServerExchange exchange, Exchange one, ClientConnection connection, int status) {
			super(exchange.getConnection().getByteBufferPool());
			this.exchange = exchange;
			this.one = one;
			this.connection = connection;
			this.status = status;
		}

		@Override
		protected void stringDone(String body) {
			IoUtils.safeClose(connection);
			answer(exchange, one.end(status));
		}

		@Override
		protected void error(IOException e) {
			answer(exchange, one.end(599));
		}
	}

	public static void main(String[] args) throws Exception {
		Zoo.begin(args);
		HttpHandler ways = new PathHandler()
			.addPrefixPath("/worker", new BlockingHandler(Main::worker))
			.addPrefixPath("/send", new BlockingHandler(Main::send))
			.addPrefixPath("/future", Main::future)
			.addPrefixPath("/own", Main::own);

		Undertow.builder().addHttpListener(Zoo.port, "127.0.0.1").setHandler(ways).build().start();
		Zoo.ready();
	}
}
