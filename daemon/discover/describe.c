/* Resources of processes; see describe.h. */
#include "discover/describe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

#include "base/util.h"
#include "discover/environment.h"
#include "discover/name.h"
#include "discover/proc.h"
#include "discover/text.h"

#define ENVIRON_BYTES_MAX (256 << 10)
#define COMMAND_LINE_MAX  4096
#define INSTANCE_ID_MAX   40
#define TIME_MAX          40

static int set(struct resource *r, const char *key, const char *text)
{
	return text && text[0] ? resource_set(r, key, str_from(text)) : 0;
}

/*
 * The same for the same process each time it is met, also by another run of the daemon, and for no
 * other one on no other boot: a hash of all that makes a process one. In the form of a UUID (RFC
 * 9562, version 8), because the conventions suggest one. The exec is no part of it: what was before
 * the daemon's start cannot be known.
 */
static void instance_id(const struct host *host, const struct process *p,
			char ret_id[INSTANCE_ID_MAX])
{
	char identity[128];
	XXH128_hash_t hash;
	int n;

	n = snprintf(identity, sizeof(identity), "%s %" PRIu32 " %" PRIu64, host->boot_id, p->pid,
		     proc_tick_floor(p->start_ns));
	hash = XXH3_128bits(identity, (size_t)n);
	snprintf(ret_id, INSTANCE_ID_MAX, "%08x-%04x-8%03x-%04x-%012" PRIx64,
		 (unsigned int)(hash.high64 >> 32), (unsigned int)(hash.high64 >> 16 & 0xffff),
		 (unsigned int)(hash.high64 & 0x0fff),
		 (unsigned int)(hash.low64 >> 48 & 0x3fff) | 0x8000, hash.low64 & 0xffffffffffff);
}

/* ISO 8601 in UTC, as process.creation.time wants it. */
static void creation_time(const struct process *p, char ret_text[TIME_MAX])
{
	uint64_t age_ns = now_ns(CLOCK_BOOTTIME) - p->start_ns;
	uint64_t at_ns = now_ns(CLOCK_REALTIME) - age_ns;
	time_t seconds = (time_t)(at_ns / NSEC_PER_SEC);
	struct tm tm;
	size_t n;

	ret_text[0] = '\0';
	if (!gmtime_r(&seconds, &tm))
		return;
	n = strftime(ret_text, TIME_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(ret_text + n, TIME_MAX - n, ".%03uZ",
		 (unsigned int)(at_ns % NSEC_PER_SEC / NSEC_PER_MSEC));
}

static int set_host(struct resource *r, const struct host *host)
{
	int e = 0;

	e = e ?: set(r, "host.name", host->name);
	e = e ?: set(r, "host.id", host->id);
	e = e ?: set(r, "host.arch", host->arch);
	e = e ?: set(r, "os.type", "linux");
	e = e ?: set(r, "os.name", host->os_name);
	e = e ?: set(r, "os.version", host->os_version);
	e = e ?: set(r, "os.description", host->os_description);
	return e;
}

/* The values of telemetry.sdk.language are those of OpenTelemetry's SDKs, not of our enum. */
static const char *sdk_language(const struct process *p)
{
	const char *interpreter;

	switch (p->language) {
	case LANGUAGE_JVM:
		return "java";
	case LANGUAGE_GO:
		return "go";
	case LANGUAGE_OTHER:
	case _LANGUAGE_MAX:
		break;
	}
	interpreter = name_interpreter(str_from(p->exe));
	return interpreter ?: "other";
}

/*
 * The conventions reserve telemetry.sdk.name "opentelemetry" for SDKs of that project: whoever
 * makes telemetry by other means must use a name of its own. The language is that of the service,
 * because that is what is shown.
 */
static int set_telemetry(struct resource *r, const struct process *p)
{
	int e = 0;

	e = e ?: set(r, "telemetry.sdk.name", "tsunagi");
	e = e ?: set(r, "telemetry.sdk.language", sdk_language(p));
	e = e ?: set(r, "telemetry.sdk.version", TSUNAGI_VERSION);
	e = e ?: set(r, "telemetry.distro.name", "tsunagi");
	e = e ?: set(r, "telemetry.distro.version", TSUNAGI_VERSION);
	return e;
}

static int set_process(struct resource *r, const struct description *d)
{
	const struct process *p = d->process;
	_cleanup_(freep) char *command = text_command_line(d->arguments, COMMAND_LINE_MAX, true);
	char time[TIME_MAX];
	int e = 0;

	if (!command)
		return -ENOMEM;
	creation_time(p, time);
	e = e ?: resource_set_number(r, "process.pid", p->pid);
	e = e ?: resource_set_number(r, "process.parent_pid", d->parent_pid);
	e = e ?: set(r, "process.creation.time", time);
	if (p->exe) {
		e = e
			    ?: resource_set(r, "process.executable.name",
					    text_base_name(str_from(p->exe)));
		e = e ?: set(r, "process.executable.path", p->exe);
	}
	e = e ?: set(r, "process.command_line", command);
	e = e ?: set(r, "process.owner", d->subject->user);
	if (p->language == LANGUAGE_GO)
		e = e ?: set(r, "process.runtime.name", "go");
	else if (p->language == LANGUAGE_JVM)
		e = e ?: set(r, "process.runtime.name", "OpenJDK Runtime Environment");
	e = e ?: set(r, "process.runtime.version", p->version);
	e = e ?: set(r, "container.id", p->container_id);
	return e;
}

/* What the process is and who made its telemetry is not for its environment to say. */
static bool is_ours(const char *key)
{
	return strncmp(key, "process.", strlen("process.")) == 0 ||
	       strncmp(key, "telemetry.", strlen("telemetry.")) == 0;
}

static int set_environment(struct resource *r, const struct environment *environment)
{
	int e;

	for (size_t i = 0; i < environment->n_attributes; i++) {
		const struct environment_attribute *a = &environment->attributes[i];

		if (is_ours(a->key))
			continue;
		e = resource_set(r, a->key, str_from(a->value));
		if (e < 0)
			return e;
	}
	return 0;
}

static int set_name(struct resource *r, const struct description *d,
		    const struct environment *environment)
{
	const char *configured = select_service_name(d->config, d->subject);
	struct name_source source = {
		.language = d->process->language,
		.exe = str_from(d->process->exe),
		.arguments = d->arguments,
		.unit = str_from(d->process->unit),
		.go_module = str_from(d->go_module),
	};
	char name[SERVICE_NAME_MAX];

	if (configured)
		return resource_set(r, "service.name", str_from(configured));
	if (environment->service_name)
		return resource_set(r, "service.name", str_from(environment->service_name));
	name_service(&source, name);
	return resource_set(r, "service.name", str_from(name));
}

static int read_environment(int dir, struct environment *ret)
{
	_cleanup_(freep) char *block = NULL;
	size_t n;
	int r;

	*ret = (struct environment){0};
	r = proc_read_whole(dir, "environ", ENVIRON_BYTES_MAX, &block, &n);
	if (r == PROC_GONE)
		return DESCRIBE_GONE;
	if (r) /* unreadable: no names from there */
		return r == -ENOMEM ? r : 0;
	return environment_parse((struct str){.p = block, .n = n}, ret);
}

int describe_process(const struct description *d, struct resource **ret)
{
	_cleanup_(environment_done) struct environment environment;
	_cleanup_(resource_unrefp) struct resource *r = NULL;
	char id[INSTANCE_ID_MAX];
	int e;

	e = read_environment(d->dir, &environment);
	if (e)
		return e;
	e = resource_new(d->process->pid, &r);
	if (e < 0)
		return e;

	instance_id(d->host, d->process, id);
	e = e ?: set_name(r, d, &environment);
	e = e ?: set(r, "service.instance.id", id);
	e = e ?: set_host(r, d->host);
	e = e ?: set_process(r, d);
	e = e ?: set_telemetry(r, d->process);
	e = e ?: set_environment(r, &environment);
	if (e < 0)
		return e;
	*ret = TAKE_PTR(r);
	return 0;
}

static int copy_attributes(struct resource *to, const struct resource *from)
{
	for (size_t i = 0; i < from->n_attributes; i++) {
		const struct resource_attribute *a = &from->attributes[i];
		int e = a->text ? resource_set(to, a->key, str_from(a->text))
				: resource_set_number(to, a->key, a->number);

		if (e < 0)
			return e;
	}
	return 0;
}

int describe_fork(const struct host *host, const struct process *parent,
		  const struct process *child, struct resource **ret)
{
	_cleanup_(resource_unrefp) struct resource *r = NULL;
	const struct resource_attribute *given =
		resource_get(parent->resource, "service.instance.id");
	char parent_id[INSTANCE_ID_MAX], id[INSTANCE_ID_MAX], time[TIME_MAX];
	int e;

	e = resource_new(child->pid, &r);
	if (e < 0)
		return e;
	e = copy_attributes(r, parent->resource);
	if (e < 0)
		return e;

	instance_id(host, parent, parent_id);
	instance_id(host, child, id);
	creation_time(child, time);
	/* An id from the environment is inherited like the environment itself. */
	if (given && given->text && strcmp(given->text, parent_id) == 0)
		e = e ?: set(r, "service.instance.id", id);
	e = e ?: resource_set_number(r, "process.pid", child->pid);
	e = e ?: resource_set_number(r, "process.parent_pid", parent->pid);
	e = e ?: set(r, "process.creation.time", time);
	if (e < 0)
		return e;
	*ret = TAKE_PTR(r);
	return 0;
}
