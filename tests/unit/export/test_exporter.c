/*
 * The exporter against a collector that behaves in every way one can: what is counted, what
 * arrives, and that nothing ever waits for it.
 */
#include "make.h"

#include "base/log.h"
#include "export/exporter.h"
#include "metrics/metrics.h"
#include "sink.h"

/* The counters that every span must end in exactly one of. */
struct counts {
	uint64_t exported, refused, unreachable, shutdown, queue_full, batches;
};

static struct counts counts_now(void)
{
	return (struct counts){
		.exported = metrics_get(METRIC_SPANS_EXPORTED),
		.refused = metrics_get(METRIC_SPANS_REFUSED),
		.unreachable = metrics_get(METRIC_SPANS_UNREACHABLE),
		.shutdown = metrics_get(METRIC_SPANS_SHUTDOWN),
		.queue_full = metrics_get(METRIC_QUEUE_FULL),
		.batches = metrics_get(METRIC_BATCHES_SENT),
	};
}

static struct counts counts_since(const struct counts *before)
{
	struct counts now = counts_now();

	return (struct counts){
		.exported = now.exported - before->exported,
		.refused = now.refused - before->refused,
		.unreachable = now.unreachable - before->unreachable,
		.shutdown = now.shutdown - before->shutdown,
		.queue_full = now.queue_full - before->queue_full,
		.batches = now.batches - before->batches,
	};
}

static uint64_t counts_total(const struct counts *c)
{
	return c->exported + c->refused + c->unreachable + c->shutdown + c->queue_full;
}

struct fixture {
	struct sink sink;
	struct exporter *exporter;
	struct counts before;
};

static void exporter_make(struct fixture *f, const struct exporter_options *options)
{
	struct exporter_options o = *options;
	char endpoint[64];

	snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%u", f->sink.port);
	o.endpoint = o.endpoint ? o.endpoint : endpoint;
	o.timeout_ms = o.timeout_ms ? o.timeout_ms : 5000;
	o.batch_spans = o.batch_spans ? o.batch_spans : 10;
	o.batch_delay_ms = o.batch_delay_ms ? o.batch_delay_ms : 20;
	o.queue_spans = o.queue_spans ? o.queue_spans : 1024;
	f->before = counts_now();
	assert_int_equal(exporter_new(&o, &f->exporter), 0);
}

static void fixture_init(struct fixture *f, enum sink_mode mode,
			 const struct exporter_options *options)
{
	assert_true(sink_start(&f->sink, AF_INET));
	atomic_store(&f->sink.mode, mode);
	exporter_make(f, options);
}

static void fixture_done(struct fixture *f)
{
	exporter_free(f->exporter);
	sink_stop(&f->sink);
}

static void push(struct fixture *f, uint32_t n)
{
	for (uint32_t i = 1; i <= n; i++)
		exporter_push(
			f->exporter,
			make_span(NULL, &(struct make_options){
						.trace = 1, .id = i, .kind = 2, .path = "/p"}));
}

/* Until that many spans are accounted for; fails after five seconds. */
static struct counts wait_total(struct fixture *f, uint64_t total)
{
	struct counts c = counts_since(&f->before);

	for (int i = 0; i < 5000 && counts_total(&c) < total; i++) {
		usleep(1000);
		c = counts_since(&f->before);
	}
	assert_int_equal(counts_total(&c), total);
	return c;
}

TEST(test_ok)
{
	struct fixture f;
	struct counts c;

	fixture_init(&f, SINK_OK, &(struct exporter_options){0});
	push(&f, 25);
	c = wait_total(&f, 25);
	assert_int_equal(c.exported, 25);
	assert_true(c.batches >= 3);
	assert_int_equal(f.sink.n_spans, 25);
	assert_int_equal(f.sink.n_undecodable, 0);
	assert_int_equal(f.sink.n_connections, 1);
	assert_int_equal(f.sink.n_requests, c.batches);
	assert_non_null(strstr(f.sink.head, "POST /v1/traces HTTP/1.1\r\n"));
	assert_non_null(strstr(f.sink.head, "\r\nContent-Type: application/x-protobuf\r\n"));
	assert_non_null(strstr(f.sink.head, "\r\nUser-Agent: tsunagi/" TSUNAGI_VERSION "\r\n"));
	assert_null(strstr(f.sink.head, "Expect"));
	assert_int_equal(exporter_stop(f.exporter, 1000), 0);
	fixture_done(&f);
}

/* A single span waits for company, but not longer than the delay; a batch does not wait. */
TEST(test_batching)
{
	struct fixture f;
	uint64_t start;

	fixture_init(&f, SINK_OK,
		     &(struct exporter_options){.batch_spans = 100, .batch_delay_ms = 300});
	start = now_ns(CLOCK_MONOTONIC);
	push(&f, 3);
	usleep(100000);
	push(&f, 3);
	wait_total(&f, 6);
	assert_in_range(now_ns(CLOCK_MONOTONIC) - start, 290 * NSEC_PER_MSEC, 1500 * NSEC_PER_MSEC);
	assert_int_equal(f.sink.n_requests, 1);

	start = now_ns(CLOCK_MONOTONIC);
	push(&f, 100);
	wait_total(&f, 106);
	assert_true(now_ns(CLOCK_MONOTONIC) - start < 250 * NSEC_PER_MSEC);
	fixture_done(&f);
}

TEST(test_stop_flushes)
{
	struct fixture f;
	struct counts c;

	fixture_init(&f, SINK_OK,
		     &(struct exporter_options){.batch_delay_ms = 60000, .batch_spans = 200});
	push(&f, 150);
	assert_int_equal(exporter_stop(f.exporter, 5000), 0);
	c = counts_since(&f.before);
	assert_int_equal(c.exported, 150);
	/* Too late. */
	push(&f, 1);
	c = counts_since(&f.before);
	assert_int_equal(c.shutdown, 1);
	fixture_done(&f);
}

static void expect_all(enum sink_mode mode, uint64_t exported, uint64_t refused,
		       uint64_t unreachable)
{
	struct fixture f;
	struct counts c;

	fixture_init(&f, mode, &(struct exporter_options){.timeout_ms = 400});
	push(&f, 10);
	c = wait_total(&f, 10);
	assert_int_equal(c.exported, exported);
	assert_int_equal(c.refused, refused);
	assert_int_equal(c.unreachable, unreachable);

	/* Whatever it was, it is forgotten when the collector behaves again. */
	atomic_store(&f.sink.mode, SINK_OK);
	push(&f, 10);
	c = wait_total(&f, 20);
	assert_int_equal(c.exported, exported + 10);
	assert_int_equal(exporter_stop(f.exporter, 1000), 0);
	fixture_done(&f);
}

TEST(test_bad_request)
{
	expect_all(SINK_BAD_REQUEST, 0, 10, 0);
}

TEST(test_unavailable)
{
	expect_all(SINK_UNAVAILABLE, 0, 10, 0);
}

TEST(test_hang)
{
	expect_all(SINK_HANG, 0, 0, 10);
}

TEST(test_reset)
{
	expect_all(SINK_RESET, 0, 0, 10);
}

TEST(test_garbage)
{
	expect_all(SINK_GARBAGE, 0, 0, 10);
}

TEST(test_html)
{
	expect_all(SINK_HTML, 0, 10, 0);
}

TEST(test_partial)
{
	expect_all(SINK_PARTIAL, 9, 1, 0);
}

TEST(test_endless)
{
	expect_all(SINK_ENDLESS, 0, 10, 0);
}

TEST(test_drip)
{
	expect_all(SINK_DRIP, 0, 0, 10);
}

/* The server closes an idle connection: the next batch goes over a new one, nothing is lost. */
TEST(test_closed_keep_alive)
{
	struct fixture f;
	struct counts c = {0};

	fixture_init(&f, SINK_OK_THEN_CLOSE, &(struct exporter_options){0});
	for (uint32_t i = 1; i <= 5; i++) {
		push(&f, 10);
		c = wait_total(&f, 10 * i);
		usleep(50000);
	}
	assert_int_equal(c.exported, 50);
	assert_int_equal(f.sink.n_connections, 5);
	fixture_done(&f);
}

TEST(test_nobody_listens)
{
	struct fixture f = {0};
	struct counts c;

	/* Port 1 of the loopback: refused at once. */
	exporter_make(&f, &(struct exporter_options){.endpoint = "http://127.0.0.1:1"});
	push(&f, 30);
	c = wait_total(&f, 30);
	assert_int_equal(c.unreachable, 30);
	assert_int_equal(exporter_stop(f.exporter, 1000), 0);
	exporter_free(f.exporter);
}

/*
 * A collector that hangs: pushing never blocks, the queue stays bounded, stopping takes the time
 * it was given.
 */
TEST(test_hang_neither_blocks_nor_grows)
{
	enum { N = 5000, QUEUE = 64 };
	struct fixture f;
	struct counts c;
	uint64_t start;

	fixture_init(&f, SINK_HANG,
		     &(struct exporter_options){.timeout_ms = 60000, .queue_spans = QUEUE});
	start = now_ns(CLOCK_MONOTONIC);
	push(&f, N);
	assert_true(now_ns(CLOCK_MONOTONIC) - start < NSEC_PER_SEC);
	c = counts_since(&f.before);
	assert_in_range(c.queue_full, N - QUEUE - 10, N - QUEUE);

	start = now_ns(CLOCK_MONOTONIC);
	assert_int_equal(exporter_stop(f.exporter, 200), EXPORTER_UNSENT);
	assert_in_range(now_ns(CLOCK_MONOTONIC) - start, 150 * NSEC_PER_MSEC, 2 * NSEC_PER_SEC);
	c = counts_since(&f.before);
	assert_int_equal(counts_total(&c), N);
	assert_int_equal(c.exported, 0);
	assert_true(c.shutdown > 0);
	fixture_done(&f);
}

/* Free without stop: ends at once, spans counted. */
TEST(test_free_alone)
{
	struct fixture f;
	struct counts c;

	fixture_init(&f, SINK_OK, &(struct exporter_options){.batch_delay_ms = 60000});
	push(&f, 5);
	fixture_done(&f);
	c = counts_since(&f.before);
	assert_int_equal(c.shutdown, 5);
}

TEST(test_throughput_is_accounted)
{
	enum { N = 50000 };
	struct fixture f;
	struct counts c;

	fixture_init(&f, SINK_OK,
		     &(struct exporter_options){.batch_spans = 512, .queue_spans = 16384});
	push(&f, N);
	assert_int_equal(exporter_stop(f.exporter, 20000), 0);
	c = counts_since(&f.before);
	assert_int_equal(c.exported + c.queue_full, N);
	assert_int_equal(f.sink.n_spans, c.exported);
	fixture_done(&f);
}

TEST(test_proxy_of_environment_is_ignored)
{
	struct fixture f;

	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
	fixture_init(&f, SINK_OK, &(struct exporter_options){0});
	push(&f, 10);
	assert_int_equal(wait_total(&f, 10).exported, 10);
	unsetenv("http_proxy");
	unsetenv("ALL_PROXY");
	fixture_done(&f);
}

TEST(test_path_and_ipv6)
{
	struct fixture f = {0};
	char endpoint[64];

	if (!sink_start(&f.sink, AF_INET6))
		skip();
	snprintf(endpoint, sizeof(endpoint), "http://[::1]:%u/own/path", f.sink.port);
	exporter_make(&f, &(struct exporter_options){.endpoint = endpoint});
	push(&f, 10);
	assert_int_equal(wait_total(&f, 10).exported, 10);
	assert_int_equal(f.sink.n_requests, 1);
	assert_non_null(strstr(f.sink.head, "POST /own/path HTTP/1.1\r\n"));
	fixture_done(&f);
}

TEST(test_invalid_endpoint)
{
	struct exporter *e = NULL;

	assert_int_equal(exporter_new(&(struct exporter_options){.endpoint = "localhost:4318"}, &e),
			 EXPORTER_ENDPOINT_INVALID);
	assert_null(e);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ok),
		cmocka_unit_test(test_batching),
		cmocka_unit_test(test_stop_flushes),
		cmocka_unit_test(test_bad_request),
		cmocka_unit_test(test_unavailable),
		cmocka_unit_test(test_hang),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_html),
		cmocka_unit_test(test_partial),
		cmocka_unit_test(test_endless),
		cmocka_unit_test(test_drip),
		cmocka_unit_test(test_closed_keep_alive),
		cmocka_unit_test(test_nobody_listens),
		cmocka_unit_test(test_hang_neither_blocks_nor_grows),
		cmocka_unit_test(test_free_alone),
		cmocka_unit_test(test_throughput_is_accounted),
		cmocka_unit_test(test_proxy_of_environment_is_ignored),
		cmocka_unit_test(test_path_and_ipv6),
		cmocka_unit_test(test_invalid_endpoint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
