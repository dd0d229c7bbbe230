/*
 * The bounded table of connections, for stitch.c alone: by socket cookie, each with its open
 * exchanges and with the parts of heads that are still incomplete.
 *
 * Connections stand in one of two lists, those with open exchanges ("busy") and the others
 * ("idle"), each ordered by last activity. An idle connection holds no request that has come whole,
 * so it makes room when the table is full, or when all that the table holds is more than its budget
 * of bytes. What is open stays: with no idle connection left, the newcomer is refused.
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

/* Of one direction: the head under way. */
struct head_slot {
	struct head_parts *parts; /* NULL: none, or it has no room */
	bool has_no_room;         /* until the next head: there were no bytes left for this one */
};

/* A response that was whole before its request's head was: 408, 414, 431. */
struct early_response {
	uint32_t number; /* of the exchange; 0: none */
	uint16_t status;
	uint64_t time_ns;
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
	struct head_slot request, response;
	struct early_response early;
	struct event_endpoint local, remote;
	uint32_t remote_n;
	char remote_text[INET6_ADDRSTRLEN]; /* remote_n bytes; printed once, used by each span */
};

struct conn_table {
	struct table table;
	struct conn_list busy, idle;
	size_t max;
	size_t bytes, bytes_max; /* of the connections and of all they hold */
	uint32_t head_bytes_max; /* of a head that comes in parts */
};

struct conn *conn_find(const struct conn_table *t, uint64_t cookie);

/*
 * The connection of a head, which is not in the table yet. Returns 0, CONN_FULL, CONN_NO_ROOM or
 * -ENOMEM.
 */
enum {
	CONN_FULL = 1, /* too many connections */
	CONN_NO_ROOM,  /* the budget of bytes is spent */
};
int conn_add(struct conn_table *t, const struct event *head, struct conn **ret);

/* With all it holds; the exchanges are dropped without a word. */
void conn_remove(struct conn_table *t, struct conn *c);

/* Marks it as the most recently active of its list. */
void conn_touch(struct conn_table *t, struct conn *c, uint64_t time_ns);

/* Takes the exchange over. Returns 0, or CONN_NO_ROOM: then it stays the caller's. */
int conn_push_exchange(struct conn_table *t, struct conn *c, struct exchange *x);

/* Takes the oldest exchange out; it is the caller's. */
struct exchange *conn_pop_exchange(struct conn_table *t, struct conn *c);

void conn_table_done(struct conn_table *t);

/*
 * A textual address without brackets into INET6_ADDRSTRLEN bytes. Returns its length, 0 for an
 * unknown family.
 */
uint32_t conn_print_address(const struct event_endpoint *endpoint, char *buffer);

struct head_view {
	struct str bytes;  /* in the event when the head came in one part, else in the connection */
	bool is_truncated; /* its end never comes */
};

/*
 * Adds a part to the connection's head of that direction, whose connection was touched before.
 * WHOLE: 'ret' views the head; conn_drop_head() after use. MORE: it is not the last part. LOST: it
 * is the last part, but others are missing. NO_ROOM: it is the last part, and others found no room.
 */
enum { PARTS_WHOLE = 0, PARTS_MORE, PARTS_LOST, PARTS_NO_ROOM };
int conn_add_head(struct conn_table *t, struct conn *c, const struct event_head *head,
		  struct head_view *ret);

/* Forgets the parts of a head. */
void conn_drop_head(struct conn_table *t, struct conn *c, bool is_request);
