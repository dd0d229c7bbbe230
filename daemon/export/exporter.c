/* The exporter's thread; see exporter.h. */
#include "export/exporter.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "base/thread.h"
#include "export/endpoint.h"
#include "export/otlp.h"
#include "export/queue.h"
#include "export/response.h"
#include "metrics/metrics.h"

/* The queue's second bound, for spans that carry very long URLs. */
#define QUEUE_BYTES_MAX ((size_t)32 << 20)
/* A batch is not made larger than this: collectors refuse bodies above 20 MiB by default. */
#define BATCH_BYTES_MAX ((size_t)4 << 20)

struct exporter {
	/* constant while the thread runs */
	struct endpoint endpoint;
	uint32_t batch_spans;
	uint64_t batch_delay_ns;
	struct queue *queue;
	pthread_t thread;
	bool is_running; /* the thread, as seen by the event loop's */
	bool is_curl_initialized;

	/* set by exporter_stop: the CLOCK_MONOTONIC time at which to give up; 0: not stopping */
	_Atomic uint64_t stop_ns;

	/* the thread's own */
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	struct otlp_encoder encoder;
	struct span **batch;
	uint64_t due_ns; /* when the oldest span queued has waited long enough; 0: none is queued */
	size_t n_in_flight; /* spans of the request in flight; 0: none is */
	char error[CURL_ERROR_SIZE];
	char *answer; /* RESPONSE_BYTES_MAX of room */
	size_t n_answer;
	uint64_t n_unsent;
};

/* libcurl hands over a piece of the answer's body; taking less than all of it ends the transfer. */
static size_t answer_append(char *data, size_t size, size_t n, void *userdata)
{
	struct exporter *e = userdata;
	size_t room = RESPONSE_BYTES_MAX - e->n_answer, take = MIN(size * n, room);

	memcpy(e->answer + e->n_answer, data, take);
	e->n_answer += take;
	return take;
}

static void batch_refused(const struct exporter *e, long http_status,
			  const struct response *response, size_t n_refused)
{
	metrics_add(METRIC_SPANS_REFUSED, n_refused);
	log_ratelimited(LOG_LEVEL_WARNING,
			"Collector '%s' refused %zu spans with status %ld%s%s, dropping them",
			e->endpoint.display, n_refused, http_status, *response->message ? ": " : "",
			response->message);
}

static void batch_unreachable(const struct exporter *e, CURLcode result)
{
	metrics_add(METRIC_SPANS_UNREACHABLE, e->n_in_flight);
	log_ratelimited(LOG_LEVEL_WARNING, "Cannot send %zu spans to '%s', dropping them: %s",
			e->n_in_flight, e->endpoint.display,
			*e->error ? e->error : curl_easy_strerror(result));
}

/* True: the connection may be used again. */
static bool batch_finish(struct exporter *e, CURLcode result)
{
	struct str answer = {.p = e->answer, .n = e->n_answer};
	struct response response;
	long http_status = 0;

	curl_easy_getinfo(e->easy, CURLINFO_RESPONSE_CODE, &http_status);
	/* Cut off by answer_append: too long to be OTLP, but an answer. */
	if (result != CURLE_OK && result != CURLE_WRITE_ERROR) {
		batch_unreachable(e, result);
		return false;
	}
	response_judge(http_status, answer, e->n_in_flight, &response);
	if (result == CURLE_WRITE_ERROR)
		response.verdict = RESPONSE_REFUSED;
	if (response.verdict == RESPONSE_REFUSED) {
		batch_refused(e, http_status, &response, e->n_in_flight);
		return false;
	}

	metrics_increment(METRIC_BATCHES_SENT);
	metrics_add(METRIC_SPANS_EXPORTED, e->n_in_flight - response.rejected_spans);
	if (response.rejected_spans)
		batch_refused(e, http_status, &response, response.rejected_spans);
	else if (*response.message)
		log_ratelimited(LOG_LEVEL_WARNING, "Collector '%s' warns: %s", e->endpoint.display,
				response.message);
	return true;
}

static void request_end(struct exporter *e)
{
	curl_multi_remove_handle(e->multi, e->easy);
	e->n_in_flight = 0;
}

/* Moves the transfer on and takes its result when there is one. */
static void request_perform(struct exporter *e)
{
	int running, left;
	CURLMcode code = curl_multi_perform(e->multi, &running);
	CURLMsg *message;

	if (code != CURLM_OK) {
		batch_unreachable(e, CURLE_FAILED_INIT);
		request_end(e);
		return;
	}
	while ((message = curl_multi_info_read(e->multi, &left))) {
		bool is_reusable;

		if (message->msg != CURLMSG_DONE)
			continue;
		is_reusable = batch_finish(e, message->data.result);
		request_end(e);
		/* A balancer may lead a new connection to a healthier collector. */
		curl_easy_setopt(e->easy, CURLOPT_FRESH_CONNECT, is_reusable ? 0L : 1L);
	}
}

/* Takes spans off the queue; returns how many. */
static size_t batch_take(struct exporter *e)
{
	size_t n = 0, bytes = 0;
	struct span *span;

	while (n < e->batch_spans && bytes < BATCH_BYTES_MAX && (span = queue_pop(e->queue))) {
		e->batch[n++] = span;
		bytes += span->size_bytes;
	}
	return n;
}

static void request_start(struct exporter *e)
{
	size_t n = batch_take(e);
	struct str body = STR_NONE;
	int r;

	/* What comes from now on has waited no longer than since now. */
	e->due_ns = now_ns(CLOCK_MONOTONIC) + e->batch_delay_ns;
	r = otlp_encode(&e->encoder, e->batch, n, &body);
	for (size_t i = 0; i < n; i++)
		span_unref(e->batch[i]);
	if (r < 0) {
		metrics_add(METRIC_SPANS_NO_MEMORY, n);
		return;
	}

	e->n_in_flight = n;
	e->n_answer = 0;
	e->error[0] = '\0';
	curl_easy_setopt(e->easy, CURLOPT_POSTFIELDS, body.p);
	curl_easy_setopt(e->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.n);
	if (curl_multi_add_handle(e->multi, e->easy) != CURLM_OK) {
		batch_unreachable(e, CURLE_FAILED_INIT);
		e->n_in_flight = 0;
		return;
	}
	request_perform(e);
}

/* Milliseconds until 'at_ns', rounded up, at most a minute. */
static int wait_ms(uint64_t at_ns)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (at_ns <= now)
		return 0;
	return (int)MIN((at_ns - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC, 60000);
}

/* With a request in flight only its end is of interest; exporter_stop() ends the sleep too. */
static void request_wait(struct exporter *e)
{
	uint64_t stop_ns = atomic_load(&e->stop_ns);

	curl_multi_poll(e->multi, NULL, 0, wait_ms(stop_ns ? stop_ns : UINT64_MAX), NULL);
	request_perform(e);
}

static bool batch_is_due(struct exporter *e)
{
	size_t n = queue_size(e->queue);
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (!n) {
		e->due_ns = 0;
		return false;
	}
	if (!e->due_ns)
		e->due_ns = now + e->batch_delay_ns;
	return n >= e->batch_spans || queue_is_half_full(e->queue) || now >= e->due_ns ||
	       atomic_load(&e->stop_ns);
}

/* Sleeps until the first span, or until a batch of them, or until the oldest is due. */
static void batch_wait(struct exporter *e)
{
	struct curl_waitfd event = {.fd = queue_fd(e->queue), .events = CURL_WAIT_POLLIN};

	if (queue_arm(e->queue, e->due_ns ? e->batch_spans : 1))
		curl_multi_poll(e->multi, &event, 1, wait_ms(e->due_ns ? e->due_ns : UINT64_MAX),
				NULL);
	queue_disarm(e->queue);
}

/* What is left when the time given to exporter_stop() is over. */
static void unsent_count(struct exporter *e)
{
	struct span *span;

	e->n_unsent = e->n_in_flight;
	if (e->n_in_flight)
		request_end(e);
	for (; (span = queue_pop(e->queue)); e->n_unsent++)
		span_unref(span);
	metrics_add(METRIC_SPANS_SHUTDOWN, e->n_unsent);
}

static void *exporter_main(void *userdata)
{
	struct exporter *e = userdata;

	for (;;) {
		/* Read before the queue is: nothing is pushed after it is set. */
		uint64_t stop_ns = atomic_load(&e->stop_ns);

		if (stop_ns && now_ns(CLOCK_MONOTONIC) >= stop_ns)
			break;
		if (e->n_in_flight)
			request_wait(e);
		else if (batch_is_due(e))
			request_start(e);
		else if (stop_ns)
			break;
		else
			batch_wait(e);
	}
	unsent_count(e);
	return NULL;
}

static int headers_add(struct exporter *e, const char *line)
{
	struct curl_slist *headers = curl_slist_append(e->headers, line);

	if (!headers)
		return -ENOMEM;
	e->headers = headers;
	return 0;
}

static int easy_setup(struct exporter *e, uint32_t timeout_ms)
{
	CURL *c = e->easy;
	int failed = 0;

	failed |= headers_add(e, "Content-Type: application/x-protobuf");
	/* Without this libcurl waits a second for "100 Continue" before each large body. */
	failed |= headers_add(e, "Expect:");
	failed |= curl_easy_setopt(c, CURLOPT_URL, e->endpoint.url);
	failed |= curl_easy_setopt(c, CURLOPT_HTTPHEADER, e->headers);
	failed |= curl_easy_setopt(c, CURLOPT_USERAGENT, "tsunagi/" TSUNAGI_VERSION);
	failed |= curl_easy_setopt(c, CURLOPT_POST, 1L);
	failed |= curl_easy_setopt(c, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
	failed |= curl_easy_setopt(c, CURLOPT_PROXY, "");
	failed |= curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	failed |= curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	failed |= curl_easy_setopt(c, CURLOPT_ERRORBUFFER, e->error);
	failed |= curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, answer_append);
	failed |= curl_easy_setopt(c, CURLOPT_WRITEDATA, e);
#if LIBCURL_VERSION_NUM >= 0x075700
	/*
	 * Else ending a transfer waits for the resolver's thread, which may take far longer than
	 * we may.
	 */
	failed |= curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);
#endif
	return failed ? -ENOMEM : 0;
}

static int transfer_new(struct exporter *e, uint32_t timeout_ms)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	e->is_curl_initialized = true;
	e->multi = curl_multi_init();
	e->easy = curl_easy_init();
	e->answer = malloc(RESPONSE_BYTES_MAX);
	e->batch = calloc(e->batch_spans, sizeof(*e->batch));
	if (!e->multi || !e->easy || !e->answer || !e->batch)
		return -ENOMEM;
	if (curl_multi_setopt(e->multi, CURLMOPT_MAXCONNECTS, 1L) != CURLM_OK)
		return -ENOMEM;
	return easy_setup(e, timeout_ms);
}

int exporter_new(const struct exporter_options *options, struct exporter **ret)
{
	_cleanup_(exporter_freep) struct exporter *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	e->batch_spans = MAX(options->batch_spans, 1u);
	e->batch_delay_ns = options->batch_delay_ms * NSEC_PER_MSEC;

	r = endpoint_parse(options->endpoint, &e->endpoint);
	if (r)
		return r == ENDPOINT_INVALID ? EXPORTER_ENDPOINT_INVALID : r;
	r = queue_new(options->queue_spans, QUEUE_BYTES_MAX, &e->queue);
	if (r < 0)
		return r;
	r = transfer_new(e, options->timeout_ms);
	if (r < 0)
		return r;
	r = thread_start(&e->thread, "tsunagi-export", exporter_main, e);
	if (r < 0)
		return r;

	e->is_running = true;
	*ret = TAKE_PTR(e);
	return 0;
}

bool exporter_push(struct exporter *e, struct span *span)
{
	if (e->is_running && queue_push(e->queue, span))
		return true;
	metrics_increment(e->is_running ? METRIC_QUEUE_FULL : METRIC_SPANS_SHUTDOWN);
	span_unref(span);
	return false;
}

int exporter_stop(struct exporter *e, uint32_t timeout_ms)
{
	if (!e->is_running)
		return 0;
	atomic_store(&e->stop_ns, now_ns(CLOCK_MONOTONIC) + timeout_ms * NSEC_PER_MSEC);
	curl_multi_wakeup(e->multi);
	pthread_join(e->thread, NULL);
	e->is_running = false;
	return e->n_unsent ? EXPORTER_UNSENT : 0;
}

void exporter_free(struct exporter *e)
{
	if (!e)
		return;
	exporter_stop(e, 0);
	curl_easy_cleanup(e->easy);
	curl_multi_cleanup(e->multi);
	curl_slist_free_all(e->headers);
	if (e->is_curl_initialized)
		curl_global_cleanup();
	endpoint_done(&e->endpoint);
	otlp_encoder_done(&e->encoder);
	queue_free(e->queue);
	free(e->batch);
	free(e->answer);
	free(e);
}
