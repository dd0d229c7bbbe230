/*
 * What coroutines work for, judged where they run, for requests that are all open at once: a request is a number
 * mounted as a library's hook would. Prints a line a case: name, right, wrong, absent. Workers, channels and flows live
 * before the agent comes, and others after; both serve every request.
 *
 * CoroutinesKt REQUESTS [RECEIVER-TO-LEAVE-OUT...]
 */
import java.lang.invoke.MethodHandle
import java.lang.invoke.MethodHandles
import java.lang.invoke.MethodType
import java.util.concurrent.Executors
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.atomic.AtomicLong
import kotlin.concurrent.thread
import kotlin.coroutines.resume
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.flow.MutableSharedFlow
import kotlinx.coroutines.flow.channelFlow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.flowOn
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.selects.select
import kotlinx.coroutines.supervisorScope
import kotlinx.coroutines.suspendCancellableCoroutine
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeout
import kotlinx.coroutines.yield

private lateinit var current: MethodHandle
private lateinit var mount: MethodHandle
private lateinit var clear: MethodHandle
private val requests = AtomicLong(1L shl 40)
private val right = AtomicInteger()
private val wrong = AtomicInteger()
private val absent = AtomicInteger()

private fun now(): Long = current.invokeWithArguments() as Long

private fun judge(request: Long) {
	val now = now()

	(if (now == request) right else if (now == 0L) absent else wrong).incrementAndGet()
}

private fun awaitAgent() {
	var context: Class<*>? = null

	while (context == null)
		try {
			context = Class.forName("tsunagi.agent.Context", false, null)
		} catch (notYet: ClassNotFoundException) {
			Thread.sleep(5)
		}
	System.`in`.read() // it is ready a moment later, and the runner knows when
	val lookup = MethodHandles.publicLookup()
	val nothing = Void.TYPE

	current = lookup.findStatic(context, "current", MethodType.methodType(Long::class.javaPrimitiveType))
	mount = lookup.findStatic(context, "mount", MethodType.methodType(nothing, Long::class.javaPrimitiveType))
	clear = lookup.findStatic(context, "clear", MethodType.methodType(nothing))
}

/** Eight threads, each a request at a time, which starts its coroutine as a server does. */
private fun run(name: String, n: Int, handle: suspend CoroutineScope.(request: Long) -> Unit) {
	listOf(right, wrong, absent).forEach { it.set(0) }
	List(8) {
		thread {
			repeat(n / 8) {
				val request = requests.incrementAndGet()

				mount.invokeWithArguments(request)
				val job = CoroutineScope(Dispatchers.Default).launch {
					judge(request)
					handle(request)
					judge(request)
				}
				judge(request)
				clear.invokeWithArguments()
				runBlocking { job.join() }
				if (now() != 0L)
					wrong.incrementAndGet()
			}
		}
	}.forEach { it.join() }
	println("$name ${right.get()} ${wrong.get()} ${absent.get()}")
}

/** What is sent to a worker that serves everybody; 0: by nobody's request. */
private class Message(val request: Long) {
	val done = CompletableDeferred<Unit>()

	/* Also after the worker waited for something. */
	suspend fun serve() {
		judge(request)
		delay(1)
		judge(request)
		done.complete(Unit)
	}
}

private typealias Receiver = suspend (channel: Channel<Message>) -> Unit

private val receivers: Map<String, Receiver> = mapOf(
	"iterator" to { channel -> for (message in channel) message.serve() },
	"receive" to { channel -> while (true) channel.receive().serve() },
	"receive-catching" to { channel -> while (true) channel.receiveCatching().getOrThrow().serve() },
	"try-receive" to { channel -> while (true) channel.tryReceive().getOrNull()?.serve() ?: delay(1) },
	"select" to { channel ->
		val never = Channel<Message>()

		while (true)
			select<Message> {
				never.onReceive { it }
				channel.onReceive { it }
			}.serve()
	},
)

private val scope = CoroutineScope(Dispatchers.Default)

private class Shared(private val receive: Receiver, capacity: Int) {
	val channel = Channel<Message>(capacity)
	private val worker by lazy { scope.launch { receive(channel) } }

	fun start() = apply { worker.start() }

	suspend fun serve(request: Long) = Message(request).let {
		start()
		channel.send(it)
		it.done.await()
	}
}

/** Each kind of worker, one that is there already and one that the first request starts; and who has no request. */
private fun shared(n: Int, old: Map<String, Shared>) {
	val nobody = CoroutineScope(Dispatchers.IO).launch {
		while (true) {
			old.values.forEach { it.serve(0) }
			delay(1)
		}
	}

	for ((name, worker) in old)
		run("$name-old", n) { worker.serve(it) }
	for ((name, receive) in receivers.filterKeys { it in old }) {
		val buffered = Shared(receive, Channel.UNLIMITED)
		val rendezvous = Shared(receive, Channel.RENDEZVOUS)

		run("$name-new", n) {
			buffered.serve(it)
			rendezvous.serve(it)
		}
	}
	nobody.cancel()
}

private fun flows(n: Int) {
	run("flow", n) { request ->
		flow { repeat(3) { judge(request); emit(it) } }.map { judge(request); it }.flowOn(Dispatchers.IO)
			.collect { judge(request) }
	}
	run("channel-flow", n) { request ->
		async { channelFlow { repeat(3) { delay(1); send(it) } }.collect { judge(request) } }.await()
	}
	run("fan-out", n) { request ->
		val numbers = Channel<Int>()

		repeat(2) { launch { for (number in numbers) { judge(request); delay(1); judge(request) } } }
		repeat(4) { numbers.send(it) }
		numbers.close()
	}

	val flow = MutableSharedFlow<Message>(extraBufferCapacity = 64)
	val worker by lazy { scope.launch { flow.collect { it.serve() } } }
	run("shared-flow", n) { request ->
		worker.start()
		while (flow.subscriptionCount.value == 0)
			delay(1)
		Message(request).let { flow.emit(it); it.done.await() }
	}
}

/** Somebody who works for no request, and is set going by requests. */
private class Stranger {
	private val mutex = Mutex()
	private var waited = CompletableDeferred<Unit>()

	init {
		scope.launch {
			while (true) {
				mutex.withLock { delay(1) }
				waited.await()
				waited = CompletableDeferred()
				if (runCatching { now() }.getOrDefault(0) != 0L)
					wrong.incrementAndGet()
			}
		}
	}

	suspend fun meet(request: Long) {
		mutex.withLock { judge(request) }
		waited.complete(Unit)
	}
}

fun main(args: Array<String>) {
	val n = args[0].toInt()
	val used = receivers - args.drop(1)
	val single = Executors.newSingleThreadExecutor { Thread(it).apply { isDaemon = true } }.asCoroutineDispatcher()
	val old = used.mapValues { (_, receive) -> Shared(receive, Channel.UNLIMITED).start() }
	val stranger = Stranger()
	val foreign = Executors.newFixedThreadPool(2) { Thread(it).apply { isDaemon = true } }

	println("READY")
	awaitAgent()
	run("launch", n) { request -> launch { judge(request); delay(1); judge(request) } }
	run("lazy", n) { request -> launch(start = CoroutineStart.LAZY) { judge(request) }.join() }
	run("undispatched", n) { request ->
		launch(start = CoroutineStart.UNDISPATCHED) { judge(request); delay(1); judge(request) }
	}
	run("async", n) { request ->
		List(2) { async(Dispatchers.IO) { judge(request); yield(); judge(request) } }.awaitAll()
	}
	run("with-context", n) { request ->
		for (dispatcher in listOf(Dispatchers.IO, single, Dispatchers.Unconfined, Dispatchers.Default))
			withContext(dispatcher) { judge(request); delay(1); judge(request) }
	}
	run("scopes", n) { request ->
		coroutineScope { launch(single) { judge(request) } }
		supervisorScope { launch { delay(1); judge(request) } }
		withTimeout(10_000) { delay(1); judge(request) }
	}
	run("run-blocking", n) { request ->
		withContext(Dispatchers.IO) {
			runBlocking { judge(request); launch { delay(1); judge(request) }.join(); judge(request) }
		}
	}
	run("resumed-elsewhere", n) { request ->
		suspendCancellableCoroutine { waiting ->
			foreign.execute {
				mount.invokeWithArguments(1L)
				waiting.resume(Unit)
				clear.invokeWithArguments()
			}
		}
		judge(request)
	}
	run("stranger", n) { stranger.meet(it) }
	flows(n)
	shared(n, old)
	System.exit(0)
}
