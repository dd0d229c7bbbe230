import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import okhttp3.Call;
import okhttp3.Callback;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.Response;
import org.apache.hc.client5.http.async.methods.SimpleHttpRequest;
import org.apache.hc.client5.http.async.methods.SimpleHttpResponse;
import org.apache.hc.client5.http.async.methods.SimpleRequestBuilder;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.impl.async.CloseableHttpAsyncClient;
import org.apache.hc.client5.http.impl.async.HttpAsyncClients;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.client5.http.impl.nio.PoolingAsyncClientConnectionManagerBuilder;
import org.apache.hc.client5.http.impl.io.PoolingHttpClientConnectionManagerBuilder;
import org.apache.hc.client5.http.protocol.HttpClientContext;
import org.apache.hc.core5.concurrent.FutureCallback;
import org.apache.hc.core5.http.HttpHost;
import org.apache.hc.core5.http.io.entity.EntityUtils;
import reactor.netty.http.client.HttpClientResponse;
import reactor.netty.resources.ConnectionProvider;
import reactor.netty.resources.LoopResources;

/**
 * okhttp-execute, okhttp-enqueue; apache-classic, apache-async, apache-shared (one context for all executions); reactor, reactor-nio; netty-nio, netty-epoll; java-send, java-sendasync; huc. All but those that
 * block have fewer connections than there are requests at a time, so that calls wait for other calls' connections.
 */
final class Clients {
	private static final int CONNECTIONS_MAX = 8;

	private Clients() {
	}

	static Client make(String name, int port) {
		return switch (name) {
			case "okhttp-execute" -> okhttpExecute();
			case "okhttp-enqueue" -> okhttpEnqueue();
			case "apache-classic" -> apacheClassic();
			case "apache-async" -> apacheAsync(null);
			case "apache-shared" -> apacheAsync(sharedContext(port));
			case "reactor" -> reactor(true);
			case "reactor-nio" -> reactor(false);
			case "netty-nio" -> new NettyClient(port, false);
			case "netty-epoll" -> new NettyClient(port, true);
			case "java-send" -> javaSend();
			case "java-sendasync" -> javaSendAsync();
			case "huc" -> url -> blocking(() -> urlConnection(url));
			default -> throw new IllegalArgumentException(name);
		};
	}

	private interface Blocking {
		int call() throws Exception;
	}

	private static CompletableFuture<Integer> blocking(Blocking call) {
		try {
			return CompletableFuture.completedFuture(call.call());
		} catch (Exception e) {
			return CompletableFuture.failedFuture(e);
		}
	}

	/* --- the JDK's */

	private static int urlConnection(String url) throws IOException {
		HttpURLConnection connection = (HttpURLConnection) URI.create(url).toURL().openConnection();
		int status = connection.getResponseCode();

		try (InputStream body = status < 400 ? connection.getInputStream() : connection.getErrorStream()) {
			body.readAllBytes();
		}
		return status;
	}

	private static HttpRequest javaRequest(String url) {
		return HttpRequest.newBuilder(URI.create(url)).build();
	}

	private static Client javaSend() {
		HttpClient client = HttpClient.newHttpClient();

		return url -> blocking(() ->
			client.send(javaRequest(url), HttpResponse.BodyHandlers.ofString()).statusCode());
	}

	private static Client javaSendAsync() {
		HttpClient client = HttpClient.newHttpClient();

		return url -> client.sendAsync(javaRequest(url), HttpResponse.BodyHandlers.ofString())
			.thenApply(HttpResponse::statusCode);
	}

	/* --- OkHttp */

	private static int okhttpStatus(Response response) throws IOException {
		try (response) {
			response.body().bytes();
			return response.code();
		}
	}

	private static Client okhttpExecute() {
		OkHttpClient client = new OkHttpClient();

		return url -> blocking(() ->
			okhttpStatus(client.newCall(new Request.Builder().url(url).build()).execute()));
	}

	private static Client okhttpEnqueue() {
		OkHttpClient client = new OkHttpClient();

		return url -> {
			CompletableFuture<Integer> result = new CompletableFuture<>();

			client.newCall(new Request.Builder().url(url).build()).enqueue(new Callback() {
				@Override
				public void onFailure(Call call, IOException e) {
					result.completeExceptionally(e);
				}

				@Override
				public void onResponse(Call call, Response response) throws IOException {
					result.complete(okhttpStatus(response));
				}
			});
			return result;
		};
	}

	/* --- Apache HttpClient */

	private static Client apacheClassic() {
		CloseableHttpClient client = HttpClients.custom()
			.setConnectionManager(PoolingHttpClientConnectionManagerBuilder.create()
				.setMaxConnTotal(64).setMaxConnPerRoute(64).build())
			.build();

		return url -> blocking(() -> client.execute(new HttpGet(url), response -> {
			EntityUtils.consume(response.getEntity());
			return response.getCode();
		}));
	}

	/* What it would learn by its first execution is in it: else that is no matter for many threads. */
	private static HttpClientContext sharedContext(int port) {
		HttpClientContext context = HttpClientContext.create();

		context.getAuthExchange(new HttpHost("http", "127.0.0.1", port));
		return context;
	}

	/* Without a context each execution has its own. */
	private static Client apacheAsync(HttpClientContext shared) {
		CloseableHttpAsyncClient client = HttpAsyncClients.custom()
			.setConnectionManager(PoolingAsyncClientConnectionManagerBuilder.create()
				.setMaxConnTotal(CONNECTIONS_MAX).setMaxConnPerRoute(CONNECTIONS_MAX).build())
			.build();

		client.start();
		return url -> {
			CompletableFuture<Integer> result = new CompletableFuture<>();
			SimpleHttpRequest request = SimpleRequestBuilder.get(url).build();
			HttpClientContext context = shared != null ? shared : HttpClientContext.create();

			client.execute(request, context, new FutureCallback<SimpleHttpResponse>() {
				@Override
				public void completed(SimpleHttpResponse response) {
					result.complete(response.getCode());
				}

				@Override
				public void failed(Exception e) {
					result.completeExceptionally(e);
				}

				@Override
				public void cancelled() {
					result.cancel(false);
				}
			});
			return result;
		};
	}

	/* --- reactor-netty */

	private static Client reactor(boolean isNative) {
		ConnectionProvider pool = ConnectionProvider.builder("front").maxConnections(CONNECTIONS_MAX)
			.pendingAcquireMaxCount(-1).pendingAcquireTimeout(Duration.ofSeconds(30)).build();
		reactor.netty.http.client.HttpClient client = reactor.netty.http.client.HttpClient.create(pool)
			.runOn(LoopResources.create("calls", 2, true), isNative);

		return url -> client.get().uri(url)
			.responseSingle((response, body) -> body.asByteArray().defaultIfEmpty(new byte[0])
				.map(bytes -> status(response)))
			.toFuture();
	}

	private static int status(HttpClientResponse response) {
		return response.status().code();
	}
}
