/* The span queue; see queue.h. */
#include "export/queue.h"

#include <errno.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

#define CACHE_LINE 64

/*
 * 'tail' and 'bytes_in' are written by the producer alone, 'head' and 'bytes_out' by the consumer
 * alone, each on a cache line of its own. Both positions only grow; a slot is position & mask.
 */
struct queue {
	size_t mask;
	size_t bytes_max;
	int event_fd;
	struct span **slots;

	alignas(CACHE_LINE) atomic_size_t tail;
	atomic_size_t bytes_in;

	alignas(CACHE_LINE) atomic_size_t head;
	atomic_size_t bytes_out;

	/* How many spans the sleeping consumer waits for; 0: it is awake. */
	alignas(CACHE_LINE) atomic_size_t wanted;
};

int queue_new(uint32_t spans_max, size_t bytes_max, struct queue **ret)
{
	_cleanup_(queue_freep) struct queue *q = NULL;
	size_t n = 1;

	while (n < spans_max)
		n *= 2;

	q = aligned_alloc(CACHE_LINE, sizeof(*q));
	if (!q)
		return -ENOMEM;
	memset(q, 0, sizeof(*q));
	q->mask = n - 1;
	q->bytes_max = bytes_max;
	q->event_fd = -1;

	q->slots = calloc(n, sizeof(*q->slots));
	if (!q->slots)
		return -ENOMEM;
	q->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (q->event_fd < 0)
		return -errno;

	*ret = TAKE_PTR(q);
	return 0;
}

void queue_free(struct queue *q)
{
	struct span *span;

	if (!q)
		return;
	while (q->slots && (span = queue_pop(q)))
		span_unref(span);
	closep(&q->event_fd);
	free(q->slots);
	free(q);
}

static bool is_half_full(const struct queue *q, size_t n, size_t bytes)
{
	return n > q->mask / 2 || bytes > q->bytes_max / 2;
}

/*
 * Whoever takes 'wanted' back to 0 writes; so a sleep is ended by one write, not by one for each
 * span.
 */
static void queue_wake(struct queue *q)
{
	uint64_t one = 1;

	/* The counter of an eventfd cannot overflow here, and nothing else can fail. */
	if (atomic_exchange(&q->wanted, 0) && write(q->event_fd, &one, sizeof(one)) < 0)
		assert(errno == EAGAIN);
}

bool queue_push(struct queue *q, struct span *span)
{
	size_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);
	size_t bytes_in =
		atomic_load_explicit(&q->bytes_in, memory_order_relaxed) + span->size_bytes;
	size_t n = tail + 1 - atomic_load_explicit(&q->head, memory_order_acquire);
	size_t bytes = bytes_in - atomic_load_explicit(&q->bytes_out, memory_order_relaxed);
	size_t wanted;

	if (n > q->mask + 1 || bytes > q->bytes_max)
		return false;

	q->slots[tail & q->mask] = span;
	atomic_store_explicit(&q->bytes_in, bytes_in, memory_order_relaxed);
	/*
	 * Sequentially consistent, as is queue_arm(): either we see that the consumer wants to
	 * sleep, or it sees this span.
	 */
	atomic_store(&q->tail, tail + 1);
	wanted = atomic_load(&q->wanted);
	if (wanted && (n >= wanted || is_half_full(q, n, bytes)))
		queue_wake(q);
	return true;
}

struct span *queue_pop(struct queue *q)
{
	size_t head = atomic_load_explicit(&q->head, memory_order_relaxed);
	size_t bytes_out = atomic_load_explicit(&q->bytes_out, memory_order_relaxed);
	struct span *span;

	if (head == atomic_load_explicit(&q->tail, memory_order_acquire))
		return NULL;
	span = q->slots[head & q->mask];
	atomic_store_explicit(&q->bytes_out, bytes_out + span->size_bytes, memory_order_relaxed);
	atomic_store_explicit(&q->head, head + 1, memory_order_release);
	return span;
}

size_t queue_size(struct queue *q)
{
	return atomic_load(&q->tail) - atomic_load_explicit(&q->head, memory_order_relaxed);
}

bool queue_is_half_full(struct queue *q)
{
	size_t bytes = atomic_load_explicit(&q->bytes_in, memory_order_relaxed) -
		       atomic_load_explicit(&q->bytes_out, memory_order_relaxed);

	return is_half_full(q, queue_size(q), bytes);
}

bool queue_arm(struct queue *q, size_t n)
{
	assert(n > 0);
	atomic_store(&q->wanted, n);
	return queue_size(q) < n && !queue_is_half_full(q);
}

void queue_disarm(struct queue *q)
{
	uint64_t count;

	atomic_store(&q->wanted, 0);
	if (read(q->event_fd, &count, sizeof(count)) < 0)
		assert(errno == EAGAIN);
}

int queue_fd(const struct queue *q)
{
	return q->event_fd;
}
