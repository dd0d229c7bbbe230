package zoo;

import com.linecorp.armeria.client.WebClient;
import com.linecorp.armeria.common.HttpRequest;
import com.linecorp.armeria.common.HttpResponse;
import com.linecorp.armeria.common.HttpStatus;
import com.linecorp.armeria.common.MediaType;
import com.linecorp.armeria.server.Server;
import com.linecorp.armeria.server.ServiceRequestContext;
import java.net.InetSocketAddress;
import java.util.concurrent.CompletableFuture;

/** Armeria, with its client: java zoo.Main PORT BACK_PORT LOG */
public final class Main {
	private static WebClient client;

	private Main() {
	}

	private static CompletableFuture<Integer> call(Exchange one) {
		return client.get(one.path()).aggregate().thenApply(response -> response.status().code());
	}

	private static HttpResponse answer(int status) {
		return HttpResponse.of(HttpStatus.valueOf(status), MediaType.PLAIN_TEXT_UTF_8, "front\n");
	}

	private static HttpResponse own(ServiceRequestContext context, HttpRequest request) {
		Exchange one = new Exchange(context.path());

		return HttpResponse.of(call(one).thenApply(status -> answer(one.end(status))));
	}

	private static HttpResponse blocking(ServiceRequestContext context, HttpRequest request) {
		Exchange one = new Exchange(context.path());

		return HttpResponse.of(CompletableFuture.supplyAsync(() -> answer(one.end(call(one).join())),
			context.blockingTaskExecutor()));
	}

	private static HttpResponse connection(ServiceRequestContext context, HttpRequest request) {
		Exchange one = new Exchange(context.path());

		return HttpResponse.of(CompletableFuture.supplyAsync(() ->
			answer(one.end(UrlConnection.get(one.url()))), context.blockingTaskExecutor()));
	}

	public static void main(String[] args) throws Exception {
		Zoo.begin(args);
		client = WebClient.of("h1c://127.0.0.1:" + Zoo.backPort);
		Server.builder().http(new InetSocketAddress("127.0.0.1", Zoo.port))
			.service("prefix:/own", Main::own).service("prefix:/blocking", Main::blocking)
			.service("prefix:/connection", Main::connection).build().start().join();
		Zoo.ready();
	}
}
