package zoo;

import io.vertx.core.AbstractVerticle;
import io.vertx.core.DeploymentOptions;
import io.vertx.core.Vertx;
import io.vertx.core.http.HttpClientRequest;
import io.vertx.core.http.HttpMethod;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import io.vertx.ext.web.client.WebClient;

/** Vert.x, two event loops with a server each: java zoo.Main PORT BACK_PORT LOG */
public final class Main extends AbstractVerticle {
	private static void answer(RoutingContext context, int status) {
		context.response().setStatusCode(status).end("front\n");
	}

	private static Exchange exchange(RoutingContext context) {
		return new Exchange(context.request().path());
	}

	@Override
	public void start() {
		Router router = Router.router(vertx);
		WebClient web = WebClient.create(vertx);
		io.vertx.core.http.HttpClient client = vertx.createHttpClient();

		router.get("/web/:id").handler(context -> {
			Exchange one = exchange(context);

			web.get(Zoo.backPort, "127.0.0.1", one.path()).send()
				.onSuccess(response -> answer(context, one.end(response.statusCode())))
				.onFailure(context::fail);
		});
		router.get("/client/:id").handler(context -> {
			Exchange one = exchange(context);

			client.request(HttpMethod.GET, Zoo.backPort, "127.0.0.1", one.path())
				.compose(HttpClientRequest::send)
				.compose(response -> response.body().map(body -> response.statusCode()))
				.onSuccess(status -> answer(context, one.end(status)))
				.onFailure(context::fail);
		});
		router.get("/timer/:id").handler(context -> {
			Exchange one = exchange(context);

			vertx.setTimer(1, timer -> web.get(Zoo.backPort, "127.0.0.1", one.path()).send()
				.onSuccess(response -> answer(context, one.end(response.statusCode())))
				.onFailure(context::fail));
		});
		router.get("/blocking/:id").handler(context -> {
			Exchange one = exchange(context);

			vertx.executeBlocking(() -> UrlConnection.get(one.url()), false)
				.onSuccess(status -> answer(context, one.end(status)))
				.onFailure(context::fail);
		});
		router.get("/handler/:id").blockingHandler(context -> {
			Exchange one = exchange(context);

			answer(context, one.end(UrlConnection.get(one.url())));
		}, false);
		vertx.createHttpServer().requestHandler(router).listen(Zoo.port, "127.0.0.1");
	}

	public static void main(String[] args) throws Exception {
		Zoo.begin(args);
		Vertx.vertx().deployVerticle(Main.class.getName(), new DeploymentOptions().setInstances(2))
			.onSuccess(id -> Zoo.ready()).onFailure(Throwable::printStackTrace);
	}
}
