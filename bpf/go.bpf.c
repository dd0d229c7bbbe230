/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Probes in Go programs, beside whatever tap is in use and with its maps. They are met by every
 * process that runs the executable; those that are not selected are none of our business.
 *
 * go_round_trip is always there, and those of routers where a program has them. The others follow
 * when a goroutine that holds no request makes a call: only programs that call so pay for them.
 *
 * A probe may be met twice for one call: at a stack check's jump again when the stack has grown.
 * All that is done here can be done twice.
 */
#include "emit.bpf.h"
#include "goroutine.bpf.h"

char LICENSE[] SEC("license") = LICENSE_TEXT;

/* Calls of goroutines that hold no request: user space looks whether there are new ones. */
volatile __u32 orphans;

/* The goroutine, and arguments, by Go's own calling convention (ABIInternal). */
#if defined(__TARGET_ARCH_x86)
#define GO_G(ctx)       ((ctx)->r14)
#define GO_FIRST(ctx)   ((ctx)->ax)
#define GO_SECOND(ctx)  ((ctx)->bx)
#define GO_FOURTH(ctx)  ((ctx)->di)
#define GO_SIXTH(ctx)   ((ctx)->r8)
#define GO_SEVENTH(ctx) ((ctx)->r9)
#elif defined(__TARGET_ARCH_arm64)
#define GO_REGISTER(ctx, n) (((const struct user_pt_regs *)(ctx))->regs[n])
#define GO_G(ctx)           GO_REGISTER(ctx, 28)
#define GO_FIRST(ctx)       GO_REGISTER(ctx, 0)
#define GO_SECOND(ctx)      GO_REGISTER(ctx, 1)
#define GO_FOURTH(ctx)      GO_REGISTER(ctx, 3)
#define GO_SIXTH(ctx)       GO_REGISTER(ctx, 5)
#define GO_SEVENTH(ctx)     GO_REGISTER(ctx, 6)
#endif

#define CONTEXTS_MAX 24 /* from a call's to its request's; real chains have 2 to 8 */

/*
 * internal/abi: Type; of a pointer's what it points to, of a struct's its fields, and of one of
 * these its type; runtime: itab.
 */
#define TYPE_POINTER_BYTES 8 /* up to its last pointer; 0: it holds none */
#define TYPE_KIND          23
#define KIND_MASK          31
#define KIND_POINTER       22
#define KIND_STRUCT        25
#define POINTER_ELEM       48
#define STRUCT_FIELDS      56
#define FIELD_TYPE         8
#define ITAB_TYPE          8
#define INTERFACE_DATA     8

struct go_process {
	const struct go_layout *layout;
	__u64 bias;
	__u32 pid;
};

/* False: not one of ours, or not understood. */
static __always_inline bool go_process(struct go_process *ret)
{
	const struct proc *proc;

	ret->pid = bpf_get_current_pid_tgid() >> 32;
	proc = bpf_map_lookup_elem(&procs, &ret->pid);
	if (!proc)
		return false;
	ret->layout = go_layout_of(proc->go_layout);
	ret->bias = proc->go_bias;
	return ret->layout != NULL;
}

/* Where a context leads. */
enum chain {
	CHAIN_OPEN,    /* to a request that is open */
	CHAIN_SERVED,  /* to one that is not known: it has been answered, or was not followed */
	CHAIN_NOBODY,  /* to none */
	CHAIN_UNKNOWN, /* to something that hides what it hangs on */
};

struct context {
	__u64 at;    /* where the interface lies; 0: it hangs on nothing that is known */
	__u8 chain;  /* what is known, then */
	bool served; /* a server made one of those that were met */
};

/* A valueCtx: whether what it adds is the server, as in the contexts of all its requests. */
static __always_inline bool adds_server(const struct go_process *p, __u64 data)
{
	__u64 type = 0;

	return p->layout->server && read_word(&type, data + p->layout->value_ctx_val) && type &&
	       read_word(&type, type + POINTER_ELEM) && type - p->bias == p->layout->server;
}

/*
 * A context of a type that is not net/http's or the library's: 'type' is what the interface says,
 * 'elem' what follows it. One that holds no pointers hangs on nothing; those that programs make
 * have the context that they hang on first.
 */
static __always_inline void context_above_other(const struct go_process *p, __u64 type, __u64 elem,
						__u64 data, struct context *c)
{
	__u64 word = 0;
	__u8 kind = 0;

	c->at = 0;
	c->chain = CHAIN_UNKNOWN;
	if (bpf_probe_read_user(&kind, sizeof(kind), (const void *)(type + TYPE_KIND)))
		return;
	if ((kind & KIND_MASK) == KIND_POINTER) {
		type = elem;
		if (bpf_probe_read_user(&kind, sizeof(kind), (const void *)(type + TYPE_KIND)))
			return;
	} else if (type - p->bias == p->layout->without_cancel_ctx) {
		c->at = data + p->layout->without_cancel_ctx_c;
		return;
	}
	if (!read_word(&word, type + TYPE_POINTER_BYTES))
		return;
	if (!word) {
		c->chain = c->served ? CHAIN_SERVED : CHAIN_NOBODY;
		return;
	}
	if ((kind & KIND_MASK) == KIND_STRUCT && p->layout->context_interface &&
	    read_word(&word, type + STRUCT_FIELDS) && read_word(&word, word + FIELD_TYPE) &&
	    word - p->bias == p->layout->context_interface)
		c->at = data;
}

/* What a context hangs on. */
static __always_inline void context_above(const struct go_process *p, __u64 itab, __u64 data,
					  struct context *c)
{
	const struct go_layout *l = p->layout;
	__u64 type = 0, elem = 0, known;

	c->at = 0;
	c->chain = CHAIN_UNKNOWN;
	if (!read_word(&type, itab + ITAB_TYPE) || !read_word(&elem, type + POINTER_ELEM))
		return;
	known = elem - p->bias;
	if (known == l->value_ctx) {
		c->served |= adds_server(p, data);
		c->at = data + l->value_ctx_context;
	} else if (known == l->cancel_ctx) {
		c->at = data + l->cancel_ctx_context;
	} else if (known && known == l->timer_ctx) {
		data += l->timer_ctx_cancel_ctx;
		if (!l->timer_ctx_points || read_word(&data, data))
			c->at = data + l->cancel_ctx_context;
	} else if (known && known == l->gin_context) {
		if (read_word(&data, data + l->gin_context_request) && data)
			c->at = data + l->request_ctx;
	} else {
		context_above_other(p, type, elem, data, c);
	}
}

/* Where the context leads that a *Request carries, and with CHAIN_OPEN for whom that is. */
static __always_inline enum chain context_work(const struct go_process *p, __u64 request_address,
					       struct go_work *ret)
{
	struct context c = {.at = request_address + p->layout->request_ctx};
	struct go_context_key key = {.pid = p->pid};
	const struct request_key *request;
	const struct request *r;
	__u64 itab = 0;

	for (int i = 0; i < CONTEXTS_MAX; i++) {
		if (!read_word(&itab, c.at) || !read_word(&key.context, c.at + INTERFACE_DATA))
			return CHAIN_UNKNOWN;
		/* No context is as good as context.Background(). */
		if (!itab)
			return c.served ? CHAIN_SERVED : CHAIN_NOBODY;
		request = bpf_map_lookup_elem(&go_contexts, &key);
		if (request) {
			ret->request = *request;
			r = bpf_map_lookup_elem(&requests, &ret->request);
			ret->reason = r && r->is_blind ? DECISION_NONE_AMBIGUOUS : DECISION_UNIT;
			return r ? CHAIN_OPEN : CHAIN_SERVED;
		}
		context_above(p, itab, key.context, &c);
		if (!c.at)
			return c.chain;
	}
	return CHAIN_UNKNOWN;
}

/*
 * Whether the call of a goroutine that works for a request may be for another one, by the context
 * that it carries. What a goroutine was begun for is worth less than that: it may have taken up
 * another's work. One that serves a request may only if that has a context, and this is none.
 */
static __always_inline bool is_other_work(enum chain chain, const struct go_work *work)
{
	const struct request *r;

	if (chain == CHAIN_NOBODY)
		return false;
	if (work->is_inherited)
		return true;
	r = bpf_map_lookup_elem(&requests, &work->request);
	return chain == CHAIN_SERVED && r && r->go_context;
}

static __always_inline void note_orphan(__u32 pid)
{
	struct proc *proc = bpf_map_lookup_elem(&procs, &pid);

	if (!proc || (proc->seen & PROC_SEEN_ORPHAN))
		return;
	proc->seen |= PROC_SEEN_ORPHAN;
	orphans++;
}

/*
 * Whether another goroutine has handed a request to the connection that was not sent, or had once:
 * one that a program has for itself (net/http.ClientConn, Go 1.26) takes several, and they wait
 * there in no order that is known here.
 */
static __always_inline bool is_shared_connection(const struct go_call_key *key, __u64 persist_conn,
						 __u64 goroutine)
{
	const struct go_call *call = bpf_map_lookup_elem(&go_calls, key);

	return call && call->persist_conn == persist_conn &&
	       (call->is_shared || call->goroutine != goroutine);
}

/*
 * net/http.(*persistConn).roundTrip(*transportRequest): a request is handed to its connection, whose
 * buffer it will be sent from. One of a Transport has no other in flight.
 */
SEC("uprobe")
int go_round_trip(struct pt_regs *ctx)
{
	struct unit_key unit = {.kind = UNIT_GOROUTINE};
	struct go_call_key key = {};
	struct go_call call = {};
	struct go_process p;
	enum chain chain = CHAIN_NOBODY;
	struct go_work work = {};
	__u64 word = 0;

	if (!go_process(&p) || !p.layout->has_calls)
		return 0;
	key.pid = unit.pid = p.pid;
	unit.id = goroutine_id(p.layout, GO_G(ctx));
	if (!read_word(&word, GO_FIRST(ctx) + p.layout->persist_conn_bw) ||
	    !read_word(&key.buffer, word + p.layout->writer_buf) || !key.buffer) {
		count(COUNT_UNREADABLE);
		return 0;
	}
	/* The context that a call carries comes first: it says for whom, whoever makes the call. */
	if (p.layout->has_contexts)
		chain = read_word(&word, GO_SECOND(ctx) + p.layout->call_request)
				? context_work(&p, word, &work)
				: CHAIN_UNKNOWN;
	if (chain != CHAIN_OPEN) {
		work.reason = DECISION_NONE_NO_UNIT;
		if (unit.id)
			goroutine_work(&unit, true, &work);
		if (work.reason == DECISION_UNIT && is_other_work(chain, &work))
			work.reason = DECISION_NONE_AMBIGUOUS;
	}
	call.is_shared = is_shared_connection(&key, GO_FIRST(ctx), unit.id);
	if (call.is_shared)
		work.reason = DECISION_NONE_AMBIGUOUS;
	if (work.reason == DECISION_NONE_NO_REQUEST)
		note_orphan(p.pid);
	call.request = work.request;
	call.reason = work.reason;
	call.is_inherited = work.is_inherited;
	call.elder = work.elder;
	call.goroutine = unit.id;
	call.persist_conn = GO_FIRST(ctx);
	call.time_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&go_calls, &key, &call, BPF_ANY))
		count(COUNT_GO_CALLS_FULL);
	return 0;
}

/* The context of the request that is open on goroutine 'g', by what net/http has made of it. */
static __always_inline void note_context(const struct go_process *p, __u64 g, __u64 http_request)
{
	struct unit_key unit = {.kind = UNIT_GOROUTINE, .pid = p->pid};
	struct go_context_key key = {.pid = p->pid};
	struct request_key request = {};
	struct request *r;

	unit.id = goroutine_id(p->layout, g);
	if (!unit.id ||
	    !read_word(&key.context, http_request + p->layout->request_ctx + INTERFACE_DATA)) {
		count(COUNT_GO_UNREADABLE);
		return;
	}
	if (!key.context || unit_open(&unit, &request) != DECISION_UNIT)
		return;
	r = bpf_map_lookup_elem(&requests, &request);
	if (!r || r->go_context)
		return;
	if (bpf_map_update_elem(&go_contexts, &key, &request, BPF_ANY)) {
		count(COUNT_GO_CONTEXTS_FULL);
		return;
	}
	r->go_context = key.context;
}

/* net/http.serverHandler.ServeHTTP(ResponseWriter, *Request) */
SEC("uprobe")
int go_serve(struct pt_regs *ctx)
{
	struct go_process p;

	if (go_process(&p) && p.layout->has_contexts)
		note_context(&p, GO_G(ctx), GO_FOURTH(ctx));
	return 0;
}

/*
 * Where that has no code of its own: net/http.(*conn).readRequest() has returned a *response, or
 * none.
 */
SEC("uprobe")
int go_read(struct pt_regs *ctx)
{
	struct go_process p;
	__u64 request = 0;

	if (!go_process(&p) || !p.layout->has_contexts || !GO_FIRST(ctx))
		return 0;
	if (!read_word(&request, GO_FIRST(ctx) + p.layout->response_req) || !request)
		count(COUNT_GO_UNREADABLE);
	else
		note_context(&p, GO_G(ctx), request);
	return 0;
}

/*
 * Whether net/http begins it for a connection that it dials, by the place of the go statement: such
 * a goroutine sends what all others hand to the connection, long after who dialed it.
 */
static __always_inline bool is_of_connection(const struct go_process *p, __u64 begun)
{
	__u64 pc = 0;

	if (!p->layout->dial_conn_bytes)
		return false;
	if (!read_word(&pc, begun + p->layout->g_gopc)) {
		count(COUNT_GO_UNREADABLE);
		return true;
	}
	return pc - p->bias - p->layout->dial_conn < p->layout->dial_conn_bytes;
}

/*
 * In runtime.newproc.func1, where there is a new goroutine 'begun': it has its id, and we are on the
 * stack of its thread, which still runs the one that begins it.
 */
static __always_inline int note_begun(struct pt_regs *ctx, __u64 begun)
{
	struct unit_key unit = {.kind = UNIT_GOROUTINE};
	struct go_child child = {};
	struct go_process p;
	struct go_work work = {};
	__u64 m = 0, g = 0;

	if (!go_process(&p))
		return 0;
	unit.pid = p.pid;
	if (!read_word(&m, GO_G(ctx) + p.layout->g_m) || !read_word(&g, m + p.layout->m_curg)) {
		count(COUNT_GO_UNREADABLE);
		return 0;
	}
	if (!g)
		return 0; /* the runtime begins it, for nobody */
	if (!read_word(&unit.id, g + p.layout->g_goid) || !unit.id) {
		count(COUNT_GO_UNREADABLE);
		return 0;
	}
	goroutine_work(&unit, false, &work);
	/*
	 * Of the third generation nothing is told: whoever began its elder might be a worker, and the
	 * ends of two are waited for, no more.
	 */
	if (work.reason != DECISION_UNIT || work.elder)
		return 0;
	if (is_of_connection(&p, begun))
		return 0;
	child.elder = work.is_inherited ? unit.id : 0;
	if (!read_word(&unit.id, begun + p.layout->g_goid) || !unit.id) {
		count(COUNT_GO_UNREADABLE);
		return 0;
	}
	child.request = work.request;
	if (bpf_map_update_elem(&go_children, &unit, &child, BPF_ANY))
		count(COUNT_GO_CHILDREN_FULL);
	return 0;
}

/* It is put into the queue. */
SEC("uprobe")
int go_begin(struct pt_regs *ctx)
{
	return note_begun(ctx, GO_SECOND(ctx));
}

/* Where that has no code of its own: runtime.newproc1() has returned it. */
SEC("uprobe")
int go_begun(struct pt_regs *ctx)
{
	return note_begun(ctx, GO_FIRST(ctx));
}

/* runtime.goexit0(*g): a goroutine ends. */
SEC("uprobe")
int go_end(struct pt_regs *ctx)
{
	struct unit_key unit = {.kind = UNIT_GOROUTINE};
	struct record_goroutine record = {};
	const struct go_child *child;
	struct go_process p;
	const struct proc *proc;
	bool has_called;

	if (!go_process(&p))
		return 0;
	unit.pid = p.pid;
	if (!read_word(&unit.id, GO_FIRST(ctx) + p.layout->g_goid)) {
		count(COUNT_GO_UNREADABLE);
		return 0;
	}
	child = bpf_map_lookup_elem(&go_children, &unit);
	if (!child)
		return 0;
	has_called = child->has_called;
	bpf_map_delete_elem(&go_children, &unit);
	proc = bpf_map_lookup_elem(&procs, &unit.pid);
	if (!has_called || !proc)
		return 0;
	record.header.type = RECORD_GOROUTINE;
	record.header.length = sizeof(record);
	record.header.time_ns = bpf_ktime_get_ns();
	record.header.pid = p.pid;
	record.header.proc_id = proc->proc_id;
	record.goroutine = unit.id;
	/* A reader that sleeps is not woken by this: it looks five times a second anyway. */
	emit(&record, sizeof(record), COUNT_LOST_GOROUTINE);
	return 0;
}

/*
 * A router has taken up the request that is open on this goroutine, and 'object' will say by which
 * route, or does so already. With two such objects, of routers one within the other, neither has
 * the whole route.
 */
static __always_inline void note_route(struct pt_regs *ctx, const struct go_process *p,
				       __u32 router, __u64 object)
{
	const struct go_route_layout *layout = &p->layout->routers[router];
	struct unit_key unit = {.pid = p->pid, .kind = UNIT_GOROUTINE};
	struct request_key key = {};
	struct go_string text = {};
	struct request *r;

	unit.id = goroutine_id(p->layout, GO_G(ctx));
	if (!unit.id || unit_open(&unit, &key) != DECISION_UNIT)
		return;
	r = bpf_map_lookup_elem(&requests, &key);
	if (!r)
		return;
	if (!layout->is_text) {
		text.address = object;
		if (!route_owner(layout, object, &text.length))
			return;
	} else if (!read_string(&text, object + layout->text)) {
		return;
	}
	if (r->go_route && r->go_route != text.address)
		router = _GO_ROUTER_MAX;
	r->go_router = router;
	r->go_route_owner = text.length;
	r->go_route = text.address;
}

#define ROUTER(name, router, object)                                      \
	SEC("uprobe")                                                     \
	int name(struct pt_regs *ctx)                                     \
	{                                                                 \
		struct go_process p;                                      \
                                                                          \
		if (go_process(&p) && p.layout->routers[router].is_known) \
			note_route(ctx, &p, router, object);              \
		return 0;                                                 \
	}

/* gin.(*Engine).handleHTTPRequest(*Context); there, the call of (*Context).Next() */
ROUTER(go_gin, GO_ROUTER_GIN, GO_SECOND(ctx))
ROUTER(go_gin_next, GO_ROUTER_GIN_NEXT, GO_FIRST(ctx))
/* echo/v5.(*DefaultRouter).Route(*Context) */
ROUTER(go_echo_5, GO_ROUTER_ECHO_5, GO_SECOND(ctx))
/* chi/v5.(*node).FindRoute(*Context, ...) */
ROUTER(go_chi, GO_ROUTER_CHI, GO_SECOND(ctx))

/* echo/v4.(*Router).Find(method, path string, Context): the context may be one of the program's. */
SEC("uprobe")
int go_echo(struct pt_regs *ctx)
{
	struct go_process p;
	__u64 type = 0;

	if (!go_process(&p) || !p.layout->routers[GO_ROUTER_ECHO].is_known)
		return 0;
	if (!read_word(&type, GO_SIXTH(ctx) + ITAB_TYPE) ||
	    !read_word(&type, type + POINTER_ELEM) || type - p.bias != p.layout->echo_context)
		return 0;
	note_route(ctx, &p, GO_ROUTER_ECHO, GO_SEVENTH(ctx));
	return 0;
}

/* gorilla/mux.requestWithRoute(*http.Request, *Route) */
SEC("uprobe")
int go_gorilla(struct pt_regs *ctx)
{
	const struct go_route_layout *r;
	struct go_process p;
	__u64 path = 0;

	if (!go_process(&p))
		return 0;
	r = &p.layout->routers[GO_ROUTER_GORILLA];
	if (r->is_known && read_word(&path, GO_SECOND(ctx) + r->via) && path)
		note_route(ctx, &p, GO_ROUTER_GORILLA, path);
	return 0;
}
