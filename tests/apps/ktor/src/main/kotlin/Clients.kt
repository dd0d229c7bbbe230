/*
 * The ways in which the service (Front.kt) calls its backend: Ktor's client on each engine, and the
 * clients of the JDK and of OkHttp as they are. Each answers with the response's status.
 */
import io.ktor.client.HttpClient
import io.ktor.client.engine.HttpClientEngine
import io.ktor.client.engine.apache5.Apache5
import io.ktor.client.engine.cio.CIO
import io.ktor.client.engine.java.Java
import io.ktor.client.engine.okhttp.OkHttp
import io.ktor.client.request.get
import io.ktor.client.statement.bodyAsText
import java.io.IOException
import java.net.HttpURLConnection
import java.net.URI
import java.net.http.HttpRequest
import java.net.http.HttpResponse.BodyHandlers
import kotlin.coroutines.resume
import kotlin.coroutines.resumeWithException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.suspendCancellableCoroutine
import kotlinx.coroutines.withContext
import okhttp3.Call
import okhttp3.Callback
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.Response

typealias Client = suspend (url: String) -> Int

private fun ktor(engine: HttpClientEngine): Client {
	val http = HttpClient(engine)

	return { url -> http.get(url).also { it.bodyAsText() }.status.value }
}

/* Beyond five at a time OkHttp's calls wait for one another. */
private fun wide() = okhttp3.Dispatcher().apply { maxRequestsPerHost = 256; maxRequests = 256 }

private fun Response.read() = use { it.body?.string(); it.code }

private fun okhttp(isQueued: Boolean): Client {
	val http = OkHttpClient()
	val call = { url: String -> http.newCall(Request.Builder().url(url).build()) }

	if (!isQueued)
		return { url -> withContext(Dispatchers.IO) { call(url).execute().read() } }
	return { url ->
		suspendCancellableCoroutine { waiting ->
			call(url).enqueue(object : Callback {
				override fun onFailure(call: Call, e: IOException) = waiting.resumeWithException(e)

				override fun onResponse(call: Call, response: Response) = waiting.resume(response.read())
			})
		}
	}
}

private fun jdk(isAsync: Boolean): Client {
	val http = java.net.http.HttpClient.newBuilder().version(java.net.http.HttpClient.Version.HTTP_1_1).build()
	val request = { url: String -> HttpRequest.newBuilder(URI(url)).build() }

	if (!isAsync)
		return { url ->
			withContext(Dispatchers.IO) { http.send(request(url), BodyHandlers.ofString()).statusCode() }
		}
	return { url ->
		suspendCancellableCoroutine { waiting ->
			http.sendAsync(request(url), BodyHandlers.ofString()).whenComplete { response, error ->
				if (error != null)
					waiting.resumeWithException(error)
				else
					waiting.resume(response.statusCode())
			}
		}
	}
}

private fun urlConnection(): Client = { url ->
	withContext(Dispatchers.IO) {
		val connection = URI(url).toURL().openConnection() as HttpURLConnection

		val status = connection.responseCode

		(if (status < 400) connection.inputStream else connection.errorStream)?.use { it.readAllBytes() }
		status
	}
}

fun client(name: String): Client = when (name) {
	"cio" -> ktor(CIO.create())
	"okhttp" -> ktor(OkHttp.create { config { dispatcher(wide()) } })
	"java" -> ktor(Java.create())
	"apache5" -> ktor(Apache5.create())
	"okhttp-execute" -> okhttp(false)
	"okhttp-enqueue" -> okhttp(true)
	"jdk-send" -> jdk(false)
	"jdk-send-async" -> jdk(true)
	"url-connection" -> urlConnection()
	else -> error("no client '$name'")
}
