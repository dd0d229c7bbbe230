/*
 * Loads the programs of header insertion (bpf/inserter.bpf.c) in a thread of its own, for insert.h:
 * the kernel's verifier takes most of a second for them, and the daemon's loop has records to read.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "probe/probe.h"

struct insert_load;
struct inserter; /* the skeleton */

struct insert_options {
	uint32_t head_bytes_max;
	uint32_t connections_max;
	/* For tests: what is put in is not what it should be, nor what it was when taken out. */
	bool line_fails, take_out_fails;
	void (*before_load)(struct bpf_object *object); /* for tests; NULL: nothing is to be done */
};

/* Why it cannot be had beside the tap in use; NULL: it can, if the kernel takes it. A constant. */
const char *insert_load_refusal(const struct probe *p);

/*
 * Begins it. What it shares with 'p' it holds for itself, so it may outlive that. Returns 0 or a
 * negative errno.
 */
int insert_load_new(struct probe *p, const struct insert_options *options,
		    struct insert_load **ret);

/*
 * Nobody waits for the kernel: the thread of one that is still under way goes on by itself, until it
 * is done or the process ends, and takes with it what came of it. NULL is allowed.
 */
void insert_load_free(struct insert_load *l);
DEFINE_CLEANUP(struct insert_load *, insert_load_free)

/* Readable when it is over. */
int insert_load_fd(const struct insert_load *l);

/*
 * When it is over: gives what was loaded away. Returns 0, INSERT_LOAD_REFUSED with the kernel's reason
 * in 'ret_refusal', or -ENOMEM.
 */
enum { INSERT_LOAD_REFUSED = 1 };
int insert_load_take(struct insert_load *l, struct inserter **ret,
		     struct probe_refusal *ret_refusal);
