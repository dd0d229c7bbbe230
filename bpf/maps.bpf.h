/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Every map of the kernel side, with who writes it, who reads it, its bound and who frees its
 * entries. Sizes are those of the default configuration; probe/ sets them from the config before
 * loading.
 */
#pragma once

#include "abi.h"
#include "http.h"

#define LICENSE_TEXT "Dual MIT/GPL"

/* Set by probe/ before loading. */
const volatile __u32 head_bytes_max = 16384;

#ifdef INSERTS
/* For tests: what goes wrong in insert.bpf.h (enum insert_fault). The verifier leaves out what is 0. */
const volatile __u32 insert_faults;
#endif

/*
 * The variables that follow are those of the tap in use. An object that is loaded beside it and needs
 * them shares them (probe_share_variables()): it has no others that are written.
 */

/*
 * No connection is taken into 'sockets': written by probe/, from whatever thread, read by insert.bpf.h.
 */
volatile __u32 insert_is_closed;

/*
 * The id of 'sockets', written by probe/ before anything is in it. Sockets in the map hold the program
 * for messages: if that referred to the map, both would outlive the daemon, and insert without it.
 */
volatile __u32 sockets_id;

/*
 * Written by the reader when it is about to sleep: the next record then wakes it. While it is awake
 * it polls every few milliseconds and records do not wake it, which was the largest single saving
 * measured.
 */
volatile __u32 reader_sleeps;

/*
 * Whether a selected process has a pid of this slot (abi.h): tested before 'procs' is looked up,
 * and the end of the matter for nearly all other processes. Written by probe/, behind the entry in
 * 'procs', and set at a fork (life.bpf.h); read by every program that is told of bytes. A byte too
 * many costs a look-up, no more.
 */
__u8 selected[SELECTED_SLOTS];

/*
 * Whether user space has yet to decide about a process of this slot (abi.h). Set in life.bpf.h and
 * on_state(), cleared by probe/ and at an exit; read at forks. A byte too many costs a record for
 * each fork; one that is cleared early, by a process of the same slot, a worker that is not traced.
 */
__u8 unjudged[SELECTED_SLOTS];

/*
 * Changes whenever 'procs' does, so that a connection may remember what it found there. Starts
 * at 1.
 */
volatile __u32 procs_generation = 1;

/*
 * ring: records for user space (abi.h). Written by emit.bpf.h alone, read by event/. Full: the
 * record is lost and counted, and what depends on it is not published.
 */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 2 << 20);
} ring SEC(".maps");

/*
 * procs: the selected processes, thread group id → struct proc. Written by user space, but for
 * children that are forked (life.bpf.h), and 'seen', 'hands_over' and 'answered', which the kernel
 * side finds out. Read by the taps, and by user space for what was seen. Freed by user space, and by
 * the exit and exec of the process. Full: the process is not traced, and says so.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct proc);
} procs SEC(".maps");

/*
 * requests: open server requests of processes whose threads are units → their ids. Written when the
 * head's record is in the ring or was lost; the latter, and others of which too little is known,
 * are blind: they count as open and are nobody's parent. User space makes an entry blind, and no
 * more. Deleted when the response has left, when the server's end has sent its FIN, with the
 * connection, and when nobody can tell any more whether it was answered. Full: the newest is not
 * opened (its calls have no parent), counted. Allocated in advance: entries come and go with every
 * request.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct request_key);
	__type(value, struct request);
} requests SEC(".maps");

/*
 * units: units of work → the requests they received. Written by the unit itself only, so without a
 * lock; entries that 'requests' no longer has are dead and purged at the next write. Freed at the
 * thread's exit, or with the request of a goroutine or of a JVM's context; by user space when the
 * process of a goroutine that was a loop is gone.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct unit_key);
	__type(value, struct unit);
} units SEC(".maps");

/*
 * go_layouts: Go programs → where their fields lie. Written by user space before a process gets the
 * number. Never freed, but for another program: they are few.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GO_LAYOUTS_MAX);
	__type(key, __u32);
	__type(value, struct go_layout);
} go_layouts SEC(".maps");

/*
 * go_calls: requests that were handed to net/http's transport → whom they are made for. Written by
 * go.bpf.c, deleted by the send. One that is never sent leaves its entry to the next of the same
 * buffer; user space sweeps up the others. Full: the call has no parent, counted.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct go_call_key);
	__type(value, struct go_call);
} go_calls SEC(".maps");

/*
 * go_contexts: contexts that net/http made for requests → the request, where calls carry them.
 * Written by go.bpf.c, deleted with the request. Full: not noted, counted.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct go_context_key);
	__type(value, struct request_key);
} go_contexts SEC(".maps");

/*
 * go_children: goroutines → the request that they were begun for. Written by go.bpf.c where one is
 * begun, deleted where it ends, and swept up by user space when their process is gone. Full: not
 * noted, counted.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, struct unit_key);
	__type(value, struct go_child);
} go_children SEC(".maps");

/*
 * joins: requests under way from a traced client, for a server on the same host to find. Written
 * before the bytes leave; deleted by the server that takes it, by the response, or by the end of
 * the client's connection.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct join_key);
	__type(value, struct join);
} joins SEC(".maps");

/* counters: enum kernel_counter → count, per CPU. Written by count(), read by probe/. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, _KERNEL_COUNTER_MAX);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

/* Where a call's bytes are. */
enum source_kind {
	SOURCE_NONE,
	SOURCE_BUFFER,
	SOURCE_USER_IOVEC,
	SOURCE_KERNEL_IOVEC, /* the vector is in the kernel, the bytes in user memory */
	SOURCE_MESSAGE,      /* both are in the kernel (insert.bpf.h) */
};

struct source {
	__u64 base;     /* of the buffer or the vector */
	__u64 skip;     /* bytes of the first segment that are done with */
	__u32 segments; /* of a vector */
	__u32 kind;     /* enum source_kind */
	/*
	 * Of a vector, which is walked once: where the walk has got to, and what lies in front of
	 * it.
	 */
	__u32 first;
	__u32 pad;
	__u64 first_at;
};

/*
 * The record under construction lies at the start of the buffer, a window of bytes behind it; see
 * stream.bpf.h.
 */
#define WINDOW_AT (sizeof(struct record_head))

/* "traceparent: 00-", trace id, '-', span id, '-', flags, line end */
#define LINE_BYTES 70
/* Of a message: the kernel's MAX_SKB_FRAGS, if it was not made larger. */
#define MESSAGE_PIECES 18

struct piece {
	__u64 base, length; /* as struct iovec has them */
};

struct work {
	struct scan scan;
	struct source source;
	__u64 now_ns;
	__u64 bytes;  /* of this call */
	__u64 at;     /* of them done with */
	__u64 copied; /* gather(): bytes copied, and where the next segment starts in the message */
	__u64 segment_at;
	__u32 segment; /* gather(): the one to look at next */
	__u32 pad;
	__u64 want_from;
	__u32 want;
	__u32 pos, end;   /* in 'buffer' */
	__u32 ack;        /* sequence position of the other direction */
	__u32 failed;     /* gather(): a segment cannot be read */
	__u32 unfinished; /* the window ends in mid-line */
	__u32 result;     /* enum line_result of the last line */
	__u32 is_tx;
	__u32 pid, tid, proc_id, proc_flags;
	__u32 is_blocking;
	__u32 may_fail;       /* a send that finds no room */
	__u32 is_proven;      /* of the process (abi.h) */
	__u32 slot;           /* of 'works' that this is */
	__u32 go_layout;      /* of the process (abi.h) */
	__u64 g;              /* of a Go program: what its register has */
	__s64 jvm_slot;       /* of the process (abi.h); if not 0: */
	__u64 thread_pointer; /* 0: it is not this thread that does it */
	__u32 has_children;   /* goroutines that it begins are noted */
	/* route_find(): of a response; behind its head in the window */
	__u16 route_kind, route_length;
	struct unit_key unit; /* who works here */
	/* unit_request(): what it works for */
	__u64 caller, elder; /* goroutines (struct decision), 0: none */
	__u32 unit_reason, is_inherited;
	struct decision decision;
	struct request parent; /* unit_request(): the one that is open */
	/* Requests whose heads ended in this call, decided, and where the newest one's did. */
	__u32 requests;
	__u32 request_end;
#ifndef BASIC
	/* Of a message that passes insert.bpf.h: */
	__u64 users;                         /* of this memory, and who would be (slot_take()) */
	__u64 user_buffer;                   /* where the application had it; 0: unknown */
	struct piece pieces[MESSAGE_PIECES]; /* where it lies now */
	__u8 line[LINE_BYTES + 2];           /* the one that goes in, and the blank one behind it */
#endif
};

/*
 * The kernel skips a program that is running already on that CPU. Where the kernel is preemptible
 * one task may be preempted inside a program, and the next ones would go unseen until it continues.
 * So there are copies of a program at the same place: whatever the first has followed already the
 * others skip, what it missed they follow. Each has scratch memory of its own, since one may be
 * preempted by another.
 */
#define COPIES 4

enum work_slot {
	WORK_RECV = 0,
	WORK_SEND_START = WORK_RECV + COPIES,
	WORK_SEND_PAGES = WORK_SEND_START + COPIES,
	WORK_SEND_END,
	WORK_INSERT = WORK_SEND_END + COPIES,
	_WORK_MAX = WORK_INSERT + COPIES,
};

/* works: scratch memory, per CPU and program (enum work_slot + copy). */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, _WORK_MAX);
	__type(key, __u32);
	__type(value, struct work);
} works SEC(".maps");

#define LOGICAL_MAX 4 /* a power of two */

/* What a JVM's agent calls that under which bytes of a request came (jvm.bpf.h). */
struct logical {
	__u64 id;           /* 0: free */
	__u32 exchange;     /* 0: it is not known which one */
	__u32 is_ambiguous; /* more than one */
};

/* A connection as one of its ends sees it. */
struct conn {
	__u64 cookie;
	__u32 proc_id, pid; /* of the process that opened the newest exchange */
	/* What 'procs' said of the process that was here last, good for one generation. */
	__u32 known_pid, known_generation;
	struct proc known;
	__u32 opened;      /* exchanges begun: the newest one's number */
	__u32 responded;   /* exchanges whose response was seen to its last byte */
	__u32 closed;      /* exchanges that are over */
	__u32 done_seq;    /* server: the last byte's sequence number + 1 of the newest response
			      scanned */
	__u8 role;         /* enum role */
	__u8 off;          /* not followed (any more) */
	__u8 is_pipelined; /* a request began before the one ahead was answered */
	__u8 join_is_out;  /* 'join' is in the map */
	__u16 family;
	__u16 answer;       /* who_answers() of the newest response */
	__u64 methods_head; /* bit (exchange & 63): HEAD */
	__u64 methods_connect;
	__u64 lost;       /* bit: a record of the request was lost */
	__u64 published;  /* bit: the request's context is in 'requests' */
	__u64 told;       /* bit: the record of the response's head said that it is complete */
	__u32 unreported; /* an exchange of whose response a record was lost, and no later one got
			     through */
	__u32 unit_kind;  /* of the unit that received the newest request with a context */
	__u64 unit_id;
	struct logical logical[LOGICAL_MAX]; /* the newest, also of exchanges that are over */
	__u64 logical_dropped;               /* the highest that had no room */
	__u32 logical_next;                  /* so many were put into it; it may wrap */
	__u32 headed;      /* the exchange whose response has begun, interim ones aside */
	__u64 go_conn;     /* a Go server's net/http.conn; 0: not found, */
	__u32 go_searches; /* and so often looked for */
	__u32 sent_from;   /* where the newest send began of which something was new */
	struct join_key join;
	__u64 mmsg;      /* the vector of the last recvmmsg, */
	__u32 mmsg_tid;  /* who called it, */
	__u32 mmsg_sent; /* and tx.spoken at that time */
	__u16 local_port, remote_port;
	__u32 done; /* 'opened' when the end of the connection was told */
	__u8 local_address[16];
	__u8 remote_address[16];
#ifdef BASIC
	/* For a tap that is not told how a send ends (tap_kprobe.bpf.c). */
	__u64 withheld_msg; /* what the send under way did not show to on_send_start() */
	__u64 withheld_bytes;
	__u32 start_seq; /* where the newest send began, */
	__u32 has_start; /* if one was seen */
#else
	__u64 has_messages; /* what is sent is followed before TCP has it (insert.bpf.h) */
#endif
	struct stream rx, tx;
};

/*
 * conns: socket → its connection, by socket.bpf.h. Written by the taps; the kernel frees an entry
 * with its socket. BASIC: by the socket's address, freed when the socket is destroyed
 * (life.bpf.h). Full: the newest is not followed, counted.
 */
#ifndef BASIC
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct conn);
} conns SEC(".maps");
#else
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, __u64);
	__type(value, struct conn);
} conns SEC(".maps");
#endif

#ifdef INSERTS
/*
 * sockets: connections of processes whose requests are to carry 'traceparent' on (insert.bpf.h), by
 * cookie. Written by the kernel side when such a process has made a connection, and by user space
 * for those that were there before; the kernel takes a socket out when it closes. Full: requests on
 * the connection go without, counted.
 */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u64);
} sockets SEC(".maps");

/*
 * insertions: socket → what is known of it for that. Written where such a process begins to connect,
 * by user space where it puts a socket into 'sockets', and by the program for its messages; the
 * kernel frees an entry with its socket.
 */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct insertion);
} insertions SEC(".maps");

/*
 * leaving: connections that are to be taken out of 'sockets' (abi.h), by the program for messages.
 * User space takes them out of here and out of 'sockets'. Full: told at the next send.
 */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, LEAVING_MAX);
	__type(value, struct leave);
} leaving SEC(".maps");
#endif

#ifdef WAITS
/*
 * waiting: pid_tgid → bytes that were received, of threads that may have waited in a receive before
 * its function was probed (tap_fentry.bpf.c). Written by user space; freed when the receive is over,
 * at the thread's exit, and by user space. Full: the receive is not seen, counted.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u32);
} waiting SEC(".maps");
#endif

#ifdef BASIC
/* A receive under way, as its function's entry showed it. */
struct receiving {
	__u64 sk, msg;
	__u64 bytes; /* asked for */
	__u64 stack; /* pointer at entry */
	__u32 flags;
	__u32 seen; /* bytes that were dealt with */
	__u8 is_over;
	__u8 pad[7];
};

/*
 * receivings: pid_tgid → the receive that this thread makes, or the last one that it made. Written
 * and read by the thread itself alone (tap_kprobe.bpf.c); freed at its exit. Full: the receive is
 * not seen, counted.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct receiving);
} receivings SEC(".maps");
#endif

/*
 * Keys are copied to the stack: before Linux 6.2 they may not lie in memory that a subprogram was
 * given.
 */
static __always_inline struct proc *proc_of(const struct work *w)
{
	__u32 pid = w->pid;

	return bpf_map_lookup_elem(&procs, &pid);
}

SUBPROGRAM1(count, __u32, counter)
{
	__u64 *value = bpf_map_lookup_elem(&counters, &counter);

	if (value)
		(*value)++;
	return 0;
}
