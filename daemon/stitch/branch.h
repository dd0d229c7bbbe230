/*
 * What lineage.c knows of an exchange that others may hang on, and the trees that these form: a
 * call hangs on the request of its unit of work, a request that was joined hangs on its call. A
 * branch without a parent is settled: its trace and its parent are final.
 *
 * Branches are found by span id, those of inherited calls by goroutine as well. Main thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/table.h"
#include "model/event.h"
#include "model/ids.h"
#include "model/span.h"
#include "stitch/exchange.h"

enum verdict {
	VERDICT_NONE,
	VERDICT_KEEP,   /* the thread that received the request answered it */
	VERDICT_CUT,    /* another one did */
	VERDICT_UNSEEN, /* nobody did, or it was not seen: good enough where the process is proven */
};

/* A goroutine that an inherited call waits for the end of. */
struct goroutine {
	struct table_node node; /* by proc_id and id */
	struct branch *branch;
	uint64_t id; /* 0: none */
	bool has_ended;
};

/* A place in a list of what waits, the first until first. */
struct wait {
	uint64_t until_ns; /* CLOCK_MONOTONIC; 0: in no list */
	struct wait *previous, *next;
};

struct wait_list {
	struct wait *first, *last;
};

struct branch {
	struct table_node node;
	struct span_id span_id, parent_span_id;
	struct branch *parent;          /* NULL: settled */
	struct branch *previous, *next; /* the parent's children */
	struct branch *first;
	struct exchange *exchange; /* NULL: it is over */
	struct span *span;         /* it is over, and waits to be settled */
	enum parent_reason reason;
	enum verdict verdict; /* of a server, on the calls that hang on it */
	bool is_server;
	bool is_doubted;
	bool is_proven;
	bool is_inherited; /* a call by a goroutine that the request above began */
	bool is_unit_sure; /* of a call: a goroutine's own request, nothing to doubt */
	bool has_trace;    /* 'trace_id' is in place of the one that the kernel side gave */
	struct trace_id trace_id;
	unsigned int depth;
	uint32_t proc_id;
	uint64_t end_ns;                /* of the exchange, once it is over */
	struct wait grace;              /* of a server: its calls are kept, or goroutines end */
	struct goroutine caller, elder; /* of an inherited one */
};

struct branch_table {
	struct table by_span;
	struct table by_goroutine; /* those of inherited calls, by process and goroutine */
	struct branch *spare;      /* linked by 'next', to be used again */
	size_t n_spare;
};

/* NULL: there is none. */
struct branch *branch_find(const struct branch_table *t, const struct span_id *id);

/* Of the exchange, which it is set in. Returns 0 or -ENOMEM. */
int branch_new(struct branch_table *t, struct exchange *x, const struct event *request);

/* It has no parent, no child, and is in no list. */
void branch_free(struct branch_table *t, struct branch *b);

void branch_link(struct branch *b, struct branch *parent);
void branch_unlink(struct branch *b);

/* All branches that are left, with their spans. */
void branch_table_done(struct branch_table *t);

uint64_t goroutine_hash(uint32_t proc_id, uint64_t goroutine);

/* It must be in no list. Times come in order, or nearly so: a later one waits for those before. */
void wait_begin(struct wait_list *list, struct wait *w, uint64_t until_ns);

/* No effect on one that is in no list. */
void wait_end(struct wait_list *list, struct wait *w);
