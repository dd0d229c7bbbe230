package zoo;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.CompletableFuture;

/** java.net.http. */
public final class JdkClient {
	private static final HttpClient CLIENT =
		HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

	private JdkClient() {
	}

	private static HttpRequest request(String url) {
		return HttpRequest.newBuilder(URI.create(url)).build();
	}

	public static int send(String url) {
		try {
			return CLIENT.send(request(url), HttpResponse.BodyHandlers.ofString()).statusCode();
		} catch (IOException | InterruptedException e) {
			throw new IllegalStateException(e);
		}
	}

	public static CompletableFuture<Integer> sendAsync(String url) {
		return CLIENT.sendAsync(request(url), HttpResponse.BodyHandlers.ofString())
			.thenApply(HttpResponse::statusCode);
	}
}
