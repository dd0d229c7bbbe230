import java.util.function.IntConsumer;

/** Does what a request asks for, and gives the status to answer with, on whatever thread. May block. */
interface Handler {
	void handle(String path, IntConsumer answer);
}
