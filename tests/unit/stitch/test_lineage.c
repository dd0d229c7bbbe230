/*
 * Parents in doubt: what is held back until the answer comes, and what becomes of it. Chains of two
 * services, A and B, as the kernel side reports them: A's request, its call, B's request.
 */
#include "events.h"

#include "stitch/lineage.h"

#define REQUEST     "GET / HTTP/1.1\r\nHost: h\r\n"
#define TRACEPARENT "traceparent: 00-77000000000000000000000000000001-0000000000000002-03\r\n"
#define OK          "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

enum { A_SERVER = 1, A_CLIENT = 2, B_SERVER = 3, B_CLIENT = 4, C_SERVER = 5 };

/* A request on a connection of its own, whose span id is 'n'; below 'parent', 0: none. */
struct step {
	uint8_t n, parent;
	bool is_proven;
	enum parent_reason reason; /* 0: by its place */
	uint64_t elder;            /* who began that one; 0: the request's own */
	uint64_t inherited_by;     /* the goroutine of a call that no more is known of; 0: none */
};

static struct trace_id trace_of(uint8_t n)
{
	return (struct trace_id){.b = {[0] = 0x77, [15] = n}};
}

static void begin(struct scene *sc, struct step step)
{
	struct event e;

	sc->connection = step.n;
	sc->role = step.n % 2 ? EVENT_ROLE_SERVER : EVENT_ROLE_CLIENT;
	e = scene_head(sc, true, 1,
		       step.reason == PARENT_HEADER ? STR(REQUEST TRACEPARENT "\r\n")
						    : STR(REQUEST "\r\n"));
	e.head.has_decision = true;
	e.head.trace_id = trace_of(1);
	e.head.span_id.b[7] = step.n;
	e.head.parent_span_id.b[7] = step.parent;
	e.head.trace_flags = 3;
	e.head.is_proven = step.is_proven;
	if (step.reason)
		e.head.reason = step.reason;
	else if (sc->role == EVENT_ROLE_CLIENT)
		e.head.reason = PARENT_UNIT;
	else
		e.head.reason = step.parent ? PARENT_JOINED : PARENT_NONE_REMOTE;
	e.head.is_unit = sc->role == EVENT_ROLE_SERVER;
	e.head.is_inherited = step.inherited_by > 0;
	e.head.goroutine = step.inherited_by;
	e.head.elder = step.elder;
	stitch_event(sc->stitch, &e);
}

static void answer(struct scene *sc, uint8_t n, enum answered_by by)
{
	struct event e;

	sc->connection = n;
	sc->role = n % 2 ? EVENT_ROLE_SERVER : EVENT_ROLE_CLIENT;
	e = scene_head(sc, false, 1, STR(OK));
	e.head.is_complete = true;
	e.head.answered_by = by;
	stitch_event(sc->stitch, &e);
}

/* The span with that id; NULL: not let go yet. */
static const struct span *span_of(const struct scene *sc, uint8_t n)
{
	for (size_t i = 0; i < sc->n_spans; i++)
		if (sc->spans[i]->span_id.b[7] == n)
			return sc->spans[i];
	return NULL;
}

static bool is_below(const struct scene *sc, uint8_t n, uint8_t parent)
{
	const struct span *s = span_of(sc, n);

	assert_non_null(s);
	return s->parent_span_id.b[7] == parent;
}

static bool is_same_trace(const struct scene *sc, uint8_t a, uint8_t b)
{
	assert_non_null(span_of(sc, a));
	assert_non_null(span_of(sc, b));
	return memcmp(&span_of(sc, a)->trace_id, &span_of(sc, b)->trace_id, 16) == 0;
}

/* A's request, its call and B's request; B has answered. */
static void chain(struct scene *sc, bool is_proven)
{
	begin(sc, (struct step){.n = A_SERVER, .is_proven = is_proven});
	begin(sc, (struct step){.n = A_CLIENT, .parent = A_SERVER, .is_proven = is_proven});
	begin(sc, (struct step){.n = B_SERVER, .parent = A_CLIENT, .is_proven = is_proven});
	answer(sc, B_SERVER, ANSWERED_BY_RECEIVER);
	answer(sc, A_CLIENT, ANSWERED_BY_UNKNOWN);
}

static void assert_whole(const struct scene *sc)
{
	assert_int_equal(sc->n_spans, 3);
	assert_true(is_below(sc, A_SERVER, 0));
	assert_true(is_below(sc, A_CLIENT, A_SERVER));
	assert_true(is_below(sc, B_SERVER, A_CLIENT));
	assert_true(is_same_trace(sc, A_SERVER, B_SERVER));
	assert_true(is_same_trace(sc, A_SERVER, A_CLIENT));
	assert_text(span_of(sc, A_CLIENT), ATTR_TSUNAGI_PARENT_REASON, NULL);
	assert_int_equal(scene_metric(sc, METRIC_PARENTS_TAKEN_BACK), 0);
}

static void assert_cut(const struct scene *sc, const char *reason)
{
	assert_int_equal(sc->n_spans, 3);
	assert_true(is_below(sc, A_SERVER, 0));
	assert_true(is_below(sc, A_CLIENT, 0));
	assert_true(is_below(sc, B_SERVER, A_CLIENT));
	assert_false(is_same_trace(sc, A_SERVER, A_CLIENT));
	assert_true(is_same_trace(sc, A_CLIENT, B_SERVER));
	assert_text(span_of(sc, A_CLIENT), ATTR_TSUNAGI_PARENT_REASON, reason);
	assert_text(span_of(sc, A_CLIENT), ATTR_URL_FULL, "http://h/");
	assert_int_equal(scene_metric(sc, METRIC_PARENTS_TAKEN_BACK), 1);
	assert_int_equal(scene_metric(sc, METRIC_PARENT_UNIT), 0);
}

static void test_held_until_the_receiver_answers(void **state)
{
	struct scene *sc = *state;

	chain(sc, true);
	assert_int_equal(sc->n_spans, 0);
	answer(sc, A_SERVER, ANSWERED_BY_RECEIVER);
	assert_whole(sc);
	assert_int_equal(scene_metric(sc, METRIC_PARENT_UNIT), 1);
}

static void test_cut_when_another_answers(void **state)
{
	struct scene *sc = *state;

	chain(sc, true);
	answer(sc, A_SERVER, ANSWERED_BY_OTHER);
	assert_cut(sc, "no_unit");
	assert_int_equal(scene_metric(sc, METRIC_PARENT_NONE_NO_UNIT), 1);
}

/* The thread has taken up something else meanwhile. */
static void test_cut_when_the_answer_tells_nothing(void **state)
{
	struct scene *sc = *state;

	chain(sc, true);
	answer(sc, A_SERVER, ANSWERED_BY_UNKNOWN);
	assert_cut(sc, "no_unit");
}

/* The first answers of a process wait for others that say the contrary. */
static void test_grace(void **state)
{
	struct scene *sc = *state;

	chain(sc, false);
	answer(sc, A_SERVER, ANSWERED_BY_RECEIVER);
	assert_int_equal(sc->n_spans, 1);
	assert_non_null(span_of(sc, A_SERVER));
	stitch_tick(sc->stitch, sc->now_ns + LINEAGE_GRACE_NS - 1);
	assert_int_equal(sc->n_spans, 1);
	stitch_tick(sc->stitch, sc->now_ns + LINEAGE_GRACE_NS);
	assert_whole(sc);
}

static void test_grace_refuted(void **state)
{
	struct scene *sc = *state;

	chain(sc, false);
	answer(sc, A_SERVER, ANSWERED_BY_RECEIVER);
	sc->proc_id = SCENE_PROC + 1; /* another process tells nothing */
	begin(sc, (struct step){.n = 21});
	answer(sc, 21, ANSWERED_BY_OTHER);
	assert_int_equal(sc->n_spans, 2);
	sc->proc_id = SCENE_PROC;
	begin(sc, (struct step){.n = 23});
	answer(sc, 23, ANSWERED_BY_OTHER);
	assert_int_equal(sc->n_spans, 5);
	sc->n_spans -= 2;
	span_unref(sc->spans[1]);
	span_unref(sc->spans[4]);
	sc->spans[1] = sc->spans[2];
	sc->spans[2] = sc->spans[3];
	sc->n_spans = 3;
	assert_cut(sc, "no_unit");
}

/* No answer was seen: what is known of the process decides. */
static void test_no_answer(void **state)
{
	struct scene *sc = *state;

	chain(sc, true);
	sc->connection = A_SERVER;
	sc->role = EVENT_ROLE_SERVER;
	scene_close(sc, EVENT_CLOSE_DONE, ECONNRESET);
	assert_whole(sc);
}

static void test_no_answer_of_a_new_process(void **state)
{
	struct scene *sc = *state;

	chain(sc, false);
	stitch_finish(sc->stitch, sc->now_ns);
	assert_cut(sc, "ambiguous");
}

/* What comes below a call when it was cut already, open or over, is in its trace. */
static void test_cut_reaches_what_comes_later(void **state)
{
	struct scene *sc = *state;

	begin(sc, (struct step){.n = A_SERVER});
	begin(sc, (struct step){.n = A_CLIENT, .parent = A_SERVER});
	begin(sc, (struct step){.n = B_SERVER, .parent = A_CLIENT});
	answer(sc, A_SERVER, ANSWERED_BY_OTHER);
	begin(sc, (struct step){.n = B_CLIENT, .parent = B_SERVER, .is_proven = true});
	begin(sc, (struct step){.n = C_SERVER, .parent = B_CLIENT, .is_proven = true});
	answer(sc, C_SERVER, ANSWERED_BY_RECEIVER);
	answer(sc, B_CLIENT, ANSWERED_BY_UNKNOWN);
	stitch_finish(sc->stitch, sc->now_ns);
	assert_int_equal(sc->n_spans, 5);
	assert_false(is_same_trace(sc, A_SERVER, A_CLIENT));
	assert_true(is_same_trace(sc, A_CLIENT, B_SERVER));
	assert_true(is_same_trace(sc, A_CLIENT, C_SERVER));
	assert_true(is_same_trace(sc, A_CLIENT, B_CLIENT) || is_below(sc, B_CLIENT, 0));
	assert_true(is_below(sc, C_SERVER, B_CLIENT));
}

/* A call made when the verdict is known already. */
static void test_call_after_the_answer(void **state)
{
	struct scene *sc = *state;
	struct event e;

	for (int keep = 0; keep < 2; keep++) {
		scene_clear(sc);
		scene_new_stitch(sc, 16, SIZE_MAX);
		begin(sc, (struct step){.n = A_SERVER, .is_proven = true});
		sc->role = EVENT_ROLE_SERVER;
		e = scene_head(sc, false, 1, STR("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"));
		e.head.answered_by = keep ? ANSWERED_BY_RECEIVER : ANSWERED_BY_OTHER;
		stitch_event(sc->stitch, &e);
		begin(sc, (struct step){.n = A_CLIENT, .parent = A_SERVER, .is_proven = true});
		answer(sc, A_CLIENT, ANSWERED_BY_UNKNOWN);
		assert_true(is_below(sc, A_CLIENT, keep ? A_SERVER : 0));
	}
}

/* The call forwards the header that came in: it stays in that trace, whoever made it. */
static void test_forwarded_header(void **state)
{
	struct scene *sc = *state;

	for (int keep = 0; keep < 2; keep++) {
		struct event e;

		scene_clear(sc);
		scene_new_stitch(sc, 16, SIZE_MAX);
		begin(sc, (struct step){.n = A_SERVER, .parent = 99, .is_proven = true});
		sc->connection = A_CLIENT;
		sc->role = EVENT_ROLE_CLIENT;
		e = scene_head(sc, true, 1,
			       STR("GET / HTTP/1.1\r\nHost: h\r\ntraceparent: "
				   "00-77000000000000000000000000000001-0000000000000063-"
				   "01\r\n\r\n"));
		e.head.has_decision = true;
		e.head.reason = PARENT_HEADER;
		e.head.trace_id = trace_of(1);
		e.head.span_id.b[7] = A_CLIENT;
		e.head.parent_span_id.b[7] = A_SERVER;
		e.head.is_proven = true;
		stitch_event(sc->stitch, &e);
		answer(sc, A_CLIENT, ANSWERED_BY_UNKNOWN);
		assert_null(span_of(sc, A_CLIENT));
		answer(sc, A_SERVER, keep ? ANSWERED_BY_RECEIVER : ANSWERED_BY_OTHER);
		assert_true(is_below(sc, A_CLIENT, keep ? A_SERVER : 99));
		assert_true(is_same_trace(sc, A_CLIENT, A_SERVER));
		assert_int_equal(span_of(sc, A_CLIENT)->trace_id.b[15], 1);
	}
}

/* A proxy forwards the header that we gave the call which it received: the call is not judged. */
static void test_forwarded_header_of_a_call(void **state)
{
	struct scene *sc = *state;

	begin(sc, (struct step){.n = A_SERVER, .is_proven = true});
	begin(sc, (struct step){.n = A_CLIENT, .parent = A_SERVER, .is_proven = true});
	begin(sc, (struct step){.n = B_SERVER, .parent = A_CLIENT, .reason = PARENT_HEADER});
	begin(sc, (struct step){.n = B_CLIENT, .parent = A_CLIENT, .reason = PARENT_HEADER});
	answer(sc, B_CLIENT, ANSWERED_BY_UNKNOWN);
	answer(sc, B_SERVER, ANSWERED_BY_RECEIVER);
	answer(sc, A_CLIENT, ANSWERED_BY_UNKNOWN);
	answer(sc, A_SERVER, ANSWERED_BY_RECEIVER);
	assert_int_equal(sc->n_spans, 4);
	assert_true(is_below(sc, B_CLIENT, A_CLIENT));
	assert_true(is_same_trace(sc, B_CLIENT, A_SERVER));
}

/* Nothing that is held goes without a word. */
static void test_dropped_is_counted(void **state)
{
	struct scene *sc = *state;

	begin(sc, (struct step){.n = A_SERVER, .is_proven = true});
	begin(sc, (struct step){.n = A_CLIENT, .parent = A_SERVER, .is_proven = true});
	answer(sc, A_CLIENT, ANSWERED_BY_UNKNOWN);
	scene_new_stitch(sc, 1024, SIZE_MAX);
	assert_int_equal(sc->n_spans, 0);
	assert_int_equal(scene_metric(sc, METRIC_LINEAGE_DROPPED), 1);
}

static void goroutine_ended(struct scene *sc, uint32_t proc_id, uint64_t goroutine)
{
	stitch_event(sc->stitch, &(struct event){
					 .type = EVENT_GOROUTINE,
					 .time_ns = sc->now_ns,
					 .proc_id = proc_id,
					 .goroutine = goroutine,
				 });
}

#define GOROUTINE 77

/* A's handler has begun a goroutine, which calls B. */
static void inherited_chain(struct scene *sc)
{
	begin(sc, (struct step){.n = A_SERVER, .is_proven = true});
	begin(sc, (struct step){.n = A_CLIENT,
				.parent = A_SERVER,
				.is_proven = true,
				.inherited_by = GOROUTINE});
	begin(sc, (struct step){.n = B_SERVER, .parent = A_CLIENT, .is_proven = true});
	answer(sc, B_SERVER, ANSWERED_BY_RECEIVER);
	answer(sc, A_CLIENT, ANSWERED_BY_UNKNOWN);
	assert_int_equal(sc->n_spans, 0);
}

static void test_goroutine_ends_first(void **state)
{
	struct scene *sc = *state;

	inherited_chain(sc);
	goroutine_ended(sc, SCENE_PROC, GOROUTINE);
	assert_int_equal(sc->n_spans, 2);
	answer(sc, A_SERVER, ANSWERED_BY_RECEIVER);
	assert_whole(sc);
}

static void test_goroutine_ends_soon_after(void **state)
{
	struct scene *sc = *state;

	inherited_chain(sc);
	answer(sc, A_SERVER, ANSWERED_BY_RECEIVER);
	assert_int_equal(sc->n_spans, 1);
	goroutine_ended(sc, SCENE_PROC + 1, GOROUTINE); /* of another process, */
	goroutine_ended(sc, SCENE_PROC, GOROUTINE + 1); /* or another one */
	stitch_tick(sc->stitch, sc->now_ns + LINEAGE_GRACE_NS - 1);
	assert_int_equal(sc->n_spans, 1);
	goroutine_ended(sc, SCENE_PROC, GOROUTINE);
	assert_whole(sc);
}

/* It was begun by another one, which may be a worker and do anybody's work: both must end. */
static void test_goroutine_of_a_goroutine(void **state)
{
	struct scene *sc = *state;

	for (int ends = 0; ends < 2; ends++) {
		begin(sc, (struct step){.n = A_SERVER + 10 * ends, .is_proven = true});
		begin(sc, (struct step){.n = A_CLIENT + 10 * ends,
					.parent = A_SERVER + 10 * ends,
					.is_proven = true,
					.elder = GOROUTINE + 1,
					.inherited_by = GOROUTINE});
		answer(sc, A_CLIENT + 10 * ends, ANSWERED_BY_UNKNOWN);
		goroutine_ended(sc, SCENE_PROC, GOROUTINE);
		if (ends)
			goroutine_ended(sc, SCENE_PROC, GOROUTINE + 1);
		answer(sc, A_SERVER + 10 * ends, ANSWERED_BY_RECEIVER);
		assert_int_equal(sc->n_spans, ends ? 4 : 1);
		stitch_tick(sc->stitch, sc->now_ns + LINEAGE_GRACE_NS);
		assert_int_equal(sc->n_spans, ends ? 4 : 2);
		assert_true(is_below(sc, A_CLIENT + 10 * ends, ends ? A_SERVER + 10 * ends : 0));
	}
}

/* A pool's worker, which a request began and which ends when nobody has had work for it for a while. */
static void test_goroutine_that_was_idle(void **state)
{
	struct scene *sc = *state;

	inherited_chain(sc);
	sc->now_ns += LINEAGE_GRACE_NS + 1;
	goroutine_ended(sc, SCENE_PROC, GOROUTINE);
	answer(sc, A_SERVER, ANSWERED_BY_RECEIVER);
	assert_cut(sc, "ambiguous");
}

/* A worker lives on, and may have called for somebody else. */
static void test_goroutine_lives_on(void **state)
{
	struct scene *sc = *state;

	inherited_chain(sc);
	answer(sc, A_SERVER, ANSWERED_BY_RECEIVER);
	stitch_tick(sc->stitch, sc->now_ns + LINEAGE_GRACE_NS);
	assert_cut(sc, "ambiguous");
	goroutine_ended(sc, SCENE_PROC, GOROUTINE);
	assert_int_equal(sc->n_spans, 3);
}

/* The response has begun when it calls: that bears out nothing yet. */
static void test_goroutine_calls_late(void **state)
{
	struct scene *sc = *state;
	struct event e;

	begin(sc, (struct step){.n = A_SERVER, .is_proven = true});
	sc->role = EVENT_ROLE_SERVER;
	e = scene_head(sc, false, 1, STR("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"));
	e.head.answered_by = ANSWERED_BY_RECEIVER;
	stitch_event(sc->stitch, &e);
	begin(sc, (struct step){.n = A_CLIENT,
				.parent = A_SERVER,
				.is_proven = true,
				.inherited_by = GOROUTINE});
	begin(sc, (struct step){.n = B_SERVER, .parent = A_CLIENT, .is_proven = true});
	answer(sc, B_SERVER, ANSWERED_BY_RECEIVER);
	answer(sc, A_CLIENT, ANSWERED_BY_UNKNOWN);
	assert_int_equal(sc->n_spans, 0);
	sc->connection = A_SERVER;
	sc->role = EVENT_ROLE_SERVER;
	scene_end(sc, 1);
	assert_int_equal(sc->n_spans, 1);
	stitch_tick(sc->stitch, sc->now_ns + LINEAGE_GRACE_NS);
	assert_cut(sc, "ambiguous");
}

/* Its request is not known any more. */
static void test_goroutine_without_a_request(void **state)
{
	struct scene *sc = *state;

	begin(sc,
	      (struct step){
		      .n = A_CLIENT, .parent = 99, .is_proven = true, .inherited_by = GOROUTINE});
	answer(sc, A_CLIENT, ANSWERED_BY_UNKNOWN);
	assert_true(is_below(sc, A_CLIENT, 0));
}

/* Calls below one request that is not answered, until a span is let go. */
static void call_until_full(struct scene *sc, bool is_proven)
{
	scene_new_stitch(sc, 1024, 1 << 20);
	begin(sc, (struct step){.n = A_SERVER, .is_proven = is_proven});
	for (int i = 0; i < 40000 && !sc->n_spans; i++) {
		begin(sc, (struct step){.n = A_CLIENT, .parent = A_SERVER, .is_proven = is_proven});
		answer(sc, A_CLIENT, ANSWERED_BY_UNKNOWN);
		sc->connection = A_CLIENT;
		scene_close(sc, EVENT_CLOSE_DONE, 0);
	}
	assert_int_equal(sc->n_spans, 1);
	assert_int_equal(scene_metric(sc, METRIC_LINEAGE_FULL), 1);
}

/* Calls of a request that takes for ever are not held for ever. */
static void test_bounded(void **state)
{
	struct scene *sc = *state;

	call_until_full(sc, true);
	assert_true(is_below(sc, A_CLIENT, A_SERVER));
	assert_int_equal(scene_metric(sc, METRIC_PARENTS_TAKEN_BACK), 0);
}

/* Nothing speaks for the parent: it is not let out. */
static void test_bounded_unproven(void **state)
{
	struct scene *sc = *state;
	struct trace_id request = trace_of(1);

	call_until_full(sc, false);
	assert_true(is_below(sc, A_CLIENT, 0));
	assert_text(span_of(sc, A_CLIENT), ATTR_TSUNAGI_PARENT_REASON, "ambiguous");
	assert_memory_not_equal(&span_of(sc, A_CLIENT)->trace_id, &request, sizeof(request));
	assert_int_equal(scene_metric(sc, METRIC_PARENTS_TAKEN_BACK), 1);
}

/* A service that calls itself for ever. */
static void test_deep(void **state)
{
	struct scene *sc = *state;

	begin(sc, (struct step){.n = 1});
	for (uint8_t n = 2; n < 200; n++)
		begin(sc, (struct step){.n = n, .parent = (uint8_t)(n - 1)});
	for (uint8_t n = 199; n > 1; n--)
		answer(sc, n, ANSWERED_BY_RECEIVER);
	answer(sc, 1, ANSWERED_BY_RECEIVER);
	stitch_tick(sc->stitch, sc->now_ns + LINEAGE_GRACE_NS);
	assert_int_equal(sc->n_spans, 199);
	for (uint8_t n = 2; n < 200; n++) {
		bool is_root = is_below(sc, n, 0);

		assert_true(is_root || is_below(sc, n, (uint8_t)(n - 1)));
		assert_true(is_root != is_same_trace(sc, n, (uint8_t)(n - 1)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCENE_TEST(test_held_until_the_receiver_answers),
		SCENE_TEST(test_cut_when_another_answers),
		SCENE_TEST(test_cut_when_the_answer_tells_nothing),
		SCENE_TEST(test_grace),
		SCENE_TEST(test_grace_refuted),
		SCENE_TEST(test_no_answer),
		SCENE_TEST(test_no_answer_of_a_new_process),
		SCENE_TEST(test_cut_reaches_what_comes_later),
		SCENE_TEST(test_call_after_the_answer),
		SCENE_TEST(test_forwarded_header),
		SCENE_TEST(test_goroutine_ends_first),
		SCENE_TEST(test_goroutine_ends_soon_after),
		SCENE_TEST(test_goroutine_of_a_goroutine),
		SCENE_TEST(test_goroutine_that_was_idle),
		SCENE_TEST(test_goroutine_lives_on),
		SCENE_TEST(test_goroutine_calls_late),
		SCENE_TEST(test_goroutine_without_a_request),
		SCENE_TEST(test_forwarded_header_of_a_call),
		SCENE_TEST(test_dropped_is_counted),
		SCENE_TEST(test_bounded),
		SCENE_TEST(test_bounded_unproven),
		SCENE_TEST(test_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
