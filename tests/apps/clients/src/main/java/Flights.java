import io.netty.util.concurrent.DefaultEventExecutor;
import io.netty.util.concurrent.EventExecutor;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.subjects.SingleSubject;
import io.smallrye.mutiny.Uni;
import io.smallrye.mutiny.subscription.UniEmitter;
import io.vertx.core.Promise;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * One result that several requests wait for, as for a token or an entry of a cache: the last of them, or a clock, brings
 * it, and what waits runs there. By its shape it is no executor.
 */
final class Flights {
	private static final int SEATS = 4;

	private interface Flight {
		void board(Runnable work);

		void land();
	}

	private final Supplier<Flight> next;
	private Flight flight;
	private int seated;

	private Flights(Supplier<Flight> next) {
		this.next = next;
		flight = next.get();
		Executors.newScheduledThreadPool(1).scheduleAtFixedRate(() -> depart(1), 5, 5, TimeUnit.MILLISECONDS);
	}

	static Executor make(String name) {
		EventExecutor loop = new DefaultEventExecutor();

		Flights flights = new Flights(switch (name) {
			case "shared-cf" -> Flights::future;
			case "shared-netty" -> () -> netty(loop);
			case "shared-vertx" -> Flights::vertx;
			case "shared-mono" -> () -> mono(false);
			case "shared-mono-cache" -> () -> mono(true);
			case "shared-mutiny" -> Flights::mutiny;
			case "shared-rxjava" -> () -> rxjava(false);
			case "shared-rxjava-cache" -> () -> rxjava(true);
			default -> throw new IllegalArgumentException(name);
		});

		return flights::join;
	}

	private void join(Runnable work) {
		synchronized (this) {
			flight.board(work);
			seated++;
		}
		depart(SEATS);
	}

	private void depart(int least) {
		Flight full;

		synchronized (this) {
			if (seated < least)
				return;
			full = flight;
			flight = next.get();
			seated = 0;
		}
		full.land();
	}

	private static Flight of(java.util.function.Consumer<Runnable> board, Runnable land) {
		return new Flight() {
			@Override
			public void board(Runnable work) {
				board.accept(work);
			}

			@Override
			public void land() {
				land.run();
			}
		};
	}

	private static Flight future() {
		CompletableFuture<Object> future = new CompletableFuture<>();

		return of(future::thenRun, () -> future.complete(""));
	}

	private static Flight netty(EventExecutor loop) {
		io.netty.util.concurrent.Promise<Object> promise = loop.newPromise();

		return of(work -> promise.addListener(done -> work.run()), () -> promise.trySuccess(""));
	}

	private static Flight vertx() {
		Promise<Object> promise = Promise.promise();

		return of(work -> promise.future().onSuccess(done -> work.run()), () -> promise.tryComplete(""));
	}

	private static Flight mono(boolean isCached) {
		Sinks.One<Object> sink = Sinks.one();
		Mono<Object> mono = isCached ? sink.asMono().cache() : sink.asMono();

		return of(work -> mono.subscribe(done -> work.run()), () -> sink.tryEmitValue(""));
	}

	private static Flight mutiny() {
		AtomicReference<UniEmitter<Object>> emitter = new AtomicReference<>();
		Uni<Object> uni = Uni.createFrom().<Object>emitter(e -> emitter.set((UniEmitter<Object>) e)).memoize().indefinitely();

		return of(work -> uni.subscribe().with(done -> work.run()), () -> emitter.get().complete(""));
	}

	private static Flight rxjava(boolean isCached) {
		SingleSubject<Object> subject = SingleSubject.create();
		Single<Object> single = isCached ? subject.cache() : subject;

		return of(work -> single.subscribe(done -> work.run()), () -> subject.onSuccess(""));
	}
}
