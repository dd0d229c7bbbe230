/*
 * A Ktor service on Netty that calls a backend once for each request, from coroutines, by OkHttp or CIO. Keeps
 * the same record of what it did as the other services (see ../../../../java/RequestLog.java).
 *
 * java -jar ktor.jar PORT BACK_PORT LOG okhttp|cio
 */
import io.ktor.client.HttpClient
import io.ktor.client.engine.cio.CIO
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.request.get
import io.ktor.client.statement.bodyAsText
import io.ktor.http.HttpStatusCode
import io.ktor.server.engine.embeddedServer
import io.ktor.server.netty.Netty
import io.ktor.server.request.path
import io.ktor.server.response.respondText
import io.ktor.server.routing.get
import io.ktor.server.routing.routing
import java.io.File
import java.time.Instant
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.delay
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

private fun client(engine: String) = when (engine) {
	"okhttp" -> HttpClient(OkHttp) {
		engine { config { dispatcher(okhttp3.Dispatcher().apply { maxRequestsPerHost = 256; maxRequests = 256 }) } }
	}
	"cio" -> HttpClient(CIO)
	else -> error("no client engine '$engine'")
}

fun main(args: Array<String>) {
	val (port, backPort, logFile, engine) = args
	val log = RequestLog(logFile)
	val http = client(engine)

	suspend fun call(path: String): Int {
		val start = now()
		val response = http.get("http://127.0.0.1:$backPort$path")
		response.bodyAsText()
		log.write("client", path, response.status.value, start, now())
		return response.status.value
	}

	val server = embeddedServer(Netty, port = port.toInt(), host = "127.0.0.1") {
		routing {
			get("/x/{id}") {
				val start = now()
				val path = call.request.path()
				delay(1) // so that the call leaves from another thread than the request came in on
				val back = withContext(Dispatchers.IO) { call("/back/" + path.substringAfterLast('/')) }
				val status = if (back < 500) 200 else 502
				log.write("server", path, status, start, now())
				call.respondText("front $path\n", status = HttpStatusCode.fromValue(status))
			}
		}
	}
	server.start(wait = false)
	println("ready")
	Thread.currentThread().join()
}
