/*
 * The configuration: one table of keys (keys.c) drives the parser, the defaults, --check-config and
 * the commented config/tsunagi.yaml. Loaded once by main.c; constant afterwards.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"
#include "base/util.h"
#include "model/selector.h"

enum config_tap { CONFIG_TAP_AUTO, CONFIG_TAP_FENTRY, CONFIG_TAP_TRACEPOINT, CONFIG_TAP_KPROBE };

enum config_propagate {
	CONFIG_PROPAGATE_UNSET, /* of a service: as for all */
	CONFIG_PROPAGATE_OFF,
	CONFIG_PROPAGATE_ON,
};

enum config_agent {
	CONFIG_AGENT_UNSET, /* of a service: as for all */
	CONFIG_AGENT_OFF,
	CONFIG_AGENT_AUTO,
};

/*
 * services: the first item that matches and has a name names the process, the first that matches
 * and says whether its requests carry 'traceparent' decides that, and so for the agent.
 */
struct config_service {
	struct selector match;
	char *name;                      /* NULL: not given */
	enum config_propagate propagate; /* services[].propagate */
	enum config_agent jvm_agent;     /* services[].jvm.agent */
};

struct config {
	char *endpoint; /* base URL of the collector; NULL: none, traces are kept in memory */
	uint32_t export_timeout_ms;   /* export.timeout, 10000 */
	uint32_t export_batch_spans;  /* export.batch_spans, 512 */
	uint32_t export_batch_ms;     /* export.batch_delay, 1000 */
	uint32_t export_queue_spans;  /* export.queue_spans, 16384 */
	struct selector_list include; /* discover.include; default: JVM and Go */
	struct selector_list exclude; /* discover.exclude: in addition to the built-in list */
	struct config_service *services;
	size_t n_services;
	enum config_propagate propagate; /* propagate, on */
	enum config_agent jvm_agent;     /* jvm.agent, auto */
	uint32_t head_bytes_max;         /* http.head_bytes_max, 16384; at most 65536 */
	uint32_t exchange_idle_ms;       /* http.exchange_idle, 600000 */
	uint32_t connections_max;        /* limits.connections, 131072 */
	uint32_t processes_max;          /* limits.processes, 4096 */
	uint32_t requests_max;           /* limits.open_requests, 65536 */
	uint32_t open_bytes;             /* limits.open_bytes, 16 MiB */
	uint32_t ring_bytes;   /* limits.ring_bytes, 2 MiB; a power of two of 64 KiB or more */
	uint32_t store_traces; /* store.traces, 1000 */
	uint32_t store_bytes;  /* store.bytes, 8 MiB */
	enum config_tap tap;   /* tap, auto */
	int log_level;         /* log_level: error|warning|info|debug, as enum log_level */
};

/*
 * A problem of the file: one line for a person, "FILE:LINE:COLUMN: expected ..., got '...'; did you
 * mean '...'?"
 */
struct config_error {
	char text[512];
};

/* All defaults. Returns 0 or -ENOMEM. */
int config_default(struct config *ret);

/*
 * Reads a file on top of the defaults. Returns 0; CONFIG_INVALID with 'ret_error' filled in (also
 * when the file cannot be opened); or a negative errno. 'ret' is untouched unless 0 is returned.
 */
enum { CONFIG_INVALID = 1 };
int config_load(const char *path, struct config *ret, struct config_error *ret_error);

/* The same for a text in memory; 'name' stands for FILE in the error. */
int config_parse(struct str text, const char *name, struct config *ret,
		 struct config_error *ret_error);

/*
 * Calls 'warn' with a line as that of an error, for each user that a selector names and /etc/passwd
 * does not; 'name' stands for FILE.
 */
typedef void (*config_warn_fn)(const char *line);
void config_check_users(const struct config *config, const char *name, config_warn_fn warn);

void config_done(struct config *config);

/*
 * The endpoint as it may be shown: a user and password in it are replaced. NULL gives NULL. Returns
 * 0 or -ENOMEM; 'ret' is to be freed.
 */
int config_endpoint_shown(const char *endpoint, char **ret);

/*
 * Writes the commented file with every key, its default and a line on it: what config/tsunagi.yaml
 * holds.
 */
int config_write_reference(FILE *out);
