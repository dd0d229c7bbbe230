/*
 * What is known of one process: a value that discover owns and lends to others by const pointer.
 *
 * A pid alone is no identity: pids come back. A process is {pid, start time, exec id}; each such
 * triple that was selected gets a 'proc_id' of its own, never given twice, which the kernel side
 * puts into every record.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/resource.h"

enum language { LANGUAGE_OTHER, LANGUAGE_JVM, LANGUAGE_GO, _LANGUAGE_MAX };

enum process_state {
	PROCESS_NEW,      /* seen, not looked at yet: most processes end before */
	PROCESS_SELECTED, /* traced */
	PROCESS_LEFT,     /* looked at, not selected; 'why' says why not */
	_PROCESS_STATE_MAX,
};

struct process {
	uint32_t pid;
	uint64_t start_ns; /* of the thread-group leader, on CLOCK_BOOTTIME; from /proc in units of
			      10 ms */
	uint64_t exec_id;  /* the kernel's self_exec_id when an exec was seen, else 0 */
	uint32_t proc_id;  /* 0: not selected */
	enum process_state state;
	enum language language;
	char *version;      /* of the runtime: "17.0.15", "go1.26.8"; NULL: unknown */
	char *exe;          /* path as /proc/PID/exe has it; NULL: unreadable */
	char *command;      /* arguments joined by blanks, at most 4096 bytes; NULL: unreadable */
	char *container_id; /* 64 hex digits, or NULL */
	char *unit;         /* systemd unit, or NULL */
	char *why;          /* a sentence: which rule selected it, or why it is left alone */
	uint32_t uid;
	bool propagates;  /* its requests are to carry 'traceparent' on, if that can be done */
	bool takes_agent; /* if it is a JVM, an agent may be in it */
	bool has_listening_port;
	uint16_t listening_port;   /* the first one seen */
	struct resource *resource; /* set when selected, else NULL */
};

const char *language_name(enum language language);        /* "jvm", "go", "other" */
const char *process_state_name(enum process_state state); /* "new", "traced", "left alone" */
