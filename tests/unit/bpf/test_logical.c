/*
 * Tests of the kernel side's core: contexts of the agent in a JVM as units of work. The slot of a
 * thread lies in the test's memory.
 */
#include "ends.h"

#define GET "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
#define OK  "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

static struct jvm_slot slot;
static struct end server, client;

static int logical_setup(void **state)
{
	setup(state);
	slot = (struct jvm_slot){.magic = JVM_SLOT_MAGIC};
	end_init(&server, 1, 11);
	end_init(&client, 2, 12);
	server.is_blocking = client.is_blocking = false;
	server.slot = client.slot = &slot;
	return 0;
}

static void receive(struct end *e, uint64_t id, const char *bytes)
{
	slot.receiving = slot.context = id;
	end_recv(e, bytes);
	slot.receiving = 0;
}

static const struct decision *last(void)
{
	for (unsigned int i = n_recorded; i > 0; i--)
		if (recorded(i - 1)->flags & HEAD_DECISION)
			return &recorded(i - 1)->decision;
	return NULL;
}

static const struct decision *call(uint64_t context)
{
	slot.context = context;
	end_send(&client, GET);
	end_recv(&client, OK);
	return last();
}

static void answer(void)
{
	end_send(&server, OK);
	end_sent(&server);
}

static void assert_parent(uint64_t context, const struct decision *parent)
{
	const struct decision *d = call(context);

	assert_int_equal(d->reason, DECISION_UNIT);
	assert_memory_equal(d->parent_span_id, parent->ids.span_id, 8);
	assert_true(d->is_proven);
	assert_false(d->is_doubtful);
	assert_int_equal(d->goroutine, context);
	assert_true(d->is_logical);
}

/* Another thread, a socket that does not block: exact all the same, and over when it is answered. */
static void test_context(void **state)
{
	(void)state;
	receive(&server, 5, GET);
	assert_parent(5, decision_of(0));
	assert_int_equal(call(6)->reason, DECISION_NONE_NO_REQUEST);
	answer();
	assert_int_equal(recorded(n_recorded - 1)->flags & ANSWER_FLAGS, HEAD_BY_RECEIVER);
	assert_int_equal(call(5)->reason, DECISION_NONE_NO_REQUEST);
	assert_int_equal(shim_entries(&units), 0);
	assert_int_equal(shim_entries(&requests), 0);
}

/* A slot that says nothing: by thread. One that does not tell of the receive: nobody's. */
static void test_thread(void **state)
{
	(void)state;
	slot.magic = 0;
	slot.context = slot.receiving = 5;
	server.is_blocking = true;
	client.tid = server.tid;
	end_recv(&server, GET);
	assert_int_equal(call(5)->reason, DECISION_UNIT);
	assert_true(last()->is_doubtful);
	slot.magic = JVM_SLOT_MAGIC;
	slot.receiving = 0;
	assert_int_equal(call(0)->reason, DECISION_UNIT);
	assert_int_equal(call(5)->reason, DECISION_NONE_NO_REQUEST);
	answer();
	slot.context = 9;
	end_recv(&server, GET);
	assert_int_equal(shim_entries(&requests), 0);
}

/* The head in two reads, a body in two more. */
static void test_several_reads(void **state)
{
	(void)state;
	receive(&server, 5, "POST /a HTTP/1.1\r\nContent-");
	receive(&server, 6, "Length: 4\r\n\r\n");
	receive(&server, 7, "ab");
	receive(&server, 8, "cd");
	for (uint64_t id = 5; id <= 8; id++)
		assert_parent(id, decision_of(0));
	answer();
	assert_int_equal(shim_entries(&units), 0);
	assert_int_equal(shim_counters[COUNT_JVM_CONTEXTS_FULL], 0);
}

/* The fifth has no room but the oldest's, which is not taken again. */
static void test_too_many(void **state)
{
	(void)state;
	receive(&server, 5, "POST /a HTTP/1.1\r\nContent-Length: 9\r\n\r\n");
	for (uint64_t id = 6; id <= 9; id++)
		receive(&server, id, "a");
	assert_int_equal(shim_counters[COUNT_JVM_CONTEXTS_FULL], 1);
	assert_int_equal(call(5)->reason, DECISION_NONE_NO_REQUEST);
	receive(&server, 5, "a");
	assert_int_equal(call(5)->reason, DECISION_NONE_NO_REQUEST);
	assert_parent(9, decision_of(0));
}

/* Two under one, both open; two under two; and one that was answered unseen. */
static void test_ambiguous(void **state)
{
	(void)state;
	receive(&server, 5, GET GET);
	assert_int_equal(call(5)->reason, DECISION_NONE_AMBIGUOUS);
	answer();
	assert_int_equal(call(5)->reason, DECISION_NONE_AMBIGUOUS);
	answer();
	assert_int_equal(shim_entries(&units), 0);
	receive(&server, 6, GET);
	answer();
	receive(&server, 6, GET);
	assert_int_equal(call(6)->reason, DECISION_NONE_AMBIGUOUS);
	answer();
	assert_int_equal(shim_counters[COUNT_JVM_AMBIGUOUS], 2);
	assert_int_equal(shim_entries(&units), 0);
}

static void test_pipelined(void **state)
{
	const struct decision *first;

	(void)state;
	receive(&server, 5, GET);
	first = last();
	receive(&server, 6, GET);
	assert_parent(6, decision_of(1));
	assert_parent(5, first);
}

static void test_full(void **state)
{
	(void)state;
	shim_map(&requests)->n_max = 0;
	receive(&server, 5, GET);
	assert_int_equal(shim_counters[COUNT_REQUESTS_FULL], 1);
	assert_int_equal(call(5)->reason, DECISION_NONE_AMBIGUOUS);
	answer();
	assert_int_equal(recorded(n_recorded - 1)->flags & ANSWER_FLAGS, HEAD_BY_RECEIVER);
	assert_int_equal(shim_entries(&units), 0);
	shim_map(&requests)->n_max = SHIM_ENTRIES;
	shim_map(&units)->n_max = 0;
	receive(&server, 6, GET);
	assert_int_equal(shim_counters[COUNT_UNITS_FULL], 1);
	assert_int_equal(call(6)->reason, DECISION_NONE_NO_REQUEST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_context, logical_setup),
		cmocka_unit_test_setup(test_thread, logical_setup),
		cmocka_unit_test_setup(test_several_reads, logical_setup),
		cmocka_unit_test_setup(test_too_many, logical_setup),
		cmocka_unit_test_setup(test_ambiguous, logical_setup),
		cmocka_unit_test_setup(test_pipelined, logical_setup),
		cmocka_unit_test_setup(test_full, logical_setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
