/*
 * A Ktor service that calls a backend from coroutines, once for each request or twice (/parallel). Keeps the same
 * record of what it did as the other services (see ../../../../java/RequestLog.java).
 *
 * java -jar ktor.jar PORT BACK_PORT LOG netty-nio|netty-epoll|cio CLIENT
 *
 * CLIENT is one of Clients.kt. Routes, each with an id:
 *   /direct    the handler calls
 *   /hop, /x   it is in another thread before it calls
 *   /parallel  two coroutines call at the same time
 *   /shared    one coroutine, started by the first request, calls for everybody
 *   /vt        a virtual thread calls
 */
import io.ktor.http.HttpStatusCode
import io.ktor.server.application.call
import io.ktor.server.cio.CIO
import io.ktor.server.engine.embeddedServer
import io.ktor.server.netty.Netty
import io.ktor.server.request.path
import io.ktor.server.response.respondText
import io.ktor.server.routing.Route
import io.ktor.server.routing.get
import io.ktor.server.routing.routing
import io.netty.channel.epoll.Epoll
import java.io.File
import java.time.Instant
import java.util.concurrent.ExecutorService
import java.util.concurrent.Executors
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.asCoroutineDispatcher
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext

private fun now(): Long = Instant.now().let { it.epochSecond * 1_000_000_000 + it.nano }

private class RequestLog(file: String) {
	private val out = File(file).printWriter()

	init {
		Runtime.getRuntime().addShutdownHook(Thread { synchronized(this) { out.close() } })
	}

	fun write(role: String, path: String, status: Int, start: Long, end: Long) {
		val id = path.substringAfterLast('/')
		synchronized(this) {
			out.println(
				"""{"id":"$id","role":"$role","path":"$path","status":$status,"start":$start,"end":$end}""",
			)
		}
	}
}

/** Calls the backend with an id, and writes it down. */
private typealias Back = suspend (id: String) -> Int

private class Job(val id: String) {
	val reply = CompletableDeferred<Int>()
}

private class SharedWorker(private val back: Back) {
	private val jobs = Channel<Job>(Channel.UNLIMITED)
	private val worker by lazy {
		CoroutineScope(Dispatchers.IO).launch {
			for (job in jobs)
				try {
					job.reply.complete(back(job.id))
				} catch (error: Throwable) {
					job.reply.completeExceptionally(error)
				}
		}
	}

	suspend fun call(id: String): Int {
		val job = Job(id)

		worker.start()
		jobs.send(job)
		return job.reply.await()
	}
}

/* Since JDK 21. */
private val virtual by lazy {
	val executor = Executors::class.java.getMethod("newVirtualThreadPerTaskExecutor").invoke(null)

	(executor as ExecutorService).asCoroutineDispatcher()
}

private fun Route.answer(name: String, log: RequestLog, handle: suspend (id: String) -> Int) {
	get("/$name/{id}") {
		val start = now()
		val path = call.request.path()
		val back = handle(path.substringAfterLast('/'))
		val status = if (back < 500) 200 else 502

		log.write("server", path, status, start, now())
		call.respondText("front $path\n", status = HttpStatusCode.fromValue(status))
	}
}

private fun Route.routes(log: RequestLog, back: Back) {
	val shared = SharedWorker(back)
	val hop: Back = { id ->
		delay(1) // so that the call leaves from another thread than the request came in on
		withContext(Dispatchers.IO) { back(id) }
	}

	answer("x", log, hop)
	answer("hop", log, hop)
	answer("direct", log, back)
	answer("parallel", log) { id ->
		coroutineScope { listOf("a", "b").map { async { back("$id-$it") } }.awaitAll().max() }
	}
	answer("shared", log) { id -> shared.call(id) }
	answer("vt", log) { id -> withContext(virtual) { back(id) } }
}

fun main(args: Array<String>) {
	val (port, backPort, logFile, engine, clientName) = args
	val log = RequestLog(logFile)
	val client = client(clientName)
	val back: Back = { id ->
		val start = now()
		val path = "/back/$id"

		client("http://127.0.0.1:$backPort$path").also { log.write("client", path, it, start, now()) }
	}

	when (engine) {
		"netty-nio" -> System.setProperty("io.netty.transport.noNative", "true")
		"netty-epoll" -> Epoll.ensureAvailability()
		"cio" -> {}
		else -> error("no engine '$engine'")
	}
	embeddedServer(if (engine == "cio") CIO else Netty, port = port.toInt(), host = "127.0.0.1") {
		routing { routes(log, back) }
	}.start(wait = false)
	println("ready")
	Thread.currentThread().join()
}
