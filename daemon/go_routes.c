/* Routes of Go servers; see go_routes.h. */
#include "go_routes.h"

#include <string.h>

/* Of an interface: behind its first word is what it holds. */
#define INTERFACE_DATA 8

static const struct go_site *site_of(const struct go_program *program, enum go_probe_router router)
{
	static const enum go_function functions[] = {
		[GO_PROBE_ROUTER_GIN] = GO_FUNCTION_GIN_HANDLE,
		[GO_PROBE_ROUTER_ECHO] = GO_FUNCTION_ECHO_FIND,
		[GO_PROBE_ROUTER_ECHO_5] = GO_FUNCTION_ECHO_5_ROUTE,
		[GO_PROBE_ROUTER_CHI] = GO_FUNCTION_CHI_FIND_ROUTE,
		[GO_PROBE_ROUTER_GORILLA] = GO_FUNCTION_GORILLA_WITH_ROUTE,
	};

	static_assert(ARRAY_SIZE(functions) == _GO_PROBE_ROUTER_MAX, "each router has a function");
	if (router == GO_PROBE_ROUTER_GIN_NEXT)
		return &program->gin_next;
	return &program->functions[functions[router]].site;
}

/* They are compared as bytes. */
static_assert(sizeof(struct go_probe_routes) ==
		      10 * sizeof(uint32_t) +
			      _GO_PROBE_ROUTER_MAX * sizeof(struct go_probe_router_layout) +
			      sizeof(uint64_t),
	      "no padding");

/* Offsets, as long as all of them are known. */
struct look {
	const struct go_program *program;
	bool is_known;
};

static uint32_t at(struct look *l, enum go_field field)
{
	const struct go_offset *offset = &l->program->offsets[field];

	if (offset->source == GO_SOURCE_NONE)
		l->is_known = false;
	return offset->bytes;
}

struct echo_fields {
	enum go_field path, response, writer;
};

/* What a context has at 'response', a pointer, has the writer of the request it is there for. */
static void set_echo(struct look *l, struct go_probe_router_layout *r, struct echo_fields fields)
{
	r->text = at(l, fields.path);
	r->has_via = 1;
	r->via = at(l, fields.response);
	r->owner = at(l, fields.writer) + INTERFACE_DATA;
}

static void set_router(struct look *l, enum go_probe_router router,
		       struct go_probe_router_layout *r)
{
	switch (router) {
	case GO_PROBE_ROUTER_GIN:
		r->text = at(l, GO_FIELD_GIN_CONTEXT_FULL_PATH);
		r->owner = at(l, GO_FIELD_GIN_CONTEXT_WRITERMEM) +
			   at(l, GO_FIELD_GIN_WRITER_WRITER) + INTERFACE_DATA;
		break;
	case GO_PROBE_ROUTER_GIN_NEXT:
		r->text = at(l, GO_FIELD_GIN_CONTEXT_FULL_PATH);
		r->is_text = 1;
		break;
	case GO_PROBE_ROUTER_ECHO:
		set_echo(l, r,
			 (struct echo_fields){.path = GO_FIELD_ECHO_CONTEXT_PATH,
					      .response = GO_FIELD_ECHO_CONTEXT_RESPONSE,
					      .writer = GO_FIELD_ECHO_RESPONSE_WRITER});
		if (!l->program->types[GO_STRUCT_ECHO_CONTEXT])
			l->is_known = false;
		break;
	case GO_PROBE_ROUTER_ECHO_5:
		set_echo(l, r,
			 (struct echo_fields){.path = GO_FIELD_ECHO_5_CONTEXT_PATH,
					      .response = GO_FIELD_ECHO_5_CONTEXT_RESPONSE,
					      .writer = GO_FIELD_ECHO_5_RESPONSE_WRITER});
		break;
	case GO_PROBE_ROUTER_CHI:
		r->text = at(l, GO_FIELD_CHI_CONTEXT_PATTERNS);
		r->owner = at(l, GO_FIELD_CHI_CONTEXT_PARENT) + INTERFACE_DATA;
		break;
	case GO_PROBE_ROUTER_GORILLA:
		/* 'via' leads from a route to what has its template. */
		r->is_text = 1;
		r->text = at(l, GO_FIELD_GORILLA_REGEXP_TEMPLATE);
		r->via = at(l, GO_FIELD_GORILLA_ROUTE_CONF) + at(l, GO_FIELD_GORILLA_CONF_REGEXP) +
			 at(l, GO_FIELD_GORILLA_GROUP_PATH);
		break;
	case _GO_PROBE_ROUTER_MAX:
		break;
	}
}

static void set_patterns(const struct go_program *program, struct go_probe_routes *ret)
{
	struct look l = {.program = program, .is_known = true};

	ret->g_stack = at(&l, GO_FIELD_G_STACK);
	ret->conn_bufw = at(&l, GO_FIELD_CONN_BUFW);
	ret->writer_buf = at(&l, GO_FIELD_WRITER_BUF);
	ret->conn_cur_req = at(&l, GO_FIELD_CONN_CUR_REQ_POINTER);
	ret->response_conn = at(&l, GO_FIELD_RESPONSE_CONN);
	ret->response_req = at(&l, GO_FIELD_RESPONSE_REQ);
	/* Go 1.22 has the pattern behind a pointer only, those before have none. */
	if (program->offsets[GO_FIELD_REQUEST_PATTERN].source != GO_SOURCE_NONE) {
		ret->request_pattern = at(&l, GO_FIELD_REQUEST_PATTERN);
	} else {
		ret->pattern_points = 1;
		ret->request_pattern = at(&l, GO_FIELD_REQUEST_PAT);
		ret->pattern_str = at(&l, GO_FIELD_PATTERN_STR);
	}
	ret->has_patterns = l.is_known;
}

struct go_probe_routes go_routes_of(const struct go_program *program)
{
	struct go_probe_routes routes = {0};

	set_patterns(program, &routes);
	for (enum go_probe_router i = 0; i < _GO_PROBE_ROUTER_MAX; i++) {
		struct go_probe_router_layout router = {.is_known = 1};
		struct look l = {.program = program, .is_known = true};

		set_router(&l, i, &router);
		if (l.is_known && site_of(program, i)->class != GO_SITE_NONE)
			routes.routers[i] = router;
	}
	/* One of the two will do. */
	if (routes.routers[GO_PROBE_ROUTER_GIN_NEXT].is_known)
		routes.routers[GO_PROBE_ROUTER_GIN] = (struct go_probe_router_layout){0};
	routes.echo_context = program->types[GO_STRUCT_ECHO_CONTEXT];
	return routes;
}

uint64_t go_routes_site(const struct go_program *program, enum go_probe_router router)
{
	return site_of(program, router)->offset;
}
