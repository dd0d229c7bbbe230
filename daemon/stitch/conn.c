/* Connections and heads in parts; see conn.h. */
#include "stitch/conn.h"

#include <arpa/inet.h>
#include <errno.h>

#include "base/util.h"
#include "metrics/metrics.h"

#define PARTS_FIRST_BYTES 1024
/* What an allocation costs beside its bytes (glibc: a word, and rounding up to two). */
#define ALLOCATION_BYTES 16

static void list_remove(struct conn *c)
{
	struct conn_list *list = c->list;

	if (c->previous)
		c->previous->next = c->next;
	else
		list->first = c->next;
	if (c->next)
		c->next->previous = c->previous;
	else
		list->last = c->previous;
	c->list = NULL;
}

static void list_append(struct conn_list *list, struct conn *c)
{
	c->list = list;
	c->next = NULL;
	c->previous = list->last;
	if (list->last)
		list->last->next = c;
	else
		list->first = c;
	list->last = c;
}

/* Cookies are numbers that the kernel gives away one after the other: each is its own hash. */
struct conn *conn_find(const struct conn_table *t, uint64_t cookie)
{
	table_for_each_match(node, &t->table, cookie) return container_of(node, struct conn, node);
	return NULL;
}

/*
 * Charges 'n' bytes to the table. Idle connections make room for them, those longest without news
 * first, but not 'keep'. Returns 0 or CONN_NO_ROOM.
 */
static int conn_charge(struct conn_table *t, const struct conn *keep, size_t n)
{
	while (t->bytes_max - t->bytes < n) {
		if (!t->idle.first || t->idle.first == keep)
			return CONN_NO_ROOM;
		conn_remove(t, t->idle.first);
	}
	t->bytes += n;
	return 0;
}

static size_t exchange_cost(const struct exchange *x)
{
	return x->bytes + ALLOCATION_BYTES;
}

static size_t head_parts_cost(uint32_t size)
{
	return sizeof(struct head_parts) + size + ALLOCATION_BYTES;
}

#define CONN_COST (sizeof(struct conn) + ALLOCATION_BYTES)

int conn_add(struct conn_table *t, const struct event *e, struct conn **ret)
{
	struct conn *c;
	int r;

	if (t->table.n >= t->max) {
		if (!t->idle.first)
			return CONN_FULL;
		conn_remove(t, t->idle.first);
	}
	r = conn_charge(t, NULL, CONN_COST);
	if (r)
		return r;

	c = calloc(1, sizeof(*c));
	if (!c) {
		t->bytes -= CONN_COST;
		return -ENOMEM;
	}
	c->cookie = e->connection;
	c->role = e->role;
	c->last_ns = e->time_ns;
	c->local = e->head.local;
	c->remote = e->head.remote;
	c->remote_n = conn_print_address(&c->remote, c->remote_text);

	r = table_insert(&t->table, &c->node, c->cookie);
	if (r < 0) {
		t->bytes -= CONN_COST;
		free(c);
		return r;
	}
	list_append(&t->idle, c);
	*ret = c;
	return 0;
}

static struct head_slot *head_slot(struct conn *c, bool is_request)
{
	return is_request ? &c->request : &c->response;
}

void conn_drop_head(struct conn_table *t, struct conn *c, bool is_request)
{
	struct head_slot *slot = head_slot(c, is_request);

	if (slot->parts)
		t->bytes -= head_parts_cost(slot->parts->size);
	free(slot->parts);
	*slot = (struct head_slot){0};
}

/* Forgets a head whose end will not come, and counts it. */
static void head_discard(struct conn_table *t, struct conn *c, bool is_request)
{
	if (head_slot(c, is_request)->parts)
		metrics_increment(is_request ? METRIC_HEADS_UNFINISHED : METRIC_RESPONSES_BAD);
	conn_drop_head(t, c, is_request);
}

void conn_remove(struct conn_table *t, struct conn *c)
{
	while (c->first) {
		struct exchange *x = c->first;

		c->first = x->next;
		t->bytes -= exchange_cost(x);
		exchange_free(x);
	}
	head_discard(t, c, true);
	head_discard(t, c, false);
	list_remove(c);
	table_remove(&t->table, &c->node);
	t->bytes -= CONN_COST;
	free(c);
}

static void conn_place(struct conn_table *t, struct conn *c)
{
	struct conn_list *list = c->first ? &t->busy : &t->idle;

	if (c->list == list && list->last == c)
		return;
	list_remove(c);
	list_append(list, c);
}

void conn_touch(struct conn_table *t, struct conn *c, uint64_t time_ns)
{
	c->last_ns = MAX(c->last_ns, time_ns);
	conn_place(t, c);
}

int conn_push_exchange(struct conn_table *t, struct conn *c, struct exchange *x)
{
	int r = conn_charge(t, c, exchange_cost(x));

	if (r)
		return r;
	x->next = NULL;
	if (c->last)
		c->last->next = x;
	else
		c->first = x;
	c->last = x;
	c->n_exchanges++;
	conn_place(t, c);
	return 0;
}

struct exchange *conn_pop_exchange(struct conn_table *t, struct conn *c)
{
	struct exchange *x = c->first;

	c->first = x->next;
	if (!c->first)
		c->last = NULL;
	c->n_exchanges--;
	t->bytes -= exchange_cost(x);
	if (!c->first)
		conn_place(t, c);
	return x;
}

void conn_table_done(struct conn_table *t)
{
	while (t->busy.first)
		conn_remove(t, t->busy.first);
	while (t->idle.first)
		conn_remove(t, t->idle.first);
	table_done(&t->table);
}

uint32_t conn_print_address(const struct event_endpoint *endpoint, char *buffer)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	const uint8_t *address = endpoint->address;
	int family = endpoint->family;

	if (family == AF_INET6 && memcmp(address, mapped, sizeof(mapped)) == 0) {
		family = AF_INET;
		address += sizeof(mapped);
	}
	if (family != AF_INET && family != AF_INET6)
		return 0;
	if (!inet_ntop(family, address, buffer, INET6_ADDRSTRLEN))
		return 0;
	return (uint32_t)strlen(buffer);
}

static int head_parts_grow(struct conn_table *t, struct conn *c, struct head_slot *slot, size_t n)
{
	struct head_parts *p = slot->parts;
	uint32_t size = (uint32_t)MIN(MAX(p->size * 2, n), t->head_bytes_max),
		 grown = size - p->size;

	if (conn_charge(t, c, grown))
		return CONN_NO_ROOM;
	p = realloc(p, sizeof(*p) + size);
	if (!p) {
		t->bytes -= grown;
		return CONN_NO_ROOM;
	}
	p->size = size;
	slot->parts = p;
	return 0;
}

/* Returns 0 or CONN_NO_ROOM. */
static int head_parts_append(struct conn_table *t, struct conn *c, struct head_slot *slot,
			     struct str bytes)
{
	struct head_parts *p = slot->parts;
	size_t n = MIN(bytes.n, t->head_bytes_max - p->n);

	if (n < bytes.n)
		p->is_cut = true;
	if (p->n + n > p->size) {
		if (head_parts_grow(t, c, slot, p->n + n))
			return CONN_NO_ROOM;
		p = slot->parts;
	}
	if (n)
		memcpy(p->bytes + p->n, bytes.p, n);
	p->n += (uint32_t)n;
	p->next_offset += bytes.n;
	return 0;
}

/* NULL: no room. */
static struct head_parts *head_parts_new(struct conn_table *t, struct conn *c, uint64_t offset)
{
	uint32_t size = MIN(PARTS_FIRST_BYTES, t->head_bytes_max);
	struct head_parts *p;

	if (conn_charge(t, c, head_parts_cost(size)))
		return NULL;
	p = malloc(sizeof(*p) + size);
	if (p)
		*p = (struct head_parts){.size = size, .next_offset = offset};
	else
		t->bytes -= head_parts_cost(size);
	return p;
}

/* The first part of a head that has more of them. */
static void head_start(struct conn_table *t, struct conn *c, const struct event_head *head)
{
	struct head_slot *slot = head_slot(c, head->is_request);

	slot->parts = head_parts_new(t, c, head->offset);
	slot->has_no_room = !slot->parts;
}

static void head_add(struct conn_table *t, struct conn *c, const struct event_head *head)
{
	struct head_slot *slot = head_slot(c, head->is_request);

	if (!slot->parts || slot->parts->is_broken)
		return;
	if (slot->parts->next_offset != head->offset) {
		slot->parts->is_broken = true;
	} else if (head_parts_append(t, c, slot, head->bytes)) {
		conn_drop_head(t, c, head->is_request);
		slot->has_no_room = true;
	}
}

int conn_add_head(struct conn_table *t, struct conn *c, const struct event_head *head,
		  struct head_view *ret)
{
	struct head_slot *slot = head_slot(c, head->is_request);
	bool is_last = head->is_end || head->is_truncated;

	if (head->is_start) {
		head_discard(t, c, head->is_request);
		if (is_last) {
			*ret = (struct head_view){head->bytes, head->is_truncated};
			return PARTS_WHOLE;
		}
		head_start(t, c, head);
	}
	head_add(t, c, head);

	if (!is_last)
		return PARTS_MORE;
	if (slot->has_no_room)
		return PARTS_NO_ROOM;
	if (!slot->parts || slot->parts->is_broken)
		return PARTS_LOST;
	*ret = (struct head_view){
		.bytes = {.p = slot->parts->bytes, .n = slot->parts->n},
		.is_truncated = head->is_truncated || slot->parts->is_cut,
	};
	return PARTS_WHOLE;
}
