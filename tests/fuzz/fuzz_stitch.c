/*
 * Fuzzer of stitch/: bytes become a sequence of events on a few connections. There are never more
 * spans than request heads that ended, no span id is zero or there twice, a span is in the trace of
 * its parent, and what was refused was counted.
 *
 * An event is four bytes (what, connection and exchange, flags, length) and, for heads, that many
 * bytes of text; a length above 0xf0 stands for one of the texts below, so that exchanges come
 * about without luck.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/util.h"
#include "metrics/metrics.h"
#include "stitch/stitch.h"

#define IDS_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const texts[] = {
	"GET /a?token=b HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\n\r\n",
	"HEAD http://u:p@[::1]/\xff HTTP/1.0\r\ntracestate: a\r\ntracestate: b\r\n\r\n",
	"CONNECT h:443 HTTP/1.1\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
	"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n",
	"HTTP/1.0 200 OK\r\n\r\n",
	"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 204 N\r\n\r\n",
	"HTTP/1.1 103 E\r\n\r\n",
	"GET /cut HTTP/1.1\r\nHost: a",
};

struct fuzz {
	struct stitch *stitch;
	struct resource *resource;
	size_t n_requests, n_spans, n_revoked;
	struct {
		struct trace_id trace_id;
		struct span_id span_id, parent_span_id;
	} spans[IDS_MAX];
	struct given {
		struct trace_id trace_id;
		struct span_id span_id;
	} given[2][4]; /* what the newest requests of each role got, by the kernel side */
	uint64_t now_ns;
	uint64_t offset;
};

static struct resource *resource_of(void *userdata, uint32_t proc_id, uint32_t pid)
{
	struct fuzz *f = userdata;

	(void)pid;
	return proc_id == 3 ? NULL : f->resource;
}

static void take_span(void *userdata, struct span *span)
{
	struct fuzz *f = userdata;

	assert(span_id_is_valid(&span->span_id) && trace_id_is_valid(&span->trace_id));
	assert(span->end_unix_ns >= span->start_unix_ns);
	assert(f->n_spans < f->n_requests && f->n_spans < IDS_MAX);
	for (size_t i = 0; i < f->n_spans; i++)
		assert(memcmp(&f->spans[i].span_id, &span->span_id, sizeof(span->span_id)) != 0);
	f->spans[f->n_spans].trace_id = span->trace_id;
	f->spans[f->n_spans].span_id = span->span_id;
	f->spans[f->n_spans++].parent_span_id = span->parent_span_id;
	span_unref(span);
}

static void check_traces(const struct fuzz *f)
{
	for (size_t i = 0; i < f->n_spans; i++)
		for (size_t j = 0; j < f->n_spans; j++)
			if (memcmp(&f->spans[i].parent_span_id, &f->spans[j].span_id, 8) == 0)
				assert(memcmp(&f->spans[i].trace_id, &f->spans[j].trace_id, 16) ==
				       0);
}

static void take_revoke(void *userdata, uint64_t connection, uint32_t exchange)
{
	struct fuzz *f = userdata;

	(void)connection;
	(void)exchange;
	f->n_revoked++;
}

struct input {
	const uint8_t *p;
	size_t n;
};

static struct str input_text(struct input *in, uint8_t length)
{
	struct str text;

	if (length > 0xf0)
		return str_from(texts[length % ARRAY_SIZE(texts)]);
	text = (struct str){.p = (const char *)in->p, .n = MIN((size_t)length, in->n)};
	in->p += text.n;
	in->n -= text.n;
	return text;
}

/* As the kernel side decides: a call hangs on a request, a joined request on a call. */
static void make_family(struct fuzz *f, struct event *e, uint8_t flags)
{
	enum parent_reason reason = e->role == EVENT_ROLE_CLIENT ? PARENT_UNIT : PARENT_JOINED;
	struct given *own = f->given[e->role];

	if (e->head.reason == PARENT_UNIT || e->head.reason == PARENT_JOINED) {
		const struct given *above = &f->given[!e->role][flags & 3];

		e->head.reason = reason;
		e->head.parent_span_id = above->span_id;
		if (trace_id_is_valid(&above->trace_id))
			e->head.trace_id = above->trace_id;
	}
	if (!e->head.is_request || !e->head.has_decision)
		return;
	memmove(own + 1, own, 3 * sizeof(*own));
	own[0] = (struct given){.trace_id = e->head.trace_id, .span_id = e->head.span_id};
}

static void make_head(struct fuzz *f, struct event *e, uint8_t flags, struct str text)
{
	e->head = (struct event_head){
		.is_request = flags & 1,
		.is_start = !(flags & 2),
		.is_end = !(flags & 4),
		.is_complete = flags & 8,
		.is_truncated = flags & 16,
		.has_decision = flags & 32,
		.offset = f->offset,
		.head_start_ns = flags & 64 ? f->now_ns - 5 : 0,
		.local = {.family = AF_INET, .port = 80},
		.remote = {.family = flags & 64 ? AF_INET6 : AF_INET, .port = 8080},
		.bytes = text,
		.reason = flags % _PARENT_REASON_MAX,
		.trace_flags = flags,
		.is_unit = flags & 2,
		.is_proven = flags & 4,
		.is_inherited = flags & 8,
		.goroutine = flags & 16 ? (flags & 3) : 0,
		.is_exact = flags & 16,
		.answered_by = (enum answered_by)(text.n % 3),
	};
	/* The kernel side never gives an id twice; that it gives none is worth trying. */
	if (!(flags & 128)) {
		e->head.trace_id = trace_id_new();
		e->head.span_id = span_id_new();
		make_family(f, e, flags);
	}
	f->offset += text.n + (flags == 0xff);
	f->n_requests += e->head.is_request && (e->head.is_end || e->head.is_truncated);
}

static void step(struct fuzz *f, struct input *in)
{
	uint8_t what = in->p[0], where = in->p[1], flags = in->p[2], length = in->p[3];
	struct event e = {
		.type = what % _EVENT_TYPE_MAX,
		.time_ns = f->now_ns += (uint64_t)(what >> 4) * NSEC_PER_SEC,
		.pid = 1,
		.tid = flags,
		.proc_id = where >> 6,
		.connection = (where >> 4) & 3,
		.exchange = where & 15,
		.role = (where >> 4) & 1 ? EVENT_ROLE_CLIENT : EVENT_ROLE_SERVER,
	};

	in->p += 4;
	in->n -= 4;
	switch (e.type) {
	case EVENT_HEAD:
		make_head(f, &e, flags, input_text(in, length));
		break;
	case EVENT_END:
		if (flags == 1)
			stitch_tick(f->stitch, f->now_ns);
		if (flags == 2)
			stitch_set_clock(f->stitch, (int64_t)length << 55);
		break;
	case EVENT_CLOSE:
		e.close.what = flags & 3;
		e.close.error = flags & 4 ? ECONNRESET : 0;
		e.close.has_unseen = flags & 8;
		break;
	case EVENT_PROCESS:
		e.process.what = flags & 3;
		break;
	case EVENT_GOROUTINE:
		e.goroutine = flags & 3;
		break;
	case _EVENT_TYPE_MAX:
		break;
	}
	stitch_event(f->stitch, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz *f = calloc(1, sizeof(*f));
	struct input in = {.p = data, .n = size};
	uint64_t revoked_before = metrics_get(METRIC_CONTEXTS_REVOKED);

	assert(f && resource_new(1, &f->resource) == 0);
	f->now_ns = 100 * NSEC_PER_SEC;
	assert(stitch_new(
		       &(struct stitch_options){
			       .connections_max = 3,
			       .bytes_max = 3000,
			       .head_bytes_max = 128,
			       .exchange_idle_ns = 20 * NSEC_PER_SEC,
			       .resource = resource_of,
			       .emit = take_span,
			       .revoke = take_revoke,
			       .userdata = f,
		       },
		       &f->stitch) == 0);

	while (in.n >= 4)
		step(f, &in);
	assert(stitch_connections(f->stitch) <= 3);
	assert(stitch_bytes(f->stitch) <= 3000);
	stitch_finish(f->stitch, f->now_ns);
	assert(metrics_get(METRIC_CONTEXTS_REVOKED) - revoked_before == f->n_revoked);
	check_traces(f);

	stitch_free(f->stitch);
	assert(f->resource->refs == 1);
	resource_unref(f->resource);
	free(f);
	return 0;
}
