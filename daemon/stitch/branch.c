/* Branches; see branch.h. */
#include "stitch/branch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* As many as a busy host has open at a time. */
#define SPARE_MAX 4096

/* Nearly all of these ids were made at random. */
static uint64_t span_id_hash(const struct span_id *id)
{
	uint64_t hash;

	static_assert(sizeof(hash) == sizeof(*id), "an id is its own hash");
	memcpy(&hash, id, sizeof(hash));
	return hash;
}

struct branch *branch_find(const struct branch_table *t, const struct span_id *id)
{
	table_for_each_match(node, &t->by_span,
			     span_id_hash(id)) return container_of(node, struct branch, node);
	return NULL;
}

static struct branch *branch_take(struct branch_table *t)
{
	struct branch *b = t->spare;

	if (!b)
		return calloc(1, sizeof(*b));
	t->spare = b->next;
	t->n_spare--;
	*b = (struct branch){0};
	return b;
}

static void branch_put(struct branch_table *t, struct branch *b)
{
	if (t->n_spare == SPARE_MAX) {
		free(b);
		return;
	}
	b->next = t->spare;
	t->spare = b;
	t->n_spare++;
}

uint64_t goroutine_hash(uint32_t proc_id, uint64_t goroutine)
{
	uint64_t key[] = {proc_id, goroutine};

	return table_hash(key, sizeof(key));
}

static int goroutine_add(struct branch_table *t, struct branch *b, struct goroutine *g, uint64_t id)
{
	int r = table_insert(&t->by_goroutine, &g->node, goroutine_hash(b->proc_id, id));

	if (r < 0)
		return r;
	g->branch = b;
	g->id = id;
	return 0;
}

int branch_new(struct branch_table *t, struct exchange *x, const struct event *e)
{
	struct branch *b = branch_take(t);
	int r;

	if (!b)
		return -ENOMEM;
	b->span_id = x->span_id;
	b->parent_span_id = x->parent_span_id;
	b->exchange = x;
	b->reason = x->reason;
	b->is_server = e->role == EVENT_ROLE_SERVER;
	b->is_proven = e->head.is_proven;
	b->proc_id = e->proc_id;
	b->is_inherited = e->head.is_inherited;
	b->is_unit_sure = e->head.is_exact && !b->is_inherited;
	r = table_insert(&t->by_span, &b->node, span_id_hash(&b->span_id));
	if (r < 0) {
		branch_put(t, b);
		return r;
	}
	if (b->is_inherited) {
		r = goroutine_add(t, b, &b->caller, e->head.goroutine);
		if (r == 0 && e->head.elder)
			r = goroutine_add(t, b, &b->elder, e->head.elder);
	}
	if (r < 0) {
		branch_free(t, b);
		return r;
	}
	x->branch = b;
	return 0;
}

void branch_free(struct branch_table *t, struct branch *b)
{
	table_remove(&t->by_span, &b->node);
	if (b->caller.branch)
		table_remove(&t->by_goroutine, &b->caller.node);
	if (b->elder.branch)
		table_remove(&t->by_goroutine, &b->elder.node);
	span_unref(b->span);
	branch_put(t, b);
}

void branch_link(struct branch *b, struct branch *parent)
{
	b->parent = parent;
	b->depth = parent->depth + 1;
	b->next = parent->first;
	if (b->next)
		b->next->previous = b;
	parent->first = b;
}

void branch_unlink(struct branch *b)
{
	if (!b->parent)
		return;
	if (b->previous)
		b->previous->next = b->next;
	else
		b->parent->first = b->next;
	if (b->next)
		b->next->previous = b->previous;
	b->parent = b->previous = b->next = NULL;
	b->depth = 0;
}

static int free_branch(struct table_node *node, void *userdata)
{
	branch_free(userdata, container_of(node, struct branch, node));
	return 0;
}

void branch_table_done(struct branch_table *t)
{
	struct branch *next;

	table_walk(&t->by_span, free_branch, t);
	for (struct branch *b = t->spare; b; b = next) {
		next = b->next;
		free(b);
	}
	table_done(&t->by_span);
	table_done(&t->by_goroutine);
	*t = (struct branch_table){0};
}

void wait_begin(struct wait_list *list, struct wait *w, uint64_t until_ns)
{
	*w = (struct wait){.until_ns = until_ns, .previous = list->last};
	if (list->last)
		list->last->next = w;
	else
		list->first = w;
	list->last = w;
}

void wait_end(struct wait_list *list, struct wait *w)
{
	if (!w->until_ns)
		return;
	if (w->previous)
		w->previous->next = w->next;
	else
		list->first = w->next;
	if (w->next)
		w->next->previous = w->previous;
	else
		list->last = w->previous;
	w->until_ns = 0;
}
