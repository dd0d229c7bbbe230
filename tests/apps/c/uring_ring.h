/*
 * One end of a connection whose calls go through io_uring, by the system calls themselves (no
 * liburing needed), or are ordinary ones. Used by uring.c. Ends the program when a call fails, with
 * 77 when the kernel has no io_uring, or lacks this way of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct sockaddr_in;

enum way {
	WAY_PLAIN,     /* no ring: accept, read, write */
	WAY_RING,      /* IORING_OP_ACCEPT, _CONNECT, _RECV, _SEND */
	WAY_MESSAGE,   /* IORING_OP_RECVMSG, _SENDMSG with two vectors */
	WAY_ZEROCOPY,  /* IORING_OP_SEND_ZC */
	WAY_MULTISHOT, /* one IORING_OP_RECV with IORING_RECV_MULTISHOT and provided buffers */
	WAY_SQPOLL,    /* a thread of the kernel submits */
	_WAY_MAX,
};

/* "plain", "ring", "message", "zerocopy", "multishot", "sqpoll" */
enum way way_of(const char *name);

struct ring {
	int fd;
	unsigned *sq_head, *sq_tail, *sq_flags, sq_mask;
	unsigned *cq_head, *cq_tail, cq_mask;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	bool has_sqpoll;
};

enum { BUFFERS = 8, BUFFER_BYTES = 1024 };

struct end {
	enum way way;
	int fd;
	struct ring ring;
	char buffers[BUFFERS][BUFFER_BYTES]; /* for WAY_MULTISHOT */
	bool is_armed;
	/* What a multishot receive delivered while another completion was waited for. */
	int early[BUFFERS], early_flags[BUFFERS];
	size_t n_early;
};

void end_init(struct end *end, enum way way);
void end_accept(struct end *end, int listener);
void end_connect(struct end *end, const struct sockaddr_in *address);
void end_close(struct end *end);

/* As send(2) and recv(2), but errors end the program. */
ssize_t end_send(struct end *end, const char *bytes, size_t length);
ssize_t end_receive(struct end *end, char *bytes, size_t length);
