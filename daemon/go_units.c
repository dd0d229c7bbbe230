/* Go programs and their probes; see go_units.h. */
#include "go_units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/table.h"
#include "go_executable.h"
#include "go_layout.h"
#include "go_routes.h"
#include "image/go_program.h"
#include "metrics/metrics.h"
#include "probe/go_probe.h"
#include "probe/load_bias.h"
#include "probe/real_file.h"

#define PROGRAMS_MAX 64 /* in the cache; each is some kilobytes */
#define SWEEP_NS     NSEC_PER_SEC

/* A file as one file system shows it: what a process start costs only a look for. */
struct go_view {
	struct table_node node; /* by what the file system shows */
	struct go_shown shown;  /* its mount says nothing: there may be many */
	unsigned int users;
	struct go_executable *executable;
};

/* Programs that are alike share one. */
struct go_layout_slot {
	unsigned int users; /* files */
	struct go_probe_layout facts;
};

struct go_units {
	struct go_probe *probe; /* NULL: the kernel refused it */
	struct probe_refusal refusal;
	struct real_file_finder *finder; /* NULL: the kernel refused it; each view is a file then */
	struct probe_refusal finder_refusal;
	struct go_cache *cache;
	struct table executables, views, users;
	uint64_t sweep_ns;
	struct go_layout_slot layouts[GO_PROBE_LAYOUTS_MAX]; /* by number, from 1 */
};

/* Returns 0, also where the kernel refuses, or -ENOMEM. */
static int find_real_files(struct go_units *u)
{
	struct probe_refusal *refusal = &u->finder_refusal;
	int r = real_file_finder_new(&u->finder, refusal);

	if (r < 0 && r != -ENOMEM)
		snprintf(refusal->reason, sizeof(refusal->reason), "%s", strerror(-r));
	return r == -ENOMEM ? r : 0;
}

int go_units_new(struct probe *p, struct go_units **ret)
{
	_cleanup_(go_units_freep) struct go_units *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return -ENOMEM;
	r = go_cache_new(PROGRAMS_MAX, &u->cache);
	if (r < 0)
		return r;
	r = go_probe_new(p, &u->probe, &u->refusal);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		snprintf(u->refusal.reason, sizeof(u->refusal.reason), "%s", strerror(-r));
	if (r)
		log_info("Calls of Go programs will have no parents: %s", u->refusal.reason);
	r = find_real_files(u);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(u);
	return 0;
}

static uint64_t hash_shown(const struct go_shown *shown)
{
	uint64_t key[] = {shown->device, shown->inode};

	return table_hash(key, sizeof(key));
}

static struct go_view *find_view(const struct go_units *u, const struct go_shown *shown)
{
	table_for_each_match(node, &u->views, hash_shown(shown))
	{
		struct go_view *v = container_of(node, struct go_view, node);

		if (v->shown.device == shown->device && v->shown.inode == shown->inode &&
		    (!u->finder || v->shown.changed_ns == shown->changed_ns) &&
		    v->shown.bytes == shown->bytes && v->shown.written_ns == shown->written_ns)
			return v;
	}
	return NULL;
}

/* Where a file has been written to there is one for what it was, as long as somebody runs that. */
static struct go_executable *find_executable(const struct go_units *u, const struct real_file *real,
					     const struct go_shown *shown)
{
	table_for_each_match(node, &u->executables, table_hash(real, sizeof(*real)))
	{
		struct go_executable *e = container_of(node, struct go_executable, node);

		if (!e->finder || !real_file_equal(&e->real, real))
			continue;
		if (go_executable_is_noted(e, shown))
			return e;
		go_executable_abandon(e);
	}
	return NULL;
}

static struct go_user *find_user(const struct go_units *u, uint32_t proc_id)
{
	table_for_each_match(node, &u->users, table_hash(&proc_id, sizeof(proc_id)))
	{
		struct go_user *user = container_of(node, struct go_user, node);

		if (user->proc_id == proc_id)
			return user;
	}
	return NULL;
}

static void release_executable(struct go_units *u, struct go_executable *e)
{
	if (--e->views)
		return;
	table_remove(&u->executables, &e->node);
	go_executable_detach(e);
	if (e->layout)
		u->layouts[e->layout].users--;
	free(e);
}

static void release_view(struct go_units *u, struct go_view *v)
{
	if (--v->users)
		return;
	table_remove(&u->views, &v->node);
	release_executable(u, v->executable);
	free(v);
}

/* The number of the layout, with one more user; 0: there are too many; or a negative errno. */
static int take_layout(struct go_units *u, const struct go_probe_layout *facts)
{
	uint32_t free = 0;
	int r;

	for (uint32_t n = 1; n < GO_PROBE_LAYOUTS_MAX; n++) {
		struct go_layout_slot *slot = &u->layouts[n];

		if (slot->users && go_layout_is_same(&slot->facts, facts)) {
			slot->users++;
			return (int)n;
		}
		if (!slot->users && !free)
			free = n;
	}
	if (!free)
		return 0;
	r = go_probe_set_layout(u->probe, free, facts);
	if (r < 0)
		return r;
	u->layouts[free] = (struct go_layout_slot){.users = 1, .facts = *facts};
	return (int)free;
}

/* Returns a sentence that says why the calls of its handlers have no parents, or NULL. */
static const char *want_calls(struct go_executable *e, const struct go_program *program)
{
	const struct go_function_facts *round_trip = &program->functions[GO_FUNCTION_ROUND_TRIP];

	if (!round_trip->is_found)
		return NULL; /* nothing that could call */
	if (round_trip->site.class == GO_SITE_NONE)
		return round_trip->site.reason;
	if (!e->facts.has_calls)
		return "the fields of its HTTP client are not known";
	e->wanted = 1U << GO_PROBE_ROUND_TRIP;
	return NULL;
}

static bool can_probe_reading(const struct go_program *program)
{
	return program->request_read.class != GO_SITE_NONE &&
	       program->offsets[GO_FIELD_RESPONSE_REQ].source != GO_SOURCE_NONE;
}

/* A call may be sent by a goroutine of the connection, which whoever has dialed it has begun. */
static bool can_tell_connections(const struct go_program *program)
{
	return !program->functions[GO_FUNCTION_ROUND_TRIP].is_found ||
	       (program->functions[GO_FUNCTION_DIAL_CONN].size > 0 &&
		program->offsets[GO_FIELD_G_GOPC].source != GO_SOURCE_NONE);
}

/* The same of the goroutines that they start, when it comes to that. */
static const char *why_not_children(const struct go_program *program)
{
	const struct go_function_facts *serve = &program->functions[GO_FUNCTION_SERVE_HTTP],
				       *end = &program->functions[GO_FUNCTION_GOEXIT0];

	/* Servers other than net/http's make no contexts that calls could carry. */
	if (serve->is_found && serve->site.class == GO_SITE_NONE && !can_probe_reading(program))
		return serve->site.reason;
	if (end->site.class == GO_SITE_NONE)
		return end->is_found ? end->site.reason : "runtime.goexit0 was not found";
	if (program->newproc_runqput.class == GO_SITE_NONE &&
	    program->newproc_begun.class == GO_SITE_NONE)
		return program->newproc_runqput.reason;
	if (!go_layout_has_contexts(program))
		return "the fields of its contexts are not known";
	if (!can_tell_connections(program))
		return "the goroutines of its connections cannot be told from those of its "
		       "handlers";
	return NULL;
}

static void note_sites(struct go_executable *e, const struct go_program *program)
{
	e->sites[GO_PROBE_ROUND_TRIP] = program->functions[GO_FUNCTION_ROUND_TRIP].site.offset;
	e->sites[GO_PROBE_SERVE] = program->functions[GO_FUNCTION_SERVE_HTTP].site.offset;
	if (!e->sites[GO_PROBE_SERVE] && can_probe_reading(program))
		e->sites[GO_PROBE_READ] = program->request_read.offset;
	e->sites[GO_PROBE_BEGIN] = program->newproc_runqput.offset;
	if (!e->sites[GO_PROBE_BEGIN])
		e->sites[GO_PROBE_BEGUN] = program->newproc_begun.offset;
	e->sites[GO_PROBE_END] = program->functions[GO_FUNCTION_GOEXIT0].site.offset;
}

/* Routers are probed from the beginning. */
static void want_routers(struct go_executable *e, const struct go_program *program)
{
	for (size_t i = 0; i < _GO_PROBE_ROUTER_MAX; i++) {
		if (!e->facts.routes.routers[i].is_known)
			continue;
		e->sites[GO_PROBE_GIN + i] = go_routes_site(program, i);
		e->wanted |= 1U << (GO_PROBE_GIN + i);
	}
}

/* A goroutine that holds no request has called: from now on requests are followed into goroutines. */
static void follow_children(struct go_units *u, const struct go_user *user)
{
	struct go_executable *e = user->executable;
	static const enum go_probe_site sites[] = {GO_PROBE_SERVE, GO_PROBE_READ, GO_PROBE_BEGIN,
						   GO_PROBE_BEGUN, GO_PROBE_END};
	unsigned int before = e->wanted;
	int r;

	if (e->why_not || e->why_not_children)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(sites); i++)
		if (e->sites[sites[i]])
			e->wanted |= 1U << sites[i];
	r = go_executable_attach_by(e, user);
	if (r == -ESTALE || r == -ENOENT || r == -ESRCH) {
		e->wanted = before;
		return; /* it has ended, or executed something else */
	}
	if (r == -EMFILE || r == -EAGAIN) {
		e->wanted = before;
		return; /* again in a second (follow_short()), if there are file descriptors then */
	}
	e->is_followed = true;
	if (r < 0) {
		e->wanted = before;
		e->why_not_children = "the kernel refused the probes for goroutines";
		return;
	}
	e->facts.has_contexts = true;
	(void)go_probe_set_layout(u->probe, e->layout, &e->facts);
}

/*
 * Looks into the file, which was opened as 'shown', and sets it up. Returns 0, also where it cannot
 * be used, or -ENOMEM.
 */
static int set_up(struct go_units *u, struct go_executable *e, int fd, const struct go_shown *shown)
{
	const struct go_program *program;
	int r;

	if (!u->probe) {
		e->why_not = u->refusal.reason;
		return 0;
	}
	r = go_cache_get(u->cache, fd, &program);
	if (r == -ENOMEM)
		return r;
	if (r) {
		e->why_not = "its executable could not be read";
		return 0;
	}
	e->is_pie = program->is_pie;
	e->text_address = program->text_address;
	e->entry = program->entry;
	e->text_bytes = program->reason ? 0 : program->text_bytes;
	if (!go_layout_has_goroutines(program)) {
		e->why_not = "the fields of its runtime are not known";
		return 0;
	}
	e->facts = go_layout_of(program);
	r = take_layout(u, &e->facts);
	if (r <= 0) {
		e->why_not = "too many different Go programs on this host";
		return r == -ENOMEM ? r : 0;
	}
	e->layout = (uint32_t)r;
	note_sites(e, program);
	e->why_not = want_calls(e, program);
	want_routers(e, program);
	e->why_not_children = why_not_children(program);
	go_executable_note(e, fd, shown);
	return 0;
}

struct found {
	int fd;
	const struct go_shown *shown;
	const struct real_file *real; /* NULL: not known */
};

static int executable_new(struct go_units *u, const struct found *found, struct go_executable **ret)
{
	const struct real_file *real = found->real;
	struct go_executable *e = calloc(1, sizeof(*e));
	uint64_t hash;
	int r;

	if (!e)
		return -ENOMEM;
	e->probe = u->probe;
	e->views = 1;
	if (real) {
		e->finder = u->finder;
		e->real = *real;
	}
	hash = real ? table_hash(real, sizeof(*real)) : table_hash(&e, sizeof(e));
	r = table_insert(&u->executables, &e->node, hash);
	if (r < 0) {
		free(e);
		return r;
	}
	r = set_up(u, e, found->fd, found->shown);
	if (r < 0) {
		release_executable(u, e);
		return r;
	}
	*ret = e;
	return 0;
}

/* What is behind the file, with one more view. */
static int take_executable(struct go_units *u, int fd, const struct go_shown *shown,
			   struct go_executable **ret)
{
	struct found found = {.fd = fd, .shown = shown};
	struct go_executable *e;
	struct real_file real;

	if (!u->finder)
		return executable_new(u, &found, ret);
	if (real_file_find(u->finder, fd, &real) < 0) {
		metrics_increment(METRIC_GO_FILES_UNKNOWN);
		return executable_new(u, &found, ret);
	}
	found.real = &real;
	e = find_executable(u, &real, shown);
	if (!e)
		return executable_new(u, &found, ret);
	e->views++;
	*ret = e;
	return 0;
}

/* The file as it was shown, with one more user. */
static int take_view(struct go_units *u, int fd, const struct go_shown *shown, struct go_view **ret)
{
	struct go_view *v = find_view(u, shown);
	int r;

	if (v) {
		v->users++;
		*ret = v;
		return 0;
	}
	v = calloc(1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	v->shown = *shown;
	v->users = 1;
	r = take_executable(u, fd, shown, &v->executable);
	if (r < 0) {
		free(v);
		return r;
	}
	r = table_insert(&u->views, &v->node, hash_shown(shown));
	if (r < 0) {
		release_executable(u, v->executable);
		free(v);
		return r;
	}
	*ret = v;
	return 0;
}

/* The links, if there are none: of the first process, or where all others could give none. */
static void attach_first(struct go_executable *e, int fd, uint64_t mount)
{
	int r;

	if (!e->wanted || go_executable_links(e))
		return;
	r = go_executable_attach(e, fd, mount);
	/* What is short of file descriptors is tried again (go_executable_repair()). */
	if (r == 0 || r == -EMFILE || r == -EAGAIN || r == -ESTALE || e->oldest)
		return;
	e->wanted = 0;
	if (r != -ENOLCK)
		e->why_not = "the kernel refused the probe in its HTTP client";
}

static int user_new(struct go_units *u, const struct process *p, struct go_user **ret)
{
	_cleanup_(freep) struct go_user *user = calloc(1, sizeof(*user));
	_cleanup_(closep) int fd = -1;
	int r;

	if (!user)
		return -ENOMEM;
	user->proc_id = p->proc_id;
	user->pid = p->pid;
	fd = go_executable_open(p->pid, &user->shown);
	if (fd < 0)
		return fd;
	r = take_view(u, fd, &user->shown, &user->view);
	if (r < 0)
		return r;
	r = table_insert(&u->users, &user->node, table_hash(&user->proc_id, sizeof(user->proc_id)));
	if (r < 0) {
		release_view(u, user->view);
		return r;
	}
	if (user->view->executable->is_pie)
		user->lacks_bias =
			!load_bias_find(user->pid, user->view->executable->entry, &user->bias);
	attach_first(user->view->executable, fd, user->shown.mount);
	go_executable_join(user->view->executable, user);
	*ret = TAKE_PTR(user);
	return 0;
}

int go_units_add(struct go_units *u, const struct process *p, struct go_facts *ret)
{
	struct go_user *user = find_user(u, p->proc_id);
	int r;

	*ret = (struct go_facts){0};
	if (!user) {
		r = user_new(u, p, &user);
		if (r < 0)
			return r == -ENOMEM ? r : 0; /* it has ended meanwhile */
	}
	if (user->lacks_bias)
		return 0;
	ret->layout = user->executable->layout;
	ret->bias = user->bias;
	if (user->executable->text_bytes) {
		ret->text = user->executable->text_address + user->bias;
		ret->text_bytes = user->executable->text_bytes;
	}
	return 0;
}

static void remove_user(struct go_units *u, struct go_user *user)
{
	table_remove(&u->users, &user->node);
	go_executable_leave(user->executable, user);
	release_view(u, user->view);
	free(user);
}

void go_units_remove(struct go_units *u, uint32_t proc_id)
{
	struct go_user *user = find_user(u, proc_id);

	if (user)
		remove_user(u, user);
}

static int follow_orphans(struct table_node *node, void *userdata)
{
	const struct go_user *user = container_of(node, struct go_user, node);
	struct go_units *u = userdata;

	if (!user->executable->is_followed && go_probe_is_orphan(u->probe, user->pid))
		follow_children(u, user);
	return 0;
}

static int follow_short(struct table_node *node, void *userdata)
{
	const struct go_user *user = container_of(node, struct go_user, node);

	return user->executable->is_short ? follow_orphans(node, userdata) : 0;
}

static int tick(struct table_node *node, void *userdata)
{
	(void)userdata;
	go_executable_tick(container_of(node, struct go_executable, node));
	return 0;
}

static int repair(struct table_node *node, void *userdata)
{
	(void)userdata;
	go_executable_repair(container_of(node, struct go_executable, node));
	return 0;
}

void go_units_tick(struct go_units *u, uint64_t now_ns)
{
	if (!u->probe)
		return;
	table_walk(&u->executables, tick, NULL);
	if (go_probe_has_orphans(u->probe))
		table_walk(&u->users, follow_orphans, u);
	if (now_ns < u->sweep_ns)
		return;
	u->sweep_ns = now_ns + SWEEP_NS;
	table_walk(&u->users, follow_short, u);
	table_walk(&u->executables, repair, NULL);
	go_probe_sweep(u->probe, now_ns);
}

const char *go_units_why_not(const struct go_units *u, uint32_t proc_id)
{
	const struct go_user *user = find_user(u, proc_id);

	if (!user)
		return "its executable could not be read";
	if (user->lacks_bias)
		return "where it was loaded cannot be read from its auxiliary vector";
	if (user->executable->is_written)
		return "its executable file has been opened for writing since it was begun";
	if (user->executable->is_lost)
		return "no process could give its file for the probes when their mount's last one "
		       "ended";
	if (user->executable->is_short)
		return "the daemon has no file descriptors left for its probes (raise LimitNOFILE)";
	return user->executable->why_not ? user->executable->why_not
					 : user->executable->why_not_children;
}

const char *go_units_why_not_shared(const struct go_units *u)
{
	return u->finder ? NULL : u->finder_refusal.reason;
}

const char *go_units_refusal(const struct go_units *u)
{
	return u->probe ? NULL : u->refusal.reason;
}

static int count_links(struct table_node *node, void *userdata)
{
	*(size_t *)userdata += go_executable_links(container_of(node, struct go_executable, node));
	return 0;
}

size_t go_units_links(const struct go_units *u)
{
	size_t n = 0;

	table_walk((struct table *)&u->executables, count_links, &n);
	return n;
}

size_t go_units_executables(const struct go_units *u)
{
	return u->executables.n;
}

static int detach(struct table_node *node, void *userdata)
{
	(void)userdata;
	go_executable_detach(container_of(node, struct go_executable, node));
	return 0;
}

void go_units_detach(struct go_units *u)
{
	table_walk(&u->executables, detach, NULL);
}

static int free_user(struct table_node *node, void *userdata)
{
	remove_user(userdata, container_of(node, struct go_user, node));
	return 0;
}

void go_units_free(struct go_units *u)
{
	if (!u)
		return;
	/* First, for links are not to be made anew on behalf of processes that are next. */
	go_units_detach(u);
	table_walk(&u->users, free_user, u);
	table_done(&u->users);
	table_done(&u->views);
	table_done(&u->executables);
	real_file_finder_free(u->finder);
	go_cache_free(u->cache);
	go_probe_free(u->probe);
	free(u);
}
