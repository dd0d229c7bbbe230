/* What the kernel side tells of processes; see discover.h. */
#include "discover/discover.h"

#include <errno.h>

#include "base/util.h"
#include "discover/describe.h"
#include "discover/life.h"
#include "discover/proc.h"
#include "metrics/metrics.h"

/* A fork that executes at once had no time for a request: its identity need not outlive it. */
#define FORK_EXEC_NS NSEC_PER_SEC

static struct entry *add_entry(struct discover *d, const struct event *event)
{
	struct entry *e = entries_add(&d->entries, event->pid, event->time_ns);

	if (!e)
		return NULL;
	e->process.start_ns = event->process.start_ns;
	e->process.exec_id = event->process.exec_id;
	e->scan = d->scan;
	return e;
}

/* Whether an event speaks of another owner of the entry's pid. */
static bool is_other(const struct entry *e, const struct event *event)
{
	return e->process.start_ns && event->process.start_ns &&
	       proc_tick_floor(e->process.start_ns) != proc_tick_floor(event->process.start_ns);
}

static void handle_exec(struct discover *d, const struct event *event)
{
	struct entry *e = entries_find(&d->entries, event->pid);

	/*
	 * The look came after the exec, and the news of it still later: a scan, or a reader that
	 * was behind.
	 */
	if (e && !is_other(e, event) && event->time_ns < e->looked_ns) {
		if (!e->process.exec_id)
			e->process.exec_id = event->process.exec_id;
		return;
	}
	if (e && e->is_fork && event->time_ns - e->since_ns < FORK_EXEC_NS && e->process.proc_id) {
		d->options.unselect(d->options.userdata, &e->process);
		entries_remove(&d->entries, e);
	} else if (e) {
		life_end(d, e, event->time_ns);
	}

	e = add_entry(d, event);
	if (e)
		entries_queue(&d->entries, e, QUEUE_LOOK_1);
}

/* Copies what a fork has in common with its parent. */
static int copy_process(struct process *to, const struct process *from)
{
	const char *const texts[] = {from->version,      from->exe,  from->command,
				     from->container_id, from->unit, from->why};
	char **const copies[] = {&to->version,      &to->exe,  &to->command,
				 &to->container_id, &to->unit, &to->why};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (!texts[i])
			continue;
		*copies[i] = strdup(texts[i]);
		if (!*copies[i])
			return -ENOMEM;
	}
	to->language = from->language;
	to->uid = from->uid;
	to->has_listening_port = from->has_listening_port;
	to->listening_port = from->listening_port;
	return 0;
}

static void inherit(struct discover *d, const struct entry *parent, struct entry *child)
{
	struct process *p = &child->process;
	int r;

	if (!p->start_ns)
		p->start_ns = now_ns(CLOCK_BOOTTIME);
	child->is_fork = true;
	memcpy(child->ports, parent->ports, sizeof(child->ports));
	child->n_ports = parent->n_ports;
	r = copy_process(p, &parent->process);
	if (r == 0)
		r = describe_fork(&d->host, &parent->process, p, &p->resource);
	if (r < 0) {
		life_refuse(child, "not traced: %s", -r);
		return;
	}
	p->state = PROCESS_SELECTED;
	life_begin(d, child);
	d->options.judged(d->options.userdata, p->pid);

	/* A launcher may load the JVM in its child (jsvc). */
	child->may_become_jvm = parent->may_become_jvm && parent->queue <= QUEUE_LOOK_5;
	life_queue(d, child, QUEUE_LOOK_1, child->since_ns);
}

/*
 * JVMs and Go programs fork only to execute something else, so their children wait like all new
 * processes; and so do the children of processes that are not decided about yet, which may be the
 * workers of a server that is just starting, or itself on its way into the background: then the
 * parent may be gone by now. The child of a process that is left alone matters only
 * while a JVM could still come into it.
 */
static void handle_fork(struct discover *d, const struct event *event)
{
	struct entry *parent = entries_find(&d->entries, event->process.parent_pid);
	struct entry *child = entries_find(&d->entries, event->pid);
	bool inherits;

	if (child && !is_other(child, event))
		return;
	if (child)
		life_end(d, child, event->time_ns);
	if (parent && parent->process.state == PROCESS_LEFT && parent->queue == QUEUE_LEFT)
		return;

	inherits = parent && parent->process.state == PROCESS_SELECTED &&
		   parent->process.language == LANGUAGE_OTHER;
	/* Room may be made of what is left alone, never of the parent: it is not in that queue. */
	child = add_entry(d, event);
	if (!child)
		return;
	if (inherits)
		inherit(d, parent, child);
	else
		entries_queue(&d->entries, child, QUEUE_LOOK_1);
}

static void handle_exit(struct discover *d, const struct event *event)
{
	struct entry *e = entries_find(&d->entries, event->pid);

	if (e && !is_other(e, event))
		life_end(d, e, event->time_ns);
}

/* True when the port was not known before. */
static bool add_port(struct entry *e, uint16_t port)
{
	for (size_t i = 0; i < e->n_ports; i++)
		if (e->ports[i] == port)
			return false;
	if (port == 0)
		return false;
	if (e->n_ports == PORTS_MAX) {
		metrics_increment(METRIC_PROCESS_PORTS_FULL);
		return false;
	}
	e->ports[e->n_ports++] = port;
	e->process.has_listening_port = true;
	e->process.listening_port = e->ports[0];
	return true;
}

/* Whether it could be judged otherwise now that it listens on one more port. */
static bool needs_look(struct discover *d, const struct entry *e)
{
	if (e->is_fork && e->process.state == PROCESS_SELECTED)
		return false;
	return d->uses_ports || (e->may_become_jvm && look_has_jvm(e->process.pid));
}

static void handle_listen(struct discover *d, const struct event *event)
{
	struct entry *e = entries_find(&d->entries, event->pid);
	bool is_new_port, is_first;
	enum queue_id done;

	if (e && is_other(e, event)) {
		life_end(d, e, event->time_ns);
		e = NULL;
	}
	if (!e)
		e = add_entry(d, event);
	if (!e)
		return;

	is_new_port = add_port(e, event->process.port);
	is_first = !e->looked_ns && e->process.state != PROCESS_SELECTED;
	if (!is_first && !(is_new_port && needs_look(d, e))) {
		d->options.judged(d->options.userdata, event->pid);
		return;
	}
	/* The looks that were due stay due, but for the first. */
	done = is_first || e->queue > QUEUE_LOOK_5 ? QUEUE_LOOK_1 : e->queue - 1;
	e = life_look(d, e);
	if (e)
		life_queue(d, e, done, event->time_ns);
}

void discover_event(struct discover *d, const struct event *event)
{
	switch (event->process.what) {
	case EVENT_PROCESS_EXEC:
		handle_exec(d, event);
		return;
	case EVENT_PROCESS_FORK:
		handle_fork(d, event);
		return;
	case EVENT_PROCESS_EXIT:
		handle_exit(d, event);
		return;
	case EVENT_PROCESS_LISTEN:
		handle_listen(d, event);
		return;
	}
}
