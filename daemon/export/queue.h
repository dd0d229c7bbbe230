/*
 * The bounded queue between the event loop, which makes spans, and the exporter's thread, which
 * sends them: one producer, one consumer, no lock. The producer never waits; the consumer sleeps on
 * an eventfd and says how many spans are worth waking it for, so that a busy service does not pay a
 * system call a span.
 *
 * The queue holds references. It is bounded by spans and, because a span may carry a long URL, by
 * bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "model/span.h"

struct queue;

/* 'spans_max' is rounded up to a power of two. Returns 0, -ENOMEM or what eventfd(2) fails with. */
int queue_new(uint32_t spans_max, size_t bytes_max, struct queue **ret);

/*
 * With neither producer nor consumer left. Releases the spans that are still there; NULL is
 * allowed.
 */
void queue_free(struct queue *q);
DEFINE_CLEANUP(struct queue *, queue_free)

/* Producer: hands over a reference. False: full, the reference stays with the caller. */
bool queue_push(struct queue *q, struct span *span);

/* Consumer: the oldest span, with its reference; NULL: empty. */
struct span *queue_pop(struct queue *q);

/* Consumer: spans in the queue now; more may come meanwhile. */
size_t queue_size(struct queue *q);

/* Consumer: over half of the room, in spans or in bytes, is taken. */
bool queue_is_half_full(struct queue *q);

/*
 * Consumer, before it sleeps on queue_fd(): become readable once 'n' spans are there or the queue
 * is half full. False: so it is already, do not sleep. After that, whatever the answer and the end
 * of the sleep, queue_disarm().
 */
bool queue_arm(struct queue *q, size_t n);
void queue_disarm(struct queue *q);
int queue_fd(const struct queue *q);
