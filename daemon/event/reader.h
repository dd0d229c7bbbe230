/*
 * The border with the kernel side: takes records out of the ring, checks each one, and hands it on
 * as a struct event. What fails the checks is counted (METRIC_RECORDS_BAD) and dropped.
 */
#pragma once

#include <stddef.h>

#include "base/util.h"
#include "model/event.h"

struct event_reader;

/* The event and its views are valid during the call only. */
typedef void (*event_fn)(void *userdata, const struct event *event);

/* 'ring_fd' stays the caller's. Returns 0 or a negative errno. */
int event_reader_new(int ring_fd, event_fn fn, void *userdata, struct event_reader **ret);
void event_reader_free(struct event_reader *r);
DEFINE_CLEANUP(struct event_reader *, event_reader_free)

/* Readable when the kernel side wakes the reader. */
int event_reader_fd(const struct event_reader *r);

/* Takes the records that are there, 65,536 at most. Returns their number, or a negative errno. */
int event_reader_drain(struct event_reader *r);

/*
 * One record of 'n' bytes as an event. Returns 0, or EVENT_BAD when it is not what the kernel side
 * writes. Separate from the ring for tests, fuzzing and replay.
 */
enum { EVENT_BAD = 1 };
int event_decode(const void *record, size_t n, struct event *ret);
