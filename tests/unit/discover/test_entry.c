/* The table of processes is bounded; see fixture.h. */
#include "unit/discover/fixture.h"

static void test_table_is_bounded(void **state)
{
	uint64_t full = metrics_get(METRIC_PROCESSES_FULL);
	struct fixture f;

	(void)state;
	start(&f, nothing, nothing);
	discover_free(f.d);
	assert_int_equal(discover_new(
				 &(struct discover_options){
					 .config = &f.config,
					 .processes_max = 4,
					 .select = on_select,
					 .unselect = on_unselect,
					 .judged = on_judged,
					 .userdata = &f,
				 },
				 &f.d),
			 0);
	for (pid_t i = 0; i < 6; i++)
		SEND(&f, EXEC, (1 << 30) + i, 0);
	assert_non_null(find(&f, (1 << 30) + 3));
	assert_null(find(&f, (1 << 30) + 4));
	assert_int_equal(metrics_get(METRIC_PROCESSES_FULL), full + 2);
	stop(&f);
}

/* Those that have ended make room first, then those that are left alone; the traced ones stay. */
static void test_who_makes_room(void **state)
{
	struct fixture f;
	uint64_t at = now();
	pid_t ended = spawn_sleep(), traced = spawn_sleep(), left = fork_child(NULL, NULL);

	(void)state;
	start(&f, (struct selector){.exe = "sleep"}, nothing);
	discover_free(f.d);
	assert_int_equal(discover_new(
				 &(struct discover_options){
					 .config = &f.config,
					 .processes_max = 3,
					 .select = on_select,
					 .unselect = on_unselect,
					 .judged = on_judged,
					 .userdata = &f,
				 },
				 &f.d),
			 0);
	SEND(&f, EXEC, ended, .time_ns = at);
	SEND(&f, EXEC, traced, .time_ns = at);
	SEND(&f, EXEC, left, .time_ns = at);
	turn(&f, at, 30);
	turn(&f, at, 20000);
	SEND(&f, EXIT, ended, .time_ns = at + 20 * NSEC_PER_SEC);
	assert_non_null(discover_find_id(f.d, f.unselected[0]));
	SEND(&f, EXEC, 1 << 30, 0);
	assert_null(discover_find_id(f.d, f.unselected[0]));
	assert_non_null(find(&f, left));
	SEND(&f, EXEC, (1 << 30) + 1, 0);
	assert_null(find(&f, left));
	assert_non_null(find(&f, traced));
	reap(ended);
	reap(traced);
	reap(left);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_is_bounded),
		cmocka_unit_test(test_who_makes_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
