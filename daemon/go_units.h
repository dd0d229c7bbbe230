/*
 * Go programs: looks into the executable of each Go process that is traced for where its structures
 * have their fields and where its HTTP client can be probed, and has the probes attached, once for
 * each file however many processes run it, in however many containers (go_executable.h). Used by
 * daemon.c.
 *
 * Three more probes follow requests into the goroutines that a handler starts, and the contexts that
 * their calls carry. They cost something for every goroutine, so they are attached only where a call
 * was seen to come from a goroutine that holds no request.
 *
 * A doubt about a program leaves its processes as they are: spans without the parents of calls, and
 * a sentence that says why.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "model/process.h"
#include "probe/probe.h"

struct go_units;

/* 'p' must outlive it. Returns 0 or -ENOMEM. */
int go_units_new(struct probe *p, struct go_units **ret);
void go_units_free(struct go_units *u); /* NULL is allowed */
DEFINE_CLEANUP(struct go_units *, go_units_free)

/* What the kernel side needs to know of a process, see struct probe_process. */
struct go_facts {
	uint32_t layout; /* 0: its goroutines cannot be told */
	uint64_t bias;
	uint64_t text, text_bytes; /* Go's own code, as the process has it; 0: not known */
};

/* A Go process is to be traced, perhaps not for the first time. Returns 0 or -ENOMEM. */
int go_units_add(struct go_units *u, const struct process *p, struct go_facts *ret);
/* It is gone, or left alone from now on. */
void go_units_remove(struct go_units *u, uint32_t proc_id);

void go_units_tick(struct go_units *u, uint64_t now_monotonic_ns);

/* Why the calls of a Go process have no parents; NULL: they have. A constant, or valid until the next call. */
const char *go_units_why_not(const struct go_units *u, uint32_t proc_id);

/* Why containers of one image do not share probes; NULL: they do. */
const char *go_units_why_not_shared(const struct go_units *u);

/* How many files there are, and links of probes in them. */
size_t go_units_executables(const struct go_units *u);
size_t go_units_links(const struct go_units *u);

/* Why no Go program can be probed on this kernel; NULL: they can. */
const char *go_units_refusal(const struct go_units *u);

/* Takes all probes away, in the background; go_units_free() waits for that. No process may be added after. */
void go_units_detach(struct go_units *u);
