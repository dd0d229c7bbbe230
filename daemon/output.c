/* Standard output without waiting; see output.h. */
#include "output.h"

#include <errno.h>
#include <poll.h>

#include "metrics/metrics.h"

/* A pipe that poll(2) calls writable takes PIPE_BUF bytes at once (pipe(7)). */
#define WRITE_BYTES 4096

struct output {
	int fd;
	FILE *stream;
	char *bytes;
	size_t n, n_max;
	size_t item_at; /* where the item in progress begins */
	bool is_cut;    /* it did not fit */
};

/* fopencookie(3): takes everything, keeps what fits. */
static ssize_t output_take(void *cookie, const char *bytes, size_t n)
{
	struct output *o = cookie;

	if (n > o->n_max - o->n)
		o->is_cut = true;
	else if (!o->is_cut) {
		memcpy(o->bytes + o->n, bytes, n);
		o->n += n;
	}
	return (ssize_t)n;
}

int output_new(int fd, size_t bytes_max, struct output **ret)
{
	_cleanup_(output_freep) struct output *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->fd = fd;
	o->n_max = bytes_max;
	o->bytes = malloc(bytes_max);
	o->stream = fopencookie(o, "w", (cookie_io_functions_t){.write = output_take});
	if (!o->bytes || !o->stream)
		return -ENOMEM;
	*ret = TAKE_PTR(o);
	return 0;
}

void output_free(struct output *o)
{
	if (!o)
		return;
	if (o->stream)
		fclose(o->stream);
	free(o->bytes);
	free(o);
}

FILE *output_begin(struct output *o)
{
	/* One drain of the ring may print more than fits. An error shows again in the next flush. */
	if (o->n > o->n_max / 2)
		output_flush(o, 0);
	o->item_at = o->n;
	o->is_cut = false;
	return o->stream;
}

void output_end(struct output *o)
{
	fflush(o->stream);
	if (!o->is_cut)
		return;
	o->n = o->item_at;
	metrics_increment(METRIC_PRINT_FULL);
}

int output_flush(struct output *o, int wait_ms)
{
	uint64_t end_ns = now_ns(CLOCK_MONOTONIC) + (uint64_t)wait_ms * NSEC_PER_MSEC;
	size_t at = 0;
	int r = 0;

	while (at < o->n) {
		struct pollfd poll_fd = {.fd = o->fd, .events = POLLOUT};
		uint64_t now = now_ns(CLOCK_MONOTONIC);
		int left_ms = now < end_ns ? (int)((end_ns - now) / NSEC_PER_MSEC) : 0;
		ssize_t n;

		/* A regular file is always writable; an error shows in the write. */
		if (poll(&poll_fd, 1, left_ms) <= 0)
			break;
		n = write(o->fd, o->bytes + at, MIN(o->n - at, WRITE_BYTES));
		if (n < 0 && errno != EINTR && errno != EAGAIN) {
			r = -errno;
			break;
		}
		at += n > 0 ? (size_t)n : 0;
	}
	if (at)
		memmove(o->bytes, o->bytes + at, o->n - at);
	o->n -= at;
	return r;
}
