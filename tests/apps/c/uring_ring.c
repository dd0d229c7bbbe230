/* Calls through io_uring; see uring_ring.h. */
#include "uring_ring.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENTRIES = 8, IDLE_MS = 50 };

/* What a completion belongs to. */
enum { TAG_CALL = 1, TAG_MULTISHOT = 2, TAG_BUFFERS = 3 };

static void fail(const char *what, int error)
{
	fprintf(stderr, "uring: %s: %s\n", what, strerror(error));
	exit(error == ENOSYS || error == EINVAL || error == EPERM || error == EOPNOTSUPP ? 77 : 1);
}

enum way way_of(const char *name)
{
	static const char *const names[_WAY_MAX] = {"plain",    "ring",      "message",
						    "zerocopy", "multishot", "sqpoll"};

	for (int i = 0; i < _WAY_MAX; i++)
		if (strcmp(names[i], name) == 0)
			return (enum way)i;
	fail(name, EINVAL);
	return WAY_PLAIN;
}

static void *map(int fd, size_t length, off_t offset)
{
	void *at =
		mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, offset);

	if (at == MAP_FAILED)
		fail("mmap", errno);
	return at;
}

static void ring_init(struct ring *ring, bool has_sqpoll)
{
	struct io_uring_params p = {.flags = has_sqpoll ? IORING_SETUP_SQPOLL : 0,
				    .sq_thread_idle = IDLE_MS};
	unsigned *array;
	char *sq, *cq;

	*ring = (struct ring){.has_sqpoll = has_sqpoll};
	ring->fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &p);
	if (ring->fd < 0)
		fail("io_uring_setup", errno);
	sq = map(ring->fd, p.sq_off.array + p.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
	cq = map(ring->fd, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe),
		 IORING_OFF_CQ_RING);
	ring->sqes = map(ring->fd, p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
	ring->sq_head = (unsigned *)(void *)(sq + p.sq_off.head);
	ring->sq_tail = (unsigned *)(void *)(sq + p.sq_off.tail);
	ring->sq_flags = (unsigned *)(void *)(sq + p.sq_off.flags);
	ring->sq_mask = *(unsigned *)(void *)(sq + p.sq_off.ring_mask);
	ring->cq_head = (unsigned *)(void *)(cq + p.cq_off.head);
	ring->cq_tail = (unsigned *)(void *)(cq + p.cq_off.tail);
	ring->cq_mask = *(unsigned *)(void *)(cq + p.cq_off.ring_mask);
	ring->cqes = (struct io_uring_cqe *)(void *)(cq + p.cq_off.cqes);
	array = (unsigned *)(void *)(sq + p.sq_off.array);
	for (unsigned i = 0; i < p.sq_entries; i++)
		array[i] = i;
}

static void ring_submit(struct ring *ring, const struct io_uring_sqe *sqe)
{
	unsigned tail = *ring->sq_tail, flags = 0;

	while (tail - __atomic_load_n(ring->sq_head, __ATOMIC_ACQUIRE) > ring->sq_mask)
		;
	ring->sqes[tail & ring->sq_mask] = *sqe;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
	if (ring->has_sqpoll) {
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!(__atomic_load_n(ring->sq_flags, __ATOMIC_RELAXED) & IORING_SQ_NEED_WAKEUP))
			return;
		flags = IORING_ENTER_SQ_WAKEUP;
	}
	if (syscall(SYS_io_uring_enter, ring->fd, 1, 0, flags, NULL, 0) < 0)
		fail("io_uring_enter", errno);
}

struct completion {
	uint64_t tag;
	int result;
	unsigned flags;
};

static struct completion ring_wait(struct ring *ring)
{
	const struct io_uring_cqe *cqe;
	struct completion done;
	unsigned head = *ring->cq_head;

	while (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE))
		if (syscall(SYS_io_uring_enter, ring->fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) <
			    0 &&
		    errno != EINTR)
			fail("io_uring_enter", errno);
	cqe = &ring->cqes[head & ring->cq_mask];
	done = (struct completion){.tag = cqe->user_data, .result = cqe->res, .flags = cqe->flags};
	__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
	return done;
}

/* The next completion with this tag; those of a multishot receive that come before are kept. */
static struct completion end_wait(struct end *end, unsigned tag)
{
	for (;;) {
		struct completion done = ring_wait(&end->ring);

		if (done.tag == tag)
			return done;
		if (done.tag != TAG_MULTISHOT || end->n_early == BUFFERS)
			fail("a completion", EPROTO);
		end->early[end->n_early] = done.result;
		end->early_flags[end->n_early++] = (int)done.flags;
	}
}

/* One call through the ring; its result. */
static int end_call(struct end *end, struct io_uring_sqe *sqe, const char *what)
{
	struct completion done;

	sqe->user_data = TAG_CALL;
	ring_submit(&end->ring, sqe);
	done = end_wait(end, TAG_CALL);
	if (done.result < 0)
		fail(what, -done.result);
	/* Zero copy: a second completion says that the bytes are not needed any more. */
	if (done.flags & IORING_CQE_F_MORE)
		(void)end_wait(end, TAG_CALL);
	return done.result;
}

static void provide(struct end *end, int first, int n)
{
	struct io_uring_sqe sqe = {.opcode = IORING_OP_PROVIDE_BUFFERS,
				   .fd = n,
				   .addr = (uintptr_t)end->buffers[first],
				   .len = BUFFER_BYTES,
				   .off = (unsigned)first,
				   .buf_group = 1,
				   .user_data = TAG_BUFFERS};
	struct completion done;

	ring_submit(&end->ring, &sqe);
	done = end_wait(end, TAG_BUFFERS);
	if (done.result < 0)
		fail("IORING_OP_PROVIDE_BUFFERS", -done.result);
}

void end_init(struct end *end, enum way way)
{
	*end = (struct end){.way = way, .fd = -1};
	if (way == WAY_PLAIN)
		return;
	ring_init(&end->ring, way == WAY_SQPOLL);
	if (way == WAY_MULTISHOT)
		provide(end, 0, BUFFERS);
}

void end_accept(struct end *end, int listener)
{
	struct io_uring_sqe sqe = {.opcode = IORING_OP_ACCEPT, .fd = listener};

	end->fd = end->way == WAY_PLAIN ? accept(listener, NULL, NULL)
					: end_call(end, &sqe, "IORING_OP_ACCEPT");
	if (end->fd < 0)
		fail("accept", errno);
}

void end_connect(struct end *end, const struct sockaddr_in *address)
{
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_CONNECT, .addr = (uintptr_t)address, .off = sizeof(*address)};

	end->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sqe.fd = end->fd;
	if (end->way != WAY_PLAIN)
		end_call(end, &sqe, "IORING_OP_CONNECT");
	else if (connect(end->fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		fail("connect", errno);
}

void end_close(struct end *end)
{
	/* A multishot receive holds the connection until it sees the end of it. */
	shutdown(end->fd, SHUT_RDWR);
	if (end->is_armed) {
		struct completion done;

		do
			done = end_wait(end, TAG_MULTISHOT);
		while (done.flags & IORING_CQE_F_MORE);
		end->is_armed = false;
	}
	close(end->fd);
	end->n_early = 0;
}

ssize_t end_send(struct end *end, const char *bytes, size_t length)
{
	struct io_uring_sqe sqe = {
		.fd = end->fd, .addr = (uintptr_t)bytes, .len = (unsigned)length};
	struct iovec halves[2] = {
		{.iov_base = (char *)bytes, .iov_len = length / 2},
		{.iov_base = (char *)bytes + length / 2, .iov_len = length - length / 2},
	};
	struct msghdr message = {.msg_iov = halves, .msg_iovlen = 2};

	switch (end->way) {
	case WAY_PLAIN:
		return write(end->fd, bytes, length);
	case WAY_MESSAGE:
		sqe.opcode = IORING_OP_SENDMSG;
		sqe.addr = (uintptr_t)&message;
		sqe.len = 1;
		return end_call(end, &sqe, "IORING_OP_SENDMSG");
	case WAY_ZEROCOPY:
		sqe.opcode = IORING_OP_SEND_ZC;
		return end_call(end, &sqe, "IORING_OP_SEND_ZC");
	case WAY_RING:
	case WAY_MULTISHOT:
	case WAY_SQPOLL:
	case _WAY_MAX:
		break;
	}
	sqe.opcode = IORING_OP_SEND;
	return end_call(end, &sqe, "IORING_OP_SEND");
}

static ssize_t receive_multishot(struct end *end, char *bytes, size_t length)
{
	struct io_uring_sqe sqe = {.opcode = IORING_OP_RECV,
				   .flags = IOSQE_BUFFER_SELECT,
				   .ioprio = IORING_RECV_MULTISHOT,
				   .fd = end->fd,
				   .buf_group = 1,
				   .user_data = TAG_MULTISHOT};
	int result, flags;

	if (!end->is_armed && !end->n_early) {
		ring_submit(&end->ring, &sqe);
		end->is_armed = true;
	}
	if (end->n_early) {
		result = end->early[0];
		flags = end->early_flags[0];
		end->n_early--;
		memmove(end->early, end->early + 1, end->n_early * sizeof(end->early[0]));
		memmove(end->early_flags, end->early_flags + 1,
			end->n_early * sizeof(end->early_flags[0]));
	} else {
		struct completion done = end_wait(end, TAG_MULTISHOT);

		result = done.result;
		flags = (int)done.flags;
	}
	end->is_armed = end->is_armed && (flags & IORING_CQE_F_MORE);
	if (result < 0)
		fail("multishot IORING_OP_RECV", -result);
	if (result > 0) {
		int buffer = flags >> IORING_CQE_BUFFER_SHIFT;

		if ((size_t)result > length)
			fail("multishot IORING_OP_RECV", EMSGSIZE);
		memcpy(bytes, end->buffers[buffer], (size_t)result);
		provide(end, buffer, 1);
	}
	return result;
}

ssize_t end_receive(struct end *end, char *bytes, size_t length)
{
	struct io_uring_sqe sqe = {
		.fd = end->fd, .addr = (uintptr_t)bytes, .len = (unsigned)length};
	struct iovec halves[2] = {
		{.iov_base = bytes, .iov_len = 40},
		{.iov_base = bytes + 40, .iov_len = length - 40},
	};
	struct msghdr message = {.msg_iov = halves, .msg_iovlen = length > 40 ? 2 : 1};

	switch (end->way) {
	case WAY_PLAIN:
		return read(end->fd, bytes, length);
	case WAY_MULTISHOT:
		return receive_multishot(end, bytes, length);
	case WAY_MESSAGE:
		sqe.opcode = IORING_OP_RECVMSG;
		sqe.addr = (uintptr_t)&message;
		sqe.len = 1;
		return end_call(end, &sqe, "IORING_OP_RECVMSG");
	case WAY_RING:
	case WAY_ZEROCOPY:
	case WAY_SQPOLL:
	case _WAY_MAX:
		break;
	}
	sqe.opcode = IORING_OP_RECV;
	return end_call(end, &sqe, "IORING_OP_RECV");
}
