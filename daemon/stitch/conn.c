/* Connections and heads in parts; see conn.h. */
#include "stitch/conn.h"

#include <arpa/inet.h>
#include <errno.h>

#include "base/util.h"
#include "metrics/metrics.h"

#define PARTS_FIRST_BYTES 1024

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

struct conn *conn_find(const struct conn_table *t, uint64_t cookie)
{
	table_for_each_match(node, &t->table, table_hash(&cookie, sizeof(cookie)))
	{
		struct conn *c = container_of(node, struct conn, node);

		if (c->cookie == cookie)
			return c;
	}
	return NULL;
}

int conn_add(struct conn_table *t, const struct event *e, struct conn **ret)
{
	struct conn *c;
	int r;

	if (t->table.n >= t->max) {
		if (!t->idle.first)
			return CONN_FULL;
		conn_remove(t, t->idle.first);
	}

	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->cookie = e->connection;
	c->role = e->role;
	c->last_ns = e->time_ns;
	c->local = e->head.local;
	c->remote = e->head.remote;
	c->remote_n = conn_print_address(&c->remote, c->remote_text);

	r = table_insert(&t->table, &c->node, table_hash(&c->cookie, sizeof(c->cookie)));
	if (r < 0) {
		free(c);
		return r;
	}
	list_append(&t->idle, c);
	*ret = c;
	return 0;
}

void conn_remove(struct conn_table *t, struct conn *c)
{
	while (c->first) {
		struct exchange *x = c->first;

		c->first = x->next;
		exchange_free(x);
	}
	head_parts_discard(&c->request, true);
	head_parts_discard(&c->response, false);
	list_remove(c);
	table_remove(&t->table, &c->node);
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

void conn_push_exchange(struct conn_table *t, struct conn *c, struct exchange *x)
{
	x->next = NULL;
	if (c->last)
		c->last->next = x;
	else
		c->first = x;
	c->last = x;
	c->n_exchanges++;
	conn_place(t, c);
}

struct exchange *conn_pop_exchange(struct conn_table *t, struct conn *c)
{
	struct exchange *x = c->first;

	c->first = x->next;
	if (!c->first)
		c->last = NULL;
	c->n_exchanges--;
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

static int head_parts_append(struct head_parts **parts, struct str bytes, uint32_t bytes_max)
{
	struct head_parts *p = *parts;
	size_t n = MIN(bytes.n, bytes_max - p->n);

	if (n < bytes.n)
		p->is_cut = true;
	if (p->n + n > p->size) {
		size_t size = MIN(MAX(p->size * 2, p->n + n), bytes_max);

		p = realloc(p, sizeof(*p) + size);
		if (!p)
			return -ENOMEM;
		p->size = (uint32_t)size;
		*parts = p;
	}
	if (n)
		memcpy(p->bytes + p->n, bytes.p, n);
	p->n += (uint32_t)n;
	p->next_offset += bytes.n;
	return 0;
}

static struct head_parts *head_parts_new(uint64_t offset, uint32_t bytes_max)
{
	uint32_t size = MIN(PARTS_FIRST_BYTES, bytes_max);
	struct head_parts *p = malloc(sizeof(*p) + size);

	if (p)
		*p = (struct head_parts){.size = size, .next_offset = offset};
	return p;
}

int head_parts_add(struct head_parts **parts, const struct event_head *head, uint32_t bytes_max,
		   struct str *ret_bytes, bool *ret_is_truncated)
{
	bool is_last = head->is_end || head->is_truncated;

	if (head->is_start) {
		head_parts_discard(parts, head->is_request);
		if (is_last) {
			*ret_bytes = head->bytes;
			*ret_is_truncated = head->is_truncated;
			return PARTS_WHOLE;
		}
		*parts = head_parts_new(head->offset, bytes_max);
	}

	/* No memory is as good as a lost part: the last one will be counted. */
	if (!*parts)
		return is_last ? PARTS_LOST : PARTS_MORE;
	if (!(*parts)->is_broken && ((*parts)->next_offset != head->offset ||
				     head_parts_append(parts, head->bytes, bytes_max) < 0))
		(*parts)->is_broken = true;

	if (!is_last)
		return PARTS_MORE;
	if ((*parts)->is_broken)
		return PARTS_LOST;
	*ret_bytes = (struct str){.p = (*parts)->bytes, .n = (*parts)->n};
	*ret_is_truncated = head->is_truncated || (*parts)->is_cut;
	return PARTS_WHOLE;
}

void head_parts_discard(struct head_parts **parts, bool is_request)
{
	if (!*parts)
		return;
	metrics_increment(is_request ? METRIC_HEADS_PARTIAL : METRIC_RESPONSES_BAD);
	free(TAKE_PTR(*parts));
}
