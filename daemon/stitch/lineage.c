/*
 * Doubtful parents; see lineage.h.
 *
 * A call is doubted as long as the request above it has no verdict. So is one that forwards the
 * header of that request: it stays in the header's trace whatever comes out, but then it is beside
 * the request and not below it.
 */
#include "stitch/lineage.h"

#include <errno.h>

#include "base/util.h"
#include "metrics/metrics.h"

/* Deeper than real chains on one host; a service that calls itself for ever ends here. */
#define DEPTH_MAX 64

/* Nothing can hang on it any more, and it hangs on nothing. */
static void branch_drop_unused(struct lineage *l, struct branch *b)
{
	if (b->exchange || b->span || b->parent || b->first || b->grace.until_ns)
		return;
	branch_free(&l->branches, b);
}

static size_t held_bytes(const struct span *span)
{
	return sizeof(struct branch) + span->size_bytes;
}

static void branch_emit(struct lineage *l, struct branch *b)
{
	if (!b->span)
		return;
	l->held_bytes -= held_bytes(b->span);
	l->emit(l->userdata, TAKE_PTR(b->span), b->reason);
}

/* Nothing above it is in doubt any more. */
static void branch_settle(struct lineage *l, struct branch *b)
{
	struct branch *next;

	branch_unlink(b);
	branch_emit(l, b);
	for (struct branch *child = b->first; child; child = next) {
		next = child->next;
		if (!child->is_doubted)
			branch_settle(l, child);
	}
	branch_drop_unused(l, b);
}

static void branch_set_trace(struct branch *b, const struct trace_id *id)
{
	b->has_trace = true;
	b->trace_id = *id;
	if (b->exchange)
		b->exchange->trace_id = *id;
	if (b->span)
		b->span->trace_id = *id;
	for (struct branch *child = b->first; child; child = child->next)
		branch_set_trace(child, id);
}

/* A span that says why it has no parent in place of having one. */
static void branch_cut_span(struct lineage *l, struct branch *b, enum parent_reason reason)
{
	struct span *cut;

	l->held_bytes -= held_bytes(b->span);
	if (span_new_root(b->span, parent_reason_name(reason), &cut) < 0) {
		metrics_increment(METRIC_SPANS_NO_MEMORY);
		span_unref(TAKE_PTR(b->span));
		return;
	}
	span_unref(b->span);
	b->span = cut;
	l->held_bytes += held_bytes(cut);
}

static void branch_make_root(struct lineage *l, struct branch *b, enum parent_reason reason)
{
	struct trace_id id = trace_id_new();

	b->reason = reason;
	branch_set_trace(b, &id);
	if (b->exchange) {
		b->exchange->reason = reason;
		b->exchange->parent_span_id = (struct span_id){0};
	}
	if (b->span)
		branch_cut_span(l, b, reason);
}

static void branch_set_parent(struct branch *b, const struct span_id *id)
{
	b->parent_span_id = *id;
	if (b->exchange)
		b->exchange->parent_span_id = *id;
	if (b->span)
		b->span->parent_span_id = *id;
}

/* The call was not made for the request it hangs on. */
static void branch_cut(struct lineage *l, struct branch *b, enum parent_reason reason)
{
	metrics_increment(METRIC_PARENTS_TAKEN_BACK);
	b->is_doubted = false;
	if (b->reason == PARENT_HEADER)
		branch_set_parent(b, &b->parent->parent_span_id);
	else
		branch_make_root(l, b, reason);
	branch_settle(l, b);
}

static bool is_kept(enum verdict verdict, bool is_proven)
{
	return verdict == VERDICT_KEEP || (verdict == VERDICT_UNSEEN && is_proven);
}

static enum parent_reason cut_reason(enum verdict verdict)
{
	return verdict == VERDICT_CUT ? PARENT_NONE_NO_UNIT : PARENT_NONE_AMBIGUOUS;
}

/* The call was made for the request it hangs on. */
static void branch_bear_out(struct lineage *l, struct branch *b)
{
	b->is_doubted = false;
	if (!b->parent->parent)
		branch_settle(l, b);
}

static bool has_goroutine_ended(const struct branch *b)
{
	return b->caller.has_ended && (!b->elder.id || b->elder.has_ended);
}

/* 'b' itself stays, though nothing may need it any more. */
static void branch_judge(struct lineage *l, struct branch *b, enum verdict verdict)
{
	struct branch *next;

	wait_end(&l->graces, &b->grace);
	b->verdict = verdict;
	for (struct branch *child = b->first; child; child = next) {
		next = child->next;
		if (!child->is_doubted)
			continue;
		if (!is_kept(verdict, child->is_proven))
			branch_cut(l, child, cut_reason(verdict));
		else if (!child->is_inherited || has_goroutine_ended(child))
			branch_bear_out(l, child);
	}
}

/* The calls of goroutines that have ended, unless the verdict on the request is against them. */
static void branch_bear_out_ended(struct lineage *l, struct branch *b)
{
	struct branch *next;

	for (struct branch *child = b->first; child; child = next) {
		next = child->next;
		if (child->is_doubted && has_goroutine_ended(child) &&
		    (!b->verdict || is_kept(b->verdict, child->is_proven)))
			branch_bear_out(l, child);
	}
}

static bool has_doubted(const struct branch *b)
{
	for (const struct branch *child = b->first; child; child = child->next)
		if (child->is_doubted)
			return true;
	return false;
}

/* The goroutines that it began, and that live on, work for others too. */
static void branch_cut_doubted(struct lineage *l, struct branch *b)
{
	struct branch *next;

	wait_end(&l->graces, &b->grace);
	for (struct branch *child = b->first; child; child = next) {
		next = child->next;
		if (child->is_doubted)
			branch_cut(l, child, PARENT_NONE_AMBIGUOUS);
	}
}

/* No more can be held: what it hangs on is judged by what is known now. 'b' is open, and stays. */
static void branch_settle_now(struct lineage *l, struct branch *b)
{
	while (b->parent) {
		struct branch *top = b;

		while (top->parent->parent)
			top = top->parent;
		if (top->is_doubted && (!top->is_proven || top->is_inherited)) {
			branch_cut(l, top, PARENT_NONE_AMBIGUOUS);
		} else {
			top->is_doubted = false;
			branch_settle(l, top);
		}
	}
}

/* What the exchange hangs on, where that still matters. */
static struct branch *parent_of(struct lineage *l, const struct exchange *x, bool is_call)
{
	struct branch *parent;

	/* A request's header leads to another host, or to a span that somebody else has made. */
	if (x->reason != PARENT_UNIT && x->reason != PARENT_JOINED &&
	    (x->reason != PARENT_HEADER || !is_call))
		return NULL;
	parent = branch_find(&l->branches, &x->parent_span_id);
	/* The header that we gave a call, forwarded as it came: only servers are judged. */
	if (parent && x->reason == PARENT_HEADER && !parent->is_server)
		return NULL;
	if (parent && parent->depth >= DEPTH_MAX && parent->exchange)
		branch_settle_now(l, parent);
	return parent;
}

/* What it hangs on is not known here, or it hangs on nothing. */
static int begin_alone(struct lineage *l, struct exchange *x, const struct event *e)
{
	bool is_doubtful = x->reason == PARENT_UNIT && (!e->head.is_proven || e->head.is_inherited);
	int r;

	if (!e->head.is_unit && !is_doubtful)
		return 0;
	r = branch_new(&l->branches, x, e);
	if (r == 0 && is_doubtful)
		branch_cut(l, x->branch, PARENT_NONE_AMBIGUOUS);
	return r;
}

int lineage_begin(struct lineage *l, struct exchange *x, const struct event *e)
{
	bool is_call = e->role == EVENT_ROLE_CLIENT, is_refuted;
	struct branch *parent = parent_of(l, x, is_call);
	int r;

	if (!parent)
		return begin_alone(l, x, e);
	r = branch_new(&l->branches, x, e);
	if (r < 0)
		return r;
	if (parent->has_trace && x->reason != PARENT_HEADER)
		branch_set_trace(x->branch, &parent->trace_id);
	is_refuted = is_call && parent->verdict && !is_kept(parent->verdict, x->branch->is_proven);
	x->branch->is_doubted =
		is_call &&
		(x->branch->is_inherited ||
		 (!x->branch->is_unit_sure && !is_kept(parent->verdict, x->branch->is_proven)));
	if (x->branch->is_doubted || parent->parent)
		branch_link(x->branch, parent);
	if (x->branch->is_doubted && is_refuted)
		branch_cut(l, x->branch, cut_reason(parent->verdict));
	return 0;
}

/* What is known of a process now holds for its requests that were answered just before. */
static void judge_graces(struct lineage *l, uint32_t proc_id)
{
	struct wait *next;

	for (struct wait *w = l->graces.first; w; w = next) {
		struct branch *b = container_of(w, struct branch, grace);

		next = w->next;
		if (b->proc_id != proc_id || b->verdict)
			continue;
		branch_judge(l, b, VERDICT_CUT);
		branch_drop_unused(l, b);
	}
}

void lineage_answered(struct lineage *l, struct exchange *x, const struct event *e)
{
	struct branch *b = x->branch;

	if (!b || !b->is_server || b->verdict || b->grace.until_ns)
		return;
	if (e->head.answered_by != ANSWERED_BY_RECEIVER) {
		branch_judge(l, b, VERDICT_CUT);
		if (e->head.answered_by == ANSWERED_BY_OTHER)
			judge_graces(l, b->proc_id);
	} else if (b->is_proven) {
		branch_judge(l, b, VERDICT_KEEP);
	} else {
		wait_begin(&l->graces, &b->grace, e->time_ns + LINEAGE_GRACE_NS);
	}
}

void lineage_end(struct lineage *l, struct exchange *x, struct span *span, uint64_t end_ns)
{
	struct branch *b = TAKE_PTR(x->branch);

	if (!b) {
		if (span)
			l->emit(l->userdata, span, x->reason);
		return;
	}
	if (b->is_server && !b->verdict && !b->grace.until_ns)
		branch_judge(l, b, VERDICT_UNSEEN);
	/* Goroutines that it began should end now as well. */
	if (b->verdict && !b->grace.until_ns && has_doubted(b))
		wait_begin(&l->graces, &b->grace, MAX(x->last_ns, end_ns) + LINEAGE_GRACE_NS);
	b->end_ns = end_ns;
	b->span = span;
	if (span)
		l->held_bytes += held_bytes(span);
	/* The exchange has its span already: what is decided now must find it. */
	if (span && b->parent && l->held_bytes > l->held_bytes_max) {
		metrics_increment(METRIC_LINEAGE_FULL);
		branch_settle_now(l, b);
	}
	b->exchange = NULL;
	if (!b->parent)
		branch_emit(l, b);
	branch_drop_unused(l, b);
}

static void settle_graces(struct lineage *l, uint64_t until_ns)
{
	struct wait *w;

	while ((w = l->graces.first) && w->until_ns <= until_ns) {
		struct branch *b = container_of(w, struct branch, grace);

		if (b->verdict)
			branch_cut_doubted(l, b);
		else
			branch_judge(l, b, VERDICT_KEEP);
		/* Its own goroutines may have to end yet. */
		if (!b->exchange && !b->grace.until_ns && has_doubted(b))
			branch_cut_doubted(l, b);
		branch_drop_unused(l, b);
	}
}

/*
 * Notes it with the calls of that goroutine. Returns the request that they hang on, all on the same:
 * the one that the goroutine began with; NULL: none of them is doubted.
 */
static struct branch *note_goroutine_ended(struct lineage *l, const struct event *e)
{
	struct branch *parent = NULL;

	table_for_each_match(node, &l->branches.by_goroutine,
			     goroutine_hash(e->proc_id, e->goroutine))
	{
		struct goroutine *g = container_of(node, struct goroutine, node);
		struct branch *b = g->branch;

		if (b->proc_id != e->proc_id || g->id != e->goroutine)
			continue;
		g->has_ended = true;
		if (b->is_doubted)
			parent = b->parent;
	}
	return parent;
}

/*
 * Whether it ended long after its last call: a worker that found nothing more to do, and whose work
 * may have been anybody's.
 */
static bool was_idle(const struct lineage *l, const struct event *e)
{
	uint64_t newest = 0;

	table_for_each_match(node, &l->branches.by_goroutine,
			     goroutine_hash(e->proc_id, e->goroutine))
	{
		const struct goroutine *g = container_of(node, struct goroutine, node);
		const struct branch *b = g->branch;

		if (b->proc_id != e->proc_id || g->id != e->goroutine)
			continue;
		if (b->exchange)
			return false;
		newest = MAX(newest, b->end_ns);
	}
	return e->time_ns > newest + LINEAGE_GRACE_NS;
}

static void branch_cut_goroutine(struct lineage *l, struct branch *b, uint64_t goroutine)
{
	struct branch *next;

	for (struct branch *child = b->first; child; child = next) {
		next = child->next;
		if (child->is_doubted && child->is_inherited &&
		    (child->caller.id == goroutine || child->elder.id == goroutine))
			branch_cut(l, child, PARENT_NONE_AMBIGUOUS);
	}
}

void lineage_goroutine_ended(struct lineage *l, const struct event *e)
{
	bool is_worker = was_idle(l, e);
	struct branch *parent = note_goroutine_ended(l, e);

	if (parent && is_worker)
		branch_cut_goroutine(l, parent, e->goroutine);
	if (!parent)
		return;
	branch_bear_out_ended(l, parent);
	if (parent->exchange || has_doubted(parent))
		return;
	wait_end(&l->graces, &parent->grace);
	branch_drop_unused(l, parent);
}

void lineage_tick(struct lineage *l, uint64_t now_ns)
{
	settle_graces(l, now_ns);
}

void lineage_finish(struct lineage *l)
{
	settle_graces(l, UINT64_MAX);
}

static int count_dropped(struct table_node *node, void *userdata)
{
	(void)userdata;
	if (container_of(node, struct branch, node)->span)
		metrics_increment(METRIC_LINEAGE_DROPPED);
	return 0;
}

void lineage_done(struct lineage *l)
{
	table_walk(&l->branches.by_span, count_dropped, NULL);
	branch_table_done(&l->branches);
}
