/*
 * The calls of Front's mode "client": by java.net.http, which Java has since 11.
 */
import com.sun.net.httpserver.HttpExchange;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

final class AsyncCalls {
	private final Front front;
	private final HttpClient client = HttpClient.newHttpClient();

	AsyncCalls(Front front) {
		this.front = front;
	}

	void handle(HttpExchange exchange) {
		long start = RequestLog.now();
		String path = Front.target(exchange);

		client.sendAsync(HttpRequest.newBuilder(URI.create(front.back + path)).build(),
				 HttpResponse.BodyHandlers.ofString())
			.whenComplete((response, failure) -> {
				int status = failure == null ? response.statusCode() : 599;

				front.log.write("client", path, status, start, RequestLog.now());
				front.answerUnchecked(exchange, start, status);
			});
	}
}
