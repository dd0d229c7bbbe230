/*
 * A TCP proxy in user space, as engines put before published ports: it knows nothing of what it
 * passes on.
 *
 * tcp_proxy PORT BACK_PORT [MODE]: MODE "threads" (default): a thread for each direction of each
 * connection, with blocking calls. "poll": one thread for all. "splice": as "threads", through a
 * pipe, so that the bytes never come into its memory.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 256, BUFFER_BYTES = 65536 };

struct direction {
	int from, to;
};

static int back_port;
static int is_splicing;

static void die(const char *what)
{
	fprintf(stderr, "tcp_proxy: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int connect_back(void)
{
	struct sockaddr_in address = loopback(back_port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	return fd;
}

/* Passes on what is there; false at the end of this direction. */
static int pass_on(const struct direction *d)
{
	char buffer[BUFFER_BYTES];
	ssize_t n = read(d->from, buffer, sizeof(buffer)), sent = 0;

	while (n > 0 && sent < n) {
		ssize_t part = write(d->to, buffer + sent, (size_t)(n - sent));

		if (part <= 0)
			return 0;
		sent += part;
	}
	return n > 0;
}

static void splice_on(const struct direction *d)
{
	int ends[2];
	ssize_t n;

	if (pipe(ends) < 0)
		die("pipe");
	while ((n = splice(d->from, NULL, ends[1], NULL, BUFFER_BYTES, SPLICE_F_MOVE)) > 0)
		while (n > 0) {
			ssize_t part = splice(ends[0], NULL, d->to, NULL, (size_t)n, SPLICE_F_MOVE);

			if (part <= 0)
				break;
			n -= part;
		}
	close(ends[0]);
	close(ends[1]);
}

static void *run_direction(void *argument)
{
	struct direction *d = argument;

	if (is_splicing)
		splice_on(d);
	else
		while (pass_on(d))
			;
	shutdown(d->to, SHUT_WR);
	free(d);
	return NULL;
}

static void start_direction(int from, int to)
{
	struct direction *d = malloc(sizeof(*d));
	pthread_t thread;

	if (!d)
		die("malloc");
	*d = (struct direction){.from = from, .to = to};
	if (pthread_create(&thread, NULL, run_direction, d) != 0)
		die("pthread_create");
	pthread_detach(thread);
}

static void run_threads(int listener)
{
	for (;;) {
		int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC), back;

		if (client < 0)
			die("accept");
		setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
		back = connect_back();
		start_direction(client, back);
		start_direction(back, client);
	}
}

static void run_poll(int listener)
{
	struct pollfd fds[1 + 2 * CONNECTIONS_MAX] = {{.fd = listener, .events = POLLIN}};
	int to[1 + 2 * CONNECTIONS_MAX], n = 1;

	for (;;) {
		if (poll(fds, (nfds_t)n, -1) < 0)
			die("poll");
		for (int i = 1; i < n; i++)
			if (fds[i].revents && !pass_on(&(struct direction){fds[i].fd, to[i]})) {
				shutdown(to[i], SHUT_WR);
				fds[i].fd = -1;
			}
		if (fds[0].revents && n + 2 <= 1 + 2 * CONNECTIONS_MAX) {
			int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
			int back = connect_back();

			setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
			fds[n] = (struct pollfd){.fd = client, .events = POLLIN};
			to[n++] = back;
			fds[n] = (struct pollfd){.fd = back, .events = POLLIN};
			to[n++] = client;
		}
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 3 ? argv[3] : "threads";
	struct sockaddr_in address;
	int listener;

	if (argc < 3)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	back_port = atoi(argv[2]);
	is_splicing = strcmp(mode, "splice") == 0;
	address = loopback(atoi(argv[1]));
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 1024) < 0)
		die("listen");
	puts("ready");
	fflush(stdout);
	if (strcmp(mode, "poll") == 0)
		run_poll(listener);
	run_threads(listener);
}
