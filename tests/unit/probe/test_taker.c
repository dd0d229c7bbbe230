/* Processes that are taken by a thread: all of them, several at once, and none when it has ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "probe/taker.h"

struct taken {
	unsigned int calls, n;
	uint64_t sum;
	bool waits; /* until it is cancelled */
	bool was_cancelled;
};

static void take(void *userdata, const uint32_t *pids, size_t n, const bool *is_cancelled)
{
	struct taken *t = userdata;
	uint64_t end = now_ns(CLOCK_MONOTONIC) + 5 * NSEC_PER_SEC;

	for (size_t i = 0; i < n; i++)
		t->sum += pids[i];
	t->calls++;
	__atomic_add_fetch(&t->n, n, __ATOMIC_SEQ_CST);
	while (t->waits && !t->was_cancelled && now_ns(CLOCK_MONOTONIC) < end)
		t->was_cancelled = __atomic_load_n(is_cancelled, __ATOMIC_SEQ_CST);
}

static void wait_for(const struct taken *t, unsigned int n)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + 5 * NSEC_PER_SEC;

	while (__atomic_load_n(&t->n, __ATOMIC_SEQ_CST) < n && now_ns(CLOCK_MONOTONIC) < end)
		usleep(1000);
}

static void test_together(void **state)
{
	struct taken taken = {0};
	struct taker *t;

	(void)state;
	assert_int_equal(taker_new(take, &taken, &t), 0);
	for (uint32_t pid = 1; pid <= 500; pid++)
		assert_true(taker_add(t, pid));
	wait_for(&taken, 500);
	assert_true(taker_add(t, 1000));
	wait_for(&taken, 501);
	taker_free(t);
	assert_int_equal(taken.n, 501);
	assert_int_equal(taken.sum, 500 * 501 / 2 + 1000);
	/* Not one by one, on a busy machine neither. */
	assert_in_range(taken.calls, 2, 10);
}

static void test_end(void **state)
{
	struct taken taken = {.waits = true};
	struct taker *t;

	(void)state;
	assert_int_equal(taker_new(take, &taken, &t), 0);
	assert_true(taker_add(t, 1));
	wait_for(&taken, 1);
	assert_true(taker_add(t, 2));
	taker_free(t);
	assert_true(taken.was_cancelled);
	assert_int_equal(taken.n, 1);

	assert_int_equal(taker_new(take, &taken, &t), 0);
	taker_free(t);
	assert_int_equal(taken.n, 1);
}

static void test_full(void **state)
{
	struct taken taken = {.waits = true};
	struct taker *t;
	unsigned int n = 0;

	(void)state;
	assert_int_equal(taker_new(take, &taken, &t), 0);
	assert_true(taker_add(t, 1));
	wait_for(&taken, 1);
	while (n < 1000000 && taker_add(t, 1))
		n++;
	taker_free(t);
	assert_int_equal(n, 16384);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
