/* Records to events: every length and enum of the kernel side is checked here, once. */
#include <string.h>
#include <sys/socket.h>

#include "abi.h"
#include "event/reader.h"

static_assert((int)DECISION_NONE_LATE == (int)PARENT_NONE_LATE &&
		      (int)_DECISION_MAX == (int)_PARENT_REASON_MAX,
	      "abi.h and event.h name the same reasons");

/* An IPv4 address in an IPv6 socket (::ffff:a.b.c.d) is an IPv4 address. */
static void decode_endpoint(const __u8 *address, __u16 port, __u16 family,
			    struct event_endpoint *ret)
{
	static const __u8 mapped[12] = {[10] = 0xff, [11] = 0xff};

	*ret = (struct event_endpoint){.family = family, .port = port};
	if (family == AF_INET6 && memcmp(address, mapped, sizeof(mapped)) == 0) {
		ret->family = AF_INET;
		memcpy(ret->address, address + 12, 4);
	} else {
		memcpy(ret->address, address, family == AF_INET ? 4 : 16);
	}
}

static int decode_head(const struct record_head *r, size_t n, struct event *e)
{
	static const enum event_route routes[] = {
		[ROUTE_NONE] = EVENT_ROUTE_NONE,
		[ROUTE_PATTERN] = EVENT_ROUTE_PATTERN,
		[ROUTE_TEMPLATE] = EVENT_ROUTE_TEMPLATE,
		[ROUTE_CHI] = EVENT_ROUTE_CHI,
	};
	const struct decision *d = &r->decision;

	if (n < sizeof(*r) || n != sizeof(*r) + (size_t)r->data_length + r->route_length)
		return EVENT_BAD;
	if (r->route_kind >= _ROUTE_KIND_MAX || r->route_length > ROUTE_BYTES_MAX ||
	    (r->route_kind == ROUTE_NONE) != (r->route_length == 0))
		return EVENT_BAD;
	if (r->family != AF_INET && r->family != AF_INET6)
		return EVENT_BAD;
	if (e->exchange == 0 || e->connection == 0)
		return EVENT_BAD;

	e->type = EVENT_HEAD;
	e->head = (struct event_head){
		.is_request = r->flags & HEAD_REQUEST,
		.is_start = r->flags & HEAD_START,
		.is_end = r->flags & HEAD_END,
		.is_complete = r->flags & HEAD_COMPLETE,
		.is_truncated = r->flags & HEAD_TRUNCATED,
		.has_decision = r->flags & HEAD_DECISION,
		.offset = r->offset,
		.head_start_ns = r->head_start_ns,
		.answered_by = r->flags & HEAD_HANDED_OVER   ? ANSWERED_BY_OTHER
			       : r->flags & HEAD_BY_RECEIVER ? ANSWERED_BY_RECEIVER
							     : ANSWERED_BY_UNKNOWN,
		.bytes = {.p = (const char *)r->data, .n = r->data_length},
		.route_kind = routes[r->route_kind],
		.route = {.p = (const char *)r->data + r->data_length, .n = r->route_length},
	};
	decode_endpoint(r->local_address, r->local_port, r->family, &e->head.local);
	decode_endpoint(r->remote_address, r->remote_port, r->family, &e->head.remote);
	if (!e->head.has_decision)
		return 0;
	if (d->reason >= _DECISION_MAX)
		return EVENT_BAD;
	e->head.reason = d->reason;
	e->head.trace_flags = d->flags;
	e->head.is_unit = d->is_unit;
	e->head.is_proven = d->is_proven;
	e->head.is_inherited = d->is_inherited;
	e->head.elder = d->elder;
	e->head.is_exact = d->goroutine != 0;
	e->head.goroutine = d->is_logical ? 0 : d->goroutine;
	memcpy(e->head.trace_id.b, d->ids.trace_id, sizeof(e->head.trace_id.b));
	memcpy(e->head.span_id.b, d->ids.span_id, sizeof(e->head.span_id.b));
	memcpy(e->head.parent_span_id.b, d->parent_span_id, sizeof(e->head.parent_span_id.b));
	if (!trace_id_is_valid(&e->head.trace_id) || !span_id_is_valid(&e->head.span_id))
		return EVENT_BAD;
	return 0;
}

static int decode_close(const struct record_close *r, size_t n, struct event *e)
{
	static const enum event_close whats[] = {
		[CLOSE_PEER_FIN] = EVENT_CLOSE_PEER_FIN,
		[CLOSE_LOCAL_FIN] = EVENT_CLOSE_LOCAL_FIN,
		[CLOSE_READ_END] = EVENT_CLOSE_READ_END,
		[CLOSE_DONE] = EVENT_CLOSE_DONE,
	};

	if (n != sizeof(*r) || r->what < CLOSE_PEER_FIN || r->what > CLOSE_DONE)
		return EVENT_BAD;
	e->type = EVENT_CLOSE;
	e->close.what = whats[r->what];
	e->close.error = r->error;
	e->close.has_unseen = r->has_unseen;
	return 0;
}

static int decode_process(const struct record_process *r, size_t n, struct event *e)
{
	static const enum event_process whats[] = {
		[PROCESS_EXEC] = EVENT_PROCESS_EXEC,
		[PROCESS_FORK] = EVENT_PROCESS_FORK,
		[PROCESS_EXIT] = EVENT_PROCESS_EXIT,
		[PROCESS_LISTEN] = EVENT_PROCESS_LISTEN,
	};

	if (n != sizeof(*r) || r->what < PROCESS_EXEC || r->what > PROCESS_LISTEN ||
	    r->port > UINT16_MAX)
		return EVENT_BAD;
	e->type = EVENT_PROCESS;
	e->process.what = whats[r->what];
	e->process.parent_pid = r->parent_pid;
	e->process.start_ns = r->start_ns;
	e->process.exec_id = r->exec_id;
	e->process.port = (uint16_t)r->port;
	return 0;
}

static int decode_goroutine(const struct record_goroutine *r, size_t n, struct event *e)
{
	if (n != sizeof(*r) || !r->goroutine)
		return EVENT_BAD;
	e->goroutine = r->goroutine;
	return 0;
}

int event_decode(const void *record, size_t n, struct event *ret)
{
	const struct record_header *h = record;
	struct event e;
	int r = EVENT_BAD;

	if (n < sizeof(*h) || h->length != n)
		return EVENT_BAD;
	memset(&e, 0, sizeof(e));
	e.time_ns = h->time_ns;
	e.pid = h->pid;
	e.tid = h->tid;
	e.proc_id = h->proc_id;
	e.connection = h->connection;
	e.exchange = h->exchange;
	e.role = h->role == ROLE_CLIENT ? EVENT_ROLE_CLIENT : EVENT_ROLE_SERVER;
	if (h->role > ROLE_CLIENT)
		return EVENT_BAD;

	if (h->role == ROLE_UNKNOWN && (h->type == RECORD_HEAD || h->type == RECORD_END))
		return EVENT_BAD;
	switch (h->type) {
	case RECORD_HEAD:
		r = decode_head(record, n, &e);
		break;
	case RECORD_END:
		e.type = EVENT_END;
		r = n == sizeof(struct record_end) && e.exchange ? 0 : EVENT_BAD;
		break;
	case RECORD_CLOSE:
		r = decode_close(record, n, &e);
		break;
	case RECORD_PROCESS:
		r = decode_process(record, n, &e);
		break;
	case RECORD_GOROUTINE:
		e.type = EVENT_GOROUTINE;
		r = decode_goroutine(record, n, &e);
		break;
	default:
		break;
	}
	if (r == 0)
		*ret = e;
	return r;
}
