/* Setting up, time, and answers; see discover.h. */
#include "discover/discover.h"

#include <errno.h>

#include "base/util.h"
#include "discover/life.h"
#include "discover/select.h"

/*
 * A tick returns to the event loop after so many looks (0.1 to 0.3 ms each) and asks to be called
 * again.
 */
#define LOOKS_PER_TICK 32

static bool list_uses_netns(const struct selector_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].netns)
			return true;
	return false;
}

static bool uses_netns(const struct config *config)
{
	for (size_t i = 0; i < config->n_services; i++)
		if (config->services[i].match.netns)
			return true;
	return list_uses_netns(&config->include) || list_uses_netns(&config->exclude);
}

int discover_new(const struct discover_options *options, struct discover **ret)
{
	_cleanup_(discover_freep) struct discover *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->options = *options;
	entries_init(&d->entries, options->processes_max ?: options->config->processes_max);
	r = image_cache_new(&d->images);
	if (r < 0)
		return r;

	host_read(&d->host);
	d->uses_ports = select_uses_ports(options->config);
	d->context = (struct look_context){
		.config = options->config,
		.host = &d->host,
		.images = d->images,
		.self_pid = options->self_pid,
		.needs_netns = uses_netns(options->config),
	};
	*ret = TAKE_PTR(d);
	return 0;
}

void discover_free(struct discover *d)
{
	if (!d)
		return;
	entries_done(&d->entries);
	image_cache_free(d->images);
	sockets_free(d->sockets);
	free(d);
}

/* --- time */

static void look_due(struct discover *d, struct entry *e, uint64_t now_ns)
{
	enum queue_id done = e->queue;

	/* A whole look, if it had none yet; a fork needs none. */
	if ((!e->looked_ns && e->process.state != PROCESS_SELECTED) || look_has_jvm(e->process.pid))
		e = life_look(d, e);
	if (e)
		life_queue(d, e, done, now_ns);
}

void discover_tick(struct discover *d, uint64_t now_ns)
{
	unsigned int looks = 0;

	for (enum queue_id q = QUEUE_LOOK_1; q <= QUEUE_ENDED; q++) {
		struct entry *e;

		while ((e = d->entries.queues[q].first) && entry_due_ns(e) <= now_ns) {
			if (q == QUEUE_ENDED) {
				entries_remove(&d->entries, e);
				continue;
			}
			if (looks++ == LOOKS_PER_TICK)
				return;
			look_due(d, e, now_ns);
		}
	}
}

uint64_t discover_next_ns(const struct discover *d)
{
	uint64_t next_ns = UINT64_MAX;

	for (enum queue_id q = QUEUE_LOOK_1; q <= QUEUE_ENDED; q++)
		if (d->entries.queues[q].first)
			next_ns = MIN(next_ns, entry_due_ns(d->entries.queues[q].first));
	return next_ns;
}

/* --- answers */

const struct process *discover_find(const struct discover *d, uint32_t pid)
{
	const struct entry *e = entries_find(&d->entries, pid);

	return e ? &e->process : NULL;
}

const struct process *discover_find_id(const struct discover *d, uint32_t proc_id)
{
	const struct entry *e = entries_find_id(&d->entries, proc_id);

	return e ? &e->process : NULL;
}

struct resource *discover_resource(const struct discover *d, uint32_t proc_id)
{
	const struct process *p = discover_find_id(d, proc_id);

	return p ? p->resource : NULL;
}

struct walk {
	discover_visit_fn visit;
	void *userdata;
};

static int walk_entry(struct table_node *node, void *userdata)
{
	const struct entry *e = container_of(node, struct entry, by_pid);
	struct walk *walk = userdata;

	return e->process.state == PROCESS_NEW ? 0 : walk->visit(&e->process, walk->userdata);
}

int discover_walk(struct discover *d, discover_visit_fn visit, void *userdata)
{
	return table_walk(&d->entries.by_pid, walk_entry,
			  &(struct walk){.visit = visit, .userdata = userdata});
}
