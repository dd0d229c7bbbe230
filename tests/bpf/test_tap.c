/*
 * The kernel side in the kernel (root): loads, attaches, follows real sockets of this very process,
 * and leaves nothing behind. What it decides is tested on the host (unit/bpf) and against real
 * services (e2e).
 */
#include "tap_ends.h"

#include "probe/insert.h"
#include "verifier.h"

static struct probe *load_whole(void (*before_load)(struct bpf_object *object))
{
	struct probe_refusal refusals[_PROBE_TAP_MAX] = {0};
	struct probe_options options = usual;
	struct probe *whole;

	options.tap = (int)probe_tap_used(probe);
	options.before_load = before_load;
	if (probe_new(&options, &whole, refusals) == 0)
		return whole;
	print_refusals(refusals);
	fail();
	return NULL;
}

static bool is_told_by_info(const struct probe *p)
{
	const struct bpf_program *program =
		bpf_object__find_program_by_name(probe_object(p), "tp_exec");

	assert_non_null(program);
	return instructions_by_info(program) != 0;
}

static size_t expect_room_of(struct bpf_object *object)
{
	struct bpf_program *program;
	size_t i = 0, loaded = 0;

	bpf_object__for_each_program(program, object)
	{
		if (bpf_program__fd(program) >= 0) {
			expect_room(program, verifier_logs[i]);
			loaded++;
		}
		i++;
	}
	return loaded;
}

static void test_verifier_has_room(void **state)
{
	void (*before_load)(struct bpf_object *) = is_told_by_info(probe) ? NULL : ask_verifier;
	_cleanup_(probe_freep) struct probe *whole = load_whole(before_load);
	_cleanup_(insert_freep) struct insert *insert = NULL;
	_cleanup_(insert_load_freep) struct insert_load *load = NULL;
	struct insert_options options = {
		.head_bytes_max = 16384, .connections_max = 64, .before_load = before_load};
	struct probe_refusal refusal = {0};

	(void)state;
	assert_true(expect_room_of(probe_object(whole)) > 0);
	if (insert_load_refusal(whole))
		return;
	assert_int_equal(insert_load_new(whole, &options, &load), 0);
	if (insert_new(whole, load, &insert, &refusal)) {
		printf("refused: %s\n", refusal.reason);
		fail();
	}
	assert_int_equal(expect_room_of(insert_object(insert)), 2);
}

static void test_one_exchange(void **state)
{
	const struct event *client = NULL, *server = NULL;
	unsigned int responses = 0, ends = 0, closes = 0;
	int fds[2];

	(void)state;
	n_events = 0;
	select_this_process();
	connect_pair(fds);
	move(fds[0], fds[1], REQUEST);
	move(fds[1], fds[0], RESPONSE);
	close(fds[0]);
	close(fds[1]);
	usleep(50000);
	assert_true(event_reader_drain(reader) > 0);

	for (unsigned int i = 0; i < n_events; i++) {
		const struct event *e = &events[i];

		assert_int_equal(e->proc_id, 5);
		assert_int_equal(e->pid, getpid());
		ends += e->type == EVENT_END;
		closes += e->type == EVENT_CLOSE && e->close.what == EVENT_CLOSE_DONE;
		if (e->type != EVENT_HEAD)
			continue;
		if (!e->head.is_request) {
			assert_string_equal(texts[i],
					    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
			responses++;
			continue;
		}
		assert_string_equal(texts[i], REQUEST);
		assert_true(e->head.is_start && e->head.is_end && e->head.has_decision);
		if (e->role == EVENT_ROLE_CLIENT)
			client = e;
		else
			server = e;
	}
	assert_non_null(client);
	assert_non_null(server);
	assert_int_equal(responses, 2);
	assert_int_equal(ends, 0); /* short ones: the records of the heads say so */
	assert_int_equal(closes, 2);
	assert_int_equal(server->head.reason, PARENT_JOINED);
	assert_memory_equal(&server->head.parent_span_id, &client->head.span_id, 8);
	assert_memory_equal(&server->head.trace_id, &client->head.trace_id, 16);
	assert_int_equal(server->head.local.port, client->head.remote.port);
	assert_int_equal(client->head.reason, PARENT_NONE_NO_REQUEST);
}

/* Two clients' requests on the same socket, which ends one connection and begins another. */
static void test_second_connection_of_a_socket(void **state)
{
	const struct sockaddr none = {.sa_family = AF_UNSPEC};
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t length = sizeof(address);
	unsigned int requests = 0;
	int fds[2], listener;

	(void)state;
	n_events = 0;
	connect_pair(fds);
	move(fds[0], fds[1], REQUEST);
	move(fds[1], fds[0], RESPONSE);
	assert_int_equal(connect(fds[0], &none, sizeof(none)), 0);
	close(fds[1]);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	assert_int_equal(connect(fds[0], (struct sockaddr *)&address, sizeof(address)), 0);
	fds[1] = accept(listener, NULL, NULL);
	move(fds[0], fds[1], REQUEST);
	move(fds[1], fds[0], RESPONSE);
	usleep(50000);
	event_reader_drain(reader);
	for (unsigned int i = 0; i < n_events; i++) {
		const struct event *e = &events[i];

		if (e->type != EVENT_HEAD || !e->head.is_request || e->role != EVENT_ROLE_CLIENT)
			continue;
		if (++requests == 2)
			assert_int_equal(e->head.remote.port, ntohs(address.sin_port));
	}
	assert_int_equal(requests, 2);
	close(fds[0]);
	close(fds[1]);
	close(listener);
	event_reader_drain(reader);
}

/* A send that connects: its bytes have their numbers only when it has. */
static void test_fast_open(void **state)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t length = sizeof(address);
	unsigned int heads = 0;
	int fds[2], listener;

	(void)state;
	if (probe_tap_used(probe) == PROBE_TAP_KPROBE)
		skip(); /* is not told how a send ends */
	n_events = 0;
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(sendto(fds[0], REQUEST, sizeof(REQUEST) - 1, MSG_FASTOPEN,
				(struct sockaddr *)&address, sizeof(address)),
			 sizeof(REQUEST) - 1);
	fds[1] = accept(listener, NULL, NULL);
	move(fds[1], fds[0], RESPONSE);
	move(fds[0], fds[1], REQUEST);
	usleep(50000);
	event_reader_drain(reader);
	for (unsigned int i = 0; i < n_events; i++)
		heads += events[i].type == EVENT_HEAD && events[i].role == EVENT_ROLE_CLIENT;
	assert_int_equal(heads, 3);
	close(fds[0]);
	close(fds[1]);
	close(listener);
	event_reader_drain(reader);
}

/* A response of many sends ends with a record of its own, when its last byte has left. */
static void test_end_of_a_long_response(void **state)
{
	unsigned int ends = 0, complete = 0;
	int fds[2];

	(void)state;
	n_events = 0;
	connect_pair(fds);
	move(fds[0], fds[1], REQUEST);
	move(fds[1], fds[0], "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
	move(fds[1], fds[0], "3\r\nabc\r\n");
	event_reader_drain(reader);
	for (unsigned int i = 0; i < n_events; i++)
		assert_int_equal(events[i].type, EVENT_HEAD);
	move(fds[1], fds[0], "0\r\n\r\n");
	usleep(50000);
	event_reader_drain(reader);
	for (unsigned int i = 0; i < n_events; i++) {
		ends += events[i].type == EVENT_END;
		complete += events[i].type == EVENT_HEAD && events[i].head.is_complete;
	}
	assert_int_equal(ends, 2);
	assert_int_equal(complete, 0);
	close(fds[0]);
	close(fds[1]);
	event_reader_drain(reader);
}

/* What the server's end was seen to receive, its parts put together. */
static void expect_received(const char *text)
{
	char all[4096] = "";

	usleep(50000);
	event_reader_drain(reader);
	for (unsigned int i = 0; i < n_events; i++)
		if (events[i].type == EVENT_HEAD && events[i].head.is_request &&
		    events[i].role == EVENT_ROLE_SERVER)
			strncat(all, texts[i], sizeof(all) - strlen(all) - 1);
	assert_string_equal(all, text);
}

/* A look at the bytes is no receive; a vector's short segments are put together again. */
static void test_peek_and_vector(void **state)
{
	char first[3], second[1], third[8192];
	struct iovec vector[] = {{first, sizeof(first)},
				 {second, 0},
				 {second, sizeof(second)},
				 {third, sizeof(third)}};
	int fds[2];

	(void)state;
	n_events = 0;
	connect_pair(fds);
	assert_int_equal(send(fds[0], REQUEST, strlen(REQUEST), 0), strlen(REQUEST));
	assert_int_equal(recv(fds[1], third, sizeof(third), MSG_PEEK), strlen(REQUEST));
	assert_int_equal(readv(fds[1], vector, 4), strlen(REQUEST));
	expect_received(REQUEST);
	close(fds[0]);
	close(fds[1]);
	event_reader_drain(reader);
}

/* Each message of a recvmmsg call, which only a tap with the kernel's iterator can tell apart. */
static void test_messages_of_one_call(void **state)
{
	char buffers[4][10];
	struct iovec vectors[4][2];
	struct mmsghdr messages[4] = {0};
	int fds[2];

	(void)state;
	if (probe_tap_used(probe) == PROBE_TAP_TRACEPOINT)
		skip();
	for (int i = 0; i < 4; i++) {
		vectors[i][0] = (struct iovec){buffers[i], 4};
		vectors[i][1] = (struct iovec){buffers[i] + 4, 6};
		messages[i].msg_hdr = (struct msghdr){.msg_iov = vectors[i], .msg_iovlen = 2};
	}
	n_events = 0;
	connect_pair(fds);
	assert_int_equal(send(fds[0], REQUEST, strlen(REQUEST), 0), strlen(REQUEST));
	assert_int_equal(recvmmsg(fds[1], messages, 4, MSG_WAITFORONE, NULL), 4);
	expect_received(REQUEST);
	close(fds[0]);
	close(fds[1]);
	event_reader_drain(reader);
}

static unsigned int responses_of_server(void)
{
	unsigned int n = 0;

	usleep(50000);
	event_reader_drain(reader);
	for (unsigned int i = 0; i < n_events; i++)
		n += events[i].type == EVENT_HEAD && !events[i].head.is_request &&
		     events[i].role == EVENT_ROLE_SERVER;
	return n;
}

/* A send that finds no room has sent nothing: the response is told of when it leaves. */
static void test_no_room(void **state)
{
	char bytes[8192] = "";
	size_t filled = 0;
	int fds[2];

	(void)state;
	n_events = 0;
	connect_pair(fds);
	move(fds[0], fds[1], REQUEST);
	/* Filled unseen. Room may still come for a while, as the peer puts its memory in order. */
	probe_process_remove(probe, (uint32_t)getpid());
	for (int calm = 0; calm < 4; calm++) {
		ssize_t n;

		while ((n = send(fds[1], bytes, calm ? 1 : sizeof(bytes), MSG_DONTWAIT)) > 0) {
			filled += (size_t)n;
			calm = 0;
		}
		usleep(100000);
	}
	select_this_process();
	assert_int_equal(send(fds[1], RESPONSE, strlen(RESPONSE), MSG_DONTWAIT), -1);
	assert_int_equal(responses_of_server(), 0);
	while (filled) {
		ssize_t n = recv(fds[0], bytes, MIN(filled, sizeof(bytes)), 0);

		assert_true(n > 0);
		filled -= (size_t)n;
	}
	move(fds[1], fds[0], RESPONSE);
	assert_int_equal(responses_of_server(), 1);
	close(fds[0]);
	close(fds[1]);
	event_reader_drain(reader);
}

static uint64_t counter(const char *name)
{
	for (size_t i = 0; i < probe_counters(); i++)
		if (strcmp(probe_counter_name(i), name) == 0)
			return probe_counter_read(probe, i);
	return 0;
}

static bool has_head(enum event_role role, const char *text)
{
	for (unsigned int i = 0; i < n_events; i++)
		if (events[i].type == EVENT_HEAD && events[i].role == role &&
		    strncmp(texts[i], text, strlen(text)) == 0)
			return true;
	return false;
}

/* HEAD_WINDOW of bpf/abi.h */
#define WINDOW         2048
#define THIRD          "GET /third HTTP/1.1\r\nHost: here\r\n\r\n"
#define THIRD_RESPONSE "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"

/*
 * A send that fails behind its beginning, where it was followed: TCP has nothing of it. What is sent
 * then is at the same place in the stream, and not for that the same.
 */
static void test_send_that_fails(void **state)
{
	static const char never[] = "PUT /never HTTP/1.1\r\nContent-Length: 100\r\nPadding: ";
	char head[4096];
	struct iovec parts[] = {{head, 0}, {(void *)8, 100}};
	uint64_t lost = counter("out_of_step");
	int fds[2];

	(void)state;
	n_events = 0;
	select_this_process();
	/* As long as what is looked at together, so that the body is counted and not looked at. */
	parts[0].iov_len = (size_t)snprintf(head, sizeof(head), "%s%0*d\r\n\r\n", never,
					    WINDOW - 4 - (int)strlen(never), 0);
	/* Its memory may end within the head: then TCP has a part. */
	for (int i = 0;; i++) {
		connect_pair(fds);
		if (writev(fds[0], parts, 2) < 0)
			break;
		assert_in_range(i, 0, 8);
		close(fds[0]);
		close(fds[1]);
	}
	assert_int_equal(errno, EFAULT);
	move(fds[0], fds[1], REQUEST);
	move(fds[1], fds[0], RESPONSE);
	move(fds[0], fds[1], THIRD);
	move(fds[1], fds[0], THIRD_RESPONSE);
	usleep(50000);
	event_reader_drain(reader);
	assert_true(has_head(EVENT_ROLE_SERVER, REQUEST));
	assert_true(has_head(EVENT_ROLE_SERVER, THIRD));
	assert_true(has_head(EVENT_ROLE_CLIENT, THIRD));
	assert_true(has_head(EVENT_ROLE_CLIENT, "HTTP/1.1 201 Created"));
	assert_true(counter("out_of_step") > lost);
	close(fds[0]);
	close(fds[1]);
	event_reader_drain(reader);
}

/*
 * A long response that finds no room in between, and is not waited for: what is tried again and
 * again is its rest, and all of it was followed rightly.
 */
static void test_rest_that_finds_no_room(void **state)
{
	static char response[4 << 20];
	size_t n, sent = 0, got = 0, tries = 0;
	int room = 65536;
	uint64_t lost = counter("out_of_step");
	int fds[2];

	(void)state;
	n_events = 0;
	n = (size_t)snprintf(response, sizeof(response),
			     "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
			     sizeof(response) / 2);
	n += sizeof(response) / 2;
	connect_pair(fds);
	assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	move(fds[0], fds[1], REQUEST);
	while (got < n) {
		char bytes[65536];
		ssize_t r = send(fds[1], response + sent, n - sent, MSG_DONTWAIT);

		sent += r > 0 ? (size_t)r : 0;
		tries += r < 0;
		if (r > 0)
			continue;
		r = recv(fds[0], bytes, sizeof(bytes), 0);
		assert_true(r > 0);
		got += (size_t)r;
	}
	assert_true(tries > 1);
	move(fds[0], fds[1], THIRD);
	move(fds[1], fds[0], THIRD_RESPONSE);
	usleep(50000);
	event_reader_drain(reader);
	assert_true(has_head(EVENT_ROLE_SERVER, "HTTP/1.1 201 Created"));
	assert_true(has_head(EVENT_ROLE_CLIENT, "HTTP/1.1 201 Created"));
	assert_int_equal(counter("out_of_step"), lost);
	close(fds[0]);
	close(fds[1]);
	event_reader_drain(reader);
}

/* The table of sockets of basic taps, by its name; negative where the sockets themselves hold it. */
static int sockets_table(void)
{
	__u32 id = 0;

	while (bpf_map_get_next_id(id, &id) == 0) {
		struct bpf_map_info info = {0};
		__u32 length = sizeof(info);
		int fd = bpf_map_get_fd_by_id(id);

		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &length) == 0 &&
		    info.type == BPF_MAP_TYPE_HASH && strcmp(info.name, "conns") == 0)
			return fd;
		close(fd);
	}
	return -1;
}

static unsigned int entries(int map)
{
	unsigned int n = 0;
	__u64 key;

	for (void *before = NULL; bpf_map_get_next_key(map, before, &key) == 0; before = &key)
		n++;
	return n;
}

/* A full table refuses the newest and counts it; sockets that are gone leave nothing in it. */
static void test_table_of_sockets(void **state)
{
	int pairs[CONNECTIONS_MAX][2], map = sockets_table();
	uint64_t refused = counter("no_state");

	(void)state;
	if (map < 0)
		skip();
	/* Each has two ends. */
	for (int i = 0; i < CONNECTIONS_MAX; i++) {
		connect_pair(pairs[i]);
		move(pairs[i][0], pairs[i][1], REQUEST);
		if (i == CONNECTIONS_MAX / 2 - 1) {
			assert_int_equal(entries(map), CONNECTIONS_MAX);
			assert_int_equal(counter("no_state"), refused);
		}
	}
	assert_int_equal(entries(map), CONNECTIONS_MAX);
	assert_true(counter("no_state") >= refused + CONNECTIONS_MAX);
	event_reader_drain(reader);
	for (int i = 0; i < CONNECTIONS_MAX; i++) {
		close(pairs[i][0]);
		close(pairs[i][1]);
	}
	usleep(50000);
	assert_int_equal(entries(map), 0);
	connect_pair(pairs[0]);
	move(pairs[0][0], pairs[0][1], REQUEST);
	assert_int_equal(entries(map), 2);
	close(pairs[0][0]);
	close(pairs[0][1]);
	event_reader_drain(reader);
	close(map);
}

/*
 * Bytes that leave the socket by splice are not seen, whatever lies where the receive before them
 * had put as many.
 */
static void test_splice_behind_a_short_receive(void **state)
{
	struct timeval patience = {.tv_usec = 1000};
	char bytes[8192];
	int fds[2], ends[2];
	ssize_t n = (ssize_t)strlen(REQUEST);

	(void)state;
	n_events = 0;
	connect_pair(fds);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)),
			 0);
	assert_int_equal(send(fds[0], REQUEST, (size_t)n, 0), n);
	assert_int_equal(recv(fds[1], bytes, sizeof(bytes), MSG_WAITALL), n);
	assert_int_equal(send(fds[1], RESPONSE, strlen(RESPONSE), 0), strlen(RESPONSE));
	assert_int_equal(recv(fds[0], bytes, sizeof(bytes), 0), strlen(RESPONSE));
	assert_int_equal(send(fds[0], REQUEST, (size_t)n, 0), n);
	assert_int_equal(splice(fds[1], NULL, ends[1], NULL, sizeof(bytes), 0), n);
	expect_received(REQUEST);
	close(ends[0]);
	close(ends[1]);
	close(fds[0]);
	close(fds[1]);
	event_reader_drain(reader);
}

static void test_unselected_is_not_followed(void **state)
{
	int fds[2];

	(void)state;
	n_events = 0;
	probe_process_remove(probe, (uint32_t)getpid());
	connect_pair(fds);
	move(fds[0], fds[1], REQUEST);
	close(fds[0]);
	close(fds[1]);
	event_reader_drain(reader);
	assert_int_equal(n_events, 0);
}

static void test_map_memory_is_bounded(void **state)
{
	(void)state;
	assert_true(probe_map_bytes(probe) > 0);
	assert_in_range(probe_map_bytes(probe), 1, 32 << 20);
	assert_in_range(probe_links(probe), 1, 40);
}

static unsigned int count_programs(void)
{
	unsigned int n = 0;
	__u32 id = 0;

	while (bpf_prog_get_next_id(id, &id) == 0) {
		struct bpf_prog_info info = {0};
		__u32 length = sizeof(info);
		int fd = bpf_prog_get_fd_by_id(id);

		if (fd < 0)
			continue;
		if (bpf_obj_get_info_by_fd(fd, &info, &length) == 0)
			n += strncmp(info.name, "tp_", 3) == 0;
		close(fd);
	}
	return n;
}

static void test_nothing_stays_behind(void **state)
{
	unsigned int before = count_programs(), after;

	(void)state;
	assert_true(before > 0);
	event_reader_free(reader);
	reader = NULL;
	probe_free(probe);
	probe = NULL;
	/* The kernel frees programs a moment after their last reference. */
	for (int i = 0; i < 50; i++) {
		after = count_programs();
		if (after < before)
			break;
		usleep(20000);
	}
	assert_true(after < before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verifier_has_room),
		cmocka_unit_test(test_one_exchange),
		cmocka_unit_test(test_second_connection_of_a_socket),
		cmocka_unit_test(test_fast_open),
		cmocka_unit_test(test_end_of_a_long_response),
		cmocka_unit_test(test_peek_and_vector),
		cmocka_unit_test(test_messages_of_one_call),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_send_that_fails),
		cmocka_unit_test(test_rest_that_finds_no_room),
		cmocka_unit_test(test_table_of_sockets),
		cmocka_unit_test(test_splice_behind_a_short_receive),
		cmocka_unit_test(test_unselected_is_not_followed),
		cmocka_unit_test(test_map_memory_is_bounded),
		cmocka_unit_test(test_nothing_stays_behind),
	};

	if (geteuid() != 0) {
		puts("needs root");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
