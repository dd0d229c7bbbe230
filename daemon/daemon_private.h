/*
 * The daemon's state, for the files beside daemon.c alone: what the loop wires together, and what
 * they answer and complain from.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdio.h>
#include <systemd/sd-event.h>

#include "daemon.h"
#include "discover/discover.h"
#include "event/reader.h"
#include "export/exporter.h"
#include "export/store.h"
#include "go_units.h"
#include "jvm_agents.h"
#include "memory.h"
#include "output.h"
#include "probe/insert.h"
#include "probe/probe.h"
#include "probe/tcp_memory.h"
#include "probe/tcp_watch.h"
#include "probe/waiting.h"
#include "service/control.h"
#include "service/lock.h"
#include "stitch/stitch.h"

/* What has become of carrying 'traceparent' to other hosts (propagation.c). */
enum propagation {
	PROPAGATION_NEVER,   /* not wanted; or 'insert_refusal' or the self-test says why */
	PROPAGATION_UNUSED,  /* nobody has been met to do it for */
	PROPAGATION_LOADING, /* in a thread */
	PROPAGATION_WAITING, /* with the self-test, until TCP has memory */
	PROPAGATION_TESTING,
	PROPAGATION_READY,
};

struct daemon {
	const struct daemon_options *options;
	const struct config *config;
	uint64_t start_ns; /* CLOCK_MONOTONIC */

	struct lock *lock;
	sd_event *event;
	struct probe *probe;
	struct waiting *waiting;
	struct go_units *go;
	struct jvm_agents *jvm;
	enum propagation propagation;
	struct insert_load *insert_load; /* NULL: not LOADING */
	struct insert *insert;           /* NULL: it has not been loaded */
	uint64_t insert_later_ns;        /* when to load it again; 0: when there is a use */
	sd_event_source *insert_source;  /* the end of the load, or of the self-test; else NULL */
	struct probe_refusal insert_refusal;
	struct tcp_watch *tcp_watch; /* NULL: nothing is inserted */
	struct tcp_memory *tcp_memory;
	struct tcp_memory_groups tcp_groups;
	uint64_t tcp_groups_ns;        /* when to look at their limits again */
	bool has_unreached;            /* processes that no descriptor was left to look at */
	unsigned int insert_shortages; /* of TCP's memory; counted by its watch's thread */
	unsigned int insert_resumes;   /* how many of these are over, as the loop knows it */
	unsigned int insert_tested;    /* how many there had been when the self-test began */
	unsigned int
		insert_wakes; /* how often whoever may wait is still to be told; the thread's */
	struct event_reader *reader;
	struct discover *discover;
	struct stitch *stitch;
	struct exporter *exporter; /* NULL: no endpoint */
	struct store *store;       /* NULL: not needed */
	struct control *control;
	struct output *output; /* NULL: nothing is printed */
	int output_error;      /* what ended printing, a negative errno; 0: nothing has */

	sd_event_source
		*poll_timer; /* on while records come: the kernel side does not wake us then */
	unsigned int idle_polls;
	uint64_t event_ns;       /* time of the newest event, CLOCK_MONOTONIC */
	uint64_t processes_lost; /* process events lost, as of the last pass over /proc */
	uint64_t spans;          /* emitted */
	uint64_t spans_at_hint;
	struct memory memory;
	uint64_t hint_ns; /* when to say next why there is no span; 0: never */
};

/* report.c: the control socket's handler; 'userdata' is the daemon. */
int report_command(void *userdata, struct str command, struct str argument, cJSON **ret_answer);

/*
 * hints.c: a line for each listening process, on 'out': traced, or what would select it, or why
 * not.
 */
void hints_print(struct daemon *d, FILE *out);

/* What the kernel side saw of a process, in words: "TLS", "HTTP/2", "no request yet", ... */
const char *hints_seen(struct daemon *d, const struct process *p);

/* propagation.c: 'traceparent' in requests, as configured and where it can be had. */
bool propagation_is_wanted(const struct config *config);
void propagation_start(struct daemon *d);
const char *propagation_why_not(const struct daemon *d); /* NULL: it is done where it applies */
const char *propagation_why_not_everywhere(const struct daemon *d); /* the same of every cgroup */
bool propagation_applies(struct daemon *d, const struct process *p);
void propagation_take_connections(struct daemon *d, const struct process *p);
void propagation_drop_connections(struct daemon *d, const struct process *p);
void propagation_tick(struct daemon *d, uint64_t now);
void propagation_stop(struct daemon *d);
void propagation_free(struct daemon *d);

/* daemon.c: tells the kernel side of a process, again if it was told before. */
int daemon_select(void *userdata, const struct process *p);
