/*
 * Benchmark of the path from the ring to the wire on one core, without a kernel or a collector:
 * records as the kernel side writes them are made in memory, then decoded, stitched and encoded in
 * batches. It promises that each request in became one span out, else it fails.
 *
 * usage: bench_offline [--profile]
 * Prints spans a second of processor time, the median of the rounds and their spread; with
 * --profile also what each stage takes of it. Build it with optimisation and without sanitizers.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "abi.h"
#include "event/reader.h"
#include "export/otlp.h"
#include "stitch/stitch.h"

#define ROUNDS 5

/* Even connections are servers', odd ones clients'; BLOCK of them are busy at a time. */
#define CONNECTIONS 512
#define EXCHANGES   64
#define BLOCK       16
#define PROCESSES   4
#define SPANS       (CONNECTIONS * EXCHANGES)

#define REQUEST_BYTES  300
#define RESPONSE_BYTES 200
#define STRIDE(bytes)  (((bytes) + 7) & ~(size_t)7) /* records start at multiples of 8 */
#define EXCHANGE_BYTES                                        \
	(STRIDE(sizeof(struct record_head) + REQUEST_BYTES) + \
	 STRIDE(sizeof(struct record_head) + RESPONSE_BYTES) + sizeof(struct record_end))

#define BATCH_SPANS   512
#define BATCH_RECORDS (3 * BATCH_SPANS)

#define START_NS      (1000 * NSEC_PER_SEC)
#define STEP_NS       (20 * NSEC_PER_USEC)
#define WALL_MINUS_NS (1767614401LL * 1000000000LL)

enum stage { STAGE_DECODE, STAGE_STITCH, STAGE_ENCODE, STAGE_RELEASE, _STAGE_MAX };

static const char *const stage_names[] = {
	[STAGE_DECODE] = "decode",
	[STAGE_STITCH] = "stitch",
	[STAGE_ENCODE] = "encode",
	[STAGE_RELEASE] = "release",
};
static_assert(ARRAY_SIZE(stage_names) == _STAGE_MAX, "each stage has a name");

/* The records, one after the other. */
struct recording {
	char *bytes;
	size_t size;
	uint64_t now_ns;
};

struct bench {
	struct recording recording;
	struct resource *resources[PROCESSES];
	struct stitch *stitch;
	struct otlp_encoder encoder;
	struct event events[BATCH_RECORDS];
	struct span *batch[BATCH_SPANS];
	size_t n_batch;
	size_t n_spans, n_body_bytes;      /* of a round */
	uint64_t stage_ns[_STAGE_MAX];     /* of a profiled round */
	double rates[ROUNDS];              /* spans a second */
	double stages[_STAGE_MAX][ROUNDS]; /* nanoseconds a span */
};

static bool is_client(uint32_t connection)
{
	return connection % 2;
}

/* --- making the recording */

static struct record_header header_of(const struct recording *r, uint16_t type, uint32_t connection,
				      uint32_t exchange)
{
	uint32_t process = connection / 2 % PROCESSES;

	return (struct record_header){
		.type = type,
		.role = is_client(connection) ? ROLE_CLIENT : ROLE_SERVER,
		.time_ns = r->now_ns,
		.connection = connection + 1,
		.pid = 1000 + process,
		.tid = 2000 + connection,
		.proc_id = process + 1,
		.exchange = exchange,
	};
}

/* Fills the head in 'text' up to 'bytes' with one more header and ends it; a terminator follows. */
static void head_fill(char *text, size_t bytes)
{
	size_t n = strlen(text), name = strlen("Cookie: "), end = strlen("\r\n\r\n");

	assert(n + name + end < bytes);
	memcpy(text + n, "Cookie: ", name);
	memset(text + n + name, 'c', bytes - n - name - end);
	memcpy(text + bytes - end, "\r\n\r\n", end + 1);
}

static void request_text(char *text, uint32_t connection, uint32_t exchange,
			 const struct decision *d)
{
	char trace_id[TRACE_ID_HEX + 1], span_id[SPAN_ID_HEX + 1], parent[100] = "";

	/* A client's head is copied before the kernel side adds anything to it. */
	if (!is_client(connection)) {
		ids_to_hex(d->ids.trace_id, sizeof(d->ids.trace_id), trace_id);
		ids_to_hex(d->parent_span_id, sizeof(d->parent_span_id), span_id);
		snprintf(parent, sizeof(parent), "traceparent: 00-%s-%s-01\r\n", trace_id, span_id);
	}
	snprintf(text, REQUEST_BYTES + 1,
		 "GET /orders/%u/items?page=%u HTTP/1.1\r\n"
		 "Host: orders.shop:8080\r\n"
		 "User-Agent: Java-http-client/17.0.9\r\n"
		 "Accept: application/json\r\n"
		 "Accept-Encoding: gzip\r\n"
		 "Connection: keep-alive\r\n"
		 "%s",
		 connection, exchange, parent);
	head_fill(text, REQUEST_BYTES);
}

static void response_text(char *text, uint32_t exchange)
{
	snprintf(text, RESPONSE_BYTES + 1,
		 "HTTP/1.1 %s\r\n"
		 "Content-Type: application/json\r\n"
		 "Content-Length: 1234\r\n"
		 "Date: Mon, 05 Jan 2026 12:00:01 GMT\r\n"
		 "Connection: keep-alive\r\n",
		 exchange % 50 ? "200 OK" : "503 Service Unavailable");
	head_fill(text, RESPONSE_BYTES);
}

/*
 * A server's request is a thread's of a process that is known to answer what it receives. Behind
 * each follows the call that is made for it, 'above' being its decision.
 */
static struct decision decision_of(uint32_t connection, const struct decision *above)
{
	struct trace_id trace = trace_id_new();
	struct span_id span = span_id_new(), parent = span_id_new();
	struct decision d = {
		.flags = TRACE_FLAG_SAMPLED,
		.reason = is_client(connection) ? DECISION_UNIT : DECISION_HEADER,
		.is_unit = !is_client(connection),
		.is_proven = 1,
	};

	memcpy(d.ids.trace_id, trace.b, sizeof(trace.b));
	memcpy(d.ids.span_id, span.b, sizeof(span.b));
	memcpy(d.parent_span_id, parent.b, sizeof(parent.b));
	if (!is_client(connection))
		return d;
	memcpy(d.ids.trace_id, above->ids.trace_id, sizeof(d.ids.trace_id));
	memcpy(d.parent_span_id, above->ids.span_id, sizeof(d.parent_span_id));
	return d;
}

struct head_options {
	uint32_t connection, exchange;
	uint16_t flags;
	const char *text;
	size_t text_bytes;
	struct decision decision;
};

static void record_head(struct recording *r, const struct head_options *o)
{
	struct record_head *head = (struct record_head *)(r->bytes + r->size);
	bool has_client_port = !is_client(o->connection);

	*head = (struct record_head){
		.header = header_of(r, RECORD_HEAD, o->connection, o->exchange),
		.offset = (uint64_t)o->exchange * 4096,
		.head_start_ns = r->now_ns - NSEC_PER_USEC,
		.local_address = {10, 42, 17, 203},
		.remote_address = {10, 42, 18, 7},
		.local_port = has_client_port ? 8080 : 32768 + o->connection,
		.remote_port = has_client_port ? 32768 + o->connection : 8080,
		.family = AF_INET,
		.flags = o->flags | HEAD_START | HEAD_END,
		.data_length = o->text_bytes,
		.decision = o->decision,
	};
	head->header.length = sizeof(*head) + o->text_bytes;
	memcpy(head->data, o->text, o->text_bytes);
	r->size += STRIDE(head->header.length);
	r->now_ns += STEP_NS;
}

/* 'decision': of the request before, and then of this one. */
static void record_request(struct recording *r, uint32_t connection, uint32_t exchange,
			   struct decision *decision)
{
	char text[REQUEST_BYTES + 1];

	*decision = decision_of(connection, decision);

	request_text(text, connection, exchange, decision);
	record_head(r, &(struct head_options){.connection = connection,
					      .exchange = exchange,
					      .flags = HEAD_REQUEST | HEAD_DECISION,
					      .text = text,
					      .text_bytes = REQUEST_BYTES,
					      .decision = *decision});
}

static void record_response(struct recording *r, uint32_t connection, uint32_t exchange)
{
	struct record_end *end;
	char text[RESPONSE_BYTES + 1];

	response_text(text, exchange);
	record_head(r, &(struct head_options){.connection = connection,
					      .exchange = exchange,
					      .flags = is_client(connection) ? 0 : HEAD_BY_RECEIVER,
					      .text = text,
					      .text_bytes = RESPONSE_BYTES});

	end = (struct record_end *)(r->bytes + r->size);
	end->header = header_of(r, RECORD_END, connection, exchange);
	end->header.length = sizeof(*end);
	r->size += STRIDE(sizeof(*end));
	r->now_ns += STEP_NS;
}

static int recording_make(struct recording *r)
{
	struct decision decision = {0};

	*r = (struct recording){.bytes = malloc(SPANS * EXCHANGE_BYTES), .now_ns = START_NS};
	if (!r->bytes)
		return -ENOMEM;

	for (uint32_t exchange = 1; exchange <= EXCHANGES; exchange++) {
		for (uint32_t block = 0; block < CONNECTIONS; block += BLOCK) {
			for (uint32_t c = block; c < block + BLOCK; c++)
				record_request(r, c, exchange, &decision);
			/* A call is answered before the request that it was made for. */
			for (uint32_t c = block + BLOCK; c-- > block;)
				record_response(r, c, exchange);
		}
	}
	assert(r->size == SPANS * EXCHANGE_BYTES);
	return 0;
}

static int resources_make(struct bench *b)
{
	static const char *const keys[] = {"service.name",
					   "service.instance.id",
					   "host.name",
					   "host.id",
					   "os.type",
					   "process.executable.path",
					   "process.runtime.name",
					   "container.id"};

	for (uint32_t i = 0; i < PROCESSES; i++) {
		struct resource *r;

		if (resource_new(1000 + i, &r) < 0)
			return -ENOMEM;
		b->resources[i] = r;
		for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
			if (resource_set(r, keys[k], STR("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")))
				return -ENOMEM;
		if (resource_set_number(r, "process.pid", 1000 + i))
			return -ENOMEM;
	}
	return 0;
}

/* --- what is measured */

static struct resource *resource_of(void *userdata, uint32_t proc_id, uint32_t pid)
{
	struct bench *b = userdata;

	(void)pid;
	return b->resources[proc_id - 1];
}

static void take_revoke(void *userdata, uint64_t connection, uint32_t exchange)
{
	(void)userdata;
	(void)connection;
	(void)exchange;
}

static void batch_encode(struct bench *b)
{
	struct str body;

	if (otlp_encode(&b->encoder, b->batch, b->n_batch, &body) < 0)
		abort();
	b->n_body_bytes += body.n;
}

static void batch_release(struct bench *b)
{
	for (size_t i = 0; i < b->n_batch; i++)
		span_unref(b->batch[i]);
	b->n_spans += b->n_batch;
	b->n_batch = 0;
}

static void take_span(void *userdata, struct span *span)
{
	struct bench *b = userdata;

	assert(b->n_batch < BATCH_SPANS);
	b->batch[b->n_batch++] = span;
}

static const void *record_next(const struct recording *r, size_t *at)
{
	const struct record_header *h = (const struct record_header *)(r->bytes + *at);

	if (*at == r->size)
		return NULL;
	*at += STRIDE(h->length);
	return h;
}

static void record_decode(const struct record_header *h, struct event *ret)
{
	if (event_decode(h, h->length, ret) != 0)
		abort();
}

/* Each record goes all the way, as in the daemon. */
static void round_run(struct bench *b)
{
	const struct record_header *h;
	struct event event;
	size_t at = 0;

	while ((h = record_next(&b->recording, &at))) {
		record_decode(h, &event);
		stitch_event(b->stitch, &event);
		if (b->n_batch < BATCH_SPANS)
			continue;
		batch_encode(b);
		batch_release(b);
	}
	batch_encode(b);
	batch_release(b);
}

static void stage_end(struct bench *b, enum stage stage, uint64_t *since_ns)
{
	uint64_t now = now_ns(CLOCK_THREAD_CPUTIME_ID);

	b->stage_ns[stage] += now - *since_ns;
	*since_ns = now;
}

/* The same a stage at a time, which is not as kind to the caches. */
static void round_profile(struct bench *b)
{
	uint64_t since = now_ns(CLOCK_THREAD_CPUTIME_ID);
	const struct record_header *h;
	size_t at = 0, n;

	memset(b->stage_ns, 0, sizeof(b->stage_ns));
	do {
		for (n = 0; n < BATCH_RECORDS && (h = record_next(&b->recording, &at)); n++)
			record_decode(h, &b->events[n]);
		stage_end(b, STAGE_DECODE, &since);
		for (size_t i = 0; i < n; i++)
			stitch_event(b->stitch, &b->events[i]);
		stage_end(b, STAGE_STITCH, &since);
		batch_encode(b);
		stage_end(b, STAGE_ENCODE, &since);
		batch_release(b);
		stage_end(b, STAGE_RELEASE, &since);
	} while (n == BATCH_RECORDS);
}

/* Runs a round from an empty table of connections. Returns its nanoseconds. */
static uint64_t round_measure(struct bench *b, void (*run)(struct bench *b))
{
	uint64_t start, end;

	if (stitch_new(&(struct stitch_options){.connections_max = 2 * CONNECTIONS,
						.bytes_max = 16 << 20,
						.head_bytes_max = 16384,
						.exchange_idle_ns = 600 * NSEC_PER_SEC,
						.resource = resource_of,
						.emit = take_span,
						.revoke = take_revoke,
						.userdata = b},
		       &b->stitch) < 0)
		abort();
	stitch_set_clock(b->stitch, WALL_MINUS_NS);
	b->n_spans = b->n_body_bytes = 0;

	start = now_ns(CLOCK_THREAD_CPUTIME_ID);
	run(b);
	end = now_ns(CLOCK_THREAD_CPUTIME_ID);

	stitch_free(TAKE_PTR(b->stitch));
	if (b->n_spans != SPANS) {
		fprintf(stderr, "%zu spans, expected %d\n", b->n_spans, SPANS);
		exit(EXIT_FAILURE);
	}
	return end - start;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* --- what is printed */

static void print_rates(struct bench *b)
{
	qsort(b->rates, ROUNDS, sizeof(b->rates[0]), compare);
	printf("%.0f spans/s (%.0f to %.0f in %d rounds of %d spans), %zu bytes a span\n",
	       b->rates[ROUNDS / 2], b->rates[0], b->rates[ROUNDS - 1], ROUNDS, SPANS,
	       b->n_body_bytes / SPANS);
}

static void print_stages(struct bench *b)
{
	for (int stage = 0; stage < _STAGE_MAX; stage++) {
		double *ns = b->stages[stage];

		qsort(ns, ROUNDS, sizeof(ns[0]), compare);
		printf("%-8s %5.0f ns a span (%.0f to %.0f)\n", stage_names[stage], ns[ROUNDS / 2],
		       ns[0], ns[ROUNDS - 1]);
	}
}

static void profile(struct bench *b)
{
	for (int i = 0; i < ROUNDS; i++) {
		round_measure(b, round_profile);
		for (int stage = 0; stage < _STAGE_MAX; stage++)
			b->stages[stage][i] = (double)b->stage_ns[stage] / SPANS;
	}
	print_stages(b);
}

int main(int argc, char **argv)
{
	bool is_profile = argc == 2 && strcmp(argv[1], "--profile") == 0;
	static struct bench b;

	if (argc > 1 && !is_profile) {
		fprintf(stderr, "usage: %s [--profile]\n", argv[0]);
		return EXIT_FAILURE;
	}
	if (recording_make(&b.recording) < 0 || resources_make(&b) < 0) {
		fprintf(stderr, "Cannot make the recording: %s\n", strerror(ENOMEM));
		return EXIT_FAILURE;
	}

	round_measure(&b, round_run); /* warms up */
	for (int i = 0; i < ROUNDS; i++)
		b.rates[i] = SPANS * (double)NSEC_PER_SEC / (double)round_measure(&b, round_run);
	print_rates(&b);
	if (is_profile)
		profile(&b);

	for (size_t i = 0; i < PROCESSES; i++)
		resource_unref(b.resources[i]);
	otlp_encoder_done(&b.encoder);
	free(b.recording.bytes);
	return EXIT_SUCCESS;
}
