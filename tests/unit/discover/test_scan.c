/* The pass over /proc; see fixture.h. */
#include "unit/discover/fixture.h"

static void listen_somewhere(void *userdata)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	uint16_t *port = userdata;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 1) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) < 0)
		_exit(1);
	*port = ntohs(address.sin_port);
}

static int count_process(const struct process *p, void *userdata)
{
	size_t *n = userdata;

	assert_int_not_equal(p->state, PROCESS_NEW);
	assert_non_null(p->why);
	(*n)++;
	return 0;
}

static void test_scan(void **state)
{
	uint16_t *port =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t sleeper = spawn_sleep(), listener = fork_child(listen_somewhere, port);
	struct fixture f;
	size_t n = 0;
	uint32_t id;

	(void)state;
	start(&f, (struct selector){.exe = "sleep"}, nothing);
	assert_int_equal(discover_scan(f.d), 0);
	assert_int_equal(find(&f, sleeper)->state, PROCESS_SELECTED);
	assert_false(find(&f, sleeper)->has_listening_port);
	assert_int_equal(find(&f, listener)->state, PROCESS_LEFT);
	assert_true(find(&f, listener)->has_listening_port);
	assert_int_equal(find(&f, listener)->listening_port, *port);
	assert_int_equal(find(&f, getpid())->state, PROCESS_LEFT);
	assert_string_equal(find(&f, getpid())->why, "excluded: this is tsunagid itself");
	assert_null(find(&f, 2)); /* kthreadd, or nobody */
	assert_int_equal(discover_walk(f.d, count_process, &n), 0);
	assert_true(n >= 3);

	/* A second pass keeps who is there and drops who is not. */
	reap(listener);
	id = find(&f, sleeper)->proc_id;
	assert_int_equal(discover_scan(f.d), 0);
	assert_null(find(&f, listener));
	assert_int_equal(find(&f, sleeper)->proc_id, id);
	reap(sleeper);
	munmap(port, 4096);
	stop(&f);
}

static void test_instance_id_is_stable(void **state)
{
	char first[64];
	struct fixture f;
	uint64_t at = now();
	pid_t pid = spawn_sleep();

	(void)state;
	start(&f, (struct selector){.exe = "sleep"}, nothing);
	SEND(&f, EXEC, pid, .time_ns = at);
	turn(&f, at, 30);
	snprintf(first, sizeof(first), "%s", attribute(find(&f, pid), "service.instance.id"));
	stop(&f);
	start(&f, (struct selector){.exe = "sleep"}, nothing);
	assert_int_equal(discover_scan(f.d), 0);
	assert_string_equal(attribute(find(&f, pid), "service.instance.id"), first);
	reap(pid);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scan),
		cmocka_unit_test(test_instance_id_is_stable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
