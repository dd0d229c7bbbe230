import java.util.concurrent.CompletableFuture;

/** Makes a call; the future has the response's status once its body is read. May block, if the client does. */
interface Client {
	CompletableFuture<Integer> get(String url);
}
