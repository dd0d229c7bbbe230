/* The trace store: when traces finish, what is evicted, what is found. */
#include "make.h"

#include "export/store.h"
#include "metrics/metrics.h"

#define MS NSEC_PER_MSEC

struct seen {
	unsigned int n;
	struct trace_id id;
	size_t n_spans;
};

static void on_finished(const struct store_trace *trace, void *userdata)
{
	struct seen *seen = userdata;

	seen->n++;
	seen->id = trace->id;
	seen->n_spans = trace->n_spans;
}

static struct store *make_store(uint32_t traces_max, size_t bytes_max)
{
	struct store *s;

	assert_int_equal(
		store_new(&(struct store_options){.traces_max = traces_max, .bytes_max = bytes_max},
			  &s),
		0);
	return s;
}

static void add(struct store *s, const struct make_options *m, uint64_t now_ns)
{
	assert_int_equal(store_add(s, make_span(NULL, m), now_ns), 0);
}

static unsigned int ticks(struct store *s, uint64_t now_ns)
{
	struct seen seen = {0};

	store_tick(s, now_ns, on_finished, &seen);
	return seen.n;
}

TEST(test_finishes_a_second_after_the_root)
{
	_cleanup_(store_freep) struct store *s = make_store(10, 1 << 20);
	struct seen seen = {0};

	add(s, &(struct make_options){.trace = 7, .id = 2, .parent = 1, .kind = SPAN_KIND_CLIENT},
	    100 * MS);
	add(s, &(struct make_options){.trace = 7, .id = 1, .kind = SPAN_KIND_SERVER}, 200 * MS);
	assert_true(store_tick(s, 1199 * MS, on_finished, &seen));
	assert_int_equal(seen.n, 0);
	assert_false(store_tick(s, 1200 * MS, on_finished, &seen));
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.n_spans, 2);
	assert_int_equal(seen.id.b[15], 7);
	assert_int_equal(ticks(s, UINT64_MAX), 0);
}

/* A client span whose parent is not here: the request it belongs to is open. */
TEST(test_waits_for_an_open_parent)
{
	_cleanup_(store_freep) struct store *s = make_store(10, 1 << 20);

	add(s, &(struct make_options){.trace = 1, .id = 2, .parent = 1, .kind = SPAN_KIND_CLIENT},
	    0);
	assert_int_equal(ticks(s, 9999 * MS), 0);
	add(s, &(struct make_options){.trace = 1, .id = 1, .kind = SPAN_KIND_SERVER}, 9999 * MS);
	assert_int_equal(ticks(s, 10998 * MS), 0);
	assert_int_equal(ticks(s, 10999 * MS), 1);

	/* One that never comes is waited for ten seconds. */
	add(s, &(struct make_options){.trace = 2, .id = 2, .parent = 1, .kind = SPAN_KIND_CLIENT},
	    20000 * MS);
	assert_int_equal(ticks(s, 29999 * MS), 0);
	assert_int_equal(ticks(s, 30000 * MS), 1);
}

/* The call that it was joined with is open: its answer is sent, but not read yet. */
TEST(test_waits_for_an_open_call)
{
	_cleanup_(store_freep) struct store *s = make_store(10, 1 << 20);

	add(s,
	    &(struct make_options){.trace = 1,
				   .id = 2,
				   .parent = 1,
				   .kind = SPAN_KIND_SERVER,
				   .has_local_parent = true},
	    0);
	assert_int_equal(ticks(s, 9999 * MS), 0);
	add(s, &(struct make_options){.trace = 1, .id = 1, .kind = SPAN_KIND_CLIENT}, 9999 * MS);
	assert_int_equal(ticks(s, 10999 * MS), 1);
}

TEST(test_remote_parent_is_a_local_root)
{
	_cleanup_(store_freep) struct store *s = make_store(10, 1 << 20);

	add(s, &(struct make_options){.trace = 1, .id = 2, .parent = 1, .kind = SPAN_KIND_SERVER},
	    0);
	assert_int_equal(ticks(s, 999 * MS), 0);
	assert_int_equal(ticks(s, 1000 * MS), 1);
}

TEST(test_late_span_finishes_once_more)
{
	_cleanup_(store_freep) struct store *s = make_store(10, 1 << 20);

	add(s, &(struct make_options){.trace = 1, .id = 1, .kind = SPAN_KIND_SERVER}, 0);
	assert_int_equal(ticks(s, 1000 * MS), 1);
	add(s, &(struct make_options){.trace = 1, .id = 2, .parent = 1, .kind = SPAN_KIND_CLIENT},
	    1500 * MS);
	assert_int_equal(ticks(s, 2499 * MS), 0);
	assert_int_equal(ticks(s, 2500 * MS), 1);
	add(s, &(struct make_options){.trace = 1, .id = 3, .parent = 1, .kind = SPAN_KIND_CLIENT},
	    3000 * MS);
	assert_int_equal(ticks(s, UINT64_MAX), 0);
	assert_int_equal(store_newest(s)->n_spans, 3);
}

TEST(test_all_finish_at_the_end)
{
	_cleanup_(store_freep) struct store *s = make_store(10, 1 << 20);

	for (uint32_t i = 1; i <= 5; i++)
		add(s,
		    &(struct make_options){
			    .trace = i, .id = 2, .parent = 1, .kind = SPAN_KIND_CLIENT},
		    i);
	assert_int_equal(ticks(s, UINT64_MAX), 5);
}

TEST(test_evicts_the_quietest_trace)
{
	_cleanup_(store_freep) struct store *s = make_store(3, 1 << 20);
	uint64_t evicted = metrics_get(METRIC_STORE_EVICTED);
	struct trace_id one = make_trace_id(1), two = make_trace_id(2), four = make_trace_id(4);
	const struct store_trace *t;

	for (uint32_t i = 1; i <= 3; i++)
		add(s, &(struct make_options){.trace = i, .id = 1, .kind = 2}, i);
	add(s, &(struct make_options){.trace = 1, .id = 2, .parent = 1, .kind = 3}, 4);
	add(s, &(struct make_options){.trace = 4, .id = 1, .kind = 2}, 5);

	assert_int_equal(metrics_get(METRIC_STORE_EVICTED) - evicted, 1);
	assert_null(store_find(s, &two));
	assert_int_equal(store_find(s, &one)->n_spans, 2);
	assert_int_equal(store_find(s, &four)->n_spans, 1);

	/* Newest first: 4, 1, 3. */
	t = store_newest(s);
	assert_int_equal(t->id.b[15], 4);
	t = store_older(t);
	assert_int_equal(t->id.b[15], 1);
	t = store_older(t);
	assert_int_equal(t->id.b[15], 3);
	assert_null(store_older(t));
	assert_int_equal(ticks(s, UINT64_MAX), 3);
}

static size_t bytes_of(const struct store *s)
{
	size_t n = 0;

	for (const struct store_trace *t = store_newest(s); t; t = store_older(t))
		for (size_t i = 0; i < t->n_spans; i++)
			n += t->spans[i]->size_bytes;
	return n;
}

TEST(test_bytes_are_bounded)
{
	enum { BYTES = 20000, SPANS = 500 };
	_cleanup_(store_freep) struct store *many = make_store(1000, BYTES),
					    *one = make_store(1000, BYTES);
	uint64_t evicted = metrics_get(METRIC_STORE_EVICTED);
	size_t kept = 0;

	for (uint32_t i = 1; i <= SPANS; i++) {
		add(many,
		    &(struct make_options){.trace = i, .id = 1, .kind = 2, .path = "/some/path"},
		    i);
		assert_true(bytes_of(many) <= BYTES);
	}
	for (const struct store_trace *t = store_newest(many); t; t = store_older(t))
		kept += t->n_spans;
	assert_true(kept > 10);
	assert_int_equal(metrics_get(METRIC_STORE_EVICTED) - evicted, SPANS - kept);

	/* One trace alone: its first spans stay. */
	evicted = metrics_get(METRIC_STORE_EVICTED);
	for (uint32_t i = 1; i <= SPANS; i++)
		add(one,
		    &(struct make_options){.trace = 1, .id = i, .kind = 2, .path = "/some/path"},
		    i);
	assert_true(bytes_of(one) <= BYTES);
	kept = store_newest(one)->n_spans;
	assert_true(kept > 10);
	assert_int_equal(store_newest(one)->spans[kept - 1]->span_id.b[7], kept);
	assert_int_equal(metrics_get(METRIC_STORE_EVICTED) - evicted, SPANS - kept);
}

TEST(test_span_larger_than_the_store)
{
	_cleanup_(store_freep) struct store *s = make_store(10, 100);

	add(s, &(struct make_options){.trace = 1, .id = 1, .kind = 2}, 0);
	assert_null(store_newest(s));
	assert_int_equal(ticks(s, UINT64_MAX), 0);
}

TEST(test_root)
{
	_cleanup_(store_freep) struct store *s = make_store(10, 1 << 20);

	add(s, &(struct make_options){.trace = 1, .id = 3, .parent = 2, .kind = 2, .start_us = 5},
	    0);
	add(s, &(struct make_options){.trace = 1, .id = 4, .parent = 3, .kind = 3, .start_us = 1},
	    0);
	assert_int_equal(store_trace_root(store_newest(s))->span_id.b[7], 4);
	add(s, &(struct make_options){.trace = 1, .id = 1, .kind = 2, .start_us = 9}, 0);
	assert_int_equal(store_trace_root(store_newest(s))->span_id.b[7], 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finishes_a_second_after_the_root),
		cmocka_unit_test(test_waits_for_an_open_parent),
		cmocka_unit_test(test_waits_for_an_open_call),
		cmocka_unit_test(test_remote_parent_is_a_local_root),
		cmocka_unit_test(test_late_span_finishes_once_more),
		cmocka_unit_test(test_all_finish_at_the_end),
		cmocka_unit_test(test_evicts_the_quietest_trace),
		cmocka_unit_test(test_bytes_are_bounded),
		cmocka_unit_test(test_span_larger_than_the_store),
		cmocka_unit_test(test_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
