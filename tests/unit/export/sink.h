/*
 * A collector for the exporter's test: an HTTP/1 server on a thread of its own that behaves, or
 * misbehaves, as told, and remembers what it was sent.
 */
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/util.h"
#include "otlp.pb-c.h"

#define SINK_CONNECTIONS_MAX 64
#define SINK_REQUEST_MAX     (8 << 20)

enum sink_mode {
	SINK_OK,
	SINK_BAD_REQUEST,   /* 400 with a google.rpc.Status */
	SINK_UNAVAILABLE,   /* 503, then closes */
	SINK_HANG,          /* never answers */
	SINK_RESET,         /* RST instead of an answer */
	SINK_GARBAGE,       /* no HTTP */
	SINK_HTML,          /* 200, but a web page */
	SINK_PARTIAL,       /* 200, one span rejected */
	SINK_ENDLESS,       /* 200 with a body of some gigabytes */
	SINK_DRIP,          /* an answer of a byte now and then */
	SINK_OK_THEN_CLOSE, /* 200, keep-alive promised, closed all the same */
};

struct sink_connection {
	int fd;
	char *buffer;
	size_t n;
};

struct sink {
	int listen_fd;
	uint16_t port;
	pthread_t thread;
	atomic_int mode;
	atomic_bool is_stopping;
	atomic_uint n_connections, n_requests, n_spans, n_undecodable;
	char head[1024]; /* of the last request; read it once n_requests has grown */
	struct sink_connection connections[SINK_CONNECTIONS_MAX];
};

static inline void sink_send(int fd, const void *p, size_t n)
{
	/* The exporter may be gone: that is not the sink's business. */
	(void)!send(fd, p, n, MSG_NOSIGNAL);
}

static inline void sink_drop(struct sink_connection *c, bool with_reset)
{
	struct linger linger = {.l_onoff = 1};

	if (with_reset)
		setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(c->fd);
	free(c->buffer);
	*c = (struct sink_connection){.fd = -1};
}

static inline void sink_send_endless(struct sink_connection *c)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 4000000000\r\n\r\n";
	static const char block[65536];
	struct timeval timeout = {.tv_usec = 200000};

	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	sink_send(c->fd, head, sizeof(head) - 1);
	for (int i = 0; i < 1000 && send(c->fd, block, sizeof(block), MSG_NOSIGNAL) > 0; i++)
		;
}

static inline void sink_answer(struct sink *s, struct sink_connection *c)
{
#define SINK_SEND(literal) sink_send(c->fd, literal, sizeof(literal) - 1)
	switch ((enum sink_mode)atomic_load(&s->mode)) {
	case SINK_OK:
		SINK_SEND("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
		return;
	case SINK_OK_THEN_CLOSE:
		SINK_SEND("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
		sink_drop(c, false);
		return;
	case SINK_BAD_REQUEST:
		SINK_SEND("HTTP/1.1 400 Bad\r\nContent-Length: 7\r\n\r\n\x08\x03\x12\x03"
			  "bad");
		return;
	case SINK_UNAVAILABLE:
		SINK_SEND("HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
		sink_drop(c, false);
		return;
	case SINK_HANG:
		return;
	case SINK_RESET:
		sink_drop(c, true);
		return;
	case SINK_GARBAGE:
		SINK_SEND("\x15\x03\x01 what is this?\r\n\r\n");
		sink_drop(c, false);
		return;
	case SINK_HTML:
		SINK_SEND("HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>");
		return;
	case SINK_PARTIAL:
		SINK_SEND("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n\x0a\x07\x08\x01\x12\x03"
			  "odd");
		return;
	case SINK_ENDLESS:
		sink_send_endless(c);
		sink_drop(c, false);
		return;
	case SINK_DRIP:
		SINK_SEND("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n\n");
		return;
	}
#undef SINK_SEND
}

static inline void sink_count(struct sink *s, const char *body, size_t n)
{
	Otlp__ExportTraceServiceRequest *m =
		otlp__export_trace_service_request__unpack(NULL, n, (const uint8_t *)body);

	if (!m) {
		atomic_fetch_add(&s->n_undecodable, 1);
		return;
	}
	for (size_t i = 0; i < m->n_resource_spans; i++)
		atomic_fetch_add(&s->n_spans, m->resource_spans[i]->scope_spans[0]->n_spans);
	otlp__export_trace_service_request__free_unpacked(m, NULL);
}

/* Takes one request off the connection's buffer and answers it, when it is whole. */
static inline void sink_serve(struct sink *s, struct sink_connection *c)
{
	char *end, *length;
	size_t n_head, n_body;

	c->buffer[c->n] = '\0';
	end = strstr(c->buffer, "\r\n\r\n");
	length = strcasestr(c->buffer, "\r\nContent-Length: ");
	if (!end || !length)
		return;
	n_head = (size_t)(end + 4 - c->buffer);
	n_body = strtoul(length + 18, NULL, 10);
	if (c->n < n_head + n_body)
		return;

	sink_count(s, c->buffer + n_head, n_body);
	snprintf(s->head, sizeof(s->head), "%.*s", (int)n_head, c->buffer);
	c->n -= n_head + n_body;
	memmove(c->buffer, c->buffer + n_head + n_body, c->n);
	atomic_fetch_add(&s->n_requests, 1);
	sink_answer(s, c);
}

static inline void sink_read(struct sink *s, struct sink_connection *c)
{
	ssize_t n = recv(c->fd, c->buffer + c->n, SINK_REQUEST_MAX - 1 - c->n, 0);

	if (n <= 0) {
		sink_drop(c, false);
		return;
	}
	c->n += (size_t)n;
	sink_serve(s, c);
}

static inline void sink_accept(struct sink *s)
{
	int fd = accept(s->listen_fd, NULL, NULL);

	for (size_t i = 0; fd >= 0 && i < SINK_CONNECTIONS_MAX; i++) {
		if (s->connections[i].fd >= 0)
			continue;
		s->connections[i] =
			(struct sink_connection){.fd = fd, .buffer = malloc(SINK_REQUEST_MAX)};
		atomic_fetch_add(&s->n_connections, 1);
		return;
	}
	closep(&fd);
}

static inline void *sink_main(void *userdata)
{
	struct sink *s = userdata;

	while (!atomic_load(&s->is_stopping)) {
		struct pollfd fds[SINK_CONNECTIONS_MAX + 1] = {
			{.fd = s->listen_fd, .events = POLLIN}};

		for (size_t i = 0; i < SINK_CONNECTIONS_MAX; i++)
			fds[i + 1] = (struct pollfd){.fd = s->connections[i].fd, .events = POLLIN};
		poll(fds, SINK_CONNECTIONS_MAX + 1, 20);
		if (fds[0].revents)
			sink_accept(s);
		for (size_t i = 0; i < SINK_CONNECTIONS_MAX; i++)
			if (fds[i + 1].revents)
				sink_read(s, &s->connections[i]);
			else if (s->connections[i].fd >= 0 && atomic_load(&s->mode) == SINK_DRIP)
				sink_send(s->connections[i].fd, "\n", 1);
	}
	for (size_t i = 0; i < SINK_CONNECTIONS_MAX; i++)
		if (s->connections[i].fd >= 0)
			sink_drop(&s->connections[i], false);
	return NULL;
}

/* False: the address family is not there. */
static inline bool sink_start(struct sink *s, int family)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr *address = family == AF_INET ? (void *)&v4 : (void *)&v6;
	socklen_t n = family == AF_INET ? sizeof(v4) : sizeof(v6);
	struct sockaddr_in6 bound;
	socklen_t n_bound = sizeof(bound);

	*s = (struct sink){.listen_fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	for (size_t i = 0; i < SINK_CONNECTIONS_MAX; i++)
		s->connections[i].fd = -1;
	if (s->listen_fd < 0 || bind(s->listen_fd, address, n) < 0 ||
	    listen(s->listen_fd, 64) < 0 ||
	    getsockname(s->listen_fd, (struct sockaddr *)&bound, &n_bound) < 0) {
		closep(&s->listen_fd);
		return false;
	}
	/* The port is at the same place in both kinds of address. */
	s->port = ntohs(bound.sin6_port);
	return pthread_create(&s->thread, NULL, sink_main, s) == 0;
}

static inline void sink_stop(struct sink *s)
{
	atomic_store(&s->is_stopping, true);
	pthread_join(s->thread, NULL);
	close(s->listen_fd);
}
