package zoo;

import java.util.Arrays;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.http.ResponseEntity;
import org.springframework.http.client.SimpleClientHttpRequestFactory;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.stereotype.Service;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.DefaultResponseErrorHandler;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.reactive.function.client.WebClient;

/** Spring MVC in Tomcat: java zoo.Main PORT BACK_PORT LOG [OPTION OF SPRING...] */
@SpringBootApplication
@EnableAsync
public class Main {
	public static void main(String[] args) throws Exception {
		Zoo.begin(args);
		System.setProperty("server.port", args[0]);
		System.setProperty("server.address", "127.0.0.1");
		System.setProperty("spring.main.web-application-type", "servlet");
		SpringApplication.run(Main.class, Arrays.copyOfRange(args, 3, args.length));
		Zoo.ready();
	}

	@Bean
	RestTemplate restTemplate() {
		RestTemplate template = new RestTemplate(new SimpleClientHttpRequestFactory());

		template.setErrorHandler(new DefaultResponseErrorHandler() {
			@Override
			public boolean hasError(org.springframework.http.client.ClientHttpResponse response) {
				return false;
			}
		});
		return template;
	}

	@Bean
	RestClient restClient() {
		return RestClient.builder().defaultStatusHandler(status -> true, (request, response) -> { }).build();
	}

	@Bean
	WebClient webClient() {
		return WebClient.create();
	}

	/** What is done in the threads of Spring's own executor. */
	@Service
	public static class Background {
		private final RestTemplate template;

		Background(RestTemplate template) {
			this.template = template;
		}

		@Async
		public CompletableFuture<Integer> get(String url) {
			return CompletableFuture.completedFuture(
				template.getForEntity(url, String.class).getStatusCode().value());
		}
	}

	/** The ways in which a request's call is made. */
	@RestController
	public static class Ways {
		private final ExecutorService pool = Executors.newFixedThreadPool(4, job -> {
			Thread thread = new Thread(job, "own-pool");
			thread.setDaemon(true);
			return thread;
		});
		private final RestTemplate template;
		private final RestClient client;
		private final WebClient web;
		private final Background background;

		Ways(RestTemplate template, RestClient client, WebClient web, Background background) {
			this.template = template;
			this.client = client;
			this.web = web;
			this.background = background;
		}

		private static ResponseEntity<String> answer(int status) {
			return ResponseEntity.status(status).body("front\n");
		}

		private int byTemplate(String url) {
			return template.getForEntity(url, String.class).getStatusCode().value();
		}

		private int byClient(String url) {
			return client.get().uri(url).retrieve().toBodilessEntity().getStatusCode().value();
		}

		@GetMapping("/template/{id}")
		ResponseEntity<String> template(@PathVariable String id) {
			Exchange one = new Exchange("template", id);

			return answer(one.end(byTemplate(one.url())));
		}

		@GetMapping("/client/{id}")
		ResponseEntity<String> client(@PathVariable String id) {
			Exchange one = new Exchange("client", id);

			return answer(one.end(byClient(one.url())));
		}

		@GetMapping("/web/{id}")
		ResponseEntity<String> web(@PathVariable String id) {
			Exchange one = new Exchange("web", id);
			int status = web.get().uri(one.url()).exchangeToMono(response -> response.releaseBody()
				.thenReturn(response.statusCode().value())).block();

			return answer(one.end(status));
		}

		@GetMapping("/async/{id}")
		CompletableFuture<ResponseEntity<String>> async(@PathVariable String id) {
			Exchange one = new Exchange("async", id);

			return background.get(one.url()).thenApply(status -> answer(one.end(status)));
		}

		@GetMapping("/callable/{id}")
		Callable<ResponseEntity<String>> callable(@PathVariable String id) {
			Exchange one = new Exchange("callable", id);

			return () -> answer(one.end(byClient(one.url())));
		}

		@GetMapping("/future/{id}")
		CompletableFuture<ResponseEntity<String>> future(@PathVariable String id) {
			Exchange one = new Exchange("future", id);

			return CompletableFuture.supplyAsync(() -> byTemplate(one.url()))
				.thenApply(status -> answer(one.end(status)));
		}

		@GetMapping("/deferred/{id}")
		DeferredResult<ResponseEntity<String>> deferred(@PathVariable String id) {
			Exchange one = new Exchange("deferred", id);
			DeferredResult<ResponseEntity<String>> result = new DeferredResult<>();

			pool.execute(() -> result.setResult(answer(one.end(byClient(one.url())))));
			return result;
		}
	}
}
