/*
 * The load generator of the end-to-end tests: N requests over C kept-alive connections from one
 * thread, each path with an id of its own, and a record of what was really seen for each (JSON
 * lines: id, role "client", path, status, start, end in nanoseconds of the wall clock, traceparent
 * when one was sent). 'start' is taken just before the first byte is sent, 'end' just after the
 * last one was read, so a true span lies between.
 *
 * The judge trusts this file; the daemon never sees it. A failed request has status 0 and, without
 * --allow-failures, makes the exit status 1. Prints one JSON line: requests, failed, seconds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { RESPONSE_BYTES_MAX = 1 << 18, HEAD_BYTES_MAX = 8192, TRACEPARENT_LENGTH = 55 };
enum { BODY_PARTS = 3, PART_BYTES = 64 };

struct record {
	uint64_t start_ns, end_ns;
	int status;
	char traceparent[TRACEPARENT_LENGTH + 1]; /* empty: none was sent */
};

struct connection {
	int fd;
	struct record *record; /* the request under way; NULL: idle */
	char *response;
	size_t used;
	unsigned int parts; /* of the request's body that have not been sent */
	double part_due;    /* when the next is, in seconds */
	bool is_last;       /* the server has said that it closes after this response */
};

struct load {
	struct sockaddr_in address;
	const char *prefix, *id, *log;
	unsigned long requests, connections, traceparent_percent;
	double rate, seconds;
	double body_ms; /* before each part of a body; 0: requests have none */
	bool allow_failures, close_each;
	struct record *records;
	struct connection *all;
	unsigned long started, done, failed;
	int epoll;
};

static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
	(void)signal;
	stopped = 1;
}

static void die(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(2);
}

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static double monotonic_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t random_u64(void)
{
	uint64_t value;

	if (getrandom(&value, sizeof(value), 0) != sizeof(value))
		die("getrandom");
	return value | 1; /* an id may not be zero */
}

static void connection_open(struct load *load, struct connection *connection)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};

	connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connection->fd < 0)
		die("socket");
	if (connect(connection->fd, (struct sockaddr *)&load->address, sizeof(load->address)) < 0) {
		close(connection->fd);
		connection->fd = -1;
		return;
	}
	setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, connection->fd, &event) < 0)
		die("epoll_ctl");
}

/* The head of request 'n'. Every eighth carries a long cookie, so that heads differ in size. */
static size_t head_write(struct load *load, unsigned long n, struct record *record, char *head)
{
	size_t used;

	used = (size_t)snprintf(
		head, HEAD_BYTES_MAX,
		"%s %s%s-%lu HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: load/1\r\n",
		load->body_ms > 0 ? "POST" : "GET", load->prefix, load->id, n,
		ntohs(load->address.sin_port));
	if (n % 8 == 5)
		used += (size_t)snprintf(head + used, HEAD_BYTES_MAX - used,
					 "Cookie: c=%02000lu\r\n", n);
	if (load->close_each)
		used += (size_t)snprintf(head + used, HEAD_BYTES_MAX - used,
					 "Connection: close\r\n");
	if (load->body_ms > 0)
		used += (size_t)snprintf(head + used, HEAD_BYTES_MAX - used,
					 "Content-Type: text/plain\r\nContent-Length: %d\r\n",
					 BODY_PARTS * PART_BYTES);
	if (n % 100 < load->traceparent_percent) {
		snprintf(record->traceparent, sizeof(record->traceparent),
			 "00-%016llx%016llx-%016llx-01", (unsigned long long)random_u64(),
			 (unsigned long long)random_u64(), (unsigned long long)random_u64());
		used += (size_t)snprintf(head + used, HEAD_BYTES_MAX - used, "traceparent: %s\r\n",
					 record->traceparent);
	}
	return used + (size_t)snprintf(head + used, HEAD_BYTES_MAX - used, "\r\n");
}

static void request_end(struct load *load, struct connection *connection, int status)
{
	struct record *record = connection->record;

	record->end_ns = wall_ns();
	record->status = status;
	connection->record = NULL;
	connection->parts = 0;
	load->done++;
	if (status == 0)
		load->failed++;
	if (status == 0 || load->close_each || connection->is_last) {
		if (connection->fd >= 0)
			close(connection->fd);
		connection->fd = -1;
	}
}

static void request_start(struct load *load, struct connection *connection)
{
	unsigned long n = load->started++;
	struct record *record = &load->records[n];
	char head[HEAD_BYTES_MAX];
	size_t length = head_write(load, n, record, head);

	if (connection->fd < 0)
		connection_open(load, connection);
	connection->record = record;
	connection->used = 0;
	connection->is_last = false;
	connection->parts = load->body_ms > 0 ? BODY_PARTS : 0;
	connection->part_due = monotonic_seconds() + load->body_ms / 1e3;
	record->start_ns = wall_ns();
	if (connection->fd < 0 ||
	    send(connection->fd, head, length, MSG_NOSIGNAL) != (ssize_t)length)
		request_end(load, connection, 0);
}

/* The status once the response is whole, 0 when it never will be, -1 when more must come. */
static int response_status(struct connection *connection)
{
	char *end, *field;
	size_t head, length;

	end = memmem(connection->response, connection->used, "\r\n\r\n", 4);
	if (!end)
		return connection->used < RESPONSE_BYTES_MAX ? -1 : 0;
	head = (size_t)(end - connection->response) + 4;
	if (connection->used < 12 || memcmp(connection->response, "HTTP/1.", 7) != 0)
		return 0;

	*end = '\0'; /* for the search of the fields; put back below */
	field = strcasestr(connection->response, "\r\ncontent-length:");
	length = field ? strtoul(field + 17, NULL, 10) : 0;
	connection->is_last = strcasestr(connection->response, "\r\nconnection: close");
	*end = '\r';
	if (field && connection->used < head + length)
		return -1;
	if (!field && (connection->used < head + 5 ||
		       memcmp(connection->response + connection->used - 5, "0\r\n\r\n", 5) != 0))
		return -1; /* chunked: bodies here never end a piece like this before their end */
	return atoi(connection->response + 9);
}

static void connection_read(struct load *load, struct connection *connection)
{
	ssize_t n;
	int status;

	n = recv(connection->fd, connection->response + connection->used,
		 RESPONSE_BYTES_MAX - connection->used, 0);
	if (n <= 0 && !connection->record) { /* the server let an idle connection go */
		close(connection->fd);
		connection->fd = -1;
		return;
	}
	if (n > 0 && !connection->record)
		return; /* bytes nobody asked for */
	if (n <= 0) {
		fprintf(stderr, "load: connection ended inside a request: %s\n",
			n ? strerror(errno) : "EOF");
		request_end(load, connection, 0);
		return;
	}
	connection->used += (size_t)n;
	status = response_status(connection);
	if (status >= 0)
		request_end(load, connection, status);
}

/* Starts what may start now; returns how long epoll may wait, in ms. */
static int start_due(struct load *load, double begin)
{
	double elapsed = monotonic_seconds() - begin;
	bool over = stopped || (load->seconds > 0 && elapsed > load->seconds);

	if (over)
		load->requests = load->started;
	for (unsigned long i = 0; i < load->connections && load->started < load->requests; i++) {
		if (load->rate > 0 && (double)load->started >= elapsed * load->rate)
			return 1;
		if (!load->all[i].record)
			request_start(load, &load->all[i]);
	}
	return 100;
}

/* Sends the parts of bodies whose time has come; whether there are more. */
static bool parts_send(struct load *load)
{
	char part[PART_BYTES];
	double now = monotonic_seconds();
	bool are_more = false;

	memset(part, 'b', sizeof(part));
	for (unsigned long i = 0; i < load->connections; i++) {
		struct connection *connection = &load->all[i];

		if (connection->parts && connection->part_due <= now) {
			connection->parts--;
			connection->part_due = now + load->body_ms / 1e3;
			if (send(connection->fd, part, sizeof(part), MSG_NOSIGNAL) != sizeof(part))
				request_end(load, connection, 0);
		}
		are_more |= connection->parts > 0;
	}
	return are_more;
}

static void run(struct load *load)
{
	struct epoll_event events[64];
	double begin = monotonic_seconds();

	while (load->done < load->requests) {
		int wait = start_due(load, begin);
		int n;

		if (parts_send(load))
			wait = 1;
		if (load->done >= load->requests)
			break;
		n = epoll_wait(load->epoll, events, 64, wait);
		for (int i = 0; i < n; i++)
			connection_read(load, events[i].data.ptr);
	}
	printf("{\"requests\":%lu,\"failed\":%lu,\"seconds\":%.3f}\n", load->done, load->failed,
	       monotonic_seconds() - begin);
}

static void log_write(const struct load *load)
{
	FILE *out = fopen(load->log, "we");

	if (!out)
		die(load->log);
	for (unsigned long n = 0; n < load->started; n++) {
		const struct record *record = &load->records[n];

		fprintf(out,
			"{\"id\":\"%s-%lu\",\"role\":\"client\",\"path\":\"%s%s-%lu\",\"status\":%"
			"d,"
			"\"start\":%llu,\"end\":%llu,\"traceparent\":\"%s\"}\n",
			load->id, n, load->prefix, load->id, n, record->status,
			(unsigned long long)record->start_ns, (unsigned long long)record->end_ns,
			record->traceparent);
	}
	if (fclose(out) != 0)
		die(load->log);
}

static void options_parse(struct load *load, int argc, char **argv)
{
	static const struct option options[] = {
		{"port", required_argument, NULL, 'p'},
		{"requests", required_argument, NULL, 'n'},
		{"connections", required_argument, NULL, 'c'},
		{"log", required_argument, NULL, 'l'},
		{"prefix", required_argument, NULL, 'x'},
		{"id", required_argument, NULL, 'i'},
		{"traceparent", required_argument, NULL, 't'},
		{"rate", required_argument, NULL, 'r'},
		{"seconds", required_argument, NULL, 's'},
		{"body-ms", required_argument, NULL, 'b'},
		{"allow-failures", no_argument, NULL, 'a'},
		{"close", no_argument, NULL, 'k'},
		{},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (option) {
		case 'p':
			load->address.sin_port = htons((uint16_t)atoi(optarg));
			break;
		case 'n':
			load->requests = strtoul(optarg, NULL, 10);
			break;
		case 'c':
			load->connections = strtoul(optarg, NULL, 10);
			break;
		case 'l':
			load->log = optarg;
			break;
		case 'x':
			load->prefix = optarg;
			break;
		case 'i':
			load->id = optarg;
			break;
		case 't':
			load->traceparent_percent = strtoul(optarg, NULL, 10);
			break;
		case 'r':
			load->rate = strtod(optarg, NULL);
			break;
		case 's':
			load->seconds = strtod(optarg, NULL);
			break;
		case 'b':
			load->body_ms = strtod(optarg, NULL);
			break;
		case 'a':
			load->allow_failures = true;
			break;
		case 'k':
			load->close_each = true;
			break;
		default:
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	struct load load = {
		.address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
		.prefix = "/x/",
		.id = "r",
		.log = "/dev/null",
		.requests = 1000,
		.connections = 1,
	};

	options_parse(&load, argc, argv);
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	load.records = calloc(load.requests, sizeof(*load.records));
	load.all = calloc(load.connections, sizeof(*load.all));
	load.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!load.records || !load.all || load.epoll < 0)
		die("start");
	for (unsigned long i = 0; i < load.connections; i++) {
		load.all[i].response = malloc(RESPONSE_BYTES_MAX);
		if (!load.all[i].response)
			die("malloc");
		connection_open(&load, &load.all[i]);
	}
	run(&load);
	log_write(&load);
	return load.failed > 0 && !load.allow_failures;
}
