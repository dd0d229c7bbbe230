/*
 * Header insertion for this very process, and a connection of it to itself, for the tests of it
 * (test_insert*.c). Every look at what came compares all bytes.
 */
#pragma once

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
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/util.h"
#include "event/reader.h"
#include "metrics/metrics.h"
#include "probe/insert.h"
#include "probe/tap.h"

#define LINE_BYTES 70
#define BYTES_MAX  (1 << 18)

static struct probe *probe;
static struct insert *insert;
static struct event_reader *reader;

static inline void forget(void *userdata, const struct event *e)
{
	(void)userdata;
	(void)e;
}

/* TSUNAGI_TAP names the tap to be tested, as for test_tap. */
static inline int wanted_tap(void)
{
	const char *name = getenv("TSUNAGI_TAP");

	for (int i = 0; name && i < _PROBE_TAP_MAX; i++)
		if (strcmp(name, probe_tap_name((enum probe_tap)i)) == 0)
			return i;
	return -1;
}

/* Loads it, and waits for that. As insert_new(). */
static inline int load_insertion(bool line_fails, bool take_out_fails,
				 struct probe_refusal *ret_refusal)
{
	_cleanup_(insert_load_freep) struct insert_load *load = NULL;
	struct insert_options options = {.head_bytes_max = 16384,
					 .connections_max = 1024,
					 .line_fails = line_fails,
					 .take_out_fails = take_out_fails};
	int r = insert_load_new(probe, &options, &load);

	return r ? r : insert_new(probe, load, &insert, ret_refusal);
}

static inline int set_up(bool line_fails, bool take_out_fails)
{
	struct probe_refusal refusals[_PROBE_TAP_MAX] = {0}, refusal = {0};
	struct probe_process self = {.pid = (uint32_t)getpid(), .proc_id = 5, .propagates = true};
	struct probe_options options = {.tap = wanted_tap(),
					.head_bytes_max = 16384,
					.processes_max = 16,
					.requests_max = 64,
					.connections_max = 1024,
					.ring_bytes = 65536};
	int r;

	if (probe_new(&options, &probe, refusals) != 0) {
		printf("no tap\n");
		return -1;
	}
	if (insert_load_refusal(probe) || load_insertion(line_fails, take_out_fails, &refusal)) {
		printf("refused: %s\n", insert_load_refusal(probe) ?: refusal.reason);
		return 0;
	}
	if (insert_check_begin(insert, &refusal) || insert_check_end(insert)) {
		printf("no test: %s\n", refusal.reason);
		return -1;
	}
	r = probe_process_set(probe, &self)
		    ?: event_reader_new(probe_ring_fd(probe), forget, NULL, &reader);
	if (r == 0)
		event_reader_drain(reader);
	return r;
}

static inline int teardown(void **state)
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

static inline uint64_t counter(const char *name)
{
	for (size_t i = 0; i < probe_counters(); i++)
		if (strcmp(probe_counter_name(i), name) == 0)
			return probe_counter_read(probe, i);
	fail_msg("no counter %s", name);
	return 0;
}

struct ends {
	int client, server;
	char sent[BYTES_MAX], got[BYTES_MAX];
	size_t n_sent, n_got;
};

static struct ends e;

/* As Go's runtime does with each from its beginning. */
static inline void poll_as_go(int fd)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
	static int epoll = -1;

	if (epoll < 0)
		epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
}

static inline void take_connections(void)
{
	insert_take_now(insert, &(uint32_t){(uint32_t)getpid()}, 1, NULL);
}

#define WITH_ZERO_COPY 1

/* 'kind': SOCK_NONBLOCK, as Go's are, or not, and WITH_ZERO_COPY. */
static inline void open_ends_of(int send_bytes, int kind)
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

static inline void open_ends(int send_bytes)
{
	struct pollfd ready = {.events = POLLOUT};

	open_ends_of(send_bytes, SOCK_NONBLOCK);
	ready.fd = e.client;
	assert_int_equal(poll(&ready, 1, 1000), 1);
}

/* Up to 'max' bytes, of those that come within 'wait_ms'. */
static inline size_t read_some(size_t max, int wait_ms)
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
static inline void write_all(const char *bytes, size_t n)
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

static inline void answer(void)
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
static inline unsigned int take_out_lines(void)
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

/* Whether a request that is sent now carries the line; it is answered. */
static inline bool request_has_line(void)
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

static inline void close_ends(void)
{
	close(e.client);
	close(e.server);
}

static inline bool is_inserted_into(void)
{
	struct bpf_map *sockets = bpf_object__find_map_by_name(insert_object(insert), "sockets");
	socklen_t length = sizeof(uint64_t);
	uint64_t cookie, value;

	assert_int_equal(getsockopt(e.client, SOL_SOCKET, SO_COOKIE, &cookie, &length), 0);
	return bpf_map__lookup_elem(sockets, &cookie, sizeof(cookie), &value, sizeof(value), 0) ==
	       0;
}
