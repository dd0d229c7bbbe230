/*
 * A client and a server process that speak HTTP/1 through io_uring, or one of them by ordinary
 * calls, for the end-to-end tests.
 *
 * uring PORT LOG GROUP CLIENT_WAY SERVER_WAY: the ways are those of uring_ring.h. Writes LOG.client
 * and LOG.server, JSON lines of what really happened (id, role, path, status, start, end in
 * nanoseconds of the wall clock). Prints "ready CLIENT_PID SERVER_PID", then waits for a line on
 * standard input, then runs; exit status 0 when all went as planned, 77 when the kernel refuses.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "uring_ring.h"

enum { CONNECTIONS = 2, REQUESTS = 6, MESSAGE_BYTES = 8192 };

static const char *group;

static pid_t server_pid; /* in the client */

/* Because the server ended, which met a kernel that refuses? */
static bool is_refused(void)
{
	int status;

	for (int i = 0; server_pid && i < 50; i++) {
		if (waitpid(server_pid, &status, WNOHANG) == server_pid)
			return WIFEXITED(status) && WEXITSTATUS(status) == 77;
		usleep(10000);
	}
	return false;
}

static void die(const char *what)
{
	int error = errno;

	if (is_refused())
		exit(77);
	fprintf(stderr, "uring: %s: %s\n", what, strerror(error));
	exit(1);
}

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int status_of(int number)
{
	return number % 4 == 2 ? 404 : 200;
}

static void log_line(FILE *log, const char *role, const char *id, int status, uint64_t start_ns)
{
	fprintf(log,
		"{\"id\":\"%s\",\"role\":\"%s\",\"path\":\"/uring/%s\",\"status\":%d,"
		"\"start\":%llu,\"end\":%llu}\n",
		id, role, id, status, (unsigned long long)start_ns, (unsigned long long)wall_ns());
}

static void send_all(struct end *end, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t n = end_send(end, bytes, length);

		if (n <= 0)
			die("send");
		bytes += n;
		length -= (size_t)n;
	}
}

/* A head, and the body whose length it tells; 0: the end of the connection. */
static size_t read_message(struct end *end, char *bytes)
{
	size_t used = 0;

	for (;;) {
		ssize_t n = end_receive(end, bytes + used, MESSAGE_BYTES - 1 - used);
		char *body, *field;

		if (n < 0)
			die("receive");
		if (n == 0)
			return 0;
		used += (size_t)n;
		bytes[used] = '\0';
		body = strstr(bytes, "\r\n\r\n");
		field = strstr(bytes, "Content-Length:");
		if (body && used >= (size_t)(body + 4 - bytes) +
					    (field ? strtoul(field + 15, NULL, 10) : 0))
			return used;
	}
}

static void serve_connection(struct end *end, FILE *log)
{
	char message[MESSAGE_BYTES], id[64];
	int number;

	while (read_message(end, message)) {
		uint64_t start_ns = wall_ns();
		int status, n;

		if (sscanf(message, "GET /uring/%63s", id) != 1)
			die("request");
		number = atoi(strrchr(id, '-') + 1);
		status = status_of(number);
		n = snprintf(message, sizeof(message),
			     "HTTP/1.1 %d Any\r\nContent-Length: 300\r\n\r\n%0300d", status, 0);
		log_line(log, "server", id, status, start_ns);
		send_all(end, message, (size_t)n);
	}
}

static void serve(int listener, const char *log_name, enum way way)
{
	FILE *log = fopen(log_name, "we");
	struct end end;

	if (!log)
		die(log_name);
	end_init(&end, way);
	for (int i = 0; i < CONNECTIONS; i++) {
		end_accept(&end, listener);
		setsockopt(end.fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
		serve_connection(&end, log);
		end_close(&end);
	}
	if (fclose(log) != 0)
		die(log_name);
	exit(0);
}

static void call(struct end *end, FILE *log, const char *id)
{
	char message[MESSAGE_BYTES];
	uint64_t start_ns = wall_ns();
	int status, n = snprintf(message, sizeof(message),
				 "GET /uring/%s HTTP/1.1\r\nHost: uring\r\n\r\n", id);

	send_all(end, message, (size_t)n);
	if (!read_message(end, message) || sscanf(message, "HTTP/1.1 %d", &status) != 1)
		die("response");
	log_line(log, "client", id, status, start_ns);
}

static void call_all(const struct sockaddr_in *address, const char *log_name, enum way way)
{
	FILE *log = fopen(log_name, "we");
	char id[64];
	struct end end;

	if (!log)
		die(log_name);
	end_init(&end, way);
	for (int i = 0; i < CONNECTIONS; i++) {
		end_connect(&end, address);
		setsockopt(end.fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
		for (int j = 0; j < REQUESTS; j++) {
			snprintf(id, sizeof(id), "%s-%d", group, i * REQUESTS + j);
			call(&end, log, id);
		}
		end_close(&end);
	}
	if (fclose(log) != 0)
		die(log_name);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	enum way client, server;
	char log_name[4096], line[16];
	int listener, status;
	pid_t child;

	if (argc != 6)
		return 2;
	address.sin_port = htons((uint16_t)atoi(argv[1]));
	signal(SIGPIPE, SIG_IGN);
	group = argv[3];
	client = way_of(argv[4]);
	server = way_of(argv[5]);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 16) < 0)
		die("listen");
	child = fork();
	if (child < 0)
		die("fork");
	if (child == 0) {
		snprintf(log_name, sizeof(log_name), "%s.server", argv[2]);
		serve(listener, log_name, server);
	}
	server_pid = child;
	close(listener);
	printf("ready %d %d\n", (int)getpid(), (int)child);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		die("standard input");
	snprintf(log_name, sizeof(log_name), "%s.client", argv[2]);
	call_all(&address, log_name, client);
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		die("the server");
	return WEXITSTATUS(status);
}
