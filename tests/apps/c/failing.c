/*
 * Calls on sockets that come to nothing, for the end-to-end tests: what is noted where such a call
 * begins has to be forgotten all the same.
 *
 * failing calls NAME ROUNDS         each round all calls that fail early, from four threads
 * failing hang NAME CHAINS EXECS    for each chain six threads that wait inside six kinds of calls,
 *                                   some with a request that nobody answers or reads; so often the
 *                                   program starts anew in the midst of that before it is "ready"
 * failing busy NAME CALLS           as many reads and writes that succeed
 *
 * NAME is not used: by it a process is selected for tracing, or not. Prints "ready" and waits for a
 * line, prints "done" when all calls did what they were meant to and waits for another.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { THREADS = 4, CHAINS_MAX = 256, VECTORS_TOO_MANY = 1025 };

static void *volatile nowhere = (void *)8; /* an address where nothing is, unknown to compilers */

static const char never[] = "GET /never HTTP/1.1\r\nHost: never\r\n\r\n";
static const char unread[] = "GET /unread HTTP/1.1\r\nHost: unread\r\n\r\n";
static const char hung[] = "GET /hang HTTP/1.1\r\nHost: hang\r\n\r\n";

static void die(const char *what)
{
	fprintf(stderr, "failing: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Both ends of a new connection over loopback. */
static void connect_pair(int ret[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &length) < 0)
		die("listen");
	ret[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(ret[0], (struct sockaddr *)&address, sizeof(address)) < 0)
		die("connect");
	ret[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (ret[1] < 0)
		die("accept");
	close(listener);
}

static void say(const char *what)
{
	char line[8];

	puts(what);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

/* --- calls that fail */

struct ends {
	int unread; /* has a request to be received */
	int full;   /* has no room for any more to be sent */
	int broken; /* its own end has sent its FIN */
	int unused; /* was never connected */
	int file;   /* is no socket, and may only be read */
};

static void want(ssize_t got, int error, const char *what)
{
	if (got < 0 && errno == error)
		return;
	fprintf(stderr, "failing: %s: %zd, errno %d, not %d\n", what, got, errno, error);
	exit(1);
}

/* TCP makes more room for a while. */
static void fill(int fd)
{
	static char much[1 << 20];
	ssize_t n;

	do {
		for (n = 0; send(fd, much, sizeof(much), MSG_DONTWAIT) > 0;)
			n++;
		usleep(50000);
	} while (n);
}

static void ends_new(struct ends *ret)
{
	int pair[2];

	connect_pair(pair);
	if (send(pair[1], unread, sizeof(unread) - 1, 0) < 0)
		die("send");
	ret->unread = pair[0];
	connect_pair(pair);
	fill(pair[0]);
	ret->full = pair[0];
	connect_pair(pair);
	shutdown(pair[0], SHUT_WR);
	ret->broken = pair[0];
	ret->unused = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ret->file = open("/dev/zero", O_RDONLY | O_CLOEXEC);
}

static void fail_bad_fd(const struct ends *e)
{
	struct iovec part = {(void *)never, sizeof(never) - 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	char byte;

	want(read(-1, &byte, 1), EBADF, "read");
	want(write(-1, never, sizeof(never) - 1), EBADF, "write");
	want(readv(-1, &part, 1), EBADF, "readv");
	want(writev(-1, &part, 1), EBADF, "writev");
	want(recv(-1, &byte, 1, 0), EBADF, "recv");
	want(send(-1, never, sizeof(never) - 1, 0), EBADF, "send");
	want(recvmsg(-1, &message, 0), EBADF, "recvmsg");
	want(sendmsg(-1, &message, 0), EBADF, "sendmsg");
	want(write(e->file, never, sizeof(never) - 1), EBADF, "write to a file to read");
	want(send(e->file, never, sizeof(never) - 1, 0), ENOTSOCK, "send to a file");
	want(recv(e->file, &byte, 1, 0), ENOTSOCK, "recv of a file");
}

static void fail_bad_memory(const struct ends *e)
{
	struct iovec part = {nowhere, 100};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	struct msghdr lost = {.msg_iov = nowhere, .msg_iovlen = 1};
	struct msghdr too_many = {.msg_iov = &part, .msg_iovlen = VECTORS_TOO_MANY};

	want(recv(e->unread, nowhere, 5, 0), EFAULT, "recv");
	want(read(e->unread, nowhere, 5), EFAULT, "read");
	want(readv(e->unread, &part, 1), EFAULT, "readv");
	want(readv(e->unread, nowhere, 1), EFAULT, "readv of nowhere");
	want(recvmsg(e->unread, &message, 0), EFAULT, "recvmsg");
	want(recvmsg(e->unread, nowhere, 0), EFAULT, "recvmsg of nowhere");
	want(recvmsg(e->unread, &lost, 0), EFAULT, "recvmsg to nowhere");
	want(recvmsg(e->unread, &too_many, 0), EMSGSIZE, "recvmsg of too many");
	want(write(e->unread, nowhere, 100), EFAULT, "write");
	want(send(e->unread, nowhere, 100, 0), EFAULT, "send");
	want(writev(e->unread, &part, 1), EFAULT, "writev");
	want(sendmsg(e->unread, &message, 0), EFAULT, "sendmsg");
	want(writev(e->unread, nowhere, 1), EFAULT, "writev of nowhere");
	want(sendmsg(e->unread, nowhere, 0), EFAULT, "sendmsg of nowhere");
	want(sendmsg(e->unread, &lost, 0), EFAULT, "sendmsg from nowhere");
	want(sendmsg(e->unread, &too_many, 0), EMSGSIZE, "sendmsg of too many");
}

/* Heads of requests that do not leave. */
static void fail_to_leave(const struct ends *e)
{
	struct iovec part = {(void *)never, sizeof(never) - 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	char byte;

	want(send(e->full, never, sizeof(never) - 1, MSG_DONTWAIT), EAGAIN, "send without room");
	want(sendmsg(e->full, &message, MSG_DONTWAIT), EAGAIN, "sendmsg without room");
	want(send(e->broken, never, sizeof(never) - 1, MSG_NOSIGNAL), EPIPE, "send after FIN");
	want(sendmsg(e->broken, &message, MSG_NOSIGNAL), EPIPE, "sendmsg after FIN");
	want(send(e->unused, never, sizeof(never) - 1, MSG_NOSIGNAL), EPIPE, "send without peer");
	want(recv(e->unused, &byte, 1, 0), ENOTCONN, "recv without peer");
	want(recv(e->broken, &byte, 1, MSG_DONTWAIT), EAGAIN, "recv of nothing");
}

static void *fail_rounds(void *argument)
{
	struct ends e;

	ends_new(&e);
	for (long i = (long)(intptr_t)argument; i > 0; i--) {
		fail_bad_fd(&e);
		fail_bad_memory(&e);
		fail_to_leave(&e);
	}
	return NULL;
}

/* --- calls that do not end */

enum waiting { WAIT_CLIENT, WAIT_SERVER, WAIT_RECV, WAIT_READ, WAIT_SEND, WAIT_ACCEPT, _WAIT_MAX };

static atomic_int n_waiting;

struct wait {
	enum waiting kind;
	int fd;
};

static void *wait_inside(void *argument)
{
	static char much[1 << 20];
	const struct wait *w = argument;
	char bytes[sizeof(hung)];
	int own[2];

	if (w->kind == WAIT_CLIENT && send(w->fd, hung, sizeof(hung) - 1, 0) < 0)
		die("send");
	if (w->kind == WAIT_SERVER && recv(w->fd, bytes, sizeof(hung) - 1, MSG_WAITALL) < 0)
		die("recv");
	connect_pair(own);
	atomic_fetch_add(&n_waiting, 1);
	switch (w->kind) {
	case WAIT_CLIENT:
	case WAIT_SERVER:
		recv(w->fd, bytes, sizeof(bytes), 0);
		break;
	case WAIT_RECV: /* the other end does not read it */
		if (send(own[0], hung, sizeof(hung) - 1, 0) < 0)
			die("send");
		recv(own[0], bytes, sizeof(bytes), 0);
		break;
	case WAIT_READ:
		if (read(own[0], bytes, sizeof(bytes)) >= 0)
			break;
		break;
	case WAIT_SEND:
		while (send(own[0], much, sizeof(much), 0) > 0)
			;
		break;
	case WAIT_ACCEPT:
		close(own[0]);
		own[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		listen(own[0], 1);
		accept(own[0], NULL, NULL);
		break;
	case _WAIT_MAX:
		break;
	}
	die("a call has ended"); /* nobody answers, and nobody closes */
	return NULL;
}

static void hang(char **argv, int chains, int execs)
{
	static struct wait waits[CHAINS_MAX * _WAIT_MAX];
	pthread_t thread;
	char next[16];
	int pair[2];

	usleep(300000); /* so that the daemon has judged the program */
	for (int i = 0; i < chains; i++) {
		connect_pair(pair);
		for (int kind = 0; kind < _WAIT_MAX; kind++) {
			struct wait *w = &waits[i * _WAIT_MAX + kind];

			*w = (struct wait){kind, kind == WAIT_CLIENT ? pair[0] : pair[1]};
			if (pthread_create(&thread, NULL, wait_inside, w) != 0)
				die("pthread_create");
		}
	}
	while (atomic_load(&n_waiting) < chains * _WAIT_MAX)
		usleep(1000);
	usleep(50000); /* so that they wait */
	if (execs == 0) {
		say("ready");
		return;
	}
	snprintf(next, sizeof(next), "%d", execs - 1);
	execv("/proc/self/exe", (char *[]){argv[0], argv[1], argv[2], argv[3], next, NULL});
	die("execv");
}

/* --- calls that succeed */

static void *write_and_read(void *argument)
{
	char byte = 'b';
	int pair[2];

	connect_pair(pair);
	for (long i = (long)(intptr_t)argument; i > 0; i -= 4)
		if (write(pair[0], &byte, 1) != 1 || read(pair[1], &byte, 1) != 1 ||
		    send(pair[1], &byte, 1, 0) != 1 || recv(pair[0], &byte, 1, 0) != 1)
			die("a byte");
	return NULL;
}

static void in_threads(void *(*run)(void *), long each)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)(intptr_t)each) != 0)
			die("pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "hang") && atoi(argv[3]) <= CHAINS_MAX) {
		hang(argv, atoi(argv[3]), atoi(argv[4]));
		return 0;
	}
	if (argc != 4)
		return 2;
	say("ready");
	if (!strcmp(argv[1], "calls"))
		in_threads(fail_rounds, atol(argv[3]) / THREADS);
	else
		in_threads(write_and_read, atol(argv[3]) / THREADS);
	say("done");
	return 0;
}
