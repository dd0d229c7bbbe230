/*
 * Header insertion in the kernel (root): what is tried at every start, and that the bytes are right
 * when the socket has little or no room left. Real Go programs are in tests/e2e.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/util.h"
#include "event/reader.h"
#include "probe/insert.h"
#include "probe/tap.h"

#define LINE_BYTES 70
#define BYTES_MAX  (1 << 18)

static struct probe *probe;
static struct insert *insert;
static struct event_reader *reader;

static void forget(void *userdata, const struct event *e)
{
	(void)userdata;
	(void)e;
}

/* TSUNAGI_TAP names the tap to be tested, as for test_tap. */
static int wanted_tap(void)
{
	const char *name = getenv("TSUNAGI_TAP");

	for (int i = 0; name && i < _PROBE_TAP_MAX; i++)
		if (strcmp(name, probe_tap_name((enum probe_tap)i)) == 0)
			return i;
	return -1;
}

static int set_up(bool line_fails, bool take_out_fails)
{
	struct probe_refusal refusals[_PROBE_TAP_MAX] = {0}, refusal = {0};
	struct probe_process self = {.pid = (uint32_t)getpid(), .proc_id = 5, .propagates = true};
	struct probe_options options = {.tap = wanted_tap(),
					.head_bytes_max = 16384,
					.processes_max = 16,
					.requests_max = 64,
					.connections_max = 64,
					.ring_bytes = 65536,
					.inserts = true,
					.insert_line_fails = line_fails,
					.insert_take_out_fails = take_out_fails};

	if (probe_new(&options, &probe, refusals) != 0) {
		printf("no tap\n");
		return -1;
	}
	if (insert_new(probe, &insert, &refusal) != 0) {
		printf("refused: %s\n", refusal.reason);
		return 0;
	}
	if (insert_check(insert, probe, false, &refusal) != 0) {
		printf("no test: %s\n", refusal.reason);
		return -1;
	}
	return probe_process_set(probe, &self)
		       ?: event_reader_new(probe_ring_fd(probe), forget, NULL, &reader);
}

static int setup(void **state)
{
	(void)state;
	return set_up(false, false);
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

static int teardown(void **state)
{
	(void)state;
	event_reader_free(reader);
	insert_free(insert);
	probe_free(probe);
	reader = NULL;
	insert = NULL;
	probe = NULL;
	return 0;
}

static uint64_t counter(const char *name)
{
	for (size_t i = 0; i < probe_counters(); i++)
		if (strcmp(probe_counter_name(i), name) == 0)
			return probe_counter_read(probe, i);
	fail_msg("no counter %s", name);
	return 0;
}

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

/* --- no room */

struct ends {
	int client, server;
	char sent[BYTES_MAX], got[BYTES_MAX];
	size_t n_sent, n_got;
};

static struct ends e;

#define WITH_ZERO_COPY 1

/* 'kind': SOCK_NONBLOCK, as Go's are, or not, and WITH_ZERO_COPY. */
static void open_ends_of(int send_bytes, int kind)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 2304, on = 1;
	socklen_t length = sizeof(address);

	assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)), 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	e.client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (kind & SOCK_NONBLOCK), 0);
	if (kind & WITH_ZERO_COPY)
		assert_int_equal(setsockopt(e.client, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)), 0);
	assert_int_equal(setsockopt(e.client, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(int)), 0);
	if (connect(e.client, (struct sockaddr *)&address, sizeof(address)) < 0)
		assert_int_equal(errno, EINPROGRESS);
	setsockopt(e.client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	fcntl(e.client, F_SETFL, O_NONBLOCK);
	e.server = accept(listener, NULL, NULL);
	assert_true(e.server >= 0);
	close(listener);
	e.n_sent = e.n_got = 0;
}

static void open_ends(int send_bytes)
{
	struct pollfd ready = {.events = POLLOUT};

	open_ends_of(send_bytes, SOCK_NONBLOCK);
	ready.fd = e.client;
	assert_int_equal(poll(&ready, 1, 1000), 1);
}

/* Up to 'max' bytes, of those that come within 'wait_ms'. */
static size_t read_some(size_t max, int wait_ms)
{
	struct pollfd ready = {.fd = e.server, .events = POLLIN};
	ssize_t n;

	if (poll(&ready, 1, wait_ms) != 1)
		return 0;
	n = recv(e.server, e.got + e.n_got, MIN(max, sizeof(e.got) - e.n_got), MSG_DONTWAIT);
	assert_true(n >= 0);
	e.n_got += (size_t)n;
	return (size_t)n;
}

/* All of it; the peer reads only when there is no room. */
static void write_all(const char *bytes, size_t n)
{
	assert_true(e.n_sent + n <= sizeof(e.sent));
	memcpy(e.sent + e.n_sent, bytes, n);
	e.n_sent += n;
	while (n) {
		ssize_t r = send(e.client, bytes, n, MSG_NOSIGNAL);

		if (r < 0) {
			assert_int_equal(errno, EAGAIN);
			read_some(700, 100);
			continue;
		}
		assert_in_range(r, 1, n);
		bytes += r;
		n -= (size_t)r;
	}
}

static void answer(void)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	char got[64];

	assert_int_equal(send(e.server, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	for (size_t n = 0; n < strlen(text);) {
		struct pollfd ready = {.fd = e.client, .events = POLLIN};
		ssize_t r = poll(&ready, 1, 1000) == 1 ? read(e.client, got, sizeof(got)) : -1;

		assert_true(r > 0);
		n += (size_t)r;
	}
}

/* Takes the lines out of what has come; returns how many there were. */
static unsigned int take_out_lines(void)
{
	static const char name[] = "traceparent: 00-";
	unsigned int lines = 0;
	char *at;

	while ((at = memmem(e.got, e.n_got, name, strlen(name)))) {
		size_t place = (size_t)(at - e.got);

		assert_true(place + LINE_BYTES + 2 <= e.n_got);
		assert_memory_equal(at + LINE_BYTES - 2, "\r\n\r\n", 4);
		memmove(at, at + LINE_BYTES, e.n_got - place - LINE_BYTES);
		e.n_got -= LINE_BYTES;
		lines++;
	}
	return lines;
}

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

/* Whether a request that is sent now carries the line; it is answered. */
static bool request_has_line(void)
{
	static const char text[] = "GET /3 HTTP/1.1\r\nHost: a\r\n\r\n";
	unsigned int lines;

	e.n_sent = e.n_got = 0;
	write_all(text, strlen(text));
	while (read_some(sizeof(e.got), e.n_got < e.n_sent ? 1000 : 5))
		;
	answer();
	lines = take_out_lines();
	assert_int_equal(e.n_got, e.n_sent);
	assert_memory_equal(e.got, e.sent, e.n_sent);
	event_reader_drain(reader);
	return lines == 1;
}

static void close_ends(void)
{
	close(e.client);
	close(e.server);
}

static bool is_inserted_into(void)
{
	struct bpf_map *sockets = bpf_object__find_map_by_name(probe_object(probe), "sockets");
	socklen_t length = sizeof(uint64_t);
	uint64_t cookie, value;

	assert_int_equal(getsockopt(e.client, SOL_SOCKET, SO_COOKIE, &cookie, &length), 0);
	return bpf_map__lookup_elem(sockets, &cookie, sizeof(cookie), &value, sizeof(value), 0) ==
	       0;
}

static void test_suspend(void **state)
{
	struct probe_refusal refusal;

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
	insert_suspend(insert);
	assert_int_equal(insert_resume(insert, &refusal), 0);
	insert_take_connections(insert, (uint32_t)getpid());
	assert_true(is_inserted_into());
	for (int i = 0; i < 3; i++)
		assert_true(request_has_line());
	close_ends();

	/* One that is made meanwhile; what was sent on it has been followed. */
	insert_suspend(insert);
	open_ends(0);
	assert_false(is_inserted_into());
	assert_false(request_has_line());
	assert_int_equal(insert_resume(insert, &refusal), 0);
	insert_take_connections(insert, (uint32_t)getpid());
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
	assert_int_equal(insert_resume(insert, &(struct probe_refusal){0}), 0);
}

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
	uint64_t before = counter("insert_limit");

	(void)state;
	if (!insert)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		assert_true(head_has_line(limits[i] - LINE_BYTES, 2));
		assert_false(head_has_line(limits[i] - LINE_BYTES + 1, 2));
		assert_false(head_has_line(limits[i], 2));
		assert_false(head_has_line(limits[i] + 512, 2));
		if (limits[i] != 15360) /* 16384 is near */
			assert_true(head_has_line(limits[i] + 513, 2));
	}
	assert_true(head_has_line(2000, 99));
	assert_false(head_has_line(2000, 100));
	assert_true(head_has_line(2000, 101));
	assert_int_equal(counter("insert_limit"), before + 10);
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
	insert_take_connections(insert, (uint32_t)getpid());
	assert_true(is_inserted_into()); /* it is not blocking any more */
	close_ends();
	open_ends_of(0, 0);
	fcntl(e.client, F_SETFL, 0);
	insert_take_connections(insert, (uint32_t)getpid());
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
	insert_take_connections(insert, (uint32_t)getpid());
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
	insert_drop_passed_on(insert);
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
	insert_drop_passed_on(insert);
	assert_false(is_inserted_into());
	assert_int_equal(send(e.server, "HTTP/1.1 200 OK\r\n", 17, MSG_NOSIGNAL), 17);
	poll(&(struct pollfd){.fd = e.client, .events = POLLIN}, 1, 1000);
	assert_int_equal(bytes_waiting(), 17);
	close_ends();
}

/* Many of them. */
static void test_suspend_many(void **state)
{
	static int clients[400], servers[400];
	struct probe_refusal refusal;

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
	assert_int_equal(insert_resume(insert, &refusal), 0);
	insert_take_connections(insert, (uint32_t)getpid());
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
	assert_int_equal(insert_resume(insert, &(struct probe_refusal){0}), 0);
	close_ends();
	close(map);
}

/* --- what has not been seen to go wrong, made to */

/* The self-test has failed by it, and nothing is attached; here the map is put to use all the same. */
static void use_anyway(void)
{
	struct bpf_object *object = probe_object(probe);
	struct probe_refusal refusal;

	assert_non_null(insert_why_not(insert));
	assert_int_equal(
		bpf_prog_attach(
			bpf_program__fd(bpf_object__find_program_by_name(object, "in_message")),
			bpf_map__fd(bpf_object__find_map_by_name(object, "sockets")),
			BPF_SK_MSG_VERDICT, 0),
		0);
	assert_int_equal(insert_resume(insert, &refusal), 0);
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
	insert_take_connections(insert, (uint32_t)getpid());
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

int main(void)
{
	const struct CMUnitTest line_fault[] = {
		cmocka_unit_test(test_detached),
		cmocka_unit_test(test_undone),
	};
	const struct CMUnitTest both_faults[] = {
		cmocka_unit_test(test_dropped),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checks),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_suspend),
		cmocka_unit_test(test_suspend_many),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_blocking),
		cmocka_unit_test(test_whose_code),
		cmocka_unit_test(test_zero_copy),
		cmocka_unit_test(test_passed_on),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_suspend_failed_send),
	};

	if (geteuid() != 0) {
		printf("needs root\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown) +
	       cmocka_run_group_tests(line_fault, setup_line_fault, teardown) +
	       cmocka_run_group_tests(both_faults, setup_both_faults, teardown);
}
