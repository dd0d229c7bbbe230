/*
 * The resource of a selected process: who its spans come from, by OpenTelemetry's resource
 * conventions. Used by look.c (a process that was looked at) and events.c (a fork of a selected
 * one).
 */
#pragma once

#include <stdint.h>

#include "base/str.h"
#include "discover/host.h"
#include "discover/select.h"
#include "model/process.h"
#include "model/resource.h"

struct description {
	const struct host *host;
	const struct config *config;
	const struct process *process; /* all but proc_id, state and resource */
	const struct subject *subject;
	struct str arguments;  /* NUL-terminated strings */
	const char *go_module; /* empty: none */
	uint32_t parent_pid;
	int dir; /* of /proc/PID, for its environment */
};

/* Returns 0, DESCRIBE_GONE when the process ended meanwhile, or -ENOMEM. */
enum { DESCRIBE_GONE = 1 };
int describe_process(const struct description *description, struct resource **ret);

/*
 * The resource of 'child', a fork of 'parent' that runs the same program, without any look at it.
 */
int describe_fork(const struct host *host, const struct process *parent,
		  const struct process *child, struct resource **ret);
