/*
 * A hash table of things that carry their own link: struct table_node is a member of the entry, the
 * table owns only its buckets. Chained, doubled when full, never shrunk. Keys
 * are hashed by the caller (table_hash; numbers that count up, or random ones, are their own hashes)
 * and compared by the caller while it walks a chain:
 *
 *	table_for_each_match(node, &t, hash) {
 *		struct conn *c = container_of(node, struct conn, node);
 *		if (c->cookie == cookie) ...
 *	}
 *
 * Not for use across threads.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct table_node {
	struct table_node *next;
	uint64_t hash;
};

struct table {
	struct table_node **buckets;
	size_t n_buckets; /* a power of two, or 0 before the first insertion */
	size_t n;         /* entries */
};

uint64_t table_hash(const void *data, size_t n);

/* Returns 0 or -ENOMEM; the node must not be in a table. */
int table_insert(struct table *t, struct table_node *node, uint64_t hash);

/* The node must be in the table. */
void table_remove(struct table *t, struct table_node *node);

/* Frees the buckets, not the entries. */
void table_done(struct table *t);

/* The first node of a chain with that hash, and the next one after 'node'. */
struct table_node *table_first(const struct table *t, uint64_t hash);
struct table_node *table_next(const struct table_node *node);

#define table_for_each_match(node, t, hash) \
	for (struct table_node *node = table_first((t), (hash)); node; node = table_next(node))

/*
 * Calls 'visit' for each entry; the entry visited (and no other) may be removed and freed
 * meanwhile. A visit that returns non-zero ends the walk, and that value is returned; else 0.
 */
int table_walk(struct table *t, int (*visit)(struct table_node *node, void *userdata),
	       void *userdata);
