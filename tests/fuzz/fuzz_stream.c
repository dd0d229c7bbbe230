/*
 * Fuzzes the kernel side's core on the host: the input is a list of calls on both ends of a
 * connection, each a byte for direction and kind, two for a length, then its bytes. Whatever comes:
 * records are whole and in bounds, an exchange has one decision, and what is open afterwards is
 * what the connection says.
 */
#include <stdlib.h>

#include "../unit/bpf/shim.h"

static unsigned int decisions[65536];
static bool ring_is_full;

static long on_record(const void *record, size_t n)
{
	const struct record_head *h = record;

	assert(h->header.length == n);
	if (ring_is_full)
		return -11;
	if (h->header.type != RECORD_HEAD)
		return 0;
	assert(n == sizeof(*h) + h->data_length && h->data_length <= HEAD_WINDOW);
	assert(h->header.exchange != 0);
	if (h->flags & HEAD_DECISION)
		assert(++decisions[h->header.exchange & 0xffff] == 1);
	return 0;
}

static void call(struct conn *c, struct work *w, bool is_tx, const uint8_t *bytes, size_t n,
		 uint32_t seq)
{
	w->pid = 1;
	w->tid = 2;
	w->proc_id = 3;
	w->proc_flags = PROC_THREAD_UNITS;
	w->now_ns = bpf_ktime_get_ns();
	w->at = 0;
	w->bytes = n;
	w->is_tx = is_tx;
	w->is_blocking = true;
	w->ack = 0;
	w->source.kind = bytes ? SOURCE_BUFFER : SOURCE_NONE;
	w->source.base = (uintptr_t)bytes;
	w->source.skip = 0;
	w->source.first = 0;
	w->source.first_at = 0;
	follow(w, c, seq, seq);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct work work;
	struct conn conn;
	uint32_t seq[2] = {0, 0};

	memset(&conn, 0, sizeof(conn));
	memset(decisions, 0, sizeof(decisions));
	conn.cookie = 1;
	conn.family = 2;
	shim_reset();
	shim_ring = on_record;

	while (size >= 3) {
		uint8_t kind = data[0];
		size_t n = (size_t)(data[1] | data[2] << 8);
		bool is_tx = kind & 1;
		uint8_t *copy;

		data += 3;
		size -= 3;
		if (n > size)
			n = size;
		ring_is_full = kind & 2;
		if (kind & 4)
			seq[is_tx] += kind >> 4; /* bytes that nobody saw */
		/* A copy of exactly these bytes: the sanitizer sees a read behind them. */
		copy = malloc(n ? n : 1);
		memcpy(copy, data, n);
		if (n && !conn.off)
			call(&conn, &work, is_tx, kind & 8 ? NULL : copy, n, seq[is_tx]);
		free(copy);
		seq[is_tx] += (uint32_t)n;
		data += n;
		size -= n;
		assert(conn.responded <= conn.opened && conn.closed <= conn.opened);
		assert(shim_entries(&requests) <= conn.opened - conn.closed);
	}
	return 0;
}
