/*
 * The bounded table of connections, for stitch.c alone: by socket cookie, each with its open
 * exchanges and with the parts of heads that are still incomplete.
 *
 * Connections stand in one of two lists, those with open exchanges ("busy") and the others
 * ("idle"), each ordered by last activity. An idle connection holds nothing that would be missed,
 * so it makes room when the table is full.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/table.h"
#include "model/event.h"
#include "stitch/exchange.h"

#define CONN_EXCHANGES_MAX 64

/* The parts so far of one head. */
struct head_parts {
	uint32_t n, size;
	uint64_t next_offset;
	bool is_broken; /* a part is missing */
	bool is_cut;    /* more than the limit came */
	char bytes[];
};

struct conn_list {
	struct conn *first, *last;
};

struct conn {
	struct table_node node;
	struct conn_list *list;
	struct conn *previous, *next;
	uint64_t cookie;
	uint64_t last_ns;                   /* of the newest event */
	uint64_t peer_fin_ns, local_fin_ns; /* 0: not yet */
	uint64_t exit_ns; /* the process of its oldest exchange ended; 0: it lives */
	enum event_role role;
	bool is_stopped;      /* too many open exchanges: pairing is no longer to be trusted */
	uint32_t last_number; /* of the newest request */
	uint32_t n_exchanges;
	struct exchange *first, *last; /* ascending by number */
	struct head_parts *request, *response;
	struct event_endpoint local, remote;
	uint32_t remote_n;
	char remote_text[INET6_ADDRSTRLEN]; /* remote_n bytes; printed once, used by each span */
};

struct conn_table {
	struct table table;
	struct conn_list busy, idle;
	size_t max;
};

struct conn *conn_find(const struct conn_table *t, uint64_t cookie);

/* The connection of a head, which is not in the table yet. Returns 0, CONN_FULL or -ENOMEM. */
enum { CONN_FULL = 1 };
int conn_add(struct conn_table *t, const struct event *head, struct conn **ret);

/* With all it holds; the exchanges are dropped without a word. */
void conn_remove(struct conn_table *t, struct conn *c);

/* Marks it as the most recently active of its list. */
void conn_touch(struct conn_table *t, struct conn *c, uint64_t time_ns);

void conn_push_exchange(struct conn_table *t, struct conn *c, struct exchange *x);

/* Takes the oldest exchange out; it is the caller's. */
struct exchange *conn_pop_exchange(struct conn_table *t, struct conn *c);

void conn_table_done(struct conn_table *t);

/*
 * A textual address without brackets into INET6_ADDRSTRLEN bytes. Returns its length, 0 for an
 * unknown family.
 */
uint32_t conn_print_address(const struct event_endpoint *endpoint, char *buffer);

/*
 * Adds a part to the head in '*parts'. WHOLE: 'ret_bytes' views the head, in the event when it came
 * in one part, else in '*parts' (free it after use); 'ret_is_truncated' says that its end never
 * comes. MORE: it is not the last part. LOST: it is the last part, but others are missing.
 */
enum { PARTS_WHOLE = 0, PARTS_MORE, PARTS_LOST };
int head_parts_add(struct head_parts **parts, const struct event_head *head, uint32_t bytes_max,
		   struct str *ret_bytes, bool *ret_is_truncated);

/* Forgets a head whose end will not come, and counts it. */
void head_parts_discard(struct head_parts **parts, bool is_request);
