/*
 * The table of processes: entries found by pid while they live and by proc_id while they were
 * selected, and queues of them by what is due next. Used by discover.c, life.c, events.c and scan.c
 * (life.h); knows nothing of /proc.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/table.h"
#include "discover/look.h"

/*
 * Each queue is in the order of its due times, because each has a delay of its own: so its head is
 * what is due next, and putting something at its end is enough.
 */
enum queue_id {
	QUEUE_LOOK_1, /* looks, in this order, at the delays of queue_delay_ns() after the exec */
	QUEUE_LOOK_2,
	QUEUE_LOOK_3,
	QUEUE_LOOK_4,
	QUEUE_LOOK_5,
	QUEUE_ENDED, /* was selected and has ended: kept for its last spans */
	QUEUE_LEFT,  /* left alone, nothing more is due: makes room when the table is full */
	_QUEUE_MAX,
	QUEUE_NONE = _QUEUE_MAX, /* selected, nothing is due */
};

struct entry {
	struct table_node by_pid, by_id;
	struct entry *previous, *next; /* in its queue */
	enum queue_id queue;
	uint64_t since_ns;  /* of its exec or fork; of its end in QUEUE_ENDED; CLOCK_MONOTONIC */
	uint64_t looked_ns; /* begin of the last whole look; 0: none yet */
	struct process process;
	uint16_t ports[PORTS_MAX];
	size_t n_ports;
	bool may_become_jvm;
	bool is_fork;   /* no look was taken: as its parent */
	bool has_ended; /* not found by pid any more */
	uint32_t scan;  /* number of the last scan that met it */
};

struct queue {
	struct entry *first, *last;
};

struct entries {
	struct table by_pid, by_id;
	struct queue queues[_QUEUE_MAX];
	size_t n, max;
	uint32_t last_proc_id;
};

void entries_init(struct entries *entries, size_t max);
void entries_done(struct entries *entries);

/*
 * A new entry, not in a queue. When the table is full the oldest ended one makes room, else the one
 * left alone for longest, else there is none: the last two are counted. NULL: no room or no memory.
 */
struct entry *entries_add(struct entries *entries, uint32_t pid, uint64_t since_ns);
void entries_remove(struct entries *entries, struct entry *e);

struct entry *entries_find(const struct entries *entries, uint32_t pid);
struct entry *entries_find_id(const struct entries *entries, uint32_t proc_id);

/* Gives it a proc_id, by which it is found from now on. Returns 0 or -ENOMEM. */
int entries_give_id(struct entries *entries, struct entry *e);

/* Takes the proc_id away again; it is not given to another entry. */
void entries_take_id(struct entries *entries, struct entry *e);

/*
 * It has ended: not found by pid any more, kept by proc_id for a while. Only for entries with a
 * proc_id.
 */
void entries_retire(struct entries *entries, struct entry *e, uint64_t now_ns);

/* To the end of another queue, or QUEUE_NONE; in the queue it is in already it keeps its place. */
void entries_queue(struct entries *entries, struct entry *e, enum queue_id queue);

/* When something in the queue is due: since_ns plus this; UINT64_MAX: never. */
uint64_t queue_delay_ns(enum queue_id queue);
uint64_t entry_due_ns(const struct entry *e);
