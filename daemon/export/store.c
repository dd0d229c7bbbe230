/* The embedded trace store; see store.h. */
#include "export/store.h"

#include <errno.h>
#include <sys/queue.h>

#include "base/table.h"
#include "export/forest.h"
#include "metrics/metrics.h"

#define QUIET_NS    NSEC_PER_SEC
#define GIVE_UP_NS  (10 * NSEC_PER_SEC)
#define FIRST_SPANS 4

/* 'finished' is called at most so often for a trace. */
#define FINISHES_MAX 2

struct entry {
	struct store_trace trace;
	struct table_node node;
	TAILQ_ENTRY(entry) by_age;
	TAILQ_ENTRY(entry) open; /* linked while 'is_open' */
	bool is_open;
	bool is_waiting; /* for a parent; known for the spans that are there now */
	unsigned int n_finishes;
	size_t capacity; /* of trace.spans */
	size_t bytes;
	uint64_t newest_ns;
};

TAILQ_HEAD(entry_list, entry);

struct store {
	struct store_options options;
	struct table traces;
	struct entry_list by_age; /* the quietest first; so is 'open' */
	struct entry_list open;
	size_t bytes;
};

int store_new(const struct store_options *options, struct store **ret)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->options = *options;
	TAILQ_INIT(&s->by_age);
	TAILQ_INIT(&s->open);
	*ret = s;
	return 0;
}

static void entry_remove(struct store *s, struct entry *e)
{
	table_remove(&s->traces, &e->node);
	TAILQ_REMOVE(&s->by_age, e, by_age);
	if (e->is_open)
		TAILQ_REMOVE(&s->open, e, open);
	s->bytes -= e->bytes;
	for (size_t i = 0; i < e->trace.n_spans; i++)
		span_unref(e->trace.spans[i]);
	free(e->trace.spans);
	free(e);
}

void store_free(struct store *s)
{
	if (!s)
		return;
	while (!TAILQ_EMPTY(&s->by_age))
		entry_remove(s, TAILQ_FIRST(&s->by_age));
	table_done(&s->traces);
	free(s);
}

static uint64_t id_hash(const struct trace_id *id)
{
	return table_hash(id, sizeof(*id));
}

static struct entry *entry_find(const struct store *s, const struct trace_id *id)
{
	table_for_each_match(node, &s->traces, id_hash(id))
	{
		struct entry *e = container_of(node, struct entry, node);

		if (memcmp(&e->trace.id, id, sizeof(*id)) == 0)
			return e;
	}
	return NULL;
}

static int entry_new(struct store *s, const struct trace_id *id, struct entry **ret)
{
	struct entry *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	e->trace.id = *id;
	r = table_insert(&s->traces, &e->node, id_hash(id));
	if (r < 0) {
		free(e);
		return r;
	}
	e->bytes = sizeof(*e);
	s->bytes += e->bytes;
	TAILQ_INSERT_TAIL(&s->by_age, e, by_age);
	*ret = e;
	return 0;
}

static int entry_reserve(struct store *s, struct entry *e)
{
	size_t capacity = e->capacity ? 2 * e->capacity : FIRST_SPANS;
	struct span **spans;
	size_t more;

	if (e->trace.n_spans < e->capacity)
		return 0;
	spans = reallocarray(e->trace.spans, capacity, sizeof(*spans));
	if (!spans)
		return -ENOMEM;
	more = (capacity - e->capacity) * sizeof(*spans);
	e->trace.spans = spans;
	e->capacity = capacity;
	e->bytes += more;
	s->bytes += more;
	return 0;
}

static bool store_is_too_full(const struct store *s)
{
	return s->bytes > s->options.bytes_max || s->traces.n > s->options.traces_max;
}

/* Other traces make room first; when 'e' is alone it gives back its newest span. */
static void room_make(struct store *s, struct entry *e)
{
	struct entry *oldest;

	while (store_is_too_full(s) && (oldest = TAILQ_FIRST(&s->by_age)) != e) {
		metrics_add(METRIC_STORE_EVICTED, oldest->trace.n_spans);
		entry_remove(s, oldest);
	}
	if (!store_is_too_full(s))
		return;

	metrics_increment(METRIC_STORE_EVICTED);
	if (e->trace.n_spans == 1) {
		entry_remove(s, e);
		return;
	}
	e->trace.n_spans--;
	e->bytes -= e->trace.spans[e->trace.n_spans]->size_bytes;
	s->bytes -= e->trace.spans[e->trace.n_spans]->size_bytes;
	span_unref(e->trace.spans[e->trace.n_spans]);
}

/* Makes it the newest, and open unless it was finished often enough. */
static void entry_touch(struct store *s, struct entry *e, uint64_t now_ns)
{
	TAILQ_REMOVE(&s->by_age, e, by_age);
	TAILQ_INSERT_TAIL(&s->by_age, e, by_age);
	if (e->is_open)
		TAILQ_REMOVE(&s->open, e, open);
	e->is_open = e->n_finishes < FINISHES_MAX;
	if (e->is_open)
		TAILQ_INSERT_TAIL(&s->open, e, open);
	e->is_waiting = false;
	e->newest_ns = now_ns;
}

/* The trace's entry with room for one more span, or NULL. */
static struct entry *entry_get(struct store *s, const struct trace_id *id)
{
	struct entry *e = entry_find(s, id);

	if (!e && entry_new(s, id, &e) < 0)
		return NULL;
	if (entry_reserve(s, e) == 0)
		return e;
	if (!e->trace.n_spans)
		entry_remove(s, e);
	return NULL;
}

int store_add(struct store *s, struct span *span, uint64_t now_ns)
{
	struct entry *e = entry_get(s, &span->trace_id);

	if (!e) {
		metrics_increment(METRIC_SPANS_NO_MEMORY);
		span_unref(span);
		return -ENOMEM;
	}

	e->trace.spans[e->trace.n_spans++] = span;
	e->bytes += span->size_bytes;
	s->bytes += span->size_bytes;
	entry_touch(s, e, now_ns);
	room_make(s, e);
	return 0;
}

/* Without memory for the answer the trace waits for nothing. */
static bool entry_waits_for_parent(const struct entry *e)
{
	struct span *const *spans = e->trace.spans;
	_cleanup_(forest_done) struct forest f = {0};

	if (forest_build(spans, e->trace.n_spans, &f) < 0)
		return false;
	for (uint32_t i = 0; i < f.n; i++)
		if (forest_is_orphan(&f, spans, i) && spans[i]->has_local_parent)
			return true;
	return false;
}

static bool entry_is_finished(struct entry *e, uint64_t quiet_ns)
{
	if (quiet_ns >= GIVE_UP_NS)
		return true;
	if (!e->is_waiting)
		e->is_waiting = entry_waits_for_parent(e);
	return !e->is_waiting;
}

bool store_tick(struct store *s, uint64_t now_ns, store_finished_fn finished, void *userdata)
{
	struct entry *e, *next;

	for (e = TAILQ_FIRST(&s->open); e; e = next) {
		uint64_t quiet_ns = now_ns > e->newest_ns ? now_ns - e->newest_ns : 0;

		next = TAILQ_NEXT(e, open);
		if (quiet_ns < QUIET_NS)
			break;
		if (!entry_is_finished(e, quiet_ns))
			continue;
		TAILQ_REMOVE(&s->open, e, open);
		e->is_open = false;
		e->n_finishes++;
		finished(&e->trace, userdata);
	}
	return !TAILQ_EMPTY(&s->open);
}

const struct store_trace *store_find(const struct store *s, const struct trace_id *id)
{
	struct entry *e = entry_find(s, id);

	return e ? &e->trace : NULL;
}

const struct store_trace *store_newest(const struct store *s)
{
	struct entry *e = TAILQ_LAST(&s->by_age, entry_list);

	return e ? &e->trace : NULL;
}

const struct store_trace *store_older(const struct store_trace *trace)
{
	struct entry *e = container_of(trace, struct entry, trace);

	e = TAILQ_PREV(e, entry_list, by_age);
	return e ? &e->trace : NULL;
}

const struct span *store_trace_root(const struct store_trace *trace)
{
	const struct span *best = NULL;

	for (size_t i = 0; i < trace->n_spans; i++) {
		const struct span *s = trace->spans[i];
		bool is_root = !span_id_is_valid(&s->parent_span_id);
		bool best_is_root = best && !span_id_is_valid(&best->parent_span_id);

		if (!best || is_root > best_is_root ||
		    (is_root == best_is_root && s->start_unix_ns < best->start_unix_ns))
			best = s;
	}
	return best;
}
