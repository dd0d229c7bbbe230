/* Go programs and their probes; see go_units.h. */
#include "go_units.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/table.h"
#include "go_routes.h"
#include "image/go_program.h"
#include "probe/go_probe.h"

#define PROGRAMS_MAX 64 /* in the cache; each is some kilobytes */
#define SWEEP_NS     NSEC_PER_SEC

/* An executable file. Probes are the file's, whoever runs it. */
struct go_file {
	struct table_node node; /* by device and inode */
	uint64_t device, inode;
	unsigned int users;
	uint32_t layout; /* 0: its goroutines cannot be told */
	bool is_pie;
	bool is_followed; /* requests are followed into goroutines, or it was tried */
	struct uprobe *uprobes[_GO_PROBE_SITE_MAX];
	uint64_t sites[_GO_PROBE_SITE_MAX]; /* 0: none */
	struct go_probe_layout facts;
	const char *why_not;          /* NULL: its calls have parents */
	const char *why_not_children; /* the same of calls by goroutines that a handler starts */
};

/* A process that runs it. */
struct go_user {
	struct table_node node; /* by proc_id */
	uint32_t proc_id, pid;
	uint64_t bias;
	struct go_file *file;
};

/* Programs that are alike share one. */
struct go_layout_slot {
	unsigned int users; /* files */
	struct go_probe_layout facts;
};

struct go_units {
	struct go_probe *probe; /* NULL: the kernel refused it */
	struct probe_refusal refusal;
	struct go_cache *cache;
	struct table files, users;
	uint64_t sweep_ns;
	struct go_layout_slot layouts[GO_PROBE_LAYOUTS_MAX]; /* by number, from 1 */
};

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
	*ret = TAKE_PTR(u);
	return 0;
}

static struct go_file *find_file(const struct go_units *u, uint64_t device, uint64_t inode)
{
	uint64_t key[] = {device, inode};

	table_for_each_match(node, &u->files, table_hash(key, sizeof(key)))
	{
		struct go_file *f = container_of(node, struct go_file, node);

		if (f->device == device && f->inode == inode)
			return f;
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

static void release_file(struct go_units *u, struct go_file *f)
{
	if (--f->users)
		return;
	table_remove(&u->files, &f->node);
	for (size_t i = 0; i < _GO_PROBE_SITE_MAX; i++)
		if (f->uprobes[i])
			go_probe_detach(u->probe, f->uprobes[i]);
	if (f->layout)
		u->layouts[f->layout].users--;
	free(f);
}

static bool is_known(const struct go_program *program, enum go_field field)
{
	return program->offsets[field].source != GO_SOURCE_NONE;
}

static uint32_t offset_of(const struct go_program *program, enum go_field field)
{
	return program->offsets[field].bytes;
}

static bool has_contexts(const struct go_program *program)
{
	static const enum go_field needed[] = {
		GO_FIELD_TRANSPORT_REQUEST_REQUEST,
		GO_FIELD_REQUEST_CTX,
		GO_FIELD_VALUE_CTX_CONTEXT,
		GO_FIELD_CANCEL_CTX_CONTEXT,
	};

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!is_known(program, needed[i]))
			return false;
	return program->types[GO_STRUCT_CANCEL_CTX] && program->types[GO_STRUCT_VALUE_CTX];
}

/* 0 where its fields are not known: such contexts lead nowhere. */
static uint64_t context_type(const struct go_program *program, enum go_struct type,
			     enum go_field field)
{
	return is_known(program, field) ? program->types[type] : 0;
}

static struct go_probe_layout layout_of(const struct go_program *program)
{
	/* At most one of the two is known: in Go 1.20 it was a pointer. */
	enum go_field timer = is_known(program, GO_FIELD_TIMER_CTX_CANCEL_CTX_POINTER)
				      ? GO_FIELD_TIMER_CTX_CANCEL_CTX_POINTER
				      : GO_FIELD_TIMER_CTX_CANCEL_CTX;

	return (struct go_probe_layout){
		.g_m = offset_of(program, GO_FIELD_G_M),
		.g_goid = offset_of(program, GO_FIELD_G_GOID),
		.m_curg = offset_of(program, GO_FIELD_M_CURG),
		.has_calls = is_known(program, GO_FIELD_PERSIST_CONN_BW) &&
			     is_known(program, GO_FIELD_PERSIST_CONN_CLOSED) &&
			     is_known(program, GO_FIELD_WRITER_BUF),
		.persist_conn_bw = offset_of(program, GO_FIELD_PERSIST_CONN_BW),
		.persist_conn_closed = offset_of(program, GO_FIELD_PERSIST_CONN_CLOSED),
		.writer_buf = offset_of(program, GO_FIELD_WRITER_BUF),
		.call_request = offset_of(program, GO_FIELD_TRANSPORT_REQUEST_REQUEST),
		.request_ctx = offset_of(program, GO_FIELD_REQUEST_CTX),
		.value_ctx_context = offset_of(program, GO_FIELD_VALUE_CTX_CONTEXT),
		.cancel_ctx_context = offset_of(program, GO_FIELD_CANCEL_CTX_CONTEXT),
		.timer_ctx_cancel_ctx = offset_of(program, timer),
		.timer_ctx_points = timer == GO_FIELD_TIMER_CTX_CANCEL_CTX_POINTER,
		.without_cancel_ctx_c = offset_of(program, GO_FIELD_WITHOUT_CANCEL_CTX_C),
		.value_ctx = program->types[GO_STRUCT_VALUE_CTX],
		.cancel_ctx = program->types[GO_STRUCT_CANCEL_CTX],
		.timer_ctx = context_type(program, GO_STRUCT_TIMER_CTX, timer),
		.without_cancel_ctx = context_type(program, GO_STRUCT_WITHOUT_CANCEL_CTX,
						   GO_FIELD_WITHOUT_CANCEL_CTX_C),
	};
}

/* All but has_contexts, which is a matter of what has been probed. */
static bool is_same_layout(const struct go_probe_layout *a, const struct go_probe_layout *b)
{
	return a->g_m == b->g_m && a->g_goid == b->g_goid && a->m_curg == b->m_curg &&
	       a->has_calls == b->has_calls && a->persist_conn_bw == b->persist_conn_bw &&
	       a->persist_conn_closed == b->persist_conn_closed && a->writer_buf == b->writer_buf &&
	       a->call_request == b->call_request && a->request_ctx == b->request_ctx &&
	       a->value_ctx_context == b->value_ctx_context &&
	       a->cancel_ctx_context == b->cancel_ctx_context &&
	       a->timer_ctx_cancel_ctx == b->timer_ctx_cancel_ctx &&
	       a->timer_ctx_points == b->timer_ctx_points &&
	       a->without_cancel_ctx_c == b->without_cancel_ctx_c && a->value_ctx == b->value_ctx &&
	       a->cancel_ctx == b->cancel_ctx && a->timer_ctx == b->timer_ctx &&
	       a->without_cancel_ctx == b->without_cancel_ctx &&
	       memcmp(&a->routes, &b->routes, sizeof(a->routes)) == 0;
}

/* The number of the layout, with one more user; 0: there are too many; or a negative errno. */
static int take_layout(struct go_units *u, const struct go_probe_layout *facts)
{
	uint32_t free = 0;
	int r;

	for (uint32_t n = 1; n < GO_PROBE_LAYOUTS_MAX; n++) {
		struct go_layout_slot *slot = &u->layouts[n];

		if (slot->users && is_same_layout(&slot->facts, facts)) {
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

/* Returns a file descriptor or a negative errno. */
static int open_executable(uint32_t pid, struct stat *ret)
{
	_cleanup_(closep) int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, ret) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/*
 * 'fd': of the file that the sites were found in. Never by the process, which may have executed
 * something else meanwhile: a probe in the middle of an instruction of that would kill it.
 */
static bool attach(struct go_units *u, struct go_file *f, enum go_probe_site site, int fd)
{
	return f->uprobes[site] ||
	       go_probe_attach(u->probe, fd, site, f->sites[site], &f->uprobes[site]) == 0;
}

/* Returns a sentence that says why the calls of its handlers have no parents, or NULL. */
static const char *attach_calls(struct go_units *u, struct go_file *f,
				const struct go_program *program, int fd)
{
	const struct go_function_facts *round_trip = &program->functions[GO_FUNCTION_ROUND_TRIP];

	if (!round_trip->is_found)
		return NULL; /* nothing that could call */
	if (round_trip->site.class == GO_SITE_NONE)
		return round_trip->site.reason;
	if (!f->facts.has_calls)
		return "the fields of its HTTP client are not known";
	if (!attach(u, f, GO_PROBE_ROUND_TRIP, fd))
		return "the kernel refused the probe in its HTTP client";
	return NULL;
}

/* The same of the goroutines that they start, when it comes to that. */
static const char *why_not_children(const struct go_program *program)
{
	const struct go_function_facts *serve = &program->functions[GO_FUNCTION_SERVE_HTTP],
				       *end = &program->functions[GO_FUNCTION_GOEXIT0];

	/* Servers other than net/http's make no contexts that calls could carry. */
	if (serve->is_found && serve->site.class == GO_SITE_NONE)
		return serve->site.reason;
	if (end->site.class == GO_SITE_NONE)
		return end->is_found ? end->site.reason : "runtime.goexit0 was not found";
	if (program->newproc_runqput.class == GO_SITE_NONE)
		return program->newproc_runqput.reason;
	if (!has_contexts(program))
		return "the fields of its contexts are not known";
	return NULL;
}

static void note_sites(struct go_file *f, const struct go_program *program)
{
	f->sites[GO_PROBE_ROUND_TRIP] = program->functions[GO_FUNCTION_ROUND_TRIP].site.offset;
	f->sites[GO_PROBE_SERVE] = program->functions[GO_FUNCTION_SERVE_HTTP].site.offset;
	f->sites[GO_PROBE_BEGIN] = program->newproc_runqput.offset;
	f->sites[GO_PROBE_END] = program->functions[GO_FUNCTION_GOEXIT0].site.offset;
	for (size_t i = 0; i < _GO_PROBE_ROUTER_MAX; i++)
		if (f->facts.routes.routers[i].is_known)
			f->sites[GO_PROBE_GIN + i] = go_routes_site(program, i);
}

/* Routers without their probes give no routes, no more. */
static void attach_routers(struct go_units *u, struct go_file *f, int fd)
{
	for (size_t i = 0; i < _GO_PROBE_ROUTER_MAX; i++)
		if (f->facts.routes.routers[i].is_known)
			(void)attach(u, f, GO_PROBE_GIN + i, fd);
}

/* A goroutine that holds no request has called: from now on requests are followed into goroutines. */
static void follow_children(struct go_units *u, const struct go_user *user)
{
	_cleanup_(closep) int fd = -1;
	struct go_file *f = user->file;
	struct stat st;

	if (f->is_followed || f->why_not || f->why_not_children)
		return;
	fd = open_executable(user->pid, &st);
	if (fd < 0 || st.st_dev != f->device || st.st_ino != f->inode)
		return; /* it has ended, or executed something else */
	f->is_followed = true;
	/* Where one ends before where one begins: whatever was noted is forgotten. */
	if (!attach(u, f, GO_PROBE_END, fd) ||
	    (f->sites[GO_PROBE_SERVE] && !attach(u, f, GO_PROBE_SERVE, fd)) ||
	    !attach(u, f, GO_PROBE_BEGIN, fd)) {
		f->why_not_children = "the kernel refused the probes for goroutines";
		return;
	}
	f->facts.has_contexts = true;
	(void)go_probe_set_layout(u->probe, f->layout, &f->facts);
}

/* Looks into the file and sets it up. Returns 0, also where it cannot be used, or -ENOMEM. */
static int set_up(struct go_units *u, struct go_file *f, int fd)
{
	const struct go_program *program;
	int r;

	if (!u->probe) {
		f->why_not = u->refusal.reason;
		return 0;
	}
	r = go_cache_get(u->cache, fd, &program);
	if (r == -ENOMEM)
		return r;
	if (r) {
		f->why_not = "its executable could not be read";
		return 0;
	}
	if (!is_known(program, GO_FIELD_G_GOID) || !is_known(program, GO_FIELD_G_M) ||
	    !is_known(program, GO_FIELD_M_CURG)) {
		f->why_not = "the fields of its runtime are not known";
		return 0;
	}
	f->facts = layout_of(program);
	f->facts.routes = go_routes_of(program);
	r = take_layout(u, &f->facts);
	if (r <= 0) {
		f->why_not = "too many different Go programs on this host";
		return r == -ENOMEM ? r : 0;
	}
	f->layout = (uint32_t)r;
	f->is_pie = program->is_pie;
	note_sites(f, program);
	f->why_not = attach_calls(u, f, program, fd);
	attach_routers(u, f, fd);
	f->why_not_children = why_not_children(program);
	return 0;
}

/* The file of the process, with one more user. */
static int take_file(struct go_units *u, uint32_t pid, struct go_file **ret)
{
	_cleanup_(closep) int fd = -1;
	struct go_file *f;
	uint64_t key[2];
	struct stat st;
	int r;

	fd = open_executable(pid, &st);
	if (fd < 0)
		return fd;
	f = find_file(u, st.st_dev, st.st_ino);
	if (f) {
		f->users++;
		*ret = f;
		return 0;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->device = key[0] = st.st_dev;
	f->inode = key[1] = st.st_ino;
	f->users = 1;
	r = table_insert(&u->files, &f->node, table_hash(key, sizeof(key)));
	if (r < 0) {
		free(f);
		return r;
	}
	r = set_up(u, f, fd);
	if (r < 0) {
		release_file(u, f);
		return r;
	}
	*ret = f;
	return 0;
}

/* Where the program was loaded to: its first mapping, which is of the file's beginning. */
static uint64_t load_address(uint32_t pid, const struct go_file *f)
{
	unsigned long long start, offset, inode, address = 0;
	char path[64], line[256];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%llx-%*x %*s %llx %*s %llu", &start, &offset, &inode) != 3)
			break;
		if (inode == f->inode && offset == 0) {
			address = start;
			break;
		}
	}
	if (maps)
		fclose(maps);
	return address;
}

static int user_new(struct go_units *u, const struct process *p, struct go_user **ret)
{
	struct go_user *user = calloc(1, sizeof(*user));
	int r;

	if (!user)
		return -ENOMEM;
	user->proc_id = p->proc_id;
	user->pid = p->pid;
	r = take_file(u, p->pid, &user->file);
	if (r < 0) {
		free(user);
		return r;
	}
	if (user->file->is_pie)
		user->bias = load_address(p->pid, user->file);
	r = table_insert(&u->users, &user->node, table_hash(&user->proc_id, sizeof(user->proc_id)));
	if (r < 0) {
		release_file(u, user->file);
		free(user);
		return r;
	}
	*ret = user;
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
	ret->layout = user->file->layout;
	ret->bias = user->bias;
	return 0;
}

void go_units_remove(struct go_units *u, uint32_t proc_id)
{
	struct go_user *user = find_user(u, proc_id);

	if (!user)
		return;
	table_remove(&u->users, &user->node);
	release_file(u, user->file);
	free(user);
}

static int follow_orphans(struct table_node *node, void *userdata)
{
	const struct go_user *user = container_of(node, struct go_user, node);
	struct go_units *u = userdata;

	if (!user->file->is_followed && go_probe_is_orphan(u->probe, user->pid))
		follow_children(u, user);
	return 0;
}

void go_units_tick(struct go_units *u, uint64_t now_ns)
{
	if (!u->probe)
		return;
	if (go_probe_has_orphans(u->probe))
		table_walk(&u->users, follow_orphans, u);
	if (now_ns < u->sweep_ns)
		return;
	u->sweep_ns = now_ns + SWEEP_NS;
	go_probe_sweep(u->probe, now_ns);
}

const char *go_units_why_not(const struct go_units *u, uint32_t proc_id)
{
	const struct go_user *user = find_user(u, proc_id);

	if (!user)
		return "its executable could not be read";
	return user->file->why_not ? user->file->why_not : user->file->why_not_children;
}

static int count_links(struct table_node *node, void *userdata)
{
	const struct go_file *f = container_of(node, struct go_file, node);

	for (size_t i = 0; i < _GO_PROBE_SITE_MAX; i++)
		if (f->uprobes[i])
			*(size_t *)userdata += uprobe_links(f->uprobes[i]);
	return 0;
}

size_t go_units_links(const struct go_units *u)
{
	size_t n = 0;

	table_walk((struct table *)&u->files, count_links, &n);
	return n;
}

static int free_user(struct table_node *node, void *userdata)
{
	struct go_units *u = userdata;
	struct go_user *user = container_of(node, struct go_user, node);

	table_remove(&u->users, node);
	release_file(u, user->file);
	free(user);
	return 0;
}

void go_units_free(struct go_units *u)
{
	if (!u)
		return;
	table_walk(&u->users, free_user, u);
	table_done(&u->users);
	table_done(&u->files);
	go_cache_free(u->cache);
	go_probe_free(u->probe);
	free(u);
}
