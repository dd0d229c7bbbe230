/*
 * Header insertion in the kernel (root): what is tried at every start, and that the bytes are right
 * when the socket has little or no room left. Real Go programs are in tests/e2e.
 */
#include "insert_ends.h"

static void test_checks(void **state)
{
	(void)state;
	if (!insert)
		skip();
	for (size_t i = 0; i < _INSERT_CHECK_MAX; i++) {
		const struct insert_result *r = &insert_results(insert)[i];

		printf("%s: %s\n", r->name, r->failure[0] ? r->failure : "passed");
		if (i != INSERT_CHECK_FIONREAD)
			assert_string_equal(r->failure, "");
	}
	assert_null(insert_why_not(insert));
	/* What the test did was counted, and is forgotten. */
	assert_int_equal(counter("inserted"), 0);
}

/* It is given up while it is loaded: nobody waits for it, and what is in use goes on. */
static void test_given_up(void **state)
{
	struct insert_options options = {.head_bytes_max = 16384, .connections_max = 1024};
	struct insert_load *load;
	uint64_t begin;

	(void)state;
	if (!insert)
		skip();
	for (int i = 0; i < 3; i++) {
		begin = now_ns(CLOCK_MONOTONIC);
		assert_int_equal(insert_load_new(probe, &options, &load), 0);
		usleep((useconds_t)i * 50000);
		assert_int_equal(poll(&(struct pollfd){.fd = insert_load_fd(load)}, 1, 0), 0);
		insert_load_free(load);
		printf("begun and given up in %.3f s\n",
		       (double)(now_ns(CLOCK_MONOTONIC) - begin) / NSEC_PER_SEC);
	}
	open_ends(0);
	assert_true(request_has_line());
	close_ends();
}

/* --- no room */

/*
 * A body that is answered before it has been read fills the socket to some degree; then a request
 * follows.
 */
static unsigned int send_request_behind(int send_bytes, size_t body, size_t padding)
{
	static char text[BYTES_MAX];
	unsigned int lines;
	int n;

	open_ends(send_bytes);
	n = snprintf(text, sizeof(text),
		     "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", body);
	write_all(text, (size_t)n);
	memset(text, 'b', body);
	write_all(text, body);
	answer();
	n = snprintf(text, sizeof(text), "GET /2 HTTP/1.1\r\nHost: a\r\nPadding: %0*d\r\n\r\n",
		     (int)padding, 0);
	write_all(text, (size_t)n);
	while (read_some(sizeof(e.got), e.n_got < e.n_sent ? 1000 : 5))
		;
	lines = take_out_lines();
	assert_int_equal(e.n_got, e.n_sent);
	assert_memory_equal(e.got, e.sent, e.n_sent);
	close(e.client);
	close(e.server);
	return lines;
}

static void test_no_room(void **state)
{
	unsigned int lines = 0, rounds = 0;

	(void)state;
	if (!insert)
		skip();
	for (int send_bytes = 2304; send_bytes <= 20000; send_bytes += 1777)
		for (size_t body = 0; body < 24000; body += 1009) {
			lines += send_request_behind(send_bytes, body, 1 + body * 7 % 2600);
			event_reader_drain(reader);
			rounds++;
		}
	printf("%u rounds, %u lines, %llu without room\n", rounds, lines,
	       (unsigned long long)counter("insert_no_room"));
	assert_true(lines > rounds / 10);
	assert_true(counter("insert_no_room") > rounds / 10);
	assert_int_equal(counter("inserted"), lines);
	assert_int_equal(counter("insert_undone"), 0);
	assert_int_equal(counter("insert_dropped"), 0);
}

/* --- taken out and in again, and sockets that are somebody else's */

static void test_suspend(void **state)
{
	struct probe_process self = {.pid = (uint32_t)getpid(), .proc_id = 5};
	(void)state;
	if (!insert)
		skip();
	open_ends(0);
	assert_true(is_inserted_into());
	assert_true(request_has_line());
	insert_suspend(insert);
	assert_false(is_inserted_into());
	for (int i = 0; i < 3; i++)
		assert_false(request_has_line());
	/* By whom it was not told in time. */
	poll_as_go(e.client);
	take_connections();
	assert_false(is_inserted_into());
	insert_suspend(insert);
	insert_resume(insert);
	self.propagates = false;
	assert_int_equal(probe_process_set(probe, &self), 0);
	take_connections();
	assert_false(is_inserted_into());
	self.propagates = true;
	assert_int_equal(probe_process_set(probe, &self), 0);
	take_connections();
	assert_true(is_inserted_into());
	for (int i = 0; i < 3; i++)
		assert_true(request_has_line());
	close_ends();

	/* One that is made meanwhile; what was sent on it has been followed. */
	insert_suspend(insert);
	open_ends(0);
	assert_false(is_inserted_into());
	assert_false(request_has_line());
	insert_resume(insert);
	poll_as_go(e.client);
	take_connections();
	assert_true(request_has_line());
	close_ends();
	assert_int_equal(counter("out_of_step"), 0);
}

/*
 * On a socket that was taken out a send that fails altogether has been followed in vain: what is
 * sent instead is known to be anything.
 */
static void test_suspend_failed_send(void **state)
{
	static const char head[] = "POST /4 HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n";
	struct timeval wait = {.tv_usec = 50000};
	uint64_t before = counter("out_of_step");
	static char body[4096];

	(void)state;
	/* The tap at a tracepoint is told of what was taken only. */
	if (!insert || probe_tap_used(probe) != PROBE_TAP_FENTRY)
		skip();
	open_ends(0);
	assert_true(request_has_line());
	insert_suspend(insert);
	fcntl(e.client, F_SETFL, 0);
	setsockopt(e.client, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	assert_int_equal(send(e.client, head, strlen(head), 0), strlen(head));
	while (send(e.client, body, sizeof(body), 0) > 0)
		;
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(counter("out_of_step"), before + 1);
	close_ends();
	insert_resume(insert);
}

/* Many of them. */
static void test_suspend_many(void **state)
{
	static int clients[400], servers[400];

	(void)state;
	if (!insert)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
		open_ends(0);
		clients[i] = e.client;
		servers[i] = e.server;
	}
	insert_suspend(insert);
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
		e.client = clients[i];
		assert_false(is_inserted_into());
	}
	insert_resume(insert);
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
		poll_as_go(clients[i]);
	take_connections();
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
		e.client = clients[i];
		assert_true(is_inserted_into());
		close(clients[i]);
		close(servers[i]);
	}
}

static int foreign_map(void)
{
	return bpf_map_create(BPF_MAP_TYPE_SOCKHASH, "foreign", sizeof(uint64_t), sizeof(uint64_t),
			      4, NULL);
}

/* Somebody else has the socket as well: it is left alone, as its bytes may go elsewhere. */
static void test_foreign(void **state)
{
	uint64_t key = 1, value, off = counter("insert_socket");
	int map = foreign_map();

	(void)state;
	if (!insert)
		skip();
	assert_true(map >= 0);
	event_reader_drain(reader);
	open_ends(0);
	assert_true(is_inserted_into());
	assert_true(request_has_line());
	value = (uint64_t)e.client;
	assert_int_equal(bpf_map_update_elem(map, &key, &value, BPF_ANY), 0);
	assert_false(request_has_line());
	assert_int_equal(counter("insert_socket"), off + 1);
	/* And in no way later, when it is only theirs or only ours. */
	assert_int_equal(bpf_map_delete_elem(map, &key), 0);
	assert_false(request_has_line());
	close_ends();

	/* Only theirs, but what our map had on it has stayed. */
	open_ends(0);
	assert_true(request_has_line());
	value = (uint64_t)e.client;
	assert_int_equal(bpf_map_update_elem(map, &key, &value, BPF_ANY), 0);
	insert_suspend(insert);
	assert_false(request_has_line());
	insert_resume(insert);
	close_ends();
	close(map);
}

static int setup(void **state)
{
	(void)state;
	return set_up(false, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checks),   cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_suspend),  cmocka_unit_test(test_suspend_many),
		cmocka_unit_test(test_foreign),  cmocka_unit_test(test_suspend_failed_send),
		cmocka_unit_test(test_given_up),
	};

	if (geteuid() != 0) {
		printf("needs root\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
