import com.google.common.util.concurrent.MoreExecutors;
import com.google.common.util.concurrent.SettableFuture;
import com.lmax.disruptor.dsl.Disruptor;
import com.lmax.disruptor.util.DaemonThreadFactory;
import io.grpc.SynchronizationContext;
import io.grpc.internal.SerializingExecutor;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.processors.FlowableProcessor;
import io.reactivex.rxjava3.processors.PublishProcessor;
import io.smallrye.mutiny.Multi;
import io.smallrye.mutiny.operators.multi.processors.UnicastProcessor;
import io.vertx.core.Context;
import io.vertx.core.Vertx;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.SubmissionPublisher;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pekko.actor.AbstractActor;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.actor.Props;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Schedulers;
import scala.concurrent.ExecutionContext;
import scala.concurrent.Promise;

/**
 * Ways of libraries to hand work over that are none of the JDK's: one job, thread or subscriber does the work of many
 * requests. Each is made once, before the first request.
 */
final class Ways {
	private static final int THREADS = 4;

	private Ways() {
	}

	static Executor make(String name) throws Exception {
		return switch (name) {
			case "guava" -> MoreExecutors.newSequentialExecutor(pool());
			case "guava-future" -> guavaFuture();
			case "grpc" -> new SerializingExecutor(pool());
			case "grpc-sync" -> new SynchronizationContext((thread, failure) -> failure.printStackTrace());
			case "pekko" -> pekko();
			case "akka" -> akka();
			case "scala" -> scala();
			case "reactor" -> reactor();
			case "reactor-cold" -> reactorCold();
			case "rxjava" -> rxjava();
			case "rxjava-cold" -> rxjavaCold();
			case "disruptor" -> disruptor();
			case "jetty" -> jetty();
			case "publisher" -> publisher();
			case "rxjava2" -> rxjava2();
			case "rxjava2-cold" -> rxjava2Cold();
			case "mutiny" -> mutiny();
			case "mutiny-cold" -> mutinyCold();
			case "connection" -> new Multiplexed()::send;
			case "vertx" -> vertx();
			case "deque" -> new Homemade.Sequential(pool());
			case "nodes" -> new Homemade.Nodes(pool());
			case "caller" -> new Homemade.ByCaller();
			case "serial" -> new Homemade.Serial(pool());
			case "helping" -> new Homemade.Helping()::help;
			case "threads" -> new Homemade.Threads(THREADS)::execute;
			default -> Flights.make(name);
		};
	}

	private static Executor pool() {
		return Executors.newFixedThreadPool(THREADS);
	}

	/* What waits for a future, which the next request completes, or a clock: there, or in a pool. */
	private static Executor guavaFuture() {
		AtomicReference<SettableFuture<Object>> last = new AtomicReference<>(SettableFuture.create());
		ScheduledExecutorService clock = Executors.newScheduledThreadPool(1);
		AtomicInteger n = new AtomicInteger();
		Executor pool = pool();

		clock.scheduleAtFixedRate(() -> last.get().set(""), 5, 5, TimeUnit.MILLISECONDS);
		return work -> {
			SettableFuture<Object> future = SettableFuture.create();

			future.addListener(work, n.incrementAndGet() % 2 == 0 ? pool : MoreExecutors.directExecutor());
			last.getAndSet(future).set("");
		};
	}

	/* A message or an event, which is no job to anybody but the receiver. */
	private record Message(Runnable work) {
	}

	private static final class Worker extends AbstractActor {
		@Override
		public Receive createReceive() {
			return receiveBuilder().match(Message.class, message -> message.work().run()).build();
		}
	}

	private static Executor pekko() {
		ActorSystem system = ActorSystem.create("ways");
		ActorRef worker = system.actorOf(Props.create(Worker.class, Worker::new));

		return work -> worker.tell(new Message(work), ActorRef.noSender());
	}

	private static final class AkkaWorker extends akka.actor.AbstractActor {
		@Override
		public Receive createReceive() {
			return receiveBuilder().match(Message.class, message -> message.work().run()).build();
		}
	}

	private static Executor akka() {
		akka.actor.ActorRef worker = akka.actor.ActorSystem.create("ways")
			.actorOf(akka.actor.Props.create(AkkaWorker.class, AkkaWorker::new));

		return work -> worker.tell(new Message(work), akka.actor.ActorRef.noSender());
	}

	/* What depends on a future, which the next request completes, or a clock. */
	private static Executor scala() {
		AtomicReference<Promise<Object>> last = new AtomicReference<>(Promise.apply());
		ScheduledExecutorService clock = Executors.newScheduledThreadPool(1);

		clock.scheduleAtFixedRate(() -> last.get().trySuccess(""), 5, 5, TimeUnit.MILLISECONDS);
		return work -> {
			Promise<Object> promise = Promise.apply();

			promise.future().foreach(result -> {
				work.run();
				return result;
			}, ExecutionContext.global());
			last.getAndSet(promise).trySuccess("");
		};
	}

	private static Executor reactor() {
		Sinks.Many<Message> sink = Sinks.many().multicast().onBackpressureBuffer(1024, false);

		sink.asFlux().publishOn(Schedulers.newParallel("way", THREADS)).subscribe(message -> message.work().run());
		return work -> {
			synchronized (sink) {
				sink.tryEmitNext(new Message(work)).orThrow();
			}
		};
	}

	private static Executor reactorCold() {
		reactor.core.scheduler.Scheduler scheduler = Schedulers.newParallel("way", THREADS);

		return work -> Flux.just(work, () -> {
		}).publishOn(scheduler).subscribe(Runnable::run);
	}

	private static Executor rxjavaCold() {
		io.reactivex.rxjava3.core.Scheduler scheduler = io.reactivex.rxjava3.schedulers.Schedulers.from(pool());

		return work -> Single.just(work).observeOn(scheduler).subscribe(Runnable::run);
	}

	private static Executor rxjava() {
		FlowableProcessor<Message> source = PublishProcessor.<Message>create().toSerialized();

		source.onBackpressureBuffer().observeOn(io.reactivex.rxjava3.schedulers.Schedulers.from(pool()))
			.subscribe(message -> message.work().run());
		return work -> source.onNext(new Message(work));
	}

	private static Executor rxjava2Cold() {
		io.reactivex.Scheduler scheduler = io.reactivex.schedulers.Schedulers.from(pool());

		return work -> io.reactivex.Single.just(work).observeOn(scheduler).subscribe(Runnable::run);
	}

	private static Executor rxjava2() {
		io.reactivex.processors.FlowableProcessor<Message> source =
			io.reactivex.processors.PublishProcessor.<Message>create().toSerialized();

		source.onBackpressureBuffer().observeOn(io.reactivex.schedulers.Schedulers.from(pool()))
			.subscribe(message -> message.work().run());
		return work -> source.onNext(new Message(work));
	}

	private static Executor mutinyCold() {
		Executor pool = pool();

		return work -> Multi.createFrom().item(work).emitOn(pool).subscribe().with(Runnable::run);
	}

	private static Executor mutiny() {
		UnicastProcessor<Message> source = UnicastProcessor.create();

		source.emitOn(pool()).subscribe().with(message -> message.work().run());
		return work -> {
			synchronized (source) {
				source.onNext(new Message(work));
			}
		};
	}

	private static Executor publisher() {
		SubmissionPublisher<Message> source = new SubmissionPublisher<>(pool(), 1024);

		source.consume(message -> message.work().run());
		return work -> source.submit(new Message(work));
	}

	private static final class Event {
		private Runnable work;
	}

	private static Executor disruptor() {
		Disruptor<Event> disruptor = new Disruptor<>(Event::new, 1024, DaemonThreadFactory.INSTANCE);

		disruptor.handleEventsWith((event, sequence, isLast) -> event.work.run());
		disruptor.start();
		return work -> disruptor.publishEvent((event, sequence) -> event.work = work);
	}

	private static Executor jetty() throws Exception {
		QueuedThreadPool pool = new QueuedThreadPool(8);

		pool.start();
		return pool;
	}

	private static Executor vertx() {
		Context context = Vertx.vertx().getOrCreateContext();

		return work -> context.executeBlocking(() -> {
			work.run();
			return null;
		}, true);
	}
}
