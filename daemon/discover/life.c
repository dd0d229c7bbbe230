/* The life of an entry; see life.h. */
#include "discover/life.h"

#include <stdio.h>

#include "discover/sockets.h"
#include "metrics/metrics.h"

void life_end(struct discover *d, struct entry *e, uint64_t now_ns)
{
	if (e->process.state != PROCESS_SELECTED) {
		entries_remove(&d->entries, e);
		return;
	}
	d->options.unselect(d->options.userdata, &e->process);
	entries_retire(&d->entries, e, now_ns);
}

void life_refuse(struct entry *e, const char *format, int error)
{
	char *why;

	e->process.state = PROCESS_LEFT;
	resource_unref(e->process.resource);
	e->process.resource = NULL;
	if (asprintf(&why, format, strerror(error)) < 0)
		return;
	free(e->process.why);
	e->process.why = why;
}

void life_begin(struct discover *d, struct entry *e)
{
	int r;

	r = entries_give_id(&d->entries, e);
	if (r < 0) {
		life_refuse(e, "not traced: %s", -r);
		return;
	}
	r = d->options.select(d->options.userdata, &e->process);
	if (r < 0) {
		entries_take_id(&d->entries, e);
		life_refuse(e, "not traced: the kernel side refused it (%s)", -r);
		return;
	}
	metrics_increment(METRIC_PROCESSES_SELECTED);
}

/* --- looking */

void life_queue(struct discover *d, struct entry *e, enum queue_id done, uint64_t now_ns)
{
	enum queue_id next = done + 1;

	while (next <= QUEUE_LOOK_5 && e->since_ns + queue_delay_ns(next) <= now_ns)
		next++;
	if (!e->may_become_jvm || next > QUEUE_LOOK_5)
		next = e->process.state == PROCESS_SELECTED ? QUEUE_NONE : QUEUE_LEFT;
	entries_queue(&d->entries, e, next);
}

/* Takes over what a look found. */
static void apply(struct discover *d, struct entry *e, struct process *found)
{
	bool was_selected = e->process.state == PROCESS_SELECTED;
	bool is_selected = found->state == PROCESS_SELECTED;
	uint32_t proc_id = e->process.proc_id;

	look_process_done(&e->process);
	e->process = *found;
	e->process.proc_id = proc_id;
	*found = (struct process){0};

	if (is_selected && !was_selected)
		life_begin(d, e);
	else if (is_selected)
		(void)d->options.select(d->options.userdata, &e->process);
}

/*
 * A process that is traced and must not be any longer (it listens on a port that is excluded)
 * becomes two entries: one that has ended, for its last spans, and one that is left alone. NULL: no
 * room for the second.
 */
static struct entry *give_up(struct discover *d, struct entry *e, uint64_t now_ns)
{
	struct entry copy = *e, *next;

	/* The table may make room by dropping the very entry that has just ended. */
	life_end(d, e, now_ns);
	next = entries_add(&d->entries, copy.process.pid, now_ns);
	if (!next)
		return NULL;
	next->process.state = PROCESS_LEFT;
	next->looked_ns = now_ns;
	next->scan = d->scan;
	memcpy(next->ports, copy.ports, sizeof(next->ports));
	next->n_ports = copy.n_ports;
	return next;
}

/*
 * Sockets that a process inherited are looked for where somebody asks for ports: a scan, for the
 * list of who listens, and selectors with ports.
 */
static int take_look(struct discover *d, struct entry *e, struct process *ret_found)
{
	_cleanup_(sockets_freep) struct sockets *own = NULL;
	struct look look = {
		.pid = e->process.pid,
		.start_ns = e->process.start_ns,
		.exec_id = e->process.exec_id,
		.n_ports = e->n_ports,
		.sockets = d->sockets,
	};
	int r;

	memcpy(look.ports, e->ports, sizeof(look.ports));
	if (!look.sockets && d->uses_ports && !e->looked_ns) {
		r = sockets_new(&own);
		if (r < 0)
			return r;
		look.sockets = own;
	}
	r = look_at(&d->context, &look, ret_found, &e->may_become_jvm);
	if (r)
		return r;
	memcpy(e->ports, look.ports, sizeof(e->ports));
	e->n_ports = look.n_ports;
	return 0;
}

static struct entry *look_and_apply(struct discover *d, struct entry *e)
{
	_cleanup_(look_process_done) struct process found = {0};
	bool was_selected = e->process.state == PROCESS_SELECTED;
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	int r;

	r = take_look(d, e, &found);
	if (r > 0) {
		if (r == LOOK_GONE)
			metrics_increment(METRIC_PROCESSES_GONE);
		life_end(d, e, now);
		return NULL;
	}
	if (r < 0) {
		/*
		 * No memory or no descriptors: what is traced stays so, all others are looked at
		 * again.
		 */
		metrics_increment(METRIC_PROCESSES_UNREAD);
		if (!was_selected)
			life_refuse(e, "left alone: it could not be looked at (%s)", -r);
		e->may_become_jvm = true;
		return e;
	}

	e->looked_ns = now;
	if (was_selected && found.state != PROCESS_SELECTED) {
		if (e->is_fork)
			return e;
		e = give_up(d, e, now);
	}
	if (e)
		apply(d, e, &found);
	return e;
}

struct entry *life_look(struct discover *d, struct entry *e)
{
	uint32_t pid = e->process.pid;

	e = look_and_apply(d, e);
	d->options.judged(d->options.userdata, pid);
	return e;
}
