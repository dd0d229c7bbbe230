/* The life of processes as events tell it; see fixture.h. */
#include "unit/discover/fixture.h"

static void test_short_lived_is_not_looked_at(void **state)
{
	uint64_t seen = metrics_get(METRIC_PROCESSES_SEEN), at = now();
	struct fixture f;
	pid_t pid = spawn_sleep();

	(void)state;
	start(&f, (struct selector){.exe = "sleep"}, nothing);
	assert_int_equal(discover_next_ns(f.d), UINT64_MAX);
	SEND(&f, EXEC, pid, .time_ns = at);
	assert_int_equal(discover_next_ns(f.d), at + 30 * NSEC_PER_MSEC);
	turn(&f, at, 29);
	assert_int_equal(find(&f, pid)->state, PROCESS_NEW);
	SEND(&f, EXIT, pid, .time_ns = at + 29 * NSEC_PER_MSEC);
	turn(&f, at, 100000);
	assert_null(find(&f, pid));
	assert_int_equal(metrics_get(METRIC_PROCESSES_SEEN), seen);
	assert_int_equal(f.n_selected, 0);
	assert_int_equal(discover_next_ns(f.d), UINT64_MAX);
	reap(pid);
	stop(&f);
}

static void test_life(void **state)
{
	const struct process *p;
	struct fixture f;
	uint64_t at = now();
	pid_t pid = spawn_sleep();
	uint32_t id;

	(void)state;
	start(&f, (struct selector){.exe = "/*/sleep", .line = 4}, nothing);
	SEND(&f, EXEC, pid, .time_ns = at, .process.exec_id = 9);
	turn(&f, at, 30);
	p = find(&f, pid);
	assert_non_null(p);
	assert_int_equal(p->state, PROCESS_SELECTED);
	assert_int_equal(p->language, LANGUAGE_OTHER);
	assert_int_equal(p->exec_id, 9);
	assert_int_not_equal(p->start_ns, 0);
	assert_string_equal(p->command, "/bin/sleep 60");
	assert_string_equal(p->why, "selected: exe \"/*/sleep\" (discover.include at line 4)");
	assert_string_equal(p->resource->service_name, "sleep");
	assert_int_equal(p->resource->pid, pid);
	assert_int_equal(resource_get(p->resource, "process.pid")->number, pid);
	assert_int_equal(resource_get(p->resource, "process.parent_pid")->number, getpid());
	assert_string_equal(attribute(p, "process.executable.name"), "sleep");
	assert_string_equal(attribute(p, "process.command_line"), "/bin/sleep 60");
	assert_string_equal(attribute(p, "os.type"), "linux");
	assert_string_equal(attribute(p, "telemetry.distro.name"), "tsunagi");
	assert_int_equal(strlen(attribute(p, "service.instance.id")), 36);
	assert_non_null(attribute(p, "host.name"));

	id = p->proc_id;
	assert_int_equal(f.n_selected, 1);
	assert_int_equal(f.selected[0], id);
	assert_ptr_equal(discover_find_id(f.d, id), p);
	assert_ptr_equal(discover_resource(f.d, id), p->resource);

	/* Its last spans may come later: 30 seconds, no longer. */
	SEND(&f, EXIT, pid, .time_ns = at + NSEC_PER_SEC);
	assert_int_equal(f.n_unselected, 1);
	assert_int_equal(f.unselected[0], id);
	assert_null(find(&f, pid));
	turn(&f, at, 30999);
	assert_non_null(discover_resource(f.d, id));
	turn(&f, at, 31000);
	assert_null(discover_find_id(f.d, id));
	assert_null(discover_resource(f.d, id));
	reap(pid);
	stop(&f);
}

static void test_not_selected_says_what_would(void **state)
{
	char expected[512];
	struct fixture f;
	uint64_t at = now();
	pid_t pid = spawn_sleep();

	(void)state;
	start(&f, nothing, nothing);
	SEND(&f, EXEC, pid, .time_ns = at);
	turn(&f, at, 30);
	assert_int_equal(find(&f, pid)->state, PROCESS_LEFT);
	snprintf(expected, sizeof(expected),
		 "not selected: no rule matches (add - exe: \"%s\" to discover.include)",
		 find(&f, pid)->exe);
	assert_string_equal(find(&f, pid)->why, expected);
	assert_non_null(strstr(expected, "/sleep\""));
	assert_int_equal(find(&f, pid)->proc_id, 0);
	assert_null(find(&f, pid)->resource);
	SEND(&f, EXIT, pid, 0);
	assert_int_equal(f.n_unselected, 0);
	reap(pid);
	stop(&f);
}

static void test_exec_makes_a_new_identity(void **state)
{
	struct fixture f;
	uint64_t at = now();
	pid_t pid = spawn_sleep();

	(void)state;
	start(&f, (struct selector){.exe = "sleep"}, nothing);
	SEND(&f, EXEC, pid, .time_ns = at);
	turn(&f, at, 30);
	assert_int_equal(find(&f, pid)->proc_id, 1);

	/* News of an exec that the look has seen already changes nothing. */
	SEND(&f, EXEC, pid, .time_ns = at + 1, .process.exec_id = 5);
	assert_int_equal(find(&f, pid)->proc_id, 1);
	assert_int_equal(find(&f, pid)->exec_id, 5);

	at = now() + 1;
	SEND(&f, EXEC, pid, .time_ns = at, .process.exec_id = 6);
	assert_int_equal(f.n_unselected, 1);
	assert_int_equal(find(&f, pid)->state, PROCESS_NEW);
	turn(&f, at, 30);
	assert_int_equal(find(&f, pid)->proc_id, 2);
	assert_non_null(discover_find_id(f.d, 1));
	reap(pid);
	stop(&f);
}

static void test_pid_reuse(void **state)
{
	uint64_t gone = metrics_get(METRIC_PROCESSES_GONE);
	struct fixture f;
	uint64_t at = now();
	pid_t pid = spawn_sleep();

	(void)state;
	start(&f, (struct selector){.exe = "sleep"}, nothing);
	/* The event speaks of a process that started long before the one that has the pid now. */
	SEND(&f, EXEC, pid, .time_ns = at, .process.start_ns = NSEC_PER_SEC);
	turn(&f, at, 30);
	assert_null(find(&f, pid));
	assert_int_equal(f.n_selected, 0);
	assert_int_equal(metrics_get(METRIC_PROCESSES_GONE), gone + 1);

	SEND(&f, EXEC, pid, .time_ns = at);
	turn(&f, at, 30);
	assert_int_equal(f.n_selected, 1);
	SEND(&f, EXIT, pid, .process.start_ns = NSEC_PER_SEC);
	assert_non_null(find(&f, pid));
	reap(pid);
	stop(&f);
}

static void test_fork_of_selected(void **state)
{
	const struct process *parent, *child;
	struct fixture f;
	uint64_t at = now(), at_fork;
	pid_t pid = spawn_sleep();

	(void)state;
	start(&f, (struct selector){.exe = "sleep"}, nothing);
	SEND(&f, EXEC, pid, .time_ns = at);
	turn(&f, at, 30);
	at_fork = now();
	SEND(&f, FORK, 1 << 30, .time_ns = at_fork, .process.parent_pid = (uint32_t)pid,
	     .process.start_ns = 12345 * NSEC_PER_SEC);
	parent = find(&f, pid);
	child = find(&f, 1 << 30);
	assert_non_null(child);
	assert_int_equal(child->state, PROCESS_SELECTED);
	assert_int_equal(child->proc_id, 2);
	assert_string_equal(child->exe, parent->exe);
	assert_string_equal(child->resource->service_name, "sleep");
	assert_int_equal(resource_get(child->resource, "process.pid")->number, 1 << 30);
	assert_int_equal(resource_get(child->resource, "process.parent_pid")->number, pid);
	assert_string_not_equal(attribute(child, "service.instance.id"),
				attribute(parent, "service.instance.id"));
	assert_int_equal(f.n_selected, 2);

	/* What it executes is judged by itself. */
	SEND(&f, EXEC, 1 << 30, .time_ns = at_fork + 1, .process.start_ns = 12345 * NSEC_PER_SEC);
	assert_int_equal(f.n_unselected, 1);
	assert_int_equal(find(&f, 1 << 30)->state, PROCESS_NEW);
	assert_null(discover_find_id(f.d, 2));
	reap(pid);
	stop(&f);
}

static void test_fork_of_others_costs_nothing(void **state)
{
	struct fixture f;
	uint64_t at = now();
	pid_t pid = spawn_sleep();

	(void)state;
	start(&f, nothing, nothing);
	SEND(&f, EXEC, pid, .time_ns = at);
	SEND(&f, FORK, 1 << 30, .time_ns = at,
	     .process.parent_pid = (uint32_t)pid); /* of somebody new */
	assert_int_equal(find(&f, 1 << 30)->state, PROCESS_NEW);
	turn(&f, at, 30);
	assert_null(find(&f, 1 << 30)); /* there is no such process */
	turn(&f, at, 20000);            /* no JVM can come any more */
	SEND(&f, FORK, 1 << 30, .process.parent_pid = (uint32_t)pid);
	assert_null(find(&f, 1 << 30));
	reap(pid);
	stop(&f);
}

/* A server forks its workers while it is not decided about: each is looked at by itself. */
static void test_fork_before_the_first_look(void **state)
{
	struct fixture f;
	uint64_t at = now();
	pid_t parent = spawn_sleep(), child = spawn_sleep();

	(void)state;
	start(&f, (struct selector){.exe = "sleep"}, nothing);
	SEND(&f, EXEC, parent, .time_ns = at);
	SEND(&f, FORK, child, .time_ns = at, .process.parent_pid = (uint32_t)parent);
	assert_int_equal(f.judged, 0);
	assert_int_equal(f.n_selected, 0);
	turn(&f, at, 31);
	assert_int_equal(f.n_selected, 2);
	assert_int_equal(find(&f, child)->state, PROCESS_SELECTED);
	assert_int_equal(f.judged, child);
	stop(&f);
	reap(parent);
	reap(child);
}

/* A server forks itself into the background, and its first process is gone before anybody looked. */
static void test_fork_of_somebody_gone(void **state)
{
	struct fixture f;
	uint64_t at = now();
	pid_t child = spawn_sleep();

	(void)state;
	start(&f, (struct selector){.exe = "sleep"}, nothing);
	SEND(&f, EXEC, 1 << 29, .time_ns = at);
	SEND(&f, LISTEN, 1 << 29, .time_ns = at, .process.port = 8000);
	assert_null(find(&f, 1 << 29));
	SEND(&f, FORK, child, .time_ns = at, .process.parent_pid = 1 << 29);
	turn(&f, at, 31);
	assert_int_equal(find(&f, child)->state, PROCESS_SELECTED);
	stop(&f);
	reap(child);
}

/* Who is left alone is decided about too, at the first look and at each port. */
static void test_decisions_are_told(void **state)
{
	struct fixture f;
	uint64_t at = now();
	pid_t pid = spawn_sleep();

	(void)state;
	start(&f, nothing, nothing);
	SEND(&f, EXEC, pid, .time_ns = at);
	turn(&f, at, 31);
	assert_int_equal(f.judged, pid);
	f.judged = 0;
	SEND(&f, LISTEN, pid, .process.port = 8000);
	assert_int_equal(f.judged, pid);
	stop(&f);
	reap(pid);
}

static void test_ports(void **state)
{
	struct fixture f;
	uint64_t at = now();
	pid_t pid = spawn_sleep();

	(void)state;
	start(&f, (struct selector){.port_first = 8000, .port_last = 8010},
	      (struct selector){.port_first = 9000, .line = 5});
	SEND(&f, EXEC, pid, .time_ns = at);
	turn(&f, at, 30);
	assert_int_equal(find(&f, pid)->state, PROCESS_LEFT);
	SEND(&f, LISTEN, pid, .process.port = 7999);
	assert_int_equal(find(&f, pid)->state, PROCESS_LEFT);
	SEND(&f, LISTEN, pid, .process.port = 8001);
	assert_int_equal(find(&f, pid)->state, PROCESS_SELECTED);
	assert_true(find(&f, pid)->has_listening_port);
	assert_int_equal(find(&f, pid)->listening_port, 7999);

	/* Exclusion wins, also when it comes later. */
	SEND(&f, LISTEN, pid, .process.port = 9000);
	assert_int_equal(find(&f, pid)->state, PROCESS_LEFT);
	assert_string_equal(find(&f, pid)->why, "excluded by discover.exclude at line 5");
	assert_int_equal(f.n_unselected, 1);
	assert_non_null(discover_find_id(f.d, f.unselected[0]));
	reap(pid);
	stop(&f);
}

/* A process that nothing was heard of before: its parent is left alone, and it did not execute. */
static void test_unknown_process_listens(void **state)
{
	struct fixture f;
	pid_t pid = spawn_sleep();

	(void)state;
	start(&f, (struct selector){.port_first = 8000}, nothing);
	SEND(&f, LISTEN, pid, .process.port = 8000);
	assert_int_equal(find(&f, pid)->state, PROCESS_SELECTED);
	reap(pid);
	stop(&f);
}

static void test_environment_names(void **state)
{
	char *const arguments[] = {"/bin/sleep", "60", NULL};
	char *const environment[] = {
		"OTEL_RESOURCE_ATTRIBUTES=service.version=1.2,host.name=h,process.pid=1",
		"OTEL_SERVICE_NAME=orders", NULL};
	struct config_service service = {.match = {.exe = "sleep"}, .name = "configured"};
	const struct process *p;
	struct fixture f;
	uint64_t at = now();
	pid_t pid = spawn(arguments, environment);

	(void)state;
	setenv("OTEL_SERVICE_NAME", "of-the-daemon", 1);
	start(&f, (struct selector){.exe = "sleep"}, nothing);
	SEND(&f, EXEC, pid, .time_ns = at);
	turn(&f, at, 30);
	p = find(&f, pid);
	assert_string_equal(p->resource->service_name, "orders");
	assert_string_equal(attribute(p, "service.version"), "1.2");
	assert_string_equal(attribute(p, "host.name"), "h");
	assert_int_equal(resource_get(p->resource, "process.pid")->number, pid);
	stop(&f);

	start(&f, (struct selector){.exe = "sleep"}, nothing);
	f.config.services = &service;
	f.config.n_services = 1;
	SEND(&f, EXEC, pid, .time_ns = at);
	turn(&f, at, 30);
	assert_string_equal(find(&f, pid)->resource->service_name, "configured");
	unsetenv("OTEL_SERVICE_NAME");
	reap(pid);
	stop(&f);
}

static void test_refused_by_the_kernel_side(void **state)
{
	struct fixture f;
	uint64_t at = now();
	pid_t pid = spawn_sleep();

	(void)state;
	start(&f, (struct selector){.exe = "sleep"}, nothing);
	f.refusal = -E2BIG;
	SEND(&f, EXEC, pid, .time_ns = at);
	turn(&f, at, 30);
	assert_int_equal(find(&f, pid)->state, PROCESS_LEFT);
	assert_int_equal(find(&f, pid)->proc_id, 0);
	assert_non_null(strstr(find(&f, pid)->why, "refused"));
	assert_null(discover_find_id(f.d, f.selected[0]));
	SEND(&f, EXIT, pid, 0);
	assert_int_equal(f.n_unselected, 0);
	reap(pid);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_lived_is_not_looked_at),
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_not_selected_says_what_would),
		cmocka_unit_test(test_exec_makes_a_new_identity),
		cmocka_unit_test(test_pid_reuse),
		cmocka_unit_test(test_fork_of_selected),
		cmocka_unit_test(test_fork_of_others_costs_nothing),
		cmocka_unit_test(test_fork_before_the_first_look),
		cmocka_unit_test(test_fork_of_somebody_gone),
		cmocka_unit_test(test_decisions_are_told),
		cmocka_unit_test(test_ports),
		cmocka_unit_test(test_unknown_process_listens),
		cmocka_unit_test(test_environment_names),
		cmocka_unit_test(test_refused_by_the_kernel_side),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
