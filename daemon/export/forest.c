/* Spans linked to their parents; see forest.h. */
#include "export/forest.h"

#include <errno.h>

static int index_compare(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

/* Spans of one id, which should not be, stay in their order: the first is found. */
static int id_compare(const void *a, const void *b, void *spans)
{
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	struct span *const *s = spans;
	int r = memcmp(&s[i]->span_id, &s[k]->span_id, sizeof(s[i]->span_id));

	return r ? r : index_compare(i, k);
}

static int start_compare(const void *a, const void *b, void *spans)
{
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	struct span *const *s = spans;

	if (s[i]->start_unix_ns != s[k]->start_unix_ns)
		return s[i]->start_unix_ns < s[k]->start_unix_ns ? -1 : 1;
	return index_compare(i, k);
}

/* The first span with that id, by a search in 'by_id'. */
static uint32_t span_find(struct span *const *spans, const uint32_t *by_id, size_t n,
			  const struct span_id *id)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (memcmp(&spans[by_id[middle]]->span_id, id, sizeof(*id)) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == n || memcmp(&spans[by_id[low]]->span_id, id, sizeof(*id)) != 0)
		return FOREST_NONE;
	return by_id[low];
}

/* Opens circles: follows parents until known ground; meeting its own walk again means a circle. */
static void circles_open(struct forest *f, uint32_t *walk_of)
{
	memset(walk_of, 0xff, f->n * sizeof(*walk_of));
	for (uint32_t i = 0; i < f->n; i++) {
		uint32_t at = i;

		while (at != FOREST_NONE && walk_of[at] == FOREST_NONE) {
			uint32_t parent = f->nodes[at].parent;

			walk_of[at] = i;
			if (parent != FOREST_NONE && walk_of[parent] == i)
				f->nodes[at].parent = FOREST_NONE;
			at = f->nodes[at].parent;
		}
	}
}

static void children_link(struct forest *f, const uint32_t *by_start)
{
	/* From the latest on, each put in front. */
	for (size_t i = f->n; i-- > 0;) {
		uint32_t at = by_start[i];
		struct forest_node *node = &f->nodes[at];
		uint32_t *first = node->parent == FOREST_NONE ? &f->first_top
							      : &f->nodes[node->parent].first_child;

		node->next_sibling = *first;
		*first = at;
	}
}

int forest_build(struct span *const *spans, size_t n, struct forest *ret)
{
	_cleanup_(freep) uint32_t *order = malloc((n + 1) * sizeof(*order));
	_cleanup_(freep) struct forest_node *nodes = malloc((n + 1) * sizeof(*nodes));
	struct forest f = {.first_top = FOREST_NONE, .n = n, .nodes = nodes};

	if (!order || !nodes)
		return -ENOMEM;

	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), id_compare, (void *)spans);
	for (uint32_t i = 0; i < n; i++)
		nodes[i] = (struct forest_node){
			.parent = span_find(spans, order, n, &spans[i]->parent_span_id),
			.first_child = FOREST_NONE,
			.next_sibling = FOREST_NONE,
		};
	circles_open(&f, order);

	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), start_compare, (void *)spans);
	children_link(&f, order);

	f.nodes = TAKE_PTR(nodes);
	*ret = f;
	return 0;
}

void forest_done(struct forest *f)
{
	free(f->nodes);
	*f = (struct forest){0};
}

uint32_t forest_next(const struct forest *f, uint32_t at)
{
	if (f->nodes[at].first_child != FOREST_NONE)
		return f->nodes[at].first_child;
	while (at != FOREST_NONE && f->nodes[at].next_sibling == FOREST_NONE)
		at = f->nodes[at].parent;
	return at == FOREST_NONE ? FOREST_NONE : f->nodes[at].next_sibling;
}
