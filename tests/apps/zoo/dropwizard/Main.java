package zoo;

import io.dropwizard.client.JerseyClientBuilder;
import io.dropwizard.core.Application;
import io.dropwizard.core.Configuration;
import io.dropwizard.core.setup.Environment;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.PathParam;
import jakarta.ws.rs.client.Client;
import jakarta.ws.rs.client.InvocationCallback;
import jakarta.ws.rs.container.AsyncResponse;
import jakarta.ws.rs.container.Suspended;
import jakarta.ws.rs.core.Response;
import java.nio.file.Files;
import java.nio.file.Paths;

/** Dropwizard, Jersey in Jetty, with its client (Apache HttpClient): java zoo.Main PORT BACK_PORT LOG */
public final class Main extends Application<Configuration> {
	private static final String SETTINGS = """
		server:
		  applicationConnectors: [{type: http, bindHost: 127.0.0.1, port: %d}]
		  adminConnectors: []
		  requestLog: {appenders: []}
		""";

	public static void main(String[] args) throws Exception {
		java.nio.file.Path settings = Paths.get(args[2] + ".yaml");

		Zoo.begin(args);
		Files.writeString(settings, SETTINGS.formatted(Zoo.port));
		new Main().run("server", settings.toString());
	}

	@Override
	public void run(Configuration configuration, Environment environment) {
		io.dropwizard.client.JerseyClientConfiguration settings =
			new io.dropwizard.client.JerseyClientConfiguration();

		settings.setTimeout(io.dropwizard.util.Duration.seconds(20));
		settings.setConnectionTimeout(io.dropwizard.util.Duration.seconds(20));
		settings.setConnectionRequestTimeout(io.dropwizard.util.Duration.seconds(20));
		environment.jersey().register(new Ways(
			new JerseyClientBuilder(environment).using(settings).build("back")));
		environment.lifecycle().addServerLifecycleListener(server -> Zoo.ready());
	}

	/** The ways in which a request's call is made. */
	@Path("/")
	public static class Ways {
		private final Client client;

		Ways(Client client) {
			this.client = client;
		}

		private static Response answer(int status) {
			return Response.status(status).entity("front\n").build();
		}

		private int call(Exchange one) {
			try (Response response = client.target(one.url()).request().get()) {
				response.readEntity(String.class);
				return response.getStatus();
			}
		}

		@GET
		@Path("/own/{id}")
		public Response own(@PathParam("id") String id) {
			Exchange one = new Exchange("own", id);

			return answer(one.end(call(one)));
		}

		@GET
		@Path("/async/{id}")
		public void async(@PathParam("id") String id, @Suspended AsyncResponse result) {
			Exchange one = new Exchange("async", id);

			client.target(one.url()).request().async().get(new InvocationCallback<Response>() {
				@Override
				public void completed(Response response) {
					response.readEntity(String.class);
					result.resume(answer(one.end(response.getStatus())));
				}

				@Override
				public void failed(Throwable failure) {
					result.resume(failure);
				}
			});
		}
	}
}
