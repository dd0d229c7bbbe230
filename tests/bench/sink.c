/*
 * The collector of the benchmarks: answers every POST with 200 and an empty body, as soon as the
 * last byte of the request is there, and looks at nothing. Started by tests/bench/run; prints
 * "ready" when it listens. It lives until it is killed.
 *
 * usage: sink PORT
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n"
			     "Content-Length: 0\r\n\r\n";

/* Bytes of the head at the front of 'buffer', 0 when it is not whole. */
static size_t head_length(const char *buffer, size_t used)
{
	const char *end = memmem(buffer, used, "\r\n\r\n", 4);

	return end ? (size_t)(end - buffer) + 4 : 0;
}

static size_t content_length(char *head, size_t length)
{
	const char *field;

	head[length - 1] = '\0';
	field = strcasestr(head, "\r\ncontent-length:");
	return field ? strtoul(field + 17, NULL, 10) : 0;
}

/* One request at a time: the client waits for each answer, so nothing follows in the same bytes. */
static void *serve(void *argument)
{
	static __thread char buffer[1 << 18];
	int fd = (int)(intptr_t)argument;
	size_t used = 0, head = 0, whole = 0;
	ssize_t n;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	/* Once the head is read only the number of bytes counts: the body overwrites itself. */
	while ((n = recv(fd, head ? buffer : buffer + used, sizeof(buffer) - (head ? 0 : used),
			 0)) > 0) {
		used += (size_t)n;
		if (!head) {
			head = head_length(buffer, used);
			whole = head ? head + content_length(buffer, head) : 0;
		}
		if (!head && used == sizeof(buffer))
			break;
		if (!head || used < whole)
			continue;
		if (send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL) < 0)
			break;
		used = head = 0;
	}
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (argc != 2)
		return 2;
	address.sin_port = htons((uint16_t)atoi(argv[1]));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 16) < 0) {
		perror("sink");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		pthread_t thread;

		if (fd < 0)
			continue;
		if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) != 0)
			close(fd);
		else
			pthread_detach(thread);
	}
}
