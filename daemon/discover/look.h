/*
 * One look at a process: everything that is read from /proc to know what it is and whether it is
 * traced. Used by life.c, which says what follows from it; when to look is decided in discover.c,
 * events.c and scan.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "discover/host.h"
#include "discover/images.h"
#include "discover/sockets.h"
#include "model/process.h"

#define PORTS_MAX 16

/* What all looks share. */
struct look_context {
	const struct config *config;
	const struct host *host;
	struct image_cache *images;
	uint32_t self_pid;
	bool needs_netns; /* some selector has a network namespace */
};

/* What a look starts from and completes. */
struct look {
	uint32_t pid;
	uint64_t start_ns; /* 0: not known yet */
	uint64_t exec_id;
	uint16_t ports[PORTS_MAX]; /* it listens on */
	size_t n_ports;
	struct sockets *sockets; /* to find more ports with; NULL: no need */
};

/*
 * Returns 0, LOOK_GONE when the process has ended or is not the one that started at 'start_ns',
 * LOOK_NOBODY for kernel threads and zombies, or a negative errno. 'ret_process' has state
 * PROCESS_SELECTED and a resource, or PROCESS_LEFT; its proc_id is 0. 'ret_may_become_jvm': a JVM
 * could still be loaded into it. Free with look_process_done().
 */
enum { LOOK_GONE = 1, LOOK_NOBODY };
int look_at(const struct look_context *context, struct look *look, struct process *ret_process,
	    bool *ret_may_become_jvm);

/*
 * Whether a process in which a JVM could be loaded has one now: the cheap look between two whole
 * ones.
 */
bool look_has_jvm(uint32_t pid);

void look_process_done(struct process *process);
