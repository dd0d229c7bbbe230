package zoo;

import io.helidon.http.Status;
import io.helidon.webclient.api.HttpClientResponse;
import io.helidon.webclient.api.WebClient;
import io.helidon.webserver.WebServer;
import io.helidon.webserver.http.HttpRouting;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Helidon 4 SE, a virtual thread for each connection: java zoo.Main PORT BACK_PORT LOG */
public final class Main {
	private static final ExecutorService THREADS = Executors.newVirtualThreadPerTaskExecutor();
	private static WebClient client;

	private Main() {
	}

	private static int call(Exchange one) {
		try (HttpClientResponse response = client.get(one.path()).request()) {
			response.as(String.class);
			return response.status().code();
		}
	}

	private static void answer(ServerResponse response, int status) {
		response.status(Status.create(status)).send("front\n");
	}

	private static void own(ServerRequest request, ServerResponse response) {
		Exchange one = new Exchange(request.path().path());

		answer(response, one.end(call(one)));
	}

	private static void send(ServerRequest request, ServerResponse response) {
		Exchange one = new Exchange(request.path().path());

		answer(response, one.end(JdkClient.send(one.url())));
	}

	private static void future(ServerRequest request, ServerResponse response) {
		Exchange one = new Exchange(request.path().path());

		answer(response, one.end(CompletableFuture.supplyAsync(() -> call(one), THREADS).join()));
	}

	public static void main(String[] args) throws Exception {
		Zoo.begin(args);
		client = WebClient.builder().baseUri(Zoo.back()).build();
		WebServer.builder().host("127.0.0.1").port(Zoo.port).routing(HttpRouting.builder()
			.get("/own/{id}", Main::own).get("/send/{id}", Main::send)
			.get("/future/{id}", Main::future)).build().start();
		Zoo.ready();
	}
}
