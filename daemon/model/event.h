/*
 * What the kernel side says, after the border: records that were checked by event/, as plain values
 * with views into the ring. A view is valid only during the call that it is handed to.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "model/ids.h"

enum event_type {
	EVENT_HEAD,      /* bytes of a message's head, or a part of them */
	EVENT_END,       /* the response of an exchange is complete */
	EVENT_CLOSE,     /* a connection changed towards its end */
	EVENT_PROCESS,   /* exec, fork, exit, listen */
	EVENT_GOROUTINE, /* one that called for a request it was begun by has ended */
	_EVENT_TYPE_MAX,
};

enum event_role { EVENT_ROLE_SERVER, EVENT_ROLE_CLIENT };

/*
 * How the parent of a head's span was found, or why there is none. One counter for each in metrics.
 */
enum parent_reason {
	PARENT_UNDECIDED,   /* the kernel took no decision: ids are made in user space, no parent */
	PARENT_HEADER,      /* traceparent in the head */
	PARENT_JOINED,      /* server: the client end on this host, by TCP sequence numbers */
	PARENT_UNIT,        /* client: the open request of its unit of work */
	PARENT_NONE_REMOTE, /* server: no header, and the client end is not traced on this host: a
			       root */
	PARENT_NONE_NO_UNIT, /* client: the sender's threads are no units: Go, or it hands requests
				over */
	PARENT_NONE_NO_REQUEST, /* client: its unit has no open request */
	PARENT_NONE_AMBIGUOUS,  /* client: what its unit works for cannot be told */
	PARENT_NONE_TRUNCATED,  /* the head is longer than http.head_bytes_max: context unknown */
	PARENT_NONE_LATE,       /* client: decided after the bytes had left */
	_PARENT_REASON_MAX,
};

const char *parent_reason_name(enum parent_reason reason); /* "header", "no_open_request", ... */

/* What the kernel side found of a route; http/route.h makes one of it. */
enum event_route {
	EVENT_ROUTE_NONE,
	EVENT_ROUTE_PATTERN,  /* of net/http.ServeMux */
	EVENT_ROUTE_TEMPLATE, /* of the path alone */
	EVENT_ROUTE_CHI,      /* patterns of several of chi's routers, one behind the other */
};

/* Which thread sends a server's response. */
enum answered_by {
	ANSWERED_BY_UNKNOWN,
	ANSWERED_BY_RECEIVER, /* the one that received the request */
	ANSWERED_BY_OTHER,    /* another one, of this response or an earlier one of the process */
};

struct event_endpoint {
	uint16_t family; /* AF_INET or AF_INET6; v4-mapped addresses are already AF_INET */
	uint16_t port;   /* host order */
	uint8_t address[16];
};

/*
 * A head in one or more parts, in order. 'exchange' numbers the requests of a connection from 1,
 * and a response bears the number of its request; so no pairing depends on the order of records.
 */
struct event_head {
	bool is_request;
	bool is_start;     /* the first part of the head */
	bool is_end;       /* the blank line is in this part */
	bool is_complete;  /* the message ended in the same call: a response needs no EVENT_END then
			    */
	bool is_truncated; /* longer than http.head_bytes_max: this is the last part, the head is
			      not whole */
	bool has_decision; /* with the part that is_end (or is_truncated) of a request */
	uint64_t offset;   /* in its stream, of the first byte of 'bytes' */
	uint64_t head_start_ns; /* CLOCK_MONOTONIC, when the head's first byte was seen */
	struct event_endpoint local, remote;
	struct str bytes;
	enum parent_reason reason;
	struct trace_id trace_id;
	struct span_id span_id;
	struct span_id parent_span_id;
	uint8_t trace_flags;
	bool is_unit;   /* a server's request: calls may get it as their parent */
	bool is_proven; /* the threads of the process were seen to answer what they received */
	enum answered_by answered_by; /* of a server's response */
	uint64_t elder;     /* of an inherited call: who began the goroutine; 0: the request's */
	bool is_inherited;  /* a call by a goroutine that the parent began, no more is known */
	uint64_t goroutine; /* that received the request, or calls; 0: none */
	bool is_exact;      /* that is told by the program itself, or by an agent in it */
	enum event_route route_kind; /* of a server's response, with is_end */
	struct str route;
};

enum event_close {
	EVENT_CLOSE_PEER_FIN,  /* the peer sends no more; what it sent may not be read yet */
	EVENT_CLOSE_LOCAL_FIN, /* we send no more */
	EVENT_CLOSE_READ_END,  /* the application has read the end of the peer's stream */
	EVENT_CLOSE_DONE,      /* the socket is gone */
};

enum event_process {
	EVENT_PROCESS_EXEC,
	EVENT_PROCESS_FORK,
	EVENT_PROCESS_EXIT,
	EVENT_PROCESS_LISTEN
};

struct event {
	enum event_type type;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t pid;     /* thread group; 0 where it is not known */
	uint32_t tid;
	uint32_t proc_id; /* struct process; 0: not a selected process */

	/* HEAD, END and CLOSE */
	uint64_t connection; /* socket cookie: the connection's identity for life */
	enum event_role role;
	uint32_t exchange; /* of HEAD and END */

	union {
		struct event_head head;
		struct {
			enum event_close what;
			uint32_t error;  /* sk_err of the socket, e.g. ECONNRESET; 0: none */
			bool has_unseen; /* response bytes passed by a way that is not watched
					    (splice) */
		} close;
		struct {
			enum event_process what;
			uint32_t parent_pid; /* FORK */
			uint64_t start_ns;   /* CLOCK_BOOTTIME */
			uint64_t exec_id;
			uint16_t port; /* LISTEN */
		} process;
		uint64_t goroutine; /* of GOROUTINE */
	};
};
