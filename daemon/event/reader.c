/* The ring's reader; see reader.h. */
#include "event/reader.h"

#include <bpf/libbpf.h>
#include <errno.h>

#include "metrics/metrics.h"

/*
 * Of one drain: producers that keep up with us must not keep the loop from its timers and signals.
 */
#define RECORDS_MAX 65536

struct event_reader {
	struct ring_buffer *ring;
	int n; /* records of this drain */
	event_fn fn;
	void *userdata;
};

static int handle_record(void *userdata, void *data, size_t n)
{
	struct event_reader *r = userdata;
	struct event event;

	if (event_decode(data, n, &event) != 0)
		metrics_increment(METRIC_RECORDS_BAD);
	else
		r->fn(r->userdata, &event);
	/* libbpf has released the record before it heeds the answer. */
	return ++r->n == RECORDS_MAX ? -ECANCELED : 0;
}

int event_reader_new(int ring_fd, event_fn fn, void *userdata, struct event_reader **ret)
{
	_cleanup_(event_reader_freep) struct event_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->fn = fn;
	r->userdata = userdata;
	r->ring = ring_buffer__new(ring_fd, handle_record, r, NULL);
	if (!r->ring)
		return -errno;
	*ret = TAKE_PTR(r);
	return 0;
}

void event_reader_free(struct event_reader *r)
{
	if (!r)
		return;
	ring_buffer__free(r->ring);
	free(r);
}

int event_reader_fd(const struct event_reader *r)
{
	return ring_buffer__epoll_fd(r->ring);
}

int event_reader_drain(struct event_reader *r)
{
	int result;

	r->n = 0;
	result = ring_buffer__consume(r->ring);
	return result < 0 && result != -ECANCELED ? result : r->n;
}
