package zoo;

import io.quarkus.runtime.Quarkus;
import io.quarkus.runtime.QuarkusApplication;
import io.quarkus.runtime.annotations.QuarkusMain;
import io.smallrye.common.annotation.Blocking;
import io.smallrye.mutiny.Uni;
import io.vertx.mutiny.core.Vertx;
import io.vertx.mutiny.ext.web.client.WebClient;
import jakarta.inject.Inject;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.PathParam;
import jakarta.ws.rs.core.Response;
import java.net.URI;
import java.util.concurrent.CompletionStage;
import org.eclipse.microprofile.context.ManagedExecutor;
import org.eclipse.microprofile.rest.client.RestClientBuilder;

/** Quarkus REST: java -jar quarkus-run.jar PORT BACK_PORT LOG */
@QuarkusMain
public class Main {
	public static void main(String... args) throws Exception {
		Zoo.begin(args);
		System.setProperty("quarkus.http.port", args[0]);
		Quarkus.run(Service.class, args);
	}

	/** Says when it runs. */
	public static class Service implements QuarkusApplication {
		@Override
		public int run(String... args) {
			Zoo.ready();
			Quarkus.waitForExit();
			return 0;
		}
	}

	/** The back end. */
	@Path("/back")
	public interface Back {
		@GET
		@Path("/{id}")
		Response blocking(@PathParam("id") String id);

		@GET
		@Path("/{id}")
		Uni<Response> reactive(@PathParam("id") String id);
	}

	/** The ways in which a request's call is made. */
	@Path("/")
	public static class Ways {
		private final WebClient web;
		private final ManagedExecutor executor;
		private final Back back;

		@Inject
		Ways(Vertx vertx, ManagedExecutor executor) {
			this.web = WebClient.create(vertx);
			this.executor = executor;
			this.back = RestClientBuilder.newBuilder().baseUri(URI.create(Zoo.back()))
				.property("microprofile.rest.client.disable.default.mapper", true).build(Back.class);
		}

		private static Response answer(int status) {
			return Response.status(status).entity("front\n").build();
		}

		private int blocking(String id) {
			try (Response response = back.blocking(id)) {
				return response.getStatus();
			}
		}

		@GET
		@Path("/rest/{id}")
		@Blocking
		public Response rest(@PathParam("id") String id) {
			Exchange one = new Exchange("rest", id);

			return answer(one.end(blocking(id)));
		}

		@GET
		@Path("/uni/{id}")
		public Uni<Response> uni(@PathParam("id") String id) {
			Exchange one = new Exchange("uni", id);

			return back.reactive(id).map(response -> answer(one.end(response.getStatus())));
		}

		@GET
		@Path("/web/{id}")
		public Uni<Response> web(@PathParam("id") String id) {
			Exchange one = new Exchange("web", id);

			return web.get(Zoo.backPort, "127.0.0.1", one.path()).send()
				.map(response -> answer(one.end(response.statusCode())));
		}

		@GET
		@Path("/stage/{id}")
		public CompletionStage<Response> stage(@PathParam("id") String id) {
			Exchange one = new Exchange("stage", id);

			return executor.supplyAsync(() -> answer(one.end(blocking(id))));
		}
	}
}
