/*
 * A proxy with one thread for many requests, for the end-to-end tests: each request /i/<id> waits a
 * random 10 to 200 ms, as for a lookup, then goes on as /o/<id> over one of four pooled connections
 * to the backend, and is answered with the backend's status. Nothing but the id ties the two
 * together, so a parent by thread is a wrong one.
 *
 * epoll_proxy PORT LOG BACK_PORT [OWN_MS]: the log has the JSON lines of the other services, written
 * at SIGTERM. With OWN_MS it makes a call /own/<id> every so often that is for no request at all.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PEERS_MAX = 1024, POOL = 4, BYTES_MAX = 16384, ID_MAX = 64 };

/* A client with at most one request in progress, or a pooled connection to the backend. */
struct peer {
	int fd;
	bool upstream;
	char bytes[BYTES_MAX];
	size_t used;
	char id[ID_MAX];      /* of the request in progress; empty: none */
	struct peer *partner; /* whose request is being forwarded, while it is */
	uint64_t start_ns, due_ns, call_start_ns;
};

static struct peer peers[PEERS_MAX];
static struct peer own; /* stands for the client of its own calls */
static uint64_t own_ns;
static int epoll_fd;
static FILE *log_file;
static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
	(void)signal;
	stopped = 1;
}

static void die(const char *what)
{
	fprintf(stderr, "epoll_proxy: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void log_line(const char *role, const char *path, const char *id, int status,
		     uint64_t start_ns)
{
	fprintf(log_file,
		"{\"id\":\"%s\",\"role\":\"%s\",\"path\":\"%s%s\",\"status\":%d,\"start\":%llu,"
		"\"end\":%llu}\n",
		id, role, path, id, status, (unsigned long long)start_ns,
		(unsigned long long)now_ns(CLOCK_REALTIME));
}

static struct peer *peer_add(int fd, bool upstream)
{
	for (struct peer *peer = peers; peer < peers + PEERS_MAX; peer++) {
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};

		if (peer->fd)
			continue;
		*peer = (struct peer){.fd = fd, .upstream = upstream};
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
		if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
			die("epoll_ctl");
		return peer;
	}
	die("too many connections");
	return NULL;
}

static void send_text(struct peer *peer, const char *text)
{
	if (send(peer->fd, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
		die("send");
}

static const char *call_path(const struct peer *client)
{
	return client == &own ? "/own/" : "/o/";
}

/* Sends the request of a client whose lookup is over, when a pooled connection is idle. */
static bool forward(struct peer *client)
{
	for (struct peer *upstream = peers; upstream < peers + POOL; upstream++) {
		char head[256];

		if (upstream->partner)
			continue;
		upstream->partner = client;
		client->partner = upstream;
		client->call_start_ns = now_ns(CLOCK_REALTIME);
		snprintf(head, sizeof(head), "GET %s%s HTTP/1.1\r\nHost: back\r\n\r\n",
			 call_path(client), client->id);
		send_text(upstream, head);
		return true;
	}
	return false;
}

static void on_request(struct peer *client)
{
	if (sscanf(client->bytes, "GET /i/%63s HTTP", client->id) != 1)
		die("request");
	client->start_ns = now_ns(CLOCK_REALTIME);
	client->due_ns = now_ns(CLOCK_MONOTONIC) + (uint64_t)(10 + random() % 190) * 1000000;
	client->used = 0;
}

static void on_response(struct peer *upstream)
{
	struct peer *client = upstream->partner;
	char text[128];
	int status = atoi(upstream->bytes + 9);

	upstream->partner = client->partner = NULL;
	upstream->used = 0;
	log_line("client", call_path(client), client->id, status, client->call_start_ns);
	if (client == &own) {
		client->id[0] = '\0';
		return;
	}
	log_line("server", "/i/", client->id, status, client->start_ns);
	client->id[0] = '\0';
	snprintf(text, sizeof(text), "HTTP/1.1 %d Any\r\nContent-Length: 6\r\n\r\nproxy\n", status);
	send_text(client, text);
}

/*
 * Whole when the head and Content-Length bytes behind it are there; all messages here have one or
 * no body.
 */
static bool is_whole(struct peer *peer)
{
	char *end, *field;

	peer->bytes[peer->used] = '\0';
	end = strstr(peer->bytes, "\r\n\r\n");
	if (!end)
		return false;
	field = strcasestr(peer->bytes, "\r\ncontent-length:");
	return peer->bytes + peer->used >=
	       end + 4 + (field && field < end ? strtoul(field + 17, NULL, 10) : 0);
}

static void on_bytes(struct peer *peer)
{
	ssize_t n = recv(peer->fd, peer->bytes + peer->used, BYTES_MAX - 1 - peer->used, 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		if (peer->upstream || peer->partner)
			die("connection lost");
		close(peer->fd);
		peer->fd = 0;
		return;
	}
	peer->used += (size_t)n;
	if (!is_whole(peer))
		return;
	if (peer->upstream)
		on_response(peer);
	else
		on_request(peer);
}

static void forward_due(void)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	for (struct peer *peer = peers + POOL; peer < peers + PEERS_MAX; peer++)
		if (peer->fd && peer->id[0] && !peer->partner && peer->due_ns <= now &&
		    !forward(peer))
			return;
}

static void call_own(void)
{
	static unsigned int n;
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (!own_ns || own.id[0] || now < own.due_ns)
		return;
	snprintf(own.id, sizeof(own.id), "own-%u", n++);
	own.due_ns = now + own_ns;
	if (!forward(&own))
		own.id[0] = '\0';
}

static void pool_open(uint16_t port)
{
	struct sockaddr_in back = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	for (int i = 0; i < POOL; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0 || connect(fd, (struct sockaddr *)&back, sizeof(back)) < 0)
			die("connect");
		peer_add(fd, true);
	}
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct epoll_event event = {.events = EPOLLIN};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 1024) < 0 ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		die("listen");
	return fd;
}

int main(int argc, char **argv)
{
	struct epoll_event events[64];
	int listener;

	if (argc < 4)
		return 2;
	own_ns = argc > 4 ? (uint64_t)atoi(argv[4]) * 1000000 : 0;
	signal(SIGTERM, on_signal);
	log_file = fopen(argv[2], "we");
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!log_file || epoll_fd < 0)
		die("start");
	pool_open((uint16_t)atoi(argv[3]));
	listener = listen_on((uint16_t)atoi(argv[1]));
	puts("ready");
	fflush(stdout);

	while (!stopped) {
		int n = epoll_wait(epoll_fd, events, 64, 2);

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr)
				on_bytes(events[i].data.ptr);
			else
				peer_add(
					accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC),
					false);
		}
		forward_due();
		call_own();
	}
	return fclose(log_file) != 0;
}
