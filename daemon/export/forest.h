/*
 * The spans of one trace linked to their parents: what the store asks for and the tree draws.
 * Whatever parents the spans claim, the result is a forest: a span whose parent is not there is a
 * top, and a circle of parents is opened at one of its spans.
 */
#pragma once

#include <stdint.h>

#include "base/util.h"
#include "model/span.h"

#define FOREST_NONE UINT32_MAX

struct forest_node {
	uint32_t parent; /* FOREST_NONE: a top */
	uint32_t first_child;
	uint32_t next_sibling; /* children and tops are in the order of their starts */
};

struct forest {
	uint32_t first_top;
	size_t n;
	struct forest_node *nodes; /* by the index of the span */
};

/* Returns 0 or -ENOMEM. */
int forest_build(struct span *const *spans, size_t n, struct forest *ret);
void forest_done(struct forest *f);

/*
 * The next span when children follow their parent: its first child, or the next one of its or an
 * ancestor's.
 */
uint32_t forest_next(const struct forest *f, uint32_t at);

/* A top that names a parent: the parent is elsewhere, or not finished yet. */
static inline bool forest_is_orphan(const struct forest *f, struct span *const *spans, uint32_t at)
{
	return f->nodes[at].parent == FOREST_NONE && span_id_is_valid(&spans[at]->parent_span_id);
}
