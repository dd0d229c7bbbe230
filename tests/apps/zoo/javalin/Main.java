package zoo;

import io.javalin.Javalin;
import io.javalin.http.Context;
import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import okhttp3.Call;
import okhttp3.Callback;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.Response;

/** Javalin 6 in Jetty 11, with OkHttp: java zoo.Main PORT BACK_PORT LOG */
public final class Main {
	private static final OkHttpClient CLIENT = new OkHttpClient();

	private Main() {
	}

	private static Call call(Exchange one) {
		return CLIENT.newCall(new Request.Builder().url(one.url()).build());
	}

	private static int execute(Exchange one) {
		try (Response response = call(one).execute()) {
			response.body().bytes();
			return response.code();
		} catch (IOException e) {
			throw new IllegalStateException(e);
		}
	}

	private static CompletableFuture<Integer> enqueue(Exchange one) {
		CompletableFuture<Integer> future = new CompletableFuture<>();

		call(one).enqueue(new Callback() {
			@Override
			public void onFailure(Call call, IOException e) {
				future.completeExceptionally(e);
			}

			@Override
			public void onResponse(Call call, Response response) throws IOException {
				response.body().bytes();
				future.complete(response.code());
			}
		});
		return future;
	}

	private static void answer(Context context, int status) {
		context.status(status).result("front\n");
	}

	private static void execute(Context context) {
		Exchange one = new Exchange(context.path());

		answer(context, one.end(execute(one)));
	}

	private static void enqueue(Context context) {
		Exchange one = new Exchange(context.path());

		context.future(() -> enqueue(one).thenAccept(status -> answer(context, one.end(status))));
	}

	private static void async(Context context) {
		Exchange one = new Exchange(context.path());

		context.async(() -> answer(context, one.end(execute(one))));
	}

	public static void main(String[] args) throws Exception {
		Zoo.begin(args);
		Javalin.create(settings -> settings.showJavalinBanner = false).get("/execute/{id}", Main::execute)
			.get("/enqueue/{id}", Main::enqueue).get("/async/{id}", Main::async)
			.start("127.0.0.1", Zoo.port);
		Zoo.ready();
	}
}
