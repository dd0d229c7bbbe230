/* The table of processes; see entry.h. */
#include "discover/entry.h"

#include <errno.h>

#include "metrics/metrics.h"

void entries_init(struct entries *entries, size_t max)
{
	*entries = (struct entries){.max = max};
}

static void free_entry(struct entry *e)
{
	look_process_done(&e->process);
	free(e);
}

static int free_node(struct table_node *node, void *userdata)
{
	(void)userdata;
	free_entry(container_of(node, struct entry, by_pid));
	return 0;
}

void entries_done(struct entries *entries)
{
	while (entries->queues[QUEUE_ENDED].first)
		entries_remove(entries, entries->queues[QUEUE_ENDED].first);
	table_walk(&entries->by_pid, free_node, NULL);
	table_done(&entries->by_pid);
	table_done(&entries->by_id);
}

static uint64_t hash_number(uint32_t number)
{
	return table_hash(&number, sizeof(number));
}

struct entry *entries_find(const struct entries *entries, uint32_t pid)
{
	table_for_each_match(node, &entries->by_pid, hash_number(pid))
	{
		struct entry *e = container_of(node, struct entry, by_pid);

		if (e->process.pid == pid)
			return e;
	}
	return NULL;
}

struct entry *entries_find_id(const struct entries *entries, uint32_t proc_id)
{
	table_for_each_match(node, &entries->by_id, hash_number(proc_id))
	{
		struct entry *e = container_of(node, struct entry, by_id);

		if (e->process.proc_id == proc_id)
			return e;
	}
	return NULL;
}

static bool make_room(struct entries *entries)
{
	struct entry *ended = entries->queues[QUEUE_ENDED].first;
	struct entry *left = entries->queues[QUEUE_LEFT].first;

	if (entries->n < entries->max)
		return true;
	if (!ended)
		metrics_increment(METRIC_PROCESSES_FULL);
	if (!ended && !left)
		return false;
	entries_remove(entries, ended ? ended : left);
	return true;
}

struct entry *entries_add(struct entries *entries, uint32_t pid, uint64_t since_ns)
{
	struct entry *e;

	if (!make_room(entries))
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->process.pid = pid;
	e->since_ns = since_ns;
	e->queue = QUEUE_NONE;
	if (table_insert(&entries->by_pid, &e->by_pid, hash_number(pid)) < 0) {
		free(e);
		return NULL;
	}
	entries->n++;
	return e;
}

void entries_remove(struct entries *entries, struct entry *e)
{
	entries_queue(entries, e, QUEUE_NONE);
	if (!e->has_ended)
		table_remove(&entries->by_pid, &e->by_pid);
	if (e->process.proc_id)
		table_remove(&entries->by_id, &e->by_id);
	entries->n--;
	free_entry(e);
}

int entries_give_id(struct entries *entries, struct entry *e)
{
	uint32_t proc_id = entries->last_proc_id + 1;
	int r;

	r = table_insert(&entries->by_id, &e->by_id, hash_number(proc_id));
	if (r < 0)
		return r;
	entries->last_proc_id = proc_id;
	e->process.proc_id = proc_id;
	return 0;
}

void entries_take_id(struct entries *entries, struct entry *e)
{
	table_remove(&entries->by_id, &e->by_id);
	e->process.proc_id = 0;
}

void entries_retire(struct entries *entries, struct entry *e, uint64_t now_ns)
{
	table_remove(&entries->by_pid, &e->by_pid);
	e->has_ended = true;
	e->since_ns = now_ns;
	entries_queue(entries, e, QUEUE_ENDED);
}

static void unlink_entry(struct entries *entries, struct entry *e)
{
	struct queue *q;

	if (e->queue == QUEUE_NONE)
		return;
	q = &entries->queues[e->queue];
	if (e->previous)
		e->previous->next = e->next;
	else
		q->first = e->next;
	if (e->next)
		e->next->previous = e->previous;
	else
		q->last = e->previous;
	e->previous = e->next = NULL;
	e->queue = QUEUE_NONE;
}

void entries_queue(struct entries *entries, struct entry *e, enum queue_id queue)
{
	struct queue *q;

	if (e->queue == queue)
		return;
	unlink_entry(entries, e);
	if (queue == QUEUE_NONE)
		return;
	q = &entries->queues[queue];
	e->queue = queue;
	e->previous = q->last;
	if (q->last)
		q->last->next = e;
	else
		q->first = e;
	q->last = e;
}

uint64_t queue_delay_ns(enum queue_id queue)
{
	switch (queue) {
	case QUEUE_LOOK_1:
		return 30 * NSEC_PER_MSEC;
	case QUEUE_LOOK_2:
		return 200 * NSEC_PER_MSEC;
	case QUEUE_LOOK_3:
		return 1 * NSEC_PER_SEC;
	case QUEUE_LOOK_4:
		return 3 * NSEC_PER_SEC;
	case QUEUE_LOOK_5:
		return 10 * NSEC_PER_SEC;
	case QUEUE_ENDED:
		return 30 * NSEC_PER_SEC;
	case QUEUE_LEFT:
	case _QUEUE_MAX:
		break;
	}
	return UINT64_MAX;
}

uint64_t entry_due_ns(const struct entry *e)
{
	uint64_t delay_ns = queue_delay_ns(e->queue);

	return delay_ns == UINT64_MAX ? UINT64_MAX : e->since_ns + delay_ns;
}
