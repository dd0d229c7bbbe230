/*
 * The kernel side as the daemon holds it: chooses a tap by trying, loads and attaches it, and
 * writes and reads its maps. Nothing is pinned: when the daemon ends, in whatever way, the kernel
 * detaches everything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

struct bpf_object;
struct probe;

enum probe_tap { PROBE_TAP_FENTRY, PROBE_TAP_TRACEPOINT, PROBE_TAP_KPROBE, _PROBE_TAP_MAX };

struct probe_options {
	int tap; /* enum probe_tap, or -1: the best that this kernel takes */
	uint32_t head_bytes_max;
	uint32_t processes_max;
	uint32_t requests_max;
	uint32_t connections_max;
	uint32_t ring_bytes;
	void (*before_load)(struct bpf_object *object); /* for tests; NULL: nothing is to be done */
};

/* Why a tap is not in use; empty: it was not tried, or is the one. */
struct probe_refusal {
	char reason[256];
};

/*
 * Returns 0; PROBE_NO_TAP when no tap can be had, with the reasons in 'ret_refusals';
 * PROBE_NO_PERMISSION, PROBE_NO_BTF, PROBE_LOCKDOWN as said; or a negative errno.
 */
enum { PROBE_NO_TAP = 1, PROBE_NO_PERMISSION, PROBE_NO_BTF, PROBE_LOCKDOWN };
int probe_new(const struct probe_options *options, struct probe **ret,
	      struct probe_refusal ret_refusals[_PROBE_TAP_MAX]);
void probe_free(struct probe *p);
DEFINE_CLEANUP(struct probe *, probe_free)

const char *probe_tap_name(enum probe_tap tap); /* "fentry", "tracepoint", "kprobe" */
enum probe_tap probe_tap_used(const struct probe *p);
const struct probe_refusal *probe_refusals(const struct probe *p); /* _PROBE_TAP_MAX of them */

/* What a tap on this kernel can see, and what it cannot. */
struct probe_feature {
	const char *name;
	const char *missing; /* why it is not there; NULL: it is */
};
#define PROBE_FEATURES 3
void probe_features(const struct probe *p, struct probe_feature ret_features[PROBE_FEATURES]);

/* The ring's file descriptor, for event/; owned by the probe. */
int probe_ring_fd(const struct probe *p);

/* A reader that is about to sleep says so, then looks once more; the next record wakes it. */
void probe_reader_sleeps(struct probe *p);

/*
 * The process is traced from now on. 'has_thread_units': its threads are units of work (not so for
 * Go).
 */
struct probe_process {
	uint32_t pid, proc_id;
	bool has_thread_units;  /* its threads are units of work */
	bool propagates;        /* its requests carry 'traceparent' on (insert.h) */
	bool passes_on;         /* what it forks is followed at once, first under proc_id 0 */
	uint32_t go_layout;     /* of go_probe_set_layout(); 0: none */
	uint64_t go_bias;       /* what to add to the addresses of its file */
	uint64_t go_text;       /* where Go's own code is in it, */
	uint64_t go_text_bytes; /* and how much; 0: not known */
	int64_t jvm_slot;       /* of the agent in its JVM (struct proc of bpf/abi.h); 0: none */
};
int probe_process_set(struct probe *p, const struct probe_process *process);
void probe_process_remove(struct probe *p, uint32_t pid);

/* It was decided whether it is traced: its forks need not be reported for that any more. */
void probe_process_judged(struct probe *p, uint32_t pid);

/* A forked child that is followed under proc_id 0 and turned out to be nobody's: no more of it. */
void probe_process_forget(struct probe *p, uint32_t pid);

/* What the kernel side saw of a process. */
struct probe_seen {
	bool http1, http2, tls, other;
	bool unix_http; /* HTTP/1 on Unix sockets, which are not followed */
	bool io_uring;  /* receives whose bytes the tap in use cannot see */
	bool propagates;
};
void probe_process_seen(const struct probe *p, uint32_t pid, struct probe_seen *ret);

/* User space found that this request was none: it can be nobody's parent from now on. */
void probe_request_revoke(struct probe *p, uint64_t connection, uint32_t exchange);

/*
 * Counters of the kernel side, from 0 to probe_counters() - 1; the last one sums the programs'
 * recursion misses.
 */
size_t probe_counters(void);
const char *probe_counter_name(size_t i);
const char *probe_counter_help(size_t i);
uint64_t probe_counter_read(const struct probe *p, size_t i);

/* Process events that the kernel side could not report. */
uint64_t probe_processes_lost(const struct probe *p);

/* Memory of all maps as the kernel accounts for it, in bytes; and the number of links held. */
uint64_t probe_map_bytes(const struct probe *p);
size_t probe_links(const struct probe *p);
