/*
 * Header insertion in the kernel (root): which requests and sockets are left alone, and what becomes
 * of a line that is not what it should be.
 */
#include <mntent.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>

#include "insert_ends.h"

/* --- heads that servers take, and would not with the line */

/* Whether one of 'length' bytes with so many fields is sent with the line. */
static bool head_has_line(size_t length, unsigned int fields)
{
	static char text[BYTES_MAX];
	size_t n = (size_t)snprintf(text, sizeof(text), "GET /5 HTTP/1.1\r\nHost: a\r\n");
	unsigned int lines;

	for (unsigned int i = 2; i < fields; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "F%u: a\r\n", i);
	snprintf(text + n, sizeof(text) - n, "P: %0*d\r\n\r\n", (int)(length - n - 7), 0);
	open_ends(1 << 17);
	write_all(text, length);
	assert_int_equal(strlen(text), length);
	while (read_some(sizeof(e.got), e.n_got < e.n_sent ? 1000 : 5))
		;
	lines = take_out_lines();
	assert_int_equal(e.n_got, e.n_sent);
	assert_memory_equal(e.got, e.sent, e.n_sent);
	event_reader_drain(reader);
	close_ends();
	return lines == 1;
}

static void test_limits(void **state)
{
	static const size_t limits[] = {4096, 8192, 15360};
	static const unsigned int fields[] = {50, 64, 96, 100, 200};
	uint64_t before = counter("insert_limit");

	(void)state;
	if (!insert)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		/* For 4096 more is kept free: what uWSGI counts beside it. */
		assert_int_equal(head_has_line(limits[i] - LINE_BYTES, 2), i > 0);
		assert_false(head_has_line(limits[i] - LINE_BYTES + 1, 2));
		assert_false(head_has_line(limits[i], 2));
		assert_false(head_has_line(limits[i] + 512, 2));
		if (limits[i] != 15360) /* 16384 is near */
			assert_true(head_has_line(limits[i] + 513, 2));
	}
	assert_true(head_has_line(4096 - 1024 - LINE_BYTES, 2));
	assert_false(head_has_line(4096 - 1024 - LINE_BYTES + 1, 2));
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		assert_true(head_has_line(2000, fields[i] - 1));
		assert_false(head_has_line(2000, fields[i]));
		assert_true(head_has_line(2000, fields[i] + 1));
	}
	assert_int_equal(counter("insert_limit"), before + 11 + ARRAY_SIZE(fields));
}

/* --- sockets of C in a Go process */

static void set_self(uint64_t text, uint64_t text_bytes)
{
	struct probe_process self = {.pid = (uint32_t)getpid(),
				     .proc_id = 5,
				     .propagates = true,
				     .go_text = text,
				     .go_text_bytes = text_bytes};

	assert_int_equal(probe_process_set(probe, &self), 0);
}

/* One that is made, and one that is there already. */
static void test_blocking(void **state)
{
	uint64_t before = counter("insert_not_go");

	(void)state;
	if (!insert)
		skip();
	open_ends_of(0, 0);
	assert_false(is_inserted_into());
	assert_int_equal(counter("insert_not_go"), before + 1);
	poll_as_go(e.client);
	take_connections();
	assert_true(is_inserted_into()); /* it is not blocking any more */
	close_ends();
	open_ends_of(0, 0);
	fcntl(e.client, F_SETFL, 0);
	poll_as_go(e.client);
	take_connections();
	assert_false(is_inserted_into());
	close_ends();
}

/* By where the call comes from: here from libc. */
static void test_whose_code(void **state)
{
	uint64_t connects = (uint64_t)(uintptr_t)connect & ~4095ULL, before;

	(void)state;
	if (!insert)
		skip();
	set_self(connects, 1 << 20);
	open_ends(0);
	assert_true(is_inserted_into());
	close_ends();
	before = counter("insert_not_go");
	set_self(connects - (1 << 20), 1 << 20);
	open_ends(0);
	assert_false(is_inserted_into());
	assert_int_equal(counter("insert_not_go"), before + 1);
	close_ends();
	set_self(0, 0);
}

static void *connect_elsewhere(void *unused)
{
	struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;

	assert_int_equal(unshare(CLONE_NEWNET), 0);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &loopback), 0);
	close(fd);
	open_ends(0);
	return unused;
}

/* By a thread that is in another network than its process: it could not be found there. */
static void test_network(void **state)
{
	uint64_t before = counter("insert_network");
	pthread_t thread;

	(void)state;
	if (!insert)
		skip();
	assert_int_equal(pthread_create(&thread, NULL, connect_elsewhere, NULL), 0);
	pthread_join(thread, NULL);
	assert_false(is_inserted_into());
	assert_int_equal(counter("insert_network"), before + 1);
	assert_false(request_has_line());
	close_ends();
}

static void test_zero_copy(void **state)
{
	uint64_t before = counter("insert_zero_copy");

	(void)state;
	if (!insert)
		skip();
	open_ends_of(0, SOCK_NONBLOCK | WITH_ZERO_COPY);
	assert_int_equal(poll(&(struct pollfd){.fd = e.client, .events = POLLOUT}, 1, 1000), 1);
	assert_false(is_inserted_into());
	assert_int_equal(counter("insert_zero_copy"), before + 1);
	poll_as_go(e.client);
	take_connections();
	assert_false(is_inserted_into());
	close_ends();
}

static int bytes_waiting(void)
{
	int n = -1;

	assert_int_equal(ioctl(e.client, FIONREAD, &n), 0);
	return n;
}

/* A child sends on it: that is not touched, and the socket is a plain one from the next look on. */
static void test_passed_on(void **state)
{
	static const char text[] = "GET /7 HTTP/1.1\r\nHost: a\r\n\r\n";
	int status;
	pid_t child;

	(void)state;
	if (!insert)
		skip();
	open_ends(0);
	assert_true(request_has_line());
	insert_drop_leaving(insert);
	assert_true(is_inserted_into());
	child = fork();
	if (child == 0)
		_exit(send(e.client, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	e.n_got = 0;
	while (read_some(sizeof(e.got), e.n_got < strlen(text) ? 1000 : 5))
		;
	assert_int_equal(e.n_got, strlen(text));
	assert_memory_equal(e.got, text, e.n_got);
	insert_drop_leaving(insert);
	assert_false(is_inserted_into());
	assert_int_equal(send(e.server, "HTTP/1.1 200 OK\r\n", 17, MSG_NOSIGNAL), 17);
	poll(&(struct pollfd){.fd = e.client, .events = POLLIN}, 1, 1000);
	assert_int_equal(bytes_waiting(), 17);
	close_ends();
}

/* What is no HTTP/1 leaves as it is, and on a plain socket from the next look on. */
static void test_not_followed(void **state)
{
	static const char *const texts[] = {
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"SSH-2.0-Go\r\n",
	};
	uint64_t inserted = counter("inserted");

	(void)state;
	if (!insert)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		size_t n = i ? strlen(texts[i]) : 11;

		open_ends(0);
		assert_true(is_inserted_into());
		assert_int_equal(send(e.client, texts[i], n, MSG_NOSIGNAL), n);
		while (read_some(sizeof(e.got), e.n_got < n ? 1000 : 5))
			;
		assert_int_equal(e.n_got, n);
		assert_memory_equal(e.got, texts[i], n);
		insert_drop_leaving(insert);
		assert_false(is_inserted_into());
		close_ends();
	}
	assert_int_equal(metrics_get(METRIC_PROPAGATION_NOT_FOLLOWED), ARRAY_SIZE(texts));
	assert_int_equal(counter("inserted"), inserted);
}

/* As for C that waits in reads: from the next look behind a send on it waits as ever. */
static void test_made_blocking(void **state)
{
	(void)state;
	if (!insert)
		skip();
	open_ends(0);
	assert_true(request_has_line());
	insert_drop_leaving(insert);
	assert_true(is_inserted_into());
	fcntl(e.client, F_SETFL, 0);
	request_has_line();
	insert_drop_leaving(insert);
	assert_false(is_inserted_into());
	assert_int_equal(metrics_get(METRIC_PROPAGATION_BLOCKING), 1);
	close_ends();
}

/* One that was there already: whether Go's runtime polls it tells whose it is. */
static void test_older(void **state)
{
	_cleanup_(closep) int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET};
	uint32_t self = (uint32_t)getpid();
	uint64_t before;

	(void)state;
	if (!insert)
		skip();
	insert_suspend(insert);
	open_ends(0);
	insert_resume(insert);
	insert_take_now(insert, &self, 1, NULL);
	assert_false(is_inserted_into());
	before = metrics_get(METRIC_PROPAGATION_CONNECTIONS_NOT_GO);
	/* As C does; the other end is here as well. */
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, e.client, &event), 0);
	insert_take_now(insert, &self, 1, NULL);
	assert_false(is_inserted_into());
	assert_int_equal(metrics_get(METRIC_PROPAGATION_CONNECTIONS_NOT_GO), before + 2);
	event.events |= EPOLLRDHUP;
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_MOD, e.client, &event), 0);
	insert_take_now(insert, &self, 1, NULL);
	assert_true(is_inserted_into());
	close_ends();
}

/* --- what has not been seen to go wrong, made to */

static struct bpf_link *connections;

/* The self-test has failed by it, and nothing is attached; here the map is put to use all the same. */
static void use_anyway(void)
{
	struct bpf_object *object = insert_object(insert);
	FILE *mounts = setmntent("/proc/mounts", "re");
	const struct mntent *mount;
	int cgroup = -1;

	assert_non_null(insert_why_not(insert));
	assert_int_equal(
		bpf_prog_attach(
			bpf_program__fd(bpf_object__find_program_by_name(object, "in_message")),
			bpf_map__fd(bpf_object__find_map_by_name(object, "sockets")),
			BPF_SK_MSG_VERDICT, 0),
		0);
	assert_non_null(mounts);
	while (cgroup < 0 && (mount = getmntent(mounts)))
		if (strcmp(mount->mnt_type, "cgroup2") == 0)
			cgroup = open(mount->mnt_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	endmntent(mounts);
	connections = bpf_program__attach_cgroup(
		bpf_object__find_program_by_name(object, "in_connection"), cgroup);
	assert_non_null(connections);
	close(cgroup);
}

/* A test that fails leaves nothing behind. */
static void test_detached(void **state)
{
	(void)state;
	if (!insert)
		skip();
	assert_non_null(insert_why_not(insert));
	open_ends(0);
	assert_false(is_inserted_into());
	assert_false(request_has_line());
	poll_as_go(e.client);
	take_connections();
	assert_false(request_has_line());
	assert_int_equal(counter("insert_undone"), 0);
	close_ends();
}

/* The line is taken out: the bytes are as they were, and the connection is left alone from then on. */
static void test_undone(void **state)
{
	(void)state;
	if (!insert)
		skip();
	use_anyway();
	open_ends(0);
	assert_true(is_inserted_into());
	assert_false(request_has_line());
	assert_int_equal(counter("insert_undone"), 1);
	for (int i = 0; i < 3; i++)
		assert_false(request_has_line());
	assert_int_equal(counter("insert_undone"), 1);
	assert_int_equal(counter("insert_dropped"), 0);
	assert_int_equal(counter("inserted"), 0);
	assert_int_equal(counter("out_of_step"), 0);
	close_ends();
}

/* It cannot be: the send fails, nothing of it is on the wire, nor of any later one. */
static void test_dropped(void **state)
{
	static const char text[] = "GET /6 HTTP/1.1\r\nHost: a\r\n\r\n";

	(void)state;
	if (!insert)
		skip();
	use_anyway();
	open_ends(0);
	assert_true(is_inserted_into());
	for (int i = 0; i < 3; i++) {
		assert_int_equal(send(e.client, text, strlen(text), MSG_NOSIGNAL), -1);
		assert_int_equal(errno, EACCES);
	}
	assert_int_equal(read_some(sizeof(e.got), 200), 0);
	assert_int_equal(counter("insert_undone"), 1);
	assert_int_equal(counter("insert_dropped"), 1);
	close(e.client);
	/* The end, and nothing before it. */
	assert_int_equal(recv(e.server, e.got, sizeof(e.got), 0), 0);
	close(e.server);
}
static int setup(void **state)
{
	(void)state;
	return set_up(false, false);
}

static int teardown_fault(void **state)
{
	bpf_link__destroy(connections);
	connections = NULL;
	return teardown(state);
}

static int setup_line_fault(void **state)
{
	(void)state;
	return set_up(true, false);
}

static int setup_both_faults(void **state)
{
	(void)state;
	return set_up(true, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits),       cmocka_unit_test(test_blocking),
		cmocka_unit_test(test_whose_code),   cmocka_unit_test(test_network),
		cmocka_unit_test(test_zero_copy),    cmocka_unit_test(test_passed_on),
		cmocka_unit_test(test_not_followed), cmocka_unit_test(test_made_blocking),
		cmocka_unit_test(test_older),
	};
	const struct CMUnitTest line_fault[] = {
		cmocka_unit_test(test_detached),
		cmocka_unit_test(test_undone),
	};
	const struct CMUnitTest both_faults[] = {
		cmocka_unit_test(test_dropped),
	};

	if (geteuid() != 0) {
		printf("needs root\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown) +
	       cmocka_run_group_tests(line_fault, setup_line_fault, teardown_fault) +
	       cmocka_run_group_tests(both_faults, setup_both_faults, teardown_fault);
}
