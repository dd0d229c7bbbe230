/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The one header that the kernel side and user space share: records of the ring, keys and values of
 * the maps, limits, and the counters of the kernel side. Included by bpf/, agent/,
 * daemon/event and daemon/probe alone.
 *
 * Fixed-width types, explicit padding, sizes asserted on both sides. All times are CLOCK_MONOTONIC
 * in nanoseconds; ports are in host order; addresses and ids in network order.
 */
#pragma once

#ifdef __BPF__
#include "kernel.h"
#else
#include <linux/types.h>
#endif

/* Bytes of a head that are copied and scanned at a time; longer heads come in several records. */
#define HEAD_WINDOW 2048
/* Bytes of an unfinished line that are carried from one window to the next. */
#define LINE_CARRY 96
/* Requests of one connection that may be unanswered; more, and the connection is given up. */
#define PIPELINE_MAX 64
/*
 * Requests a unit of work remembers, open or not; with a second one open it is a loop (struct
 * unit).
 */
#define UNIT_REQUESTS_MAX 4
/* Bytes of a route; of a longer one nothing is told. */
#define ROUTE_BYTES_MAX 128

enum record_type {
	RECORD_HEAD = 1,
	RECORD_END = 2,
	RECORD_CLOSE = 3,
	RECORD_PROCESS = 4,
	RECORD_GOROUTINE = 5,
};

enum role { ROLE_UNKNOWN = 0, ROLE_SERVER = 1, ROLE_CLIENT = 2 };

struct record_header {
	__u16 type; /* enum record_type */
	__u8 role;  /* enum role */
	__u8 pad;
	__u32 length; /* of the whole record */
	__u64 time_ns;
	__u64 connection; /* socket cookie, 0 for RECORD_PROCESS */
	__u32 pid;
	__u32 tid;
	__u32 proc_id;  /* 0: of a child that was forked just now, and is told by its pid (struct
			   proc) */
	__u32 exchange; /* from 1 */
};
_Static_assert(sizeof(struct record_header) == 40, "record_header");

enum head_flags {
	HEAD_REQUEST = 1 << 0,
	HEAD_START = 1 << 1,
	HEAD_END = 1 << 2,
	HEAD_COMPLETE = 1 << 3,
	HEAD_TRUNCATED = 1 << 4,
	HEAD_DECISION = 1 << 5,
	/*
	 * Of a server's response: who sends it. Neither: it is not known whether the thread that
	 * received the request works for it to the end.
	 */
	HEAD_BY_RECEIVER = 1 << 6,
	HEAD_HANDED_OVER = 1 << 7,
};

/*
 * Why a head has the parent it has; the values are those of enum parent_reason in
 * daemon/model/event.h.
 */
enum decision_reason {
	DECISION_UNDECIDED,
	DECISION_HEADER,
	DECISION_JOINED,
	DECISION_UNIT,
	DECISION_NONE_REMOTE,
	DECISION_NONE_NO_UNIT,
	DECISION_NONE_NO_REQUEST,
	DECISION_NONE_AMBIGUOUS,
	DECISION_NONE_TRUNCATED,
	DECISION_NONE_LATE,
	_DECISION_MAX,
};

struct trace_ids {
	__u8 trace_id[16];
	__u8 span_id[8];
};

/* What the route of a server's response is, as its program has it (route.bpf.h). */
enum route_kind {
	ROUTE_NONE,
	ROUTE_PATTERN,  /* of net/http.ServeMux: "[METHOD ][HOST]/path" */
	ROUTE_TEMPLATE, /* of the path alone */
	ROUTE_CHI,      /* chi's patterns of a router and of those below it, one behind the other */
	_ROUTE_KIND_MAX,
};

/*
 * One decision a request head, taken before its bytes leave (client) or when its end was received
 * (server).
 */
struct decision {
	struct trace_ids ids;
	__u8 parent_span_id[8];
	__u8 flags;     /* W3C trace flags */
	__u8 reason;    /* enum decision_reason */
	__u8 is_unit;   /* server: its thread is a unit of work, calls may get it as their parent */
	__u8 is_proven; /* the threads of its process were seen to answer what they received */
	/*
	 * Client: its goroutine was begun by the request, no more is known. It is borne out when
	 * the goroutine ends with the request (RECORD_GOROUTINE).
	 */
	__u8 is_inherited;
	/*
	 * User space may find that it is of another trace: it hangs on a call whose parent is not
	 * certain. Its ids must not leave this host.
	 */
	__u8 is_doubtful;
	__u8 is_logical; /* 'goroutine' is a JVM's context in its place */
	__u8 pad;
	/* Id of the one that received, or called; 0: none */
	__u64 goroutine;
	/*
	 * Of an inherited call: the goroutine that began the caller, which the request did not begin
	 * itself; its end is told as well. 0: the request's own, or it has ended.
	 */
	__u64 elder;
};
_Static_assert(sizeof(struct decision) == 56, "decision");

struct record_head {
	struct record_header header;
	__u64 offset; /* in its stream, of data[0] */
	__u64 head_start_ns;
	__u8 local_address[16]; /* IPv4 in the first four bytes */
	__u8 remote_address[16];
	__u16 local_port;
	__u16 remote_port;
	__u16 family; /* AF_INET, AF_INET6 */
	__u16 flags;  /* enum head_flags */
	__u32 data_length;
	__u16 route_kind; /* enum route_kind; with HEAD_END of a server's response */
	__u16 route_length;
	struct decision decision;
	__u8 data[]; /* data_length bytes, and behind them route_length */
};
_Static_assert(sizeof(struct record_head) == 160, "record_head");

struct record_end {
	struct record_header header;
};

enum close_what {
	CLOSE_PEER_FIN = 1,  /* the peer sends no more; what it sent may not be read yet */
	CLOSE_LOCAL_FIN = 2, /* this end sends no more: a server's open exchanges are over */
	CLOSE_READ_END = 3,  /* a client has read the end of a response that lasts to the close */
	CLOSE_DONE = 4,      /* TCP_CLOSE: all open exchanges are over */
};

struct record_close {
	struct record_header header;
	__u32 what;       /* enum close_what */
	__u32 error;      /* sk_err */
	__u32 has_unseen; /* bytes of a response passed by a way that is not watched, or could not
			     be read */
	__u32 pad;
};
_Static_assert(sizeof(struct record_close) == 56, "record_close");

enum process_what { PROCESS_EXEC = 1, PROCESS_FORK = 2, PROCESS_EXIT = 3, PROCESS_LISTEN = 4 };

struct record_process {
	struct record_header header;
	__u32 what; /* enum process_what */
	__u32 parent_pid;
	__u64 start_ns; /* CLOCK_BOOTTIME */
	__u64 exec_id;
	__u32 port; /* PROCESS_LISTEN */
	__u32 pad;
};
_Static_assert(sizeof(struct record_process) == 72, "record_process");

/* A goroutine that made a call for the request that it was begun by has ended. */
struct record_goroutine {
	struct record_header header; /* no connection, no exchange */
	__u64 goroutine;
};
_Static_assert(sizeof(struct record_goroutine) == 48, "record_goroutine");

/* --- map 'procs': the selected processes, written by user space, by thread group id */

enum proc_flags {
	PROC_THREAD_UNITS =
		1 << 0, /* its threads are units of work where they receive on blocking sockets */
	PROC_PASSES_ON = 1 << 1,  /* its forked children are followed as it is, at once */
	PROC_PROPAGATES = 1 << 2, /* its requests carry 'traceparent' on (insert.bpf.h) */
};

/* What the kernel side saw of a process, for the "why is there no span" report. */
enum proc_seen {
	PROC_SEEN_HTTP1 = 1 << 0,
	PROC_SEEN_HTTP2 = 1 << 1,
	PROC_SEEN_TLS = 1 << 2,
	PROC_SEEN_OTHER = 1 << 3,
	PROC_SEEN_UNIX_HTTP = 1 << 6, /* HTTP/1 on a Unix socket */
	PROC_SEEN_ORPHAN = 1 << 5,    /* a goroutine that holds no request made a call */
	PROC_SEEN_IO_URING =
		1 << 4, /* receives that io_uring may have made, and no tap could read */
};

struct proc {
	/*
	 * 0: the kernel side put it here at a fork whose record is in the ring. All that it sends
	 * comes behind that record, so its pid tells who it is.
	 */
	__u32 proc_id;
	__u32 flags;      /* enum proc_flags, by user space */
	__u32 seen;       /* enum proc_seen, by the kernel side */
	__u32 hands_over; /* by the kernel side, for good: its threads are no units (context.bpf.h)
			   */
	__u32 answered;  /* by the kernel side: responses by the receiver's thread, to ANSWERS_PROVE
			   */
	__u32 go_layout; /* by user space: of its Go program in 'go_layouts'; 0: none */
	__u64 go_bias; /* by user space: the program's addresses are those of its file plus this */
	/*
	 * By user space: where the agent in its JVM has a thread's slot (struct jvm_slot), from the
	 * thread pointer; 0: there is no agent.
	 */
	__s64 jvm_slot;
	/*
	 * By user space: where the process has the code that Go's linker wrote, and how much it is; 0:
	 * not known. C in the same program, and in libraries, is elsewhere.
	 */
	__u64 go_text;
	__u64 go_text_bytes;
};

/* So many responses, each by the thread that received the request, and a process is proven. */
#define ANSWERS_PROVE 16

/*
 * Before 'procs' is looked up, a byte tells whether it is worth it: selected[pid % SELECTED_SLOTS]
 * is non-zero when a selected process falls on it. Written by user space, and by the kernel side for
 * a forked child; what all other processes of the host pay is this test.
 */
#define SELECTED_SLOTS 65536

/*
 * Likewise unjudged[pid % SELECTED_SLOTS]: user space has been told of the process (that it executed
 * something, or listens) and has not yet decided. Servers fork their workers at just that time, so
 * the forks of such a process are reported as well. Set by the kernel side; cleared by user space
 * when it has decided, and at the end of the process.
 */

/* --- map 'requests': server requests that are open, by connection and exchange */

struct request_key {
	__u64 connection;
	__u32 exchange;
	__u32 pad;
};

struct request {
	struct trace_ids ids;
	__u8 parent_span_id[8]; /* of the header that came in, else zero: a forwarded copy is known
				   by it */
	__u8 flags;
	/*
	 * It counts as open, but can be nobody's parent: its unit works for a request that we know
	 * too little of.
	 */
	__u8 is_blind;
	__u8 go_router;   /* of a Go server: enum go_router, whose object 'go_route' is */
	__u8 is_doubtful; /* struct decision */
	__u8 pad[4];
	__u64 go_context;     /* of a Go server: its entry in 'go_contexts'; 0: none */
	__u64 go_route;       /* likewise: its router's object for it, or the string; 0: none */
	__u64 go_route_owner; /* what the object says as long as it is for it; or the length */
};
_Static_assert(sizeof(struct request) == 64, "request");

/* --- map 'units': the requests that a unit of work has received and may still have open */

struct unit_key {
	__u32 pid;
	__u32 kind; /* enum unit_kind */
	__u64 id;   /* tid, goid, or a context of struct jvm_slot */
};

enum unit_kind {
	UNIT_NONE,
	UNIT_THREAD,
	UNIT_GOROUTINE,
	UNIT_LOGICAL, /* what the agent in a JVM says that a thread works for (struct jvm_slot) */
};

struct unit {
	struct request_key requests[UNIT_REQUESTS_MAX]; /* connection 0: free */
	__u32 is_loop; /* it took up a request while it had another one open: it follows no single
			  request, for good */
	__u32 is_lost; /* a loop only as long as the request lasts that had no room in 'requests' */
};

/*
 * --- memory of the agent in a JVM (agent/). It is the application's: a hint, never to be trusted.
 *
 * A context is a number that the agent gives to what a server's socket is about to receive: each
 * time that it is read for the first time since it was written. It is never given twice in the life
 * of the process, so one whose request was answered leads to nothing.
 */

#define JVM_SLOT_MAGIC 0x31746f6c736e7374ULL

/* Each thread's, at one distance from its thread pointer. Written by that thread alone. */
struct jvm_slot {
	__u64 magic;   /* JVM_SLOT_MAGIC; else nothing was written here yet */
	__u64 context; /* what the thread works for; 0: nothing; 1: surely for no request */
	__u64 receiving; /* while it reads from a server's socket: the context of what comes; else 0 */
	__u64 own[5];    /* of the agent */
};
_Static_assert(sizeof(struct jvm_slot) == 64, "jvm_slot");

#define JVM_CONTROL_MAGIC   "\x7ftsunagi-jvm-agent" /* with its NUL */
#define JVM_CONTROL_VERSION 1                       /* of this layout and of struct jvm_slot */

enum jvm_agent_state {
	JVM_AGENT_LOADING,
	JVM_AGENT_READY,
	JVM_AGENT_FAILED, /* 'reason' says why; nothing of the application was changed */
	JVM_AGENT_BROKEN, /* it was ready, and gave itself up: 'reason' says why */
};

/*
 * One for each agent in a process, in its writable data, on 64 bytes; the daemon finds it by its
 * magic number, also one that an earlier daemon loaded. 'enabled' alone is written from outside; it and
 * what is before it are at these places in all versions. Context.java has the places, too.
 */
struct jvm_control {
	char magic[24];
	__u32 version;
	__u32 state;        /* enum jvm_agent_state */
	__u32 enabled;      /* 0: slots are not written */
	__u32 hooks_failed; /* places of known classes that could not be hooked */
	__s64 slot;         /* as struct proc */
	__u64 classes;      /* rewritten */
	/* Jobs and messages that found the table of those on their way full, or a thread too deep. */
	__u64 handovers_lost;
	char build[40];   /* which agent this is */
	char reason[152]; /* NUL terminated */
};
_Static_assert(sizeof(struct jvm_control) == 256, "jvm_control");
_Static_assert(__builtin_offsetof(struct jvm_control, enabled) == 32, "jvm_control.enabled");
_Static_assert(__builtin_offsetof(struct jvm_control, reason) == 104, "jvm_control.reason");

/* --- map 'go_layouts': where the fields of a Go program's structures lie, by number from 1 */

#define GO_LAYOUTS_MAX 512

/* Packages that have a router of their own; each is probed where it has an object for a request. */
enum go_router {
	GO_ROUTER_GIN,
	GO_ROUTER_GIN_NEXT, /* the same, where its call of Next can be probed: then the route is known */
	GO_ROUTER_ECHO,
	GO_ROUTER_ECHO_5,
	GO_ROUTER_CHI,
	GO_ROUTER_GORILLA,
	_GO_ROUTER_MAX,
};

/*
 * Where such an object has its route. It is used again for other requests, so it also says whose it
 * is: at 'owner' in it, or in what its pointer at 'via' leads to.
 */
struct go_route_layout {
	__u32 is_known;
	__u32 text;    /* a string; of chi a slice of strings */
	__u32 is_text; /* the string is the program's for good, and is noted itself: no owner */
	__u32 owner;
	__u32 via;
	__u32 has_via;
};

struct go_layout {
	__u32 g_m, g_goid, m_curg;
	__u32 has_calls;           /* the rest is known */
	__u32 persist_conn_bw;     /* net/http.persistConn → *bufio.Writer */
	__u32 persist_conn_closed; /* → why it has ended, an interface; nil: it lives */
	__u32 writer_buf;          /* bufio.Writer → the first byte of its buffer */
	__u32 has_contexts;        /* the rest is known */
	__u32 call_request;        /* net/http.transportRequest → *Request */
	__u32 request_ctx;         /* net/http.Request → its context, an interface */
	/* What a context hangs on: another interface, in a structure of one of these types. */
	__u32 value_ctx_context, cancel_ctx_context, without_cancel_ctx_c;
	__u32 timer_ctx_cancel_ctx,
		timer_ctx_points;  /* there is a cancelCtx, or a pointer to one */
	__u32 value_ctx_val;       /* context.valueCtx → what it adds, an interface */
	__u32 gin_context_request; /* gin.Context → *Request */
	__u32 g_gopc;              /* runtime.g → the place of the go statement that began it */
	__u64 dial_conn, dial_conn_bytes; /* net/http.(*Transport).dialConn; 0: there is none */
	__u64 value_ctx, cancel_ctx, timer_ctx, without_cancel_ctx; /* types, 0: there is none */
	__u64 gin_context;                                          /* likewise */
	__u64 context_interface;                                    /* context.Context */
	__u64 server; /* net/http.Server: what the contexts of all its requests lead to */
	/* net/http's server, from the stack of its goroutine to the route of what it answers. */
	__u32 has_patterns;
	__u32 g_stack;         /* runtime.g → its ends, lower and upper */
	__u32 conn_bufw;       /* net/http.conn → *bufio.Writer */
	__u32 conn_writer_buf; /* bufio.Writer → the first byte of its buffer */
	__u32 conn_cur_req;    /* net/http.conn → *response */
	__u32 response_conn, response_req;
	__u32 request_pattern; /* net/http.Request → string; or → *pattern, */
	__u32 pattern_points;
	__u32 pattern_str; /* and there → string */
	__u32 has_routers; /* one of these is known: */
	__u32 pad2;
	struct go_route_layout routers[_GO_ROUTER_MAX];
	__u64 echo_context; /* type */
};

/*
 * --- map 'go_calls': requests that net/http's transport was handed and has not sent yet, by the
 * buffer that they will be sent from
 */

struct go_call_key {
	__u64 buffer;
	__u32 pid;
	__u32 pad;
};

struct go_call {
	struct request_key request; /* of reason DECISION_UNIT */
	__u8 reason;                /* enum decision_reason */
	__u8 is_inherited;          /* struct decision */
	__u8 is_shared; /* of a connection that several goroutines hand requests to: it stays */
	__u8 pad[5];
	__u64 goroutine; /* the caller */
	__u64 elder;     /* struct decision */
	__u64 persist_conn;
	__u64 time_ns;
};

/* --- map 'go_contexts': contexts of requests that are open, by the address of the context */

struct go_context_key {
	__u64 context;
	__u32 pid;
	__u32 pad;
};

/*
 * --- map 'go_children': goroutines that were begun by one that worked for a request, by struct
 * unit_key, until they end
 */

struct go_child {
	struct request_key request;
	__u64 elder;      /* struct decision */
	__u32 has_called; /* its end is to be told */
	__u32 pad;
};

/*
 * --- map 'joins': requests on their way between two sockets of this host, by TCP sequence numbers
 */

struct join_key {
	__u32 request;  /* sequence number of the head's first byte */
	__u32 response; /* of the first byte of its response: what the client has read up to */
};

struct join {
	struct trace_ids ids;
	__u64 connection; /* of the client */
	__u8 flags;
	__u8 is_doubtful; /* struct decision */
	__u8 pad[6];
};

/* What a test lets go wrong, as bits of 'insert_faults'. */
enum insert_fault {
	INSERT_FAULT_LINE = 1 << 0,     /* a line is not what it should be */
	INSERT_FAULT_TAKE_OUT = 1 << 1, /* nor what it was, when it has been taken out again */
};

/* --- map 'insertions': sockets of which requests may carry 'traceparent' on */

struct insertion {
	__u32 is_off; /* something went wrong once: never again on this connection */
	__u32 pid;    /* who connected it; 0 when user space took it in */
};

/*
 * Queue 'leaving': connections that user space is to take out of the map, to be plain ones again; only
 * it can.
 */
enum leave_why {
	LEAVE_PASSED_ON, /* a process sends on it that is not to be touched: it was forked, was sent
			       the socket, or has executed something else */
	LEAVE_NOT_FOLLOWED, /* what is sent is no HTTP/1, or has become something else */
	LEAVE_BLOCKING,     /* whoever made it so may wait in ways that Go does not */
	LEAVE_NAGLE,        /* a message in two pieces would wait for the peer */
	_LEAVE_MAX,
};
#define LEAVING_MAX 1024

struct leave {
	__u64 cookie;
	__u32 why; /* enum leave_why */
	__u32 pad;
};

/* --- what mapped.bpf.c writes: the file behind a mapping, as the kernel knows it */

struct mapped_file {
	__u64 address; /* of its inode: no two files have one at a time, which on btrfs is not so of
			  numbers */
	__u64 number;
	__u32 device; /* of its file system, in the kernel's encoding */
	__u32 generation;
};
_Static_assert(sizeof(struct mapped_file) == 24, "mapped_file");

/* --- what handlers.bpf.c writes: what a process does with SIGQUIT */

struct quit_handler {
	__u64 handler; /* address of its function; 0, 1: none, it is ended or ignores it */
	__u32 pid;
	__u32 reserved;
};
_Static_assert(sizeof(struct quit_handler) == 16, "quit_handler");

/* --- counters of the kernel side: X(identifier, "name", "help"), per CPU, summed by the reader */

#define KERNEL_COUNTERS(X)                                                                        \
	X(COUNT_LOST_REQUEST_SERVER, "lost_request_server",                                       \
	  "server requests lost: the ring was full (no span, no children)")                       \
	X(COUNT_LOST_REQUEST_CLIENT, "lost_request_client",                                       \
	  "client requests lost: the ring was full (no span)")                                    \
	X(COUNT_LOST_RESPONSE, "lost_response",                                                   \
	  "responses lost: the ring was full (their spans say not_observed)")                     \
	X(COUNT_LOST_END, "lost_end", "ends of responses lost: the ring was full")                \
	X(COUNT_LOST_CLOSE, "lost_close", "ends of connections lost: the ring was full")          \
	X(COUNT_LOST_PROCESS, "lost_process", "process events lost: the ring was full")           \
	X(COUNT_NO_STATE, "no_state",                                                             \
	  "events not followed: no memory or no room for the socket's state")                     \
	X(COUNT_RECEIVINGS_FULL, "receivings_full",                                               \
	  "receives not followed: the table of those under way was full (kprobe tap)")            \
	X(COUNT_REQUESTS_FULL, "requests_full", "contexts not opened: the table was full")        \
	X(COUNT_UNITS_FULL, "units_full", "contexts without a unit: the table was full")          \
	X(COUNT_JOINS_FULL, "joins_full",                                                         \
	  "client requests not offered for a join: the table was full")                           \
	X(COUNT_PIPELINE_FULL, "kernel_pipeline_full",                                            \
	  "connections given up: too many unanswered requests")                                   \
	X(COUNT_GAP, "gap", "bytes passed unseen outside of a body: the stream is out of step")   \
	X(COUNT_GAP_BODY, "gap_body", "bytes of a body passed unseen (sendfile, splice)")         \
	X(COUNT_OUT_OF_STEP, "out_of_step",                                                       \
	  "streams that lost their step: bytes that are no HTTP/1")                               \
	X(COUNT_BACK_IN_STEP, "back_in_step", "streams that found their step again")              \
	X(COUNT_NOT_HTTP, "not_http", "connections that do not speak HTTP/1")                     \
	X(COUNT_TUNNEL, "tunnel", "connections that became a tunnel (CONNECT, Upgrade)")          \
	X(COUNT_UNREADABLE, "unreadable", "reads of user memory that failed")                     \
	X(COUNT_NO_CONTENT, "no_content", "calls whose bytes cannot be seen")                     \
	X(COUNT_HEAD_TRUNCATED, "head_truncated", "heads longer than http.head_bytes_max")        \
	X(COUNT_TRACEPARENT_INVALID, "traceparent_invalid",                                       \
	  "traceparent headers that were not valid")                                              \
	X(COUNT_HANDS_OVER, "hands_over",                                                         \
	  "processes whose threads are no units: a response was sent by another thread than "     \
	  "received the request")                                                                 \
	X(COUNT_UNIX_HTTP, "unix_http",                                                           \
	  "requests and responses sent on Unix sockets, which are not followed")                  \
	X(COUNT_MPTCP, "mptcp", "events on MPTCP sockets, which are not followed")                \
	X(COUNT_STEPS, "steps", "calls with too many lines or chunks to follow")                  \
	X(COUNT_ORPHAN_RESPONSE, "orphan_response", "responses to requests that were not seen")   \
	X(COUNT_GO_CONTEXTS_FULL, "go_contexts_full",                                             \
	  "contexts of Go requests not noted: the table was full")                                \
	X(COUNT_GO_CHILDREN_FULL, "go_children_full",                                             \
	  "goroutines whose request was not noted: the table was full")                           \
	X(COUNT_LOST_GOROUTINE, "lost_goroutine",                                                 \
	  "ends of goroutines lost: the ring was full (their calls have no parent)")              \
	X(COUNT_GO_CALLS_FULL, "go_calls_full",                                                   \
	  "calls of Go programs without a parent: the table was full")                            \
	X(COUNT_GO_UNREADABLE, "go_unreadable",                                                   \
	  "probes in Go programs that could not read what they were met with")                    \
	X(COUNT_GO_CONN_UNKNOWN, "go_conn_unknown",                                               \
	  "connections whose net/http.conn was not found (their spans have no pattern's route)")  \
	X(COUNT_GO_ROUTE_LONG, "go_route_long",                                                   \
	  "routes of Go servers that are longer than 128 bytes (their spans have none)")          \
	X(COUNT_JVM_CONTEXTS_FULL, "jvm_contexts_full",                                           \
	  "contexts of JVM requests dropped: the request came under more than four")              \
	X(COUNT_JVM_AMBIGUOUS, "jvm_ambiguous",                                                   \
	  "contexts of JVMs under which more than one request of a connection came")              \
	X(COUNT_IO_URING, "io_uring",                                                             \
	  "receives of threads that use io_uring, whose bytes this tap cannot see")               \
	X(COUNT_INSERTED, "inserted", "requests that were sent with our traceparent")             \
	X(COUNT_INSERT_OWN, "insert_own",                                                         \
	  "requests without ours: the application sends its own traceparent")                     \
	X(COUNT_INSERT_DOUBTFUL, "insert_doubtful",                                               \
	  "requests without ours: whom they are made for is not certain yet")                     \
	X(COUNT_INSERT_UNPROVEN, "insert_unproven",                                               \
	  "requests without ours: that one begins there is not proven")                           \
	X(COUNT_INSERT_PIPELINED, "insert_pipelined",                                             \
	  "requests without ours: sent before the one ahead was answered")                        \
	X(COUNT_INSERT_METHOD, "insert_method", "requests without ours: CONNECT")                 \
	X(COUNT_INSERT_LOST, "insert_lost",                                                       \
	  "requests without ours: their record was lost or their head truncated")                 \
	X(COUNT_INSERT_LIMIT, "insert_limit",                                                     \
	  "requests without ours: the head is just below what many servers take")                 \
	X(COUNT_INSERT_BLANK, "insert_blank",                                                     \
	  "requests without ours: the head does not end with a line end in one piece")            \
	X(COUNT_INSERT_SOCKET, "insert_socket",                                                   \
	  "requests without ours: the socket is in a special mode, or closing")                   \
	X(COUNT_INSERT_NO_ROOM, "insert_no_room",                                                 \
	  "requests without ours: the socket has no room for the whole of it")                    \
	X(COUNT_INSERT_NO_MEMORY, "insert_no_memory", "requests without ours: no memory for it")  \
	X(COUNT_INSERT_UNDONE, "insert_undone",                                                   \
	  "connections without ours: a line was not what it should be, and taken out")            \
	X(COUNT_INSERT_DROPPED, "insert_dropped", "sends refused: a line could not be taken out") \
	X(COUNT_INSERT_FULL, "insert_full",                                                       \
	  "connections without ours: the table is full, or somebody else has the socket")         \
	X(COUNT_INSERT_NOT_GO, "insert_not_go",                                                   \
	  "connections without ours: blocking, or not made by Go's own code")                     \
	X(COUNT_INSERT_ZERO_COPY, "insert_zero_copy",                                             \
	  "connections without ours: the application sends from pages of its own")                \
	X(COUNT_INSERT_NETWORK, "insert_network",                                                 \
	  "connections without ours: made in another network than that of the process")           \
	X(COUNT_INSERT_BUSY, "insert_busy",                                                       \
	  "sends not followed: the memory for it was in use (preemptible kernels)")

#define KERNEL_COUNTER_ENUM(id, name, help) id,
enum kernel_counter { KERNEL_COUNTERS(KERNEL_COUNTER_ENUM) _KERNEL_COUNTER_MAX };
