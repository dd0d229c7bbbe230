/*
 * The kernel side's core, compiled for the host: follow() and everything under it, with maps as
 * small arrays and helpers as plain functions. The tests of this folder and fuzz_stream run the
 * very lines that the kernel runs.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <linux/bpf.h>
#include <linux/types.h>

#undef BPF_F_NO_PREALLOC
#define SEC(name)
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline, unused))
#endif
#define BPF_F_NO_PREALLOC 1
#define READ(p, field)    ((p)->field)

/* --- maps: up to 256 entries each, found by the map's address */

#define SHIM_ENTRIES 256
#define SHIM_BYTES   384

struct shim_map {
	void *map;
	size_t key_size, value_size;
	unsigned int n_max;
	struct {
		bool used;
		unsigned char key[32];
		unsigned char value[SHIM_BYTES] __attribute__((aligned(8)));
	} entries[SHIM_ENTRIES];
};

static struct shim_map shim_maps[16];
static unsigned int shim_n_maps;

static struct shim_map *shim_map(void *map)
{
	for (unsigned int i = 0; i < shim_n_maps; i++)
		if (shim_maps[i].map == map)
			return &shim_maps[i];
	return NULL;
}

static void shim_map_add(void *map, size_t key_size, size_t value_size)
{
	struct shim_map *m = &shim_maps[shim_n_maps++];

	assert(key_size <= 32 && value_size <= SHIM_BYTES);
	memset(m, 0, sizeof(*m));
	m->map = map;
	m->key_size = key_size;
	m->value_size = value_size;
	m->n_max = SHIM_ENTRIES;
}

static void *shim_find(struct shim_map *m, const void *key)
{
	for (unsigned int i = 0; m && i < SHIM_ENTRIES; i++)
		if (m->entries[i].used && memcmp(m->entries[i].key, key, m->key_size) == 0)
			return m->entries[i].value;
	return NULL;
}

static unsigned int shim_entries(void *map)
{
	struct shim_map *m = shim_map(map);
	unsigned int n = 0;

	for (unsigned int i = 0; i < SHIM_ENTRIES; i++)
		n += m->entries[i].used;
	return n;
}

static uint64_t shim_counters[64];
static void *shim_counters_map;

/* What another CPU does meanwhile: hooks of the test, called with each map that is used. */
static void (*shim_on_update)(void *map), (*shim_on_lookup)(void *map);

static inline void *bpf_map_lookup_elem(void *map, const void *key)
{
	void *there;

	if (map == shim_counters_map)
		return &shim_counters[*(const uint32_t *)key];
	there = shim_find(shim_map(map), key);
	if (shim_on_lookup)
		shim_on_lookup(map);
	return there;
}

static inline long bpf_map_update_elem(void *map, const void *key, const void *value,
				       uint64_t flags)
{
	struct shim_map *m = shim_map(map);
	void *there = shim_find(m, key);

	(void)flags;
	if (shim_on_update)
		shim_on_update(map);
	for (unsigned int i = 0; !there && i < m->n_max; i++) {
		if (m->entries[i].used)
			continue;
		m->entries[i].used = true;
		memcpy(m->entries[i].key, key, m->key_size);
		there = m->entries[i].value;
	}
	if (!there)
		return -7; /* E2BIG */
	memcpy(there, value, m->value_size);
	return 0;
}

static inline long bpf_map_delete_elem(void *map, const void *key)
{
	struct shim_map *m = shim_map(map);
	long r = -2; /* ENOENT */

	for (unsigned int i = 0; i < SHIM_ENTRIES; i++) {
		if (!m->entries[i].used || memcmp(m->entries[i].key, key, m->key_size) != 0)
			continue;
		m->entries[i].used = false;
		r = 0;
	}
	return r;
}

/* --- helpers */

static uint32_t shim_random = 1;
static uint64_t shim_now = 1000;

static inline uint32_t bpf_get_prandom_u32(void)
{
	shim_random = shim_random * 1664525u + 1013904223u;
	return shim_random;
}

static inline uint64_t bpf_ktime_get_ns(void)
{
	return shim_now += 1000;
}

/* Reads of "user memory" fail at NULL, else are plain copies. */
static inline long bpf_probe_read_user(void *to, uint32_t n, const void *from)
{
	if (!from)
		return -14;
	memcpy(to, from, n);
	return 0;
}

#define bpf_probe_read_kernel bpf_probe_read_user

static inline long bpf_loop(uint32_t n, void *callback, void *ctx, uint64_t flags)
{
	long (*fn)(uint32_t, void *) = (long (*)(uint32_t, void *))callback;
	uint32_t i;

	(void)flags;
	for (i = 0; i < n; i++)
		if (fn(i, ctx))
			return i + 1;
	return i;
}

/* The ring: a hook of the test; non-zero means full. */
static long (*shim_ring)(const void *record, size_t n);

static inline long bpf_ringbuf_output(void *ring, void *record, uint64_t n, uint64_t flags)
{
	(void)ring;
	(void)flags;
	return shim_ring(record, n);
}

static inline uint64_t bpf_ringbuf_query(void *ring, uint64_t flags)
{
	(void)ring;
	(void)flags;
	return 0;
}

struct task_struct {
	int pid, tgid;
	uint64_t start_boottime, self_exec_id;
	struct task_struct *group_leader;
};

/*
 * Callbacks of bpf_loop have an index they need not use; BPF code is compiled without that warning.
 */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "follow.bpf.h"

/* Empty maps, as after loading. */
static void shim_reset(void)
{
	shim_n_maps = 0;
	shim_on_update = NULL;
	shim_on_lookup = NULL;
	memset(shim_counters, 0, sizeof(shim_counters));
	shim_counters_map = &counters;
	shim_map_add(&procs, sizeof(__u32), sizeof(struct proc));
	shim_map_add(&requests, sizeof(struct request_key), sizeof(struct request));
	shim_map_add(&units, sizeof(struct unit_key), sizeof(struct unit));
	shim_map_add(&joins, sizeof(struct join_key), sizeof(struct join));
	shim_map_add(&go_layouts, sizeof(__u32), sizeof(struct go_layout));
	shim_map_add(&go_calls, sizeof(struct go_call_key), sizeof(struct go_call));
	shim_map_add(&go_contexts, sizeof(struct go_context_key), sizeof(struct request_key));
	shim_map_add(&go_children, sizeof(struct unit_key), sizeof(struct go_child));
}
