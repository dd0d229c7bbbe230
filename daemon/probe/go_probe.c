/* Probes in Go programs; see go_probe.h. */
#include "probe/go_probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "abi.h"
#include "probe/detacher.h"
#include "probe/tap.h"
#include "skeleton/go.skel.h"

#define SWEEP_KEYS      1024
#define CALL_AGE_MAX_NS (60 * NSEC_PER_SEC)

static_assert(GO_PROBE_LAYOUTS_MAX == GO_LAYOUTS_MAX, "go_probe.h and abi.h agree");
static_assert((int)_GO_PROBE_ROUTER_MAX == (int)_GO_ROUTER_MAX &&
		      (int)GO_PROBE_ROUTER_GORILLA == (int)GO_ROUTER_GORILLA,
	      "go_probe.h and abi.h name the same routers");

struct go_probe {
	struct go *skeleton;
	struct detacher *detacher;
	enum uprobe_way way;
	uint32_t orphans;
	/* sweep: where the last one stopped */
	struct go_call_key call_at;
	struct unit_key child_at, unit_at;
};

static struct bpf_program *program_of(struct go_probe *g, enum go_probe_site site)
{
	struct bpf_program *programs[] = {
		[GO_PROBE_ROUND_TRIP] = g->skeleton->progs.go_round_trip,
		[GO_PROBE_SERVE] = g->skeleton->progs.go_serve,
		[GO_PROBE_READ] = g->skeleton->progs.go_read,
		[GO_PROBE_BEGIN] = g->skeleton->progs.go_begin,
		[GO_PROBE_BEGUN] = g->skeleton->progs.go_begun,
		[GO_PROBE_END] = g->skeleton->progs.go_end,
		[GO_PROBE_GIN] = g->skeleton->progs.go_gin,
		[GO_PROBE_GIN_NEXT] = g->skeleton->progs.go_gin_next,
		[GO_PROBE_ECHO] = g->skeleton->progs.go_echo,
		[GO_PROBE_ECHO_5] = g->skeleton->progs.go_echo_5,
		[GO_PROBE_CHI] = g->skeleton->progs.go_chi,
		[GO_PROBE_GORILLA] = g->skeleton->progs.go_gorilla,
	};

	static_assert(ARRAY_SIZE(programs) == _GO_PROBE_SITE_MAX, "each site has a program");
	return programs[site];
}

int go_probe_new(struct probe *p, struct go_probe **ret, struct probe_refusal *ret_refusal)
{
	_cleanup_(go_probe_freep) struct go_probe *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return -ENOMEM;
	g->way = uprobe_find_way();
	if (g->way == UPROBE_NONE) {
		snprintf(ret_refusal->reason, sizeof(ret_refusal->reason),
			 "this kernel takes no uprobes");
		return GO_PROBE_REFUSED;
	}
	g->skeleton = go__open();
	if (!g->skeleton)
		return -errno;
	for (enum go_probe_site site = 0; site < _GO_PROBE_SITE_MAX; site++)
		uprobe_prepare(program_of(g, site), g->way);
	r = probe_share_maps(p, g->skeleton->obj);
	if (!r)
		r = go__load(g->skeleton);
	if (r == -ENOMEM)
		return r;
	if (r) {
		snprintf(ret_refusal->reason, sizeof(ret_refusal->reason), "%s", strerror(-r));
		return GO_PROBE_REFUSED;
	}
	r = detacher_new(&g->detacher);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(g);
	return 0;
}

void go_probe_free(struct go_probe *g)
{
	if (!g)
		return;
	detacher_free(g->detacher);
	go__destroy(g->skeleton);
	free(g);
}

static void set_routes(struct go_layout *value, const struct go_probe_routes *routes)
{
	value->has_patterns = routes->has_patterns;
	value->g_stack = routes->g_stack;
	value->conn_bufw = routes->conn_bufw;
	value->conn_writer_buf = routes->writer_buf;
	value->conn_cur_req = routes->conn_cur_req;
	value->response_conn = routes->response_conn;
	value->response_req = routes->response_req;
	value->request_pattern = routes->request_pattern;
	value->pattern_points = routes->pattern_points;
	value->pattern_str = routes->pattern_str;
	value->echo_context = routes->echo_context;
	for (size_t i = 0; i < _GO_ROUTER_MAX; i++) {
		value->has_routers |= routes->routers[i].is_known;
		value->routers[i] = (struct go_route_layout){
			.is_known = routes->routers[i].is_known,
			.text = routes->routers[i].text,
			.owner = routes->routers[i].owner,
			.via = routes->routers[i].via,
			.has_via = routes->routers[i].has_via,
			.is_text = routes->routers[i].is_text,
		};
	}
}

int go_probe_set_layout(struct go_probe *g, uint32_t number, const struct go_probe_layout *layout)
{
	struct go_layout value = {
		.g_m = layout->g_m,
		.g_goid = layout->g_goid,
		.m_curg = layout->m_curg,
		.has_calls = layout->has_calls,
		.persist_conn_bw = layout->persist_conn_bw,
		.persist_conn_closed = layout->persist_conn_closed,
		.writer_buf = layout->writer_buf,
		.g_gopc = layout->g_gopc,
		.dial_conn = layout->dial_conn,
		.dial_conn_bytes = layout->dial_conn_bytes,
		.has_contexts = layout->has_contexts,
		.call_request = layout->call_request,
		.request_ctx = layout->request_ctx,
		.value_ctx_context = layout->value_ctx_context,
		.cancel_ctx_context = layout->cancel_ctx_context,
		.timer_ctx_cancel_ctx = layout->timer_ctx_cancel_ctx,
		.timer_ctx_points = layout->timer_ctx_points,
		.without_cancel_ctx_c = layout->without_cancel_ctx_c,
		.value_ctx_val = layout->value_ctx_val,
		.gin_context_request = layout->gin_context_request,
		.value_ctx = layout->value_ctx,
		.cancel_ctx = layout->cancel_ctx,
		.timer_ctx = layout->timer_ctx,
		.without_cancel_ctx = layout->without_cancel_ctx,
		.gin_context = layout->gin_context,
		.context_interface = layout->context_interface,
		.server = layout->server,
	};

	set_routes(&value, &layout->routes);
	return bpf_map__update_elem(g->skeleton->maps.go_layouts, &number, sizeof(number), &value,
				    sizeof(value), BPF_ANY);
}

int go_probe_attach(struct go_probe *g, const struct go_probe_place *place, struct uprobe **ret)
{
	return uprobe_attach(
		&(struct uprobe_options){
			.program = program_of(g, place->site),
			.way = g->way,
			.fd = place->fd,
			.lease = place->lease,
			.offsets = &place->offset,
			.n_offsets = 1,
		},
		ret);
}

void go_probe_detach(struct go_probe *g, struct uprobe *u)
{
	detacher_take(g->detacher, u);
}

bool go_probe_has_orphans(struct go_probe *g)
{
	uint32_t n = __atomic_load_n(&g->skeleton->bss->orphans, __ATOMIC_RELAXED);
	bool has = n != g->orphans;

	g->orphans = n;
	return has;
}

bool go_probe_is_orphan(const struct go_probe *g, uint32_t pid)
{
	struct proc proc = {0};

	bpf_map__lookup_elem(g->skeleton->maps.procs, &pid, sizeof(pid), &proc, sizeof(proc), 0);
	return proc.seen & PROC_SEEN_ORPHAN;
}

static void sweep_calls(struct go_probe *g, uint64_t now_ns)
{
	const struct bpf_map *calls = g->skeleton->maps.go_calls;
	struct go_call_key old[SWEEP_KEYS], next;
	struct go_call call;
	size_t n = 0;

	for (size_t i = 0; i < SWEEP_KEYS; i++) {
		/* The last one may be gone: then it begins with the first. */
		if (bpf_map__get_next_key(calls, &g->call_at, &next, sizeof(next)) < 0)
			next = (struct go_call_key){0};
		else if (bpf_map__lookup_elem(calls, &next, sizeof(next), &call, sizeof(call), 0) ==
				 0 &&
			 call.time_ns + CALL_AGE_MAX_NS < now_ns)
			old[n++] = next;
		g->call_at = next;
		if (!next.pid)
			break;
	}
	for (size_t i = 0; i < n; i++)
		bpf_map__delete_elem(calls, &old[i], sizeof(old[i]), 0);
}

static bool is_gone(const struct go_probe *g, uint32_t pid)
{
	struct proc proc;

	return bpf_map__lookup_elem(g->skeleton->maps.procs, &pid, sizeof(pid), &proc, sizeof(proc),
				    0) == -ENOENT;
}

/* Goroutines of processes that are gone, from where the last sweep stopped. */
static void sweep_goroutines(struct go_probe *g, const struct bpf_map *map, struct unit_key *at)
{
	struct unit_key old[SWEEP_KEYS], next;
	size_t n = 0;

	for (size_t i = 0; i < SWEEP_KEYS; i++) {
		if (bpf_map__get_next_key(map, at, &next, sizeof(next)) < 0)
			next = (struct unit_key){0};
		else if (next.kind == UNIT_GOROUTINE && is_gone(g, next.pid))
			old[n++] = next;
		*at = next;
		if (!next.pid)
			break;
	}
	for (size_t i = 0; i < n; i++)
		bpf_map__delete_elem(map, &old[i], sizeof(old[i]), 0);
}

void go_probe_sweep(struct go_probe *g, uint64_t now_ns)
{
	sweep_calls(g, now_ns);
	sweep_goroutines(g, g->skeleton->maps.go_children, &g->child_at);
	sweep_goroutines(g, g->skeleton->maps.units, &g->unit_at);
}
