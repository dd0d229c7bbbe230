/*
 * Many connections, for the tests of scale: a server on all loopback addresses, and a client that
 * opens connections by the thousand, one request on each, and closes them.
 *
 * crowd server PORT NAME             one thread and epoll
 * crowd threads PORT NAME            a thread for each connection, blocking
 * crowd client PORT NAME TOTAL MANY  TOTAL connections, MANY open at a time
 *
 * NAME is not used: by it a process is selected for tracing. The servers answer every request with
 * 200 and print how many they answered at SIGTERM; the client says "ready", waits for a line and
 * prints one of JSON: connections, requests and failed. Loopback has 16 million addresses, so ports
 * do not run out.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORTS_EACH = 20000, BYTES_MAX = 1024 };

static const char response[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
static atomic_ulong answered;
static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
	(void)signal;
	stopped = 1;
}

static void die(const char *what)
{
	fprintf(stderr, "crowd: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void raise_files(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 4096) < 0)
		die("listen");
	puts("ready");
	fflush(stdout);
	return fd;
}

/* One request, which comes in one piece. Returns false at the end of the connection. */
static bool serve_one(int fd)
{
	char bytes[BYTES_MAX];
	ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

	if (n < 0 && errno == EAGAIN)
		return true;
	if (n < 4 || memcmp(bytes + n - 4, "\r\n\r\n", 4) != 0)
		return false;
	if (send(fd, response, sizeof(response) - 1, MSG_NOSIGNAL) != sizeof(response) - 1)
		return false;
	atomic_fetch_add(&answered, 1);
	return true;
}

static void serve_epoll(int listener)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0)
		die("epoll");
	while (!stopped) {
		int n = epoll_wait(epoll, events, 256, 100);

		for (int i = 0; i < n; i++) {
			int fd = events[i].data.fd;

			if (fd == listener) {
				event.data.fd =
					accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
				if (event.data.fd >= 0)
					epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
			} else if (!serve_one(fd)) {
				close(fd);
			}
		}
	}
}

static void *serve_thread(void *argument)
{
	int fd = (int)(intptr_t)argument;

	while (serve_one(fd))
		;
	close(fd);
	return NULL;
}

static void serve_threads(int listener)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	while (!stopped) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0 &&
		    pthread_create(&thread, &attributes, serve_thread, (void *)(intptr_t)fd) != 0)
			die("pthread_create");
	}
}

/* Connection number 'n' goes to an address that still has ports. Returns -1 when it fails. */
static int connect_one(uint16_t port, unsigned long n)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)(n / PORTS_EACH)),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
		close(fd);
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	return fd;
}

static bool ask(int fd, unsigned long n)
{
	char bytes[BYTES_MAX];
	int length =
		snprintf(bytes, sizeof(bytes), "GET /crowd/%lu HTTP/1.1\r\nHost: crowd\r\n\r\n", n);

	return send(fd, bytes, (size_t)length, MSG_NOSIGNAL) == length &&
	       recv(fd, bytes, sizeof(bytes), 0) == sizeof(response) - 1;
}

static void client(uint16_t port, unsigned long total, unsigned long many)
{
	int *fds = calloc(many, sizeof(*fds));
	unsigned long done = 0, requests = 0, failed = 0;

	if (!fds)
		die("calloc");
	puts("ready");
	fflush(stdout);
	getchar();
	while (done < total) {
		unsigned long n = total - done < many ? total - done : many;

		for (unsigned long i = 0; i < n; i++) {
			fds[i] = connect_one(port, done + i);
			if (fds[i] >= 0 && ask(fds[i], done + i))
				requests++;
			else
				failed++;
		}
		for (unsigned long i = 0; i < n; i++)
			if (fds[i] >= 0)
				close(fds[i]);
		done += n;
	}
	printf("{\"connections\":%lu,\"requests\":%lu,\"failed\":%lu}\n", done, requests, failed);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART: accept ends */
	uint16_t port;

	if (argc < 4)
		return 2;
	sigaction(SIGTERM, &action, NULL);
	raise_files();
	port = (uint16_t)atoi(argv[2]);
	if (strcmp(argv[1], "client") == 0 && argc == 6) {
		client(port, strtoul(argv[4], NULL, 10), strtoul(argv[5], NULL, 10));
		return 0;
	}
	if (strcmp(argv[1], "server") == 0)
		serve_epoll(listen_on(port));
	else if (strcmp(argv[1], "threads") == 0)
		serve_threads(listen_on(port));
	else
		return 2;
	printf("%lu\n", atomic_load(&answered));
	return 0;
}
