package zoo;

import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** Spring WebFlux in reactor-netty: java zoo.Main PORT BACK_PORT LOG [OPTION OF SPRING...] */
@SpringBootApplication
public class Main {
	public static void main(String[] args) throws Exception {
		Zoo.begin(args);
		System.setProperty("server.port", args[0]);
		System.setProperty("server.address", "127.0.0.1");
		SpringApplication.run(Main.class, Arrays.copyOfRange(args, 3, args.length));
		Zoo.ready();
	}

	/** The ways in which a request's call is made. */
	@RestController
	public static class Ways {
		private final WebClient web = WebClient.create();
		private final RestClient client = RestClient.builder()
			.defaultStatusHandler(status -> true, (request, response) -> { }).build();

		private static ResponseEntity<String> answer(int status) {
			return ResponseEntity.status(status).body("front\n");
		}

		private Mono<Integer> call(Exchange one) {
			return web.get().uri(one.url()).exchangeToMono(response -> response.releaseBody()
				.thenReturn(response.statusCode().value()));
		}

		private int byClient(Exchange one) {
			return client.get().uri(one.url()).retrieve().toBodilessEntity().getStatusCode().value();
		}

		@GetMapping("/web/{id}")
		Mono<ResponseEntity<String>> web(@PathVariable String id) {
			Exchange one = new Exchange("web", id);

			return call(one).map(status -> answer(one.end(status)));
		}

		@GetMapping("/delay/{id}")
		Mono<ResponseEntity<String>> delay(@PathVariable String id) {
			Exchange one = new Exchange("delay", id);

			return Mono.delay(Duration.ofMillis(1)).then(call(one)).map(status -> answer(one.end(status)));
		}

		@GetMapping("/publish/{id}")
		Mono<ResponseEntity<String>> publish(@PathVariable String id) {
			Exchange one = new Exchange("publish", id);

			return Mono.just(one).publishOn(Schedulers.parallel()).flatMap(this::call)
				.map(status -> answer(one.end(status)));
		}

		@GetMapping("/elastic/{id}")
		Mono<ResponseEntity<String>> elastic(@PathVariable String id) {
			Exchange one = new Exchange("elastic", id);

			return Mono.fromCallable(() -> byClient(one)).subscribeOn(Schedulers.boundedElastic())
				.map(status -> answer(one.end(status)));
		}

		@GetMapping("/future/{id}")
		Mono<ResponseEntity<String>> future(@PathVariable String id) {
			Exchange one = new Exchange("future", id);

			return Mono.fromFuture(CompletableFuture.supplyAsync(() -> byClient(one)))
				.map(status -> answer(one.end(status)));
		}
	}
}
