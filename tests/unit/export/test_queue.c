/* The span queue: order, bounds, and two threads with the consumer falling asleep. */
#include "make.h"

#include <poll.h>
#include <pthread.h>

#include "export/queue.h"

static struct span *numbered(uint32_t n)
{
	return make_span(NULL, &(struct make_options){.trace = 1, .id = n, .kind = 2});
}

static bool is_awake(struct queue *q)
{
	struct pollfd p = {.fd = queue_fd(q), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

TEST(test_order_and_bound)
{
	struct queue *q;

	assert_int_equal(queue_new(5, SIZE_MAX, &q), 0);
	for (int round = 0; round < 3; round++) {
		struct span *extra = numbered(99);

		for (uint32_t i = 1; i <= 8; i++)
			assert_true(queue_push(q, numbered(i)));
		assert_false(queue_push(q, extra));
		assert_int_equal(extra->refs, 1);
		span_unref(extra);
		assert_int_equal(queue_size(q), 8);
		for (uint32_t i = 1; i <= 8; i++) {
			struct span *span = queue_pop(q);

			assert_int_equal(span->span_id.b[7], i);
			span_unref(span);
		}
		assert_null(queue_pop(q));
	}
	/* What is left is released with the queue. */
	assert_true(queue_push(q, numbered(1)));
	queue_free(q);
}

TEST(test_bytes_bound)
{
	struct span *a = numbered(1), *b = numbered(2), *c = numbered(3);
	struct queue *q;

	assert_int_equal(queue_new(64, 2 * a->size_bytes, &q), 0);
	assert_true(queue_push(q, a));
	assert_false(queue_is_half_full(q));
	assert_true(queue_push(q, b));
	assert_true(queue_is_half_full(q));
	assert_false(queue_push(q, c));
	span_unref(queue_pop(q));
	assert_true(queue_push(q, c));
	queue_free(q);
}

TEST(test_wakes_when_wanted)
{
	struct queue *q;

	assert_int_equal(queue_new(64, SIZE_MAX, &q), 0);
	assert_true(queue_push(q, numbered(1)));
	assert_false(is_awake(q));
	assert_false(queue_arm(q, 1));
	queue_disarm(q);

	assert_true(queue_arm(q, 3));
	assert_true(queue_push(q, numbered(2)));
	assert_false(is_awake(q));
	assert_true(queue_push(q, numbered(3)));
	assert_true(is_awake(q));
	queue_disarm(q);
	assert_false(is_awake(q));
	assert_true(queue_push(q, numbered(4)));
	assert_false(is_awake(q));

	/* Half full is always worth it. */
	assert_true(queue_arm(q, 1000));
	for (uint32_t i = 5; i <= 32; i++)
		assert_true(queue_push(q, numbered(i)));
	assert_true(is_awake(q));
	queue_free(q);
}

enum { N_THREADED = 200000 };

static void *produce(void *userdata)
{
	struct queue *q = userdata;

	for (uint32_t i = 1; i <= N_THREADED; i++) {
		struct span *span = numbered(i);

		while (!queue_push(q, span))
			sched_yield();
	}
	return NULL;
}

/* A lost wake-up would hang: the sleep has no end but the eventfd. */
TEST(test_threads)
{
	uint32_t expected = 1;
	struct queue *q;
	pthread_t thread;

	assert_int_equal(queue_new(256, SIZE_MAX, &q), 0);
	assert_int_equal(pthread_create(&thread, NULL, produce, q), 0);
	while (expected <= N_THREADED) {
		struct pollfd p = {.fd = queue_fd(q), .events = POLLIN};
		struct span *span = queue_pop(q);
		struct span_id id = make_span_id(expected);

		if (!span) {
			if (queue_arm(q, 1))
				assert_int_equal(poll(&p, 1, 10000), 1);
			queue_disarm(q);
			continue;
		}
		assert_memory_equal(&span->span_id, &id, sizeof(id));
		span_unref(span);
		expected++;
	}
	pthread_join(thread, NULL);
	assert_null(queue_pop(q));
	queue_free(q);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_and_bound),
		cmocka_unit_test(test_bytes_bound),
		cmocka_unit_test(test_wakes_when_wanted),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
