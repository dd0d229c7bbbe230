/* The self-test of header insertion; see insert_check.h. */
#include "probe/insert_check.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define WAIT_MS    500
#define BODY_BYTES 65536
#define LINE_BYTES 70
#define PIECES     64
#define TEXT_BYTES 512

struct pair {
	int client, server;
	struct insert_result *result;
};

__attribute__((format(printf, 2, 3))) static bool fail(struct pair *p, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(p->result->failure, sizeof(p->result->failure), format, arguments);
	va_end(arguments);
	return false;
}

static bool fail_errno(struct pair *p, const char *what)
{
	return fail(p, "%s: %s", what, strerror(errno));
}

static int listen_locally(struct sockaddr_in *ret_address)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	_cleanup_(closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(address);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 4) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) < 0)
		return -errno;
	*ret_address = address;
	return TAKE_FD(fd);
}

static void set_patience(int fd)
{
	struct timeval wait = {.tv_usec = WAIT_MS * 1000};
	int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void pair_close(struct pair *p)
{
	closep(&p->client);
	closep(&p->server);
	p->client = p->server = -1;
}

/* As Go does it: only such sockets are taken in. From then on it is a blocking one. */
static bool connect_as_go(struct pair *p, const struct sockaddr_in *address)
{
	struct pollfd ready = {.events = POLLOUT};
	int error = 0;
	socklen_t length = sizeof(error);

	p->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->client < 0)
		return false;
	set_patience(p->client);
	if (connect(p->client, (const struct sockaddr *)address, sizeof(*address)) < 0 &&
	    errno != EINPROGRESS)
		return false;
	ready.fd = p->client;
	if (poll(&ready, 1, WAIT_MS) != 1 ||
	    getsockopt(p->client, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
		return false;
	errno = error;
	return !error && fcntl(p->client, F_SETFL, 0) == 0;
}

static bool pair_open(struct pair *p)
{
	struct sockaddr_in address;
	_cleanup_(closep) int listener = listen_locally(&address);

	if (listener < 0)
		return fail(p, "cannot listen: %s", strerror(-listener));
	if (!connect_as_go(p, &address))
		return fail_errno(p, "cannot connect");
	p->server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (p->server < 0)
		return fail_errno(p, "cannot accept");
	set_patience(p->server);
	return true;
}

/*
 * From memory that is there: the tap reads what is sent where it is, and of a program's constants a
 * child has only what it has touched.
 */
static bool send_text(int fd, const char *text)
{
	size_t n = strlen(text);
	char bytes[TEXT_BYTES];

	assert(n <= sizeof(bytes));
	memcpy(bytes, text, n);
	return send(fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* What comes until 'end' has come, or nothing more does. */
static size_t receive_until(int fd, char *buffer, size_t size, const char *end)
{
	size_t n = 0, length = strlen(end);

	while (n < size) {
		ssize_t got = recv(fd, buffer + n, size - n, 0);

		if (got <= 0)
			break;
		n += (size_t)got;
		if (n >= length && memcmp(buffer + n - length, end, length) == 0)
			break;
	}
	return n;
}

static bool is_hex(const char *text, size_t n)
{
	return strspn(text, "0123456789abcdef") >= n;
}

/* "traceparent: 00-{32}-{16}-{2}" and its line end. */
static bool is_line(const char *text)
{
	return memcmp(text, "traceparent: 00-", 16) == 0 && is_hex(text + 16, 32) &&
	       text[48] == '-' && is_hex(text + 49, 16) && text[65] == '-' &&
	       is_hex(text + 66, 2) && memcmp(text + 68, "\r\n", 2) == 0;
}

/* Whether 'got' is 'sent', with our line before the blank one if 'has_line'. */
static bool is_request(const char *got, size_t n, const char *sent, bool has_line)
{
	size_t length = strlen(sent), head = length - 2;

	if (!has_line)
		return n == length && memcmp(got, sent, length) == 0;
	return n == length + LINE_BYTES && memcmp(got, sent, head) == 0 && is_line(got + head) &&
	       memcmp(got + head + LINE_BYTES, "\r\n", 2) == 0;
}

static bool exchange(struct pair *p, const char *request, bool has_line)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	char got[1024];
	size_t n;

	if (!send_text(p->client, request))
		return fail_errno(p, "cannot send");
	n = receive_until(p->server, got, sizeof(got), "\r\n\r\n");
	if (!is_request(got, n, request, has_line))
		return fail(p, has_line ? "a request came without the line, or with it elsewhere"
					: "a request that had the header came changed");
	if (!send_text(p->server, answer))
		return fail_errno(p, "cannot answer");
	n = receive_until(p->client, got, sizeof(got), "\r\n\r\n");
	return n == strlen(answer) || fail(p, "an answer did not come");
}

static bool check_line(struct pair *p)
{
	return exchange(p, "GET /1 HTTP/1.1\r\nHost: localhost\r\n\r\n", true) &&
	       exchange(p,
			"GET /2 HTTP/1.1\r\nTraceParent: 00-0af7651916cd43dd8448eb211c80319c-"
			"b7ad6b7169203331-01\r\nHost: localhost\r\n\r\n",
			false) &&
	       exchange(p, "GET /3 HTTP/1.1\r\nHost: localhost\r\n\r\n", true);
}

/* --- bodies, by several ways of sending */

typedef ssize_t (*send_fn)(int fd, const char *bytes, size_t from, size_t n, int file);

static ssize_t send_pieces(int fd, const char *bytes, size_t from, size_t n, int file)
{
	struct iovec pieces[PIECES];
	struct msghdr message = {.msg_iov = pieces};
	size_t length = BODY_BYTES / PIECES;

	(void)file;
	for (size_t i = 0; i < PIECES && from < n; i++) {
		pieces[i].iov_base = (void *)(uintptr_t)(bytes + from);
		pieces[i].iov_len = MIN(length, n - from);
		from += pieces[i].iov_len;
		message.msg_iovlen = i + 1;
	}
	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static ssize_t send_file(int fd, const char *bytes, size_t from, size_t n, int file)
{
	off_t offset = (off_t)from;

	(void)bytes;
	return sendfile(fd, file, &offset, n - from);
}

/* Sends and receives by turns, so that no buffer need hold all of it. */
static bool pump(struct pair *p, send_fn send_some, const char *bytes, size_t n, int file,
		 char *got, size_t *ret_n)
{
	size_t sent = 0, received = 0;
	int quiet = 0;

	while (quiet < WAIT_MS) {
		ssize_t out = sent < n ? send_some(p->client, bytes, sent, n, file) : 0;
		ssize_t in =
			recv(p->server, got + received, 2 * BODY_BYTES - received, MSG_DONTWAIT);

		if (out < 0 && errno != EAGAIN)
			return fail_errno(p, "cannot send");
		sent += out > 0 ? (size_t)out : 0;
		received += in > 0 ? (size_t)in : 0;
		if (sent == n && received >= n && in < 0)
			break;
		if (out > 0 || in > 0) {
			quiet = 0;
			continue;
		}
		poll(NULL, 0, 1);
		quiet++;
	}
	*ret_n = received;
	return sent == n || fail(p, "only %zu of %zu bytes could be sent", sent, n);
}

/* A request with a body: it must come as it was sent, but for our line. */
static bool check_body(struct pair *p, send_fn send_some)
{
	_cleanup_(freep) char *sent = malloc(2 * BODY_BYTES), *got = malloc(2 * BODY_BYTES);
	_cleanup_(closep) int file = memfd_create("tsunagi", MFD_CLOEXEC);
	size_t n, head, received = 0;

	if (!sent || !got || file < 0)
		return fail_errno(p, "cannot prepare");
	head = (size_t)snprintf(sent, BODY_BYTES,
				"POST /4 HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n",
				BODY_BYTES);
	n = head + BODY_BYTES;
	for (size_t i = head; i < n; i++)
		sent[i] = (char)(i * 7 + i / 251);
	if (write(file, sent, n) != (ssize_t)n)
		return fail_errno(p, "cannot prepare");
	fcntl(p->client, F_SETFL, O_NONBLOCK);
	if (!pump(p, send_some, sent, n, file, got, &received))
		return false;
	if (received == n + LINE_BYTES && is_line(got + head - 2)) {
		memmove(got + head - 2, got + head - 2 + LINE_BYTES,
			received - head + 2 - LINE_BYTES);
		received -= LINE_BYTES;
	}
	if (received != n || memcmp(sent, got, n) != 0)
		return fail(p, "%zu bytes were sent, %zu came, or others", n, received);
	return true;
}

static bool check_fragmented(struct pair *p)
{
	return check_body(p, send_pieces);
}

static bool check_sendfile(struct pair *p)
{
	return check_body(p, send_file);
}

static bool check_splice(struct pair *p)
{
	static const char there[] = "spliced out of the socket", back[] = "and into it";
	_cleanup_(closep) int in = -1, out = -1;
	char got[64];
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fail_errno(p, "cannot make a pipe");
	out = ends[0];
	in = ends[1];
	if (!send_text(p->server, there))
		return fail_errno(p, "cannot send");
	if (splice(p->client, NULL, in, NULL, sizeof(got), 0) != (ssize_t)strlen(there) ||
	    read(out, got, sizeof(got)) != (ssize_t)strlen(there) ||
	    memcmp(got, there, strlen(there)) != 0)
		return fail(p, "what was spliced out of a socket is not what came");
	if (write(in, back, strlen(back)) != (ssize_t)strlen(back) ||
	    splice(out, NULL, p->client, NULL, strlen(back), 0) != (ssize_t)strlen(back))
		return fail_errno(p, "cannot splice into a socket");
	if (receive_until(p->server, got, strlen(back), back) != strlen(back) ||
	    memcmp(got, back, strlen(back)) != 0)
		return fail(p, "what was spliced into a socket did not come");
	return true;
}

/* --- what is told of the socket */

static uint32_t next_events(int epoll)
{
	struct epoll_event event = {0};

	return epoll_wait(epoll, &event, 1, WAIT_MS) == 1 ? event.events : 0;
}

static bool check_epoll(struct pair *p)
{
	_cleanup_(closep) int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET};
	char got[64];

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, p->client, &event) < 0)
		return fail_errno(p, "cannot prepare");
	if (!send_text(p->server, "one") || !(next_events(epoll) & EPOLLIN))
		return fail(p, "the first bytes were not told");
	if (read(p->client, got, 1) != 1 || epoll_wait(epoll, &event, 1, 0) != 0)
		return fail(p, "what is there was told twice");
	if (!send_text(p->server, "more") || !(next_events(epoll) & EPOLLIN))
		return fail(p, "further bytes were not told");
	if (read(p->client, got, sizeof(got)) != 6)
		return fail(p, "not all that is there could be read");
	if (shutdown(p->server, SHUT_WR) < 0 || !(next_events(epoll) & EPOLLRDHUP))
		return fail(p, "the end was not told");
	return true;
}

static bool check_close(struct pair *p)
{
	struct linger at_once = {.l_onoff = 1};
	char got[16];

	if (shutdown(p->server, SHUT_WR) < 0 || read(p->client, got, sizeof(got)) != 0)
		return fail(p, "the peer's end could not be read");
	setsockopt(p->server, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(TAKE_FD(p->server));
	for (int i = 0; i < WAIT_MS; i++) {
		if (send(p->client, "x", 1, MSG_NOSIGNAL) < 0)
			return errno == EPIPE || errno == ECONNRESET ||
			       fail_errno(p, "a reset was told as another error");
		poll(NULL, 0, 1);
	}
	return fail(p, "a reset was not told");
}

static bool check_fionread(struct pair *p)
{
	struct pollfd ready = {.fd = p->client, .events = POLLIN};
	int n = -1;

	if (!send_text(p->server, "eleven here") || poll(&ready, 1, WAIT_MS) != 1)
		return fail(p, "bytes were not told");
	if (ioctl(p->client, FIONREAD, &n) < 0 || n != 11)
		return fail(p, "11 bytes wait, FIONREAD says %d", n);
	return true;
}

static const struct {
	const char *name;
	bool (*run)(struct pair *p);
} checks[] = {
	[INSERT_CHECK_LINE] = {"traceparent in requests", check_line},
	[INSERT_CHECK_FRAGMENTED] = {"64 KiB from fragments", check_fragmented},
	[INSERT_CHECK_SENDFILE] = {"sendfile", check_sendfile},
	[INSERT_CHECK_SPLICE] = {"splice", check_splice},
	[INSERT_CHECK_EPOLL] = {"edge-triggered epoll", check_epoll},
	[INSERT_CHECK_CLOSE] = {"ends and resets", check_close},
	[INSERT_CHECK_FIONREAD] = {"FIONREAD", check_fionread},
};
static_assert(ARRAY_SIZE(checks) == _INSERT_CHECK_MAX, "each check is there");

void insert_check_run(insert_check_fn is_in_map, void *userdata,
		      struct insert_result ret[_INSERT_CHECK_MAX])
{
	for (size_t i = 0; i < _INSERT_CHECK_MAX; i++) {
		struct pair p = {.client = -1, .server = -1, .result = &ret[i]};

		ret[i] = (struct insert_result){
			.name = checks[i].name,
			.matters = i != INSERT_CHECK_FIONREAD, /* Go never asks for it */
		};
		if (pair_open(&p)) {
			if (is_in_map(userdata, p.client))
				checks[i].run(&p);
			else
				fail(&p, "a connection was not taken into the map");
		}
		pair_close(&p);
	}
}
