/* One look at a process; see look.h. */
#include "discover/look.h"

#include <errno.h>
#include <stdio.h>

#include "discover/container.h"
#include "discover/describe.h"
#include "discover/jvm.h"
#include "discover/proc.h"
#include "discover/select.h"
#include "discover/text.h"
#include "discover/user.h"
#include "metrics/metrics.h"

/* Long class paths come before the main class, so that naming needs more than is kept. */
#define ARGUMENTS_BYTES_MAX (128 << 10)
#define MATCHED_COMMAND_MAX (32 << 10)
#define KEPT_COMMAND_MAX    4096
/* Of processes that are left alone only the list shows it, and there may be thousands. */
#define LEFT_COMMAND_MAX 256

/* All that was read of one process. */
struct facts {
	int dir;
	struct proc_stat stat;
	struct proc_exe exe;
	char *arguments;
	size_t n_arguments;
	char *command;
	uint32_t uid;
	char user[USER_NAME_MAX];
	struct cgroup_facts cgroup;
	struct proc_namespace netns;
	struct image_facts image;
	int image_outcome; /* of image_cache_look(), or IMAGES_DENIED */
	bool has_jvm;
	struct jvm jvm;
};

static void facts_done(struct facts *f)
{
	closep(&f->dir);
	free(f->exe.path);
	free(f->arguments);
	free(f->command);
}

void look_process_done(struct process *p)
{
	free(p->version);
	free(p->exe);
	free(p->command);
	free(p->container_id);
	free(p->unit);
	free(p->why);
	resource_unref(p->resource);
	*p = (struct process){0};
}

/* --- reading */

static int read_stat(const struct look *look, struct facts *f)
{
	int r = proc_open(look->pid, &f->dir);

	if (r == 0)
		r = proc_stat(f->dir, &f->stat);
	if (r)
		return r < 0 ? r : LOOK_GONE;
	if (f->stat.is_kernel_thread || f->stat.is_zombie)
		return LOOK_NOBODY;
	/* The pid was given to somebody else since. */
	if (look->start_ns && proc_tick_floor(look->start_ns) != proc_tick_floor(f->stat.start_ns))
		return LOOK_GONE;
	return 0;
}

static int read_image(const struct look_context *context, struct facts *f)
{
	const struct image_facts *image;
	int r;

	f->image_outcome = IMAGES_DENIED;
	r = proc_exe(f->dir, &f->exe);
	if (r == PROC_DENIED)
		return 0;
	if (r)
		return r < 0 ? r : LOOK_GONE;
	text_clean(f->exe.path, strlen(f->exe.path));

	r = image_cache_look(context->images, f->dir, &f->exe, &image);
	if (r < 0)
		return r;
	if (r == IMAGES_GONE)
		return LOOK_GONE;
	f->image_outcome = r;
	if (r == 0)
		f->image = *image;
	return 0;
}

/*
 * A library can come in later only where there is a dynamic linker; where we cannot tell, maps
 * still can.
 */
static bool may_load_jvm(const struct facts *f)
{
	if (f->image_outcome)
		return true;
	return f->image.is_64bit && f->image.is_dynamic && !f->image.is_go;
}

static int read_jvm(struct facts *f)
{
	int r;

	if (!may_load_jvm(f))
		return 0;
	r = jvm_find(f->dir, &f->jvm);
	f->has_jvm = r == 0;
	return r == -ENOMEM ? r : 0;
}

static int read_command(struct facts *f)
{
	int r;

	r = proc_read_whole(f->dir, "cmdline", ARGUMENTS_BYTES_MAX, &f->arguments, &f->n_arguments);
	if (r)
		return r == PROC_GONE ? LOOK_GONE : MIN(r, 0);
	f->command = text_command_line((struct str){.p = f->arguments, .n = f->n_arguments},
				       MATCHED_COMMAND_MAX, false);
	return f->command ? 0 : -ENOMEM;
}

static int read_owner(const struct look_context *context, const struct look *look, struct facts *f)
{
	char text[8192];
	size_t n;
	int r;

	r = proc_uid(f->dir, &f->uid);
	if (r)
		return r == PROC_DENIED ? 0 : r < 0 ? r : LOOK_GONE;
	if (proc_read(f->dir, "cgroup", text, sizeof(text), &n) == 0)
		cgroup_parse((struct str){.p = text, .n = n}, &f->cgroup);
	text_clean(f->cgroup.unit, strlen(f->cgroup.unit));

	/*
	 * A container has users of its own; the host's name of the number would be somebody else's.
	 */
	if (f->cgroup.container_id[0])
		snprintf(f->user, sizeof(f->user), "%u", f->uid);
	else
		user_name(f->uid, f->user);
	if (look->sockets || context->needs_netns)
		(void)proc_namespace(f->dir, "ns/net", &f->netns);
	return 0;
}

static int read_ports(struct look *look, const struct facts *f)
{
	if (!look->sockets || look->n_ports > 0 || !f->netns.inode)
		return 0;
	return sockets_ports(look->sockets, f->dir, &f->netns, look->ports, PORTS_MAX,
			     &look->n_ports);
}

static int read_facts(const struct look_context *context, struct look *look, struct facts *f)
{
	int r;

	r = read_stat(look, f);
	if (r)
		return r;
	metrics_increment(METRIC_PROCESSES_SEEN);
	r = read_image(context, f);
	if (r == 0)
		r = read_jvm(f);
	if (r == 0)
		r = read_command(f);
	if (r == 0)
		r = read_owner(context, look, f);
	if (r == 0)
		r = read_ports(look, f);
	return r;
}

/* --- judging */

static struct subject subject_of(const struct look *look, const struct facts *f,
				 enum language language)
{
	return (struct subject){
		.pid = look->pid,
		.language = language,
		.exe = f->exe.path,
		.command = f->command,
		.user = f->user,
		.uid = f->uid,
		.unit = f->cgroup.unit[0] ? f->cgroup.unit : NULL,
		.container = f->cgroup.container_id[0] ? f->cgroup.container_id : NULL,
		.netns = f->netns,
		.ports = look->ports,
		.n_ports = look->n_ports,
	};
}

/* What a person should know besides the rule; NULL: nothing. */
static const char *remark(const struct facts *f)
{
	if (f->has_jvm && f->jvm.is_openj9)
		return "; OpenJ9, so threads only";
	if (f->has_jvm)
		return NULL;
	if (f->image_outcome == IMAGES_FUSE)
		return "; its executable was not looked into: it is on a FUSE file system, which "
		       "could block";
	if (f->image_outcome == IMAGES_DENIED && f->exe.path)
		return "; its executable was not looked into: no permission";
	return NULL;
}

/* Why it is left alone whatever the rules say; NULL: the rules decide. */
static const char *fixed_reason(const struct look_context *context, const struct look *look,
				const struct facts *f)
{
	if (look->pid == context->self_pid)
		return "excluded: this is tsunagid itself";
	if (f->image_outcome == 0 && !f->image.is_64bit)
		return "left alone: a 32-bit program, which is not supported";
	return NULL;
}

static int decide(const struct look_context *context, const struct look *look,
		  const struct facts *f, const struct subject *subject, struct process *p)
{
	_cleanup_(freep) char *why = NULL;
	const char *more = remark(f), *fixed;
	bool is_selected = false;
	int r;

	fixed = fixed_reason(context, look, f);
	if (fixed)
		r = (why = strdup(fixed)) ? 0 : -ENOMEM;
	else
		r = select_decide(context->config, subject, &is_selected, &why);
	if (r < 0)
		return r;

	p->state = is_selected ? PROCESS_SELECTED : PROCESS_LEFT;
	if (!more) {
		p->why = TAKE_PTR(why);
		return 0;
	}
	return asprintf(&p->why, "%s%s", why, more) < 0 ? -ENOMEM : 0;
}

/* Copies text where there is any. */
static int keep(const char *text, char **ret)
{
	if (!text || !text[0])
		return 0;
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

static int keep_facts(const struct look *look, const struct facts *f, struct process *p)
{
	struct str arguments = {.p = f->arguments, .n = f->n_arguments};
	bool is_selected = p->state == PROCESS_SELECTED;
	int r = 0;

	p->uid = f->uid;
	p->has_listening_port = look->n_ports > 0;
	p->listening_port = look->n_ports > 0 ? look->ports[0] : 0;
	r = r ?: keep(f->exe.path, &p->exe);
	r = r ?: keep(f->cgroup.container_id, &p->container_id);
	r = r ?: keep(f->cgroup.unit, &p->unit);
	if (p->language == LANGUAGE_JVM)
		r = r ?: keep(f->jvm.version, &p->version);
	else if (p->language == LANGUAGE_GO)
		r = r ?: keep(f->image.go_version, &p->version);
	if (r < 0 || !f->arguments)
		return r;
	p->command = text_command_line(arguments, is_selected ? KEPT_COMMAND_MAX : LEFT_COMMAND_MAX,
				       true);
	return p->command ? 0 : -ENOMEM;
}

static int judge(const struct look_context *context, const struct look *look, const struct facts *f,
		 struct process *p)
{
	struct subject subject;
	int r;

	p->language = f->has_jvm ? LANGUAGE_JVM : f->image.is_go ? LANGUAGE_GO : LANGUAGE_OTHER;
	subject = subject_of(look, f, p->language);
	r = decide(context, look, f, &subject, p);
	if (r == 0)
		r = keep_facts(look, f, p);
	if (r || p->state != PROCESS_SELECTED)
		return r;

	p->propagates = select_propagates(context->config, &subject);
	p->takes_agent = select_takes_agent(context->config, &subject);
	r = describe_process(
		&(struct description){
			.host = context->host,
			.config = context->config,
			.process = p,
			.subject = &subject,
			.arguments = {.p = f->arguments, .n = f->n_arguments},
			.go_module = f->image.go_module,
			.parent_pid = f->stat.parent_pid,
			.dir = f->dir,
		},
		&p->resource);
	return r == DESCRIBE_GONE ? LOOK_GONE : r;
}

int look_at(const struct look_context *context, struct look *look, struct process *ret_process,
	    bool *ret_may_become_jvm)
{
	_cleanup_(look_process_done) struct process p = {.pid = look->pid,
							 .exec_id = look->exec_id};
	_cleanup_(facts_done) struct facts f = {.dir = -1};
	int r;

	r = read_facts(context, look, &f);
	if (r)
		return r;
	p.start_ns = look->start_ns ?: f.stat.start_ns;
	r = judge(context, look, &f, &p);
	if (r)
		return r;

	*ret_may_become_jvm = may_load_jvm(&f) && !f.has_jvm;
	*ret_process = p;
	p = (struct process){0};
	return 0;
}

bool look_has_jvm(uint32_t pid)
{
	_cleanup_(closep) int dir = -1;
	struct jvm jvm;

	return proc_open(pid, &dir) == 0 && jvm_find(dir, &jvm) == 0;
}
