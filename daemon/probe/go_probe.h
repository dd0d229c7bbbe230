/*
 * Probes in Go programs, beside the tap in use and with its maps: see bpf/go.bpf.c. daemon's
 * go_units.c says which programs and where. A kernel that refuses them costs Go programs the
 * parents of their calls, nothing else.
 */
#pragma once

#include <stdint.h>

#include "probe/probe.h"
#include "probe/uprobe.h"

/* Layouts are numbered from 1 below this. */
#define GO_PROBE_LAYOUTS_MAX 512

struct go_probe;

/*
 * Shares the maps of 'p', which must outlive it. Returns 0, GO_PROBE_REFUSED with the reason, or
 * a negative errno.
 */
enum { GO_PROBE_REFUSED = 1 };
int go_probe_new(struct probe *p, struct go_probe **ret, struct probe_refusal *ret_refusal);
void go_probe_free(struct go_probe *g); /* NULL is allowed; detach first */
DEFINE_CLEANUP(struct go_probe *, go_probe_free)

/* Packages that route requests, in the order of their sites. */
enum go_probe_router {
	GO_PROBE_ROUTER_GIN,
	GO_PROBE_ROUTER_GIN_NEXT,
	GO_PROBE_ROUTER_ECHO,
	GO_PROBE_ROUTER_ECHO_5,
	GO_PROBE_ROUTER_CHI,
	GO_PROBE_ROUTER_GORILLA,
	_GO_PROBE_ROUTER_MAX,
};

/*
 * How a router's object leads to the route, and says whose it is (struct go_route_layout of
 * bpf/abi.h). Without padding: layouts are compared as bytes.
 */
struct go_probe_router_layout {
	uint32_t is_known, text, is_text, owner, via, has_via;
};

/* Likewise net/http's server. */
struct go_probe_routes {
	uint32_t has_patterns;
	uint32_t g_stack, conn_bufw, writer_buf, conn_cur_req, response_conn, response_req;
	uint32_t request_pattern, pattern_points, pattern_str;
	struct go_probe_router_layout routers[_GO_PROBE_ROUTER_MAX];
	uint64_t echo_context;
};

/* Offsets of fields, in bytes. */
struct go_probe_layout {
	uint32_t g_m, g_goid, m_curg;
	bool has_calls; /* these are known: */
	uint32_t persist_conn_bw, persist_conn_closed, writer_buf;
	uint32_t g_gopc;
	uint64_t dial_conn,
		dial_conn_bytes; /* the code of (*Transport).dialConn; 0: there is none */
	bool has_contexts;       /* these are known, and requests are followed into goroutines: */
	uint32_t call_request, request_ctx;
	uint32_t value_ctx_context, cancel_ctx_context, without_cancel_ctx_c;
	uint32_t timer_ctx_cancel_ctx;
	bool timer_ctx_points; /* there is a pointer to a cancelCtx, not the cancelCtx itself */
	uint32_t value_ctx_val, gin_context_request;
	uint64_t value_ctx, cancel_ctx, timer_ctx, without_cancel_ctx; /* types; 0: there is none */
	uint64_t gin_context, context_interface, server;               /* likewise */
	struct go_probe_routes routes;
};

/* Where a program is probed; offsets in its file. */
enum go_probe_site {
	GO_PROBE_ROUND_TRIP, /* net/http.(*persistConn).roundTrip */
	GO_PROBE_SERVE,      /* net/http.serverHandler.ServeHTTP */
	GO_PROBE_READ,  /* or behind the call of (*conn).readRequest in net/http.(*conn).serve */
	GO_PROBE_BEGIN, /* the call of runtime.runqput in runtime.newproc.func1 */
	GO_PROBE_BEGUN, /* or behind that of runtime.newproc1 */
	GO_PROBE_END,   /* runtime.goexit0 */
	GO_PROBE_GIN,   /* where each router has its object for a request */
	GO_PROBE_GIN_NEXT,
	GO_PROBE_ECHO,
	GO_PROBE_ECHO_5,
	GO_PROBE_CHI,
	GO_PROBE_GORILLA,
	_GO_PROBE_SITE_MAX,
};

/* For processes that are set with this number from now on. Returns 0 or a negative errno. */
int go_probe_set_layout(struct go_probe *g, uint32_t number, const struct go_probe_layout *layout);

struct go_probe_place {
	int fd;                   /* the file */
	struct file_lease *lease; /* see struct uprobe_options */
	enum go_probe_site site;
	uint64_t offset;
};

/* Probes one place of a file. Returns 0 or a negative errno. */
int go_probe_attach(struct go_probe *g, const struct go_probe_place *place, struct uprobe **ret);

/* Takes the uprobe over; it is gone some time after. NULL is allowed. */
void go_probe_detach(struct go_probe *g, struct uprobe *u);

/*
 * Whether a goroutine of some process that holds no request has made a call since this was asked
 * last; and whether one of that process ever has.
 */
bool go_probe_has_orphans(struct go_probe *g);
bool go_probe_is_orphan(const struct go_probe *g, uint32_t pid);

/*
 * Drops calls that were never sent, and goroutines of processes that have ended, some at a time.
 * Call it every second or so.
 */
void go_probe_sweep(struct go_probe *g, uint64_t now_monotonic_ns);
