/*
 * What probe.c needs of a tap, whichever it is: each tap_*.c opens its skeleton and hands out this
 * view of it. All taps have the same maps and variables, since they share the core.
 */
#pragma once

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "probe/probe.h"

struct tap {
	void *skeleton; /* struct tap_x, owned */
	struct bpf_object_skeleton *base;
	struct bpf_object *object;
	struct bpf_map *ring, *procs, *requests, *units, *joins, *counters;
	struct bpf_map *go_calls, *go_contexts, *go_children;
	struct bpf_map *conns;      /* of basic objects only (bpf/subprogram.h), else NULL */
	struct bpf_map *receivings; /* of the kprobe tap only */
	struct bpf_map *waiting;    /* of the fentry tap only */
	/*
	 * In memory that is shared with the kernel side; valid after loading, through
	 * tap_*_share().
	 */
	uint32_t *reader_sleeps, *procs_generation, *insert_is_closed, *sockets_id;
	uint8_t *selected, *unjudged;
	uint32_t *head_bytes_max; /* to be set before loading */
};

/* The counters of insert.bpf.h begin again at 0. Returns 0 or a negative errno. */
int probe_insert_counters_reset(struct probe *p);

/* Whether the tap in use is none of the basic ones (bpf/subprogram.h). */
bool probe_keeps_with_socket(const struct probe *p);
/* Where insert.bpf.h is told that it takes in no connection. */
uint32_t *probe_insert_gate(struct probe *p);
/* Where it looks for the id of the map for sockets. */
uint32_t *probe_insert_sockets_id(struct probe *p);

/*
 * For an object that was opened, to be loaded beside the tap: the tap's maps in place of those of the
 * same name, and its variables, of which the object may have no others. Both return 0 or a negative
 * errno.
 */
int probe_share_maps(const struct probe *p, struct bpf_object *object);
int probe_share_variables(const struct probe *p, struct bpf_object *object);

/* What the kernel accounts for a map, in bytes. */
uint64_t probe_map_memlock(const struct bpf_map *map);

/* libbpf's first warning in this thread since it was forgotten; NULL: there was none. */
const char *probe_warning(void);
void probe_warning_forget(void);

/* The part that depends on the skeleton's type only by name. */
#define TAP_VIEW(s)                                                                               \
	(struct tap)                                                                              \
	{                                                                                         \
		.skeleton = (s), .base = (s)->skeleton, .object = (s)->obj,                       \
		.ring = (s)->maps.ring, .procs = (s)->maps.procs, .requests = (s)->maps.requests, \
		.units = (s)->maps.units, .joins = (s)->maps.joins,                               \
		.go_calls = (s)->maps.go_calls, .go_contexts = (s)->maps.go_contexts,             \
		.go_children = (s)->maps.go_children, .counters = (s)->maps.counters,             \
		.head_bytes_max = (uint32_t *)&(s)->rodata->head_bytes_max,                       \
	}

/* Loading moves these. */
#define TAP_SHARE(tap, s)                                                           \
	do {                                                                        \
		(tap)->reader_sleeps = (uint32_t *)&(s)->bss->reader_sleeps;        \
		(tap)->procs_generation = (uint32_t *)&(s)->data->procs_generation; \
		(tap)->insert_is_closed = (uint32_t *)&(s)->bss->insert_is_closed;  \
		(tap)->sockets_id = (uint32_t *)&(s)->bss->sockets_id;              \
		(tap)->selected = (s)->bss->selected;                               \
		(tap)->unjudged = (s)->bss->unjudged;                               \
	} while (0)

struct bpf_object *probe_object(const struct probe *p);

/*
 * Opens the tap for this kernel, whose types are 'kernel'. Returns 0, a negative errno, or
 * TAP_REFUSED with the reason in 'ret_refusal'.
 */
enum { TAP_REFUSED = 1 };
typedef int (*tap_open_fn)(const struct btf *kernel, struct tap *ret_tap,
			   struct probe_refusal *ret_refusal);
/* To be called when it has been loaded. */
typedef void (*tap_share_fn)(struct tap *tap);

int tap_fentry_open(const struct btf *kernel, struct tap *ret_tap,
		    struct probe_refusal *ret_refusal);
void tap_fentry_share(struct tap *tap);
int tap_tracepoint_open(const struct btf *kernel, struct tap *ret_tap,
			struct probe_refusal *ret_refusal);
void tap_tracepoint_share(struct tap *tap);
int tap_kprobe_open(const struct btf *kernel, struct tap *ret_tap,
		    struct probe_refusal *ret_refusal);
void tap_kprobe_share(struct tap *tap);

/* How many arguments a function of the kernel has; negative: there is no such function. */
int tap_arguments(const struct btf *kernel, const char *function);
/* The same of tcp_recvmsg(); TAP_REFUSED where it is none that is known. */
int tap_recvmsg_arguments(const struct btf *kernel, uint32_t *ret_n,
			  struct probe_refusal *ret_refusal);
/* Whether the kernel has a helper, by its name in enum bpf_func_id. */
bool tap_has_helper(const struct btf *kernel, const char *name);
/*
 * Whether a program is a copy of another (COPIES in bpf/maps.bpf.h): its name ends in a number
 * from 2.
 */
bool tap_is_copy(const struct bpf_program *program);
/* Copies that are needed on every kernel, for what interrupts do (life.bpf.h). */
bool tap_is_nested(const struct bpf_program *program);
/* Programs that are attached only while they are needed (waiting.h). */
bool tap_is_for_waiting(const struct bpf_program *program);
/* Whether a task may be preempted inside of a program. */
bool tap_is_preemptible(void);
/* The same of a program at a tracepoint. */
bool tap_tracepoints_are_preemptible(const struct btf *kernel);
/* Leaves out programs for functions that this kernel has not, and copies if they are not needed. */
void tap_choose_programs(const struct btf *kernel, struct bpf_object *object, bool needs_copies);
