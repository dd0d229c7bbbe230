package zoo;

import io.micronaut.http.HttpRequest;
import io.micronaut.http.HttpResponse;
import io.micronaut.http.HttpStatus;
import io.micronaut.http.annotation.Controller;
import io.micronaut.http.annotation.Get;
import io.micronaut.http.client.HttpClient;
import io.micronaut.http.client.exceptions.HttpClientResponseException;
import io.micronaut.runtime.Micronaut;
import io.micronaut.scheduling.TaskExecutors;
import io.micronaut.scheduling.annotation.ExecuteOn;
import jakarta.inject.Named;
import java.net.URI;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import reactor.core.publisher.Mono;

/** Micronaut in Netty: java zoo.Main PORT BACK_PORT LOG */
public final class Main {
	private Main() {
	}

	public static void main(String[] args) throws Exception {
		Zoo.begin(args);
		Micronaut.build(new String[0]).classes(Main.class).properties(Map.of("micronaut.server.port", Zoo.port,
			"micronaut.server.host", "127.0.0.1")).start();
		Zoo.ready();
	}

	/** The ways in which a request's call is made. */
	@Controller("/")
	public static class Ways {
		private final HttpClient client;
		private final ExecutorService executor;

		Ways(@Named(TaskExecutors.BLOCKING) ExecutorService executor) throws Exception {
			this.executor = executor;
			this.client = HttpClient.create(URI.create(Zoo.back()).toURL());
		}

		private static HttpResponse<String> answer(int status) {
			return HttpResponse.<String>status(HttpStatus.valueOf(status)).body("front\n");
		}

		private int blocking(Exchange one) {
			try {
				return client.toBlocking().exchange(HttpRequest.GET(one.path()), String.class).code();
			} catch (HttpClientResponseException e) {
				return e.code();
			}
		}

		@Get("/blocking/{id}")
		@ExecuteOn(TaskExecutors.BLOCKING)
		HttpResponse<String> blocking(String id) {
			Exchange one = new Exchange("blocking", id);

			return answer(one.end(blocking(one)));
		}

		@Get("/reactive/{id}")
		Mono<HttpResponse<String>> reactive(String id) {
			Exchange one = new Exchange("reactive", id);

			return Mono.from(client.exchange(HttpRequest.GET(one.path()), String.class))
				.map(HttpResponse::code)
				.onErrorResume(HttpClientResponseException.class, e -> Mono.just(e.code()))
				.map(status -> answer(one.end(status)));
		}

		@Get("/future/{id}")
		CompletableFuture<HttpResponse<String>> future(String id) {
			Exchange one = new Exchange("future", id);

			return CompletableFuture.supplyAsync(() -> answer(one.end(blocking(one))), executor);
		}
	}
}
