/*
 * Header insertion in the kernel (root): what only looks like a request that begins there, sockets
 * that were put where they are, and those whose messages would wait.
 */
#include "insert_ends.h"

/* All arrives as it was sent: no line is in it. */
static void expect_unchanged(const char *text)
{
	open_ends(0);
	assert_true(is_inserted_into());
	write_all(text, strlen(text));
	while (read_some(sizeof(e.got), e.n_got < e.n_sent ? 1000 : 5))
		;
	assert_int_equal(e.n_got, e.n_sent);
	assert_memory_equal(e.got, e.sent, e.n_sent);
	event_reader_drain(reader);
	close_ends();
}

/* What is behind the request in the same message is none, so nothing of it tells about the request. */
static void test_what_follows(void **state)
{
	(void)state;
	if (!insert)
		skip();
	expect_unchanged(
		"POST /x HTTP/1.1\r\nHost: a\r\n"
		"Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n"
		"abc def\n");
	expect_unchanged("CONNECT a:25 HTTP/1.1\r\nHost: a:25\r\n\r\nEHLO there\n");
	expect_unchanged("GET /x HTTP/1.1\r\nHost: a\r\n\r\nabc def\n");
}

/* Where the head ends depends on who reads it. */
static void test_doubtful_end(void **state)
{
	(void)state;
	if (!insert)
		skip();
	expect_unchanged("POST / HTTP/1.1\r\nContent-Length: 20\r\n\r\r\n0123456789012\r\n\r\n678");
	expect_unchanged("POST / HTTP/1.1\nHost: a\r\nContent-Length: 4\r\n\r\n0123");
	expect_unchanged("POST / HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n0123");
}

/* A message in two pieces would wait in between for the peer. */
static void test_nagle(void **state)
{
	int off = 0;

	(void)state;
	if (!insert)
		skip();
	open_ends(0);
	assert_true(request_has_line());
	assert_int_equal(setsockopt(e.client, IPPROTO_TCP, TCP_NODELAY, &off, sizeof(off)), 0);
	assert_false(request_has_line());
	insert_drop_leaving(insert);
	assert_false(is_inserted_into());
	assert_int_equal(metrics_get(METRIC_PROPAGATION_NAGLE), 1);
	close_ends();
}

static void repair_set(int fd, int mode)
{
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &mode, sizeof(mode)), 0);
}

static uint32_t queue_seq(int fd, int queue, const uint32_t *set)
{
	socklen_t length = sizeof(uint32_t);
	uint32_t seq = 0;

	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, &queue, sizeof(queue)), 0);
	if (set)
		assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, set, length), 0);
	else
		assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, &seq, &length), 0);
	return seq;
}

/* Until nothing is on its way any more: what came while there is no client would be refused. */
static void wait_for_silence(void)
{
	struct tcp_info info;
	socklen_t length;

	do {
		poll(NULL, 0, 10);
		length = sizeof(info);
		assert_int_equal(getsockopt(e.server, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
	} while (info.tcpi_unacked);
}

/* The client's end goes on in another socket, as when a process is restored from a file. */
static void restore_client(void)
{
	struct sockaddr_in own, peer;
	socklen_t length = sizeof(own);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
	uint32_t sent, received;

	assert_int_equal(getsockname(e.client, (struct sockaddr *)&own, &length), 0);
	assert_int_equal(getpeername(e.client, (struct sockaddr *)&peer, &length), 0);
	wait_for_silence();
	assert_int_equal(setsockopt(e.client, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	repair_set(e.client, TCP_REPAIR_ON);
	sent = queue_seq(e.client, TCP_SEND_QUEUE, NULL);
	received = queue_seq(e.client, TCP_RECV_QUEUE, NULL);
	close(e.client); /* silently */

	repair_set(fd, TCP_REPAIR_ON);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
	/* What is closed may be there a moment longer. */
	for (int i = 0; bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0; i++) {
		assert_in_range(i, 0, 1000);
		poll(NULL, 0, 10);
	}
	queue_seq(fd, TCP_SEND_QUEUE, &sent);
	queue_seq(fd, TCP_RECV_QUEUE, &received);
	assert_int_equal(connect(fd, (struct sockaddr *)&peer, sizeof(peer)), 0);
	repair_set(fd, TCP_REPAIR_OFF); /* asks the peer for its window */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	e.client = fd;
}

/* It may be in the middle of an upload: two exchanges must be seen to their ends first. */
static void test_restored(void **state)
{
	(void)state;
	if (!insert)
		skip();
	open_ends(0);
	assert_true(request_has_line());
	restore_client();
	assert_false(is_inserted_into());
	poll_as_go(e.client);
	take_connections();
	assert_true(is_inserted_into());
	assert_false(request_has_line());
	assert_false(request_has_line());
	assert_true(request_has_line());
	close_ends();
}

/* Connects where there is no room until 'then' has been called; whether it is in the map at last. */
static bool is_taken_late(void (*then)(void))
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), first;
	struct pollfd ready = {.events = POLLOUT};
	socklen_t length = sizeof(address);
	bool is_inside;

	assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(listener, 0), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	first = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(first, (struct sockaddr *)&address, length), 0);
	e.client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(connect(e.client, (struct sockaddr *)&address, length), -1);
	ready.fd = e.client;
	assert_int_equal(poll(&ready, 1, 100), 0);
	then();
	e.server = accept(listener, NULL, NULL);
	assert_int_equal(poll(&ready, 1, 5000), 1);
	is_inside = is_inserted_into();
	close_ends();
	close(first);
	close(listener);
	return is_inside;
}

static void nothing(void)
{
}

static void leave_self(void)
{
	probe_process_remove(probe, (uint32_t)getpid());
}

/* A process that has become another one, or is no longer traced, between the call and its end. */
static void test_late(void **state)
{
	struct probe_process self = {.pid = (uint32_t)getpid(), .proc_id = 5, .propagates = true};

	(void)state;
	if (!insert)
		skip();
	assert_true(is_taken_late(nothing));
	assert_false(is_taken_late(leave_self));
	assert_int_equal(probe_process_set(probe, &self), 0);
}

/* Nothing that the program for messages refers to holds the program: both end with the daemon. */
static void test_ends_alone(void **state)
{
	struct bpf_object *object = insert ? insert_object(insert) : NULL;
	uint32_t ids[64], size = sizeof(struct bpf_map_info);
	struct bpf_prog_info program = {.nr_map_ids = ARRAY_SIZE(ids), .map_ids = (uintptr_t)ids};
	struct bpf_map_info sockets = {0};

	(void)state;
	if (!insert)
		skip();
	assert_int_equal(
		bpf_obj_get_info_by_fd(bpf_map__fd(bpf_object__find_map_by_name(object, "sockets")),
				       &sockets, &size),
		0);
	size = sizeof(program);
	assert_int_equal(bpf_obj_get_info_by_fd(bpf_program__fd(bpf_object__find_program_by_name(
							object, "in_message")),
						&program, &size),
			 0);
	assert_in_range(program.nr_map_ids, 1, ARRAY_SIZE(ids));
	for (uint32_t i = 0; i < program.nr_map_ids; i++)
		assert_int_not_equal(ids[i], sockets.id);
}

static int setup(void **state)
{
	(void)state;
	return set_up(false, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_follows), cmocka_unit_test(test_doubtful_end),
		cmocka_unit_test(test_nagle),        cmocka_unit_test(test_restored),
		cmocka_unit_test(test_late),         cmocka_unit_test(test_ends_alone),
	};

	if (geteuid() != 0) {
		printf("needs root\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
