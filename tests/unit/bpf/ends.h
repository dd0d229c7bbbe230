/*
 * Ends of connections for the tests of the kernel side's core: calls go in, records come out.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "shim.h"

/* --- one end of a connection, and what it recorded */

struct end {
	struct conn conn;
	struct work work;
	uint32_t rx_seq, tx_seq;
	uint32_t tid;
	bool is_blocking;
	uint32_t go_layout; /* of a Go program; 'g': what its register has */
	uint64_t g;
	const struct jvm_slot *slot; /* of a JVM's thread; NULL: there is no agent */
	uint64_t skipped, moved[2];  /* bytes that passed unseen; bytes of calls */
};

#define RECORDED_MAX 512
static _Alignas(8) unsigned char recorded_bytes[RECORDED_MAX][sizeof(struct record_head) +
							      HEAD_WINDOW + ROUTE_BYTES_MAX];
static unsigned int n_recorded;
static bool ring_is_full;

__attribute__((unused)) static const struct record_head *recorded(unsigned int i)
{
	return (const struct record_head *)recorded_bytes[i];
}

__attribute__((unused)) static long on_record(const void *record, size_t n)
{
	const struct record_header *h = record;

	if (ring_is_full)
		return -11;
	assert_int_equal(h->length, n);
	if (h->type != RECORD_HEAD || n_recorded == RECORDED_MAX)
		return 0;
	assert_true(n <= sizeof(recorded_bytes[0]));
	memcpy(recorded_bytes[n_recorded++], record, n);
	return 0;
}

__attribute__((unused)) static int setup(void **state)
{
	(void)state;
	shim_reset();
	shim_ring = on_record;
	n_recorded = 0;
	ring_is_full = false;
	return 0;
}

__attribute__((unused)) static void end_init(struct end *e, uint64_t cookie, uint32_t tid)
{
	memset(e, 0, sizeof(*e));
	e->conn.cookie = cookie;
	e->conn.family = 2;
	e->rx_seq = (uint32_t)cookie * 1000 + 0xfffffff0u; /* wraps soon */
	e->tx_seq = (uint32_t)cookie * 5000;
	e->tid = tid;
	e->is_blocking = true;
}

__attribute__((unused)) static void end_call(struct end *e, bool is_tx, const char *bytes, size_t n)
{
	struct work *w = &e->work;
	uint32_t *seq = is_tx ? &e->tx_seq : &e->rx_seq;

	w->pid = 7;
	w->tid = e->tid;
	w->proc_id = 3;
	w->proc_flags = e->go_layout ? 0 : PROC_THREAD_UNITS;
	w->unit = (struct unit_key){
		.pid = 7,
		.kind = e->go_layout ? UNIT_NONE : UNIT_THREAD,
		.id = e->tid,
	};
	w->go_layout = e->go_layout;
	w->g = e->g;
	w->jvm_slot = e->slot ? 64 : 0;
	w->thread_pointer = e->slot ? (uintptr_t)e->slot - 64 : 0;
	w->now_ns = bpf_ktime_get_ns();
	w->at = 0;
	w->requests = 0;
	w->is_tx = is_tx;
	w->is_blocking = e->is_blocking;
	w->bytes = n;
	w->ack = is_tx ? e->rx_seq : e->tx_seq;
	w->source.kind = bytes ? SOURCE_BUFFER : SOURCE_NONE;
	w->source.base = (uintptr_t)bytes;
	w->source.skip = 0;
	w->source.first = 0;
	w->source.first_at = 0;
	follow(w, &e->conn, *seq, e->moved[is_tx] + (is_tx ? 0 : e->skipped));
	*seq += (uint32_t)n;
	e->moved[is_tx] += n;
}

__attribute__((unused)) static void end_recv(struct end *e, const char *bytes)
{
	end_call(e, false, bytes, strlen(bytes));
}

__attribute__((unused)) static void end_send(struct end *e, const char *bytes)
{
	end_call(e, true, bytes, strlen(bytes));
}

/* What on_send() does when all has left. */
__attribute__((unused)) static void end_sent(struct end *e)
{
	while (e->conn.closed != e->conn.responded)
		request_close(&e->conn, ++e->conn.closed);
}

/* The heads of a kind that ended, put together again. */
__attribute__((unused)) static unsigned int heads(bool is_request, char texts[][8192],
						  unsigned int max)
{
	unsigned int n = 0;
	size_t length = 0;

	for (unsigned int i = 0; i < n_recorded; i++) {
		const struct record_head *r = recorded(i);

		if (!(r->flags & HEAD_REQUEST) == is_request)
			continue;
		if (r->flags & HEAD_START)
			length = 0;
		assert_true(n < max && length + r->data_length < 8192);
		memcpy(texts[n] + length, r->data, r->data_length);
		length += r->data_length;
		texts[n][length] = '\0';
		if (r->flags & HEAD_END)
			n++;
	}
	return n;
}

__attribute__((unused)) static const struct request *only_request(void)
{
	const struct shim_map *m = shim_map(&requests);

	assert_int_equal(shim_entries(&requests), 1);
	for (unsigned int i = 0; i < SHIM_ENTRIES; i++)
		if (m->entries[i].used)
			return (const struct request *)m->entries[i].value;
	return NULL;
}

__attribute__((unused)) static const struct decision *decision_of(unsigned int nth_request)
{
	for (unsigned int i = 0; i < n_recorded; i++)
		if ((recorded(i)->flags & HEAD_DECISION) && nth_request-- == 0)
			return &recorded(i)->decision;
	return NULL;
}

#define REQUEST                                                        \
	"POST /split/abc HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n" \
	"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n"
#define RESPONSE     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define ANSWER_FLAGS (HEAD_BY_RECEIVER | HEAD_HANDED_OVER)

__attribute__((unused)) static char texts[64][8192];

/* A connection older than the daemon: the first bytes seen may be of a body. */
__attribute__((unused)) static void old_end_init(struct end *e, uint64_t cookie, uint32_t tid)
{
	end_init(e, cookie, tid);
	e->conn.rx.is_known = e->conn.tx.is_known = 1;
	e->conn.rx.is_old = e->conn.tx.is_old = 1;
	e->conn.rx.phase = e->conn.tx.phase = PHASE_OUT_OF_STEP;
	e->conn.rx.seq = e->rx_seq;
	e->conn.tx.seq = e->tx_seq;
}
