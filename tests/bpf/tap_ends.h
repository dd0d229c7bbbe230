/*
 * A tap that follows this very process, the events that come of it, and connections of the process
 * to itself, for the test of it (test_tap.c).
 */
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <cmocka.h>

#include "base/util.h"
#include "event/reader.h"
#include "probe/probe.h"
#include "probe/tap.h"

static struct probe *probe;
static struct event_reader *reader;

#define EVENTS_MAX      64
#define CONNECTIONS_MAX 64
static struct event events[EVENTS_MAX];
static char texts[EVENTS_MAX][4096];
static unsigned int n_events;

static void keep(void *userdata, const struct event *e)
{
	(void)userdata;
	if (n_events == EVENTS_MAX || e->type == EVENT_PROCESS)
		return;
	if (e->type == EVENT_HEAD)
		snprintf(texts[n_events], sizeof(texts[0]), "%.*s", STR_ARG(e->head.bytes));
	events[n_events++] = *e;
}

/* TSUNAGI_TAP names the tap to be tested; else it is the one that the kernel takes first. */
static int wanted_tap(void)
{
	const char *name = getenv("TSUNAGI_TAP");

	for (int i = 0; name && i < _PROBE_TAP_MAX; i++)
		if (strcmp(name, probe_tap_name((enum probe_tap)i)) == 0)
			return i;
	return -1;
}

static const struct probe_options usual = {.head_bytes_max = 16384,
					   .processes_max = 16,
					   .requests_max = 64,
					   .connections_max = CONNECTIONS_MAX,
					   .ring_bytes = 65536};

static void print_refusals(const struct probe_refusal refusals[_PROBE_TAP_MAX])
{
	for (int i = 0; i < _PROBE_TAP_MAX; i++)
		if (refusals[i].reason[0])
			printf("refused: %s: %s\n", probe_tap_name((enum probe_tap)i),
			       refusals[i].reason);
}

static int setup(void **state)
{
	struct probe_refusal refusals[_PROBE_TAP_MAX] = {0};
	struct probe_options options = usual;

	(void)state;
	options.tap = wanted_tap();
	if (probe_new(&options, &probe, refusals) != 0) {
		print_refusals(refusals);
		return -1;
	}
	printf("tap: %s\n", probe_tap_name(probe_tap_used(probe)));
	return event_reader_new(probe_ring_fd(probe), keep, NULL, &reader);
}

static int teardown(void **state)
{
	(void)state;
	event_reader_free(reader);
	probe_free(probe);
	return 0;
}

/* A connected pair on loopback: [0] the client's end, [1] the server's. */
static void connect_pair(int fds[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(listener >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fds[0], (struct sockaddr *)&address, sizeof(address)), 0);
	fds[1] = accept(listener, NULL, NULL);
	assert_true(fds[1] >= 0);
	close(listener);
}

static void move(int from, int to, const char *text)
{
	char buffer[8192];
	size_t n = strlen(text), got = 0;

	/* The kernel side cannot read what is in no page yet, as a constant may be. */
	memcpy(buffer, text, n);
	assert_int_equal(send(from, buffer, n, 0), n);
	while (got < n) {
		ssize_t r = recv(to, buffer, sizeof(buffer), 0);

		assert_true(r > 0);
		got += (size_t)r;
	}
}

static void select_this_process(void)
{
	const struct probe_process this = {
		.pid = (uint32_t)getpid(), .proc_id = 5, .has_thread_units = true};

	assert_int_equal(probe_process_set(probe, &this), 0);
}

#define REQUEST  "GET /tap HTTP/1.1\r\nHost: here\r\n\r\n"
#define RESPONSE "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
