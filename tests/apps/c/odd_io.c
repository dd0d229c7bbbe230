/*
 * See odd_io.h. The parser here is for the messages that odd itself sends, nothing more.
 */
#include "odd_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BYTES_MAX = 8 << 20, VECTORS_MAX = 1024 };

static void die(const char *what)
{
	fprintf(stderr, "odd: %s: %s\n", what, strerror(errno));
	exit(1);
}

void connection_init(struct connection *connection, int fd)
{
	*connection = (struct connection){.fd = fd, .bytes = malloc(BYTES_MAX)};
	if (!connection->bytes)
		die("malloc");
}

void connection_close(struct connection *connection, bool reset)
{
	struct linger now = {.l_onoff = 1};

	if (reset)
		setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(connection->fd);
	free(connection->bytes);
	connection->bytes = NULL;
}

/* Cuts bytes into 'n' vectors: one byte each, the rest in the last. */
static size_t vectors_make(const struct sending *how, const char *bytes, size_t length,
			   struct iovec *vectors)
{
	size_t n = how->vectors ? how->vectors : 2, i = 0, used = 0;

	if (how->empty_vector_first)
		vectors[i++] = (struct iovec){.iov_base = (char *)bytes};
	for (; i < n - 1 && used < length; i++)
		vectors[i] = (struct iovec){.iov_base = (char *)bytes + used++, .iov_len = 1};
	vectors[i++] = (struct iovec){.iov_base = (char *)bytes + used, .iov_len = length - used};
	return i;
}

/* Two messages in one call; returns the bytes of those that were sent. */
static ssize_t sendmmsg_bytes(int fd, const char *bytes, size_t length)
{
	struct iovec halves[2] = {
		{.iov_base = (char *)bytes, .iov_len = length / 2},
		{.iov_base = (char *)bytes + length / 2, .iov_len = length - length / 2},
	};
	struct mmsghdr messages[2] = {
		{.msg_hdr = {.msg_iov = &halves[0], .msg_iovlen = 1}},
		{.msg_hdr = {.msg_iov = &halves[1], .msg_iovlen = 1}},
	};
	int n = sendmmsg(fd, messages, 2, 0);

	if (n <= 0)
		return -1;
	return (ssize_t)messages[0].msg_len + (n > 1 ? (ssize_t)messages[1].msg_len : 0);
}

/* One call; may send less than asked for. */
static ssize_t send_once(int fd, const struct sending *how, const char *bytes, size_t length)
{
	struct iovec vectors[VECTORS_MAX + 1];
	struct msghdr message = {.msg_iov = vectors};

	switch (how->call) {
	case CALL_WRITE:
		return write(fd, bytes, length);
	case CALL_WRITEV:
		return writev(fd, vectors, (int)vectors_make(how, bytes, length, vectors));
	case CALL_SEND:
		return send(fd, bytes, length, how->way == BODY_ZEROCOPY ? MSG_ZEROCOPY : 0);
	case CALL_SENDTO:
		return sendto(fd, bytes, length, 0, NULL, 0);
	case CALL_SENDMSG:
		message.msg_iovlen = vectors_make(how, bytes, length, vectors);
		return sendmsg(fd, &message, 0);
	case CALL_SENDMMSG:
		return sendmmsg_bytes(fd, bytes, length);
	case _CALL_MAX:
		break;
	}
	return -1;
}

static void send_all(int fd, const struct sending *how, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t n = send_once(fd, how, bytes, length);

		if (n <= 0)
			die("send");
		bytes += n;
		length -= (size_t)n;
	}
}

static void sendfile_all(int fd, const char *bytes, size_t length)
{
	int file = memfd_create("body", MFD_CLOEXEC);
	off_t at = 0;

	if (file < 0 || write(file, bytes, length) != (ssize_t)length)
		die("memfd");
	while ((size_t)at < length)
		if (sendfile(fd, file, &at, length - (size_t)at) <= 0)
			die("sendfile");
	close(file);
}

/* One message in five sends, of which all but the last announce more. */
static void send_with_more(int fd, const char *bytes, size_t head, size_t length)
{
	const size_t edges[] = {0, 10, head - 3, head, head + (length - head) / 2, length};

	for (size_t i = 1; i < sizeof(edges) / sizeof(edges[0]); i++) {
		size_t at = edges[i - 1];

		while (at < edges[i]) {
			ssize_t n = send(fd, bytes + at, edges[i] - at,
					 edges[i] == length ? 0 : MSG_MORE);

			if (n <= 0)
				die("send with MSG_MORE");
			at += (size_t)n;
		}
	}
}

static void splice_all(int fd, const char *bytes, size_t length)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		die("pipe");
	while (length > 0) {
		ssize_t n = write(ends[1], bytes, length < 65536 ? length : 65536);

		if (n <= 0)
			die("write to a pipe");
		bytes += n;
		length -= (size_t)n;
		while (n > 0) {
			ssize_t moved = splice(ends[0], NULL, fd, NULL, (size_t)n, SPLICE_F_MORE);

			if (moved <= 0)
				die("splice");
			n -= moved;
		}
	}
	close(ends[0]);
	close(ends[1]);
}

static void send_cut(int fd, const struct sending *how, const char *bytes, size_t length)
{
	if (how->cut < 0) {
		for (size_t i = 0; i < length; i++)
			send_all(fd, how, bytes + i, 1);
		return;
	}
	send_all(fd, how, bytes, (size_t)how->cut);
	usleep(500); /* so that the peer reads the first part alone */
	send_all(fd, how, bytes + how->cut, length - (size_t)how->cut);
}

void connection_send(struct connection *connection, const struct sending *how, const char *bytes,
		     size_t head, size_t length)
{
	int fd = connection->fd;

	if (how->cut) {
		send_cut(fd, how, bytes, length);
		return;
	}
	switch (how->way) {
	case BODY_PLAIN:
	case BODY_ZEROCOPY:
		send_all(fd, how, bytes, length);
		break;
	case BODY_SENDFILE:
		if (send(fd, bytes, head, MSG_MORE) != (ssize_t)head)
			die("send");
		sendfile_all(fd, bytes + head, length - head);
		break;
	case BODY_MORE:
		send_with_more(fd, bytes, head, length);
		break;
	case BODY_HEAD_IN_FILE:
		sendfile_all(fd, bytes, length);
		break;
	case BODY_SPLICE:
		if (send(fd, bytes, head, MSG_MORE) != (ssize_t)head)
			die("send");
		splice_all(fd, bytes + head, length - head);
		break;
	}
}

static ssize_t recvmmsg_bytes(int fd, char *bytes, size_t length, bool alone)
{
	struct iovec halves[2] = {
		{.iov_base = bytes, .iov_len = alone ? length : length / 2},
		{.iov_base = bytes + length / 2, .iov_len = length - length / 2},
	};
	struct mmsghdr messages[2] = {
		{.msg_hdr = {.msg_iov = &halves[0], .msg_iovlen = 1}},
		{.msg_hdr = {.msg_iov = &halves[1], .msg_iovlen = 1}},
	};
	int n = recvmmsg(fd, messages, alone ? 1 : 2, MSG_WAITFORONE, NULL);

	if (n <= 0)
		return n;
	if (n > 1 && messages[0].msg_len < halves[0].iov_len) /* the rest arrived between the two */
		memmove(bytes + messages[0].msg_len, halves[1].iov_base, messages[1].msg_len);
	return (ssize_t)messages[0].msg_len + (n > 1 ? (ssize_t)messages[1].msg_len : 0);
}

static ssize_t receive_spliced(int fd, char *bytes, size_t length)
{
	int ends[2];
	ssize_t n;

	if (pipe2(ends, O_CLOEXEC) < 0)
		die("pipe");
	n = splice(fd, NULL, ends[1], NULL, length < 65536 ? length : 65536, 0);
	if (n > 0 && read(ends[0], bytes, (size_t)n) != n)
		die("read from a pipe");
	close(ends[0]);
	close(ends[1]);
	return n;
}

static ssize_t receive_once(int fd, const struct receiving *how, char *bytes, size_t length)
{
	struct iovec vectors[2] = {
		{.iov_base = bytes, .iov_len = length / 2},
		{.iov_base = bytes + length / 2, .iov_len = length - length / 2},
	};
	struct msghdr message = {.msg_iov = vectors, .msg_iovlen = 2};
	struct sockaddr_storage address;
	socklen_t address_length = sizeof(address);

	if (how->peek && recv(fd, bytes, length, MSG_PEEK) < 0)
		die("recv with MSG_PEEK");
	if (how->splice)
		return receive_spliced(fd, bytes, length);
	switch (how->call) {
	case CALL_WRITE:
		return read(fd, bytes, length);
	case CALL_WRITEV:
		return readv(fd, vectors, 2);
	case CALL_SEND:
		return recv(fd, bytes, length, 0);
	case CALL_SENDTO:
		return recvfrom(fd, bytes, length, 0, (struct sockaddr *)&address, &address_length);
	case CALL_SENDMSG:
		return recvmsg(fd, &message, 0);
	case CALL_SENDMMSG:
		return recvmmsg_bytes(fd, bytes, length, how->alone || length < 2);
	case _CALL_MAX:
		break;
	}
	return -1;
}

/* Receives some more; false at the end of the connection, by FIN or by reset. */
static bool connection_fill(struct connection *connection, const struct receiving *how)
{
	size_t room = BYTES_MAX - 1 - connection->used;
	ssize_t n;

	if (how->chunk && how->chunk < room)
		room = how->chunk;
	n = receive_once(connection->fd, how, connection->bytes + connection->used, room);
	if (n < 0 && errno != ECONNRESET)
		die("receive");
	if (n <= 0) {
		connection->ended = true;
		return false;
	}
	connection->used += (size_t)n;
	return true;
}

static void connection_consume(struct connection *connection, size_t length)
{
	memmove(connection->bytes, connection->bytes + length, connection->used - length);
	connection->used -= length;
}

/*
 * Until 'text' is in the received bytes from 'from' on; returns the offset behind it, 0 when it
 * never comes.
 */
static size_t fill_until(struct connection *connection, const struct receiving *how, size_t from,
			 const char *text)
{
	for (;;) {
		char *found = NULL;

		if (connection->used > from)
			found = memmem(connection->bytes + from, connection->used - from, text,
				       strlen(text));
		if (found)
			return (size_t)(found - connection->bytes) + strlen(text);
		if (!connection_fill(connection, how))
			return 0;
	}
}

static size_t chunked_end(struct connection *connection, const struct receiving *how, size_t at)
{
	for (;;) {
		size_t line = fill_until(connection, how, at, "\r\n"), size;

		if (!line)
			die("chunk size");
		size = strtoul(connection->bytes + at, NULL, 16);
		at = line + size + 2;
		while (connection->used < at)
			if (!connection_fill(connection, how))
				die("chunk");
		if (size == 0)
			return at;
	}
}

/* The whole length of the message whose head has 'head' bytes. */
static size_t message_end(struct connection *connection, const struct receiving *how, size_t head,
			  bool bodyless, bool response)
{
	char *field, *end = connection->bytes + head - 2;
	size_t length;

	*end = '\0';
	field = strstr(connection->bytes, "\r\nContent-Length:");
	length = field ? strtoul(field + 17, NULL, 10) : 0;
	if (!field)
		field = strstr(connection->bytes, "\r\nTransfer-Encoding: chunked");
	*end = '\r';
	if (bodyless)
		return head;
	if (field && field[2] == 'T')
		return chunked_end(connection, how, head);
	if (!field && response) { /* ends with the connection */
		while (connection_fill(connection, how))
			;
		return connection->used;
	}
	while (connection->used < head + length)
		if (!connection_fill(connection, how))
			die("body");
	return head + length;
}

void connection_read(struct connection *connection, const struct receiving *how, const char *to,
		     struct message *ret)
{
	*ret = (struct message){};
	for (;;) {
		size_t head = fill_until(connection, how, 0, "\r\n\r\n");
		bool bodyless;

		if (!head)
			return;
		if (!to && sscanf(connection->bytes, "%15s %255s", ret->method, ret->path) != 2)
			die("request line");
		if (to && sscanf(connection->bytes, "HTTP/1.%*c %d", &ret->status) != 1)
			die("status line");
		bodyless = to && (ret->status / 100 == 1 || ret->status == 204 ||
				  ret->status == 304 || strcmp(to, "HEAD") == 0);
		connection_consume(connection,
				   message_end(connection, how, head, bodyless, to != NULL));
		if (!to || ret->status / 100 != 1)
			return;
	}
}
