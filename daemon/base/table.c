/* The hash table; see table.h. */
#include "base/table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>

#define FIRST_BUCKETS 64

uint64_t table_hash(const void *data, size_t n)
{
	return XXH3_64bits(data, n);
}

static int table_grow(struct table *t)
{
	size_t n_buckets = t->n_buckets ? t->n_buckets * 2 : FIRST_BUCKETS;
	struct table_node **buckets = calloc(n_buckets, sizeof(*buckets));

	if (!buckets)
		return -ENOMEM;

	for (size_t i = 0; i < t->n_buckets; i++) {
		struct table_node *node = t->buckets[i];

		while (node) {
			struct table_node *next = node->next;
			struct table_node **slot = &buckets[node->hash & (n_buckets - 1)];

			node->next = *slot;
			*slot = node;
			node = next;
		}
	}
	free(t->buckets);
	t->buckets = buckets;
	t->n_buckets = n_buckets;
	return 0;
}

int table_insert(struct table *t, struct table_node *node, uint64_t hash)
{
	struct table_node **slot;
	int r;

	/*
	 * A table that cannot grow still works, only slower: fatal only when there are no buckets
	 * at all.
	 */
	if (t->n >= t->n_buckets) {
		r = table_grow(t);
		if (r < 0 && !t->n_buckets)
			return r;
	}

	node->hash = hash;
	slot = &t->buckets[hash & (t->n_buckets - 1)];
	node->next = *slot;
	*slot = node;
	t->n++;
	return 0;
}

void table_remove(struct table *t, struct table_node *node)
{
	struct table_node **slot = &t->buckets[node->hash & (t->n_buckets - 1)];

	while (*slot && *slot != node)
		slot = &(*slot)->next;
	assert(*slot);
	*slot = node->next;
	node->next = NULL;
	t->n--;
}

void table_done(struct table *t)
{
	free(t->buckets);
	*t = (struct table){0};
}

struct table_node *table_first(const struct table *t, uint64_t hash)
{
	struct table_node *node = t->n_buckets ? t->buckets[hash & (t->n_buckets - 1)] : NULL;

	while (node && node->hash != hash)
		node = node->next;
	return node;
}

struct table_node *table_next(const struct table_node *node)
{
	uint64_t hash = node->hash;

	do
		node = node->next;
	while (node && node->hash != hash);
	return (struct table_node *)node;
}

int table_walk(struct table *t, int (*visit)(struct table_node *node, void *userdata),
	       void *userdata)
{
	for (size_t i = 0; i < t->n_buckets; i++) {
		struct table_node *node = t->buckets[i];

		while (node) {
			struct table_node *next = node->next;
			int r = visit(node, userdata);

			if (r)
				return r;
			node = next;
		}
	}
	return 0;
}
