/* Selection; see select.h. */
#include "discover/select.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/util.h"
#include "discover/text.h"

/*
 * Programs that carry or observe other programs' traffic: their spans would be noise, and tracing a
 * collector makes spans of our own exports for ever. runsc (gVisor) makes system calls for programs that
 * are not Go, FIONREAD among them. Patterns on the executable's base name.
 */
static const char *const builtin_excludes[] = {
	"tsunagid", "tsunagictl",   "otelcol*",      "jaeger*", "obi",
	"beyla",    "promtail",     "node_exporter", "vector",  "datadog-agent",
	"dockerd",  "docker-proxy", "containerd*",   "kubelet", "runsc*",
};

/* The shortest prefix of a container id that the usual tools print. */
#define CONTAINER_PREFIX_MIN 12

static bool matches_pattern(const char *pattern, const char *text)
{
	return text && fnmatch(pattern, text, 0) == 0;
}

static const char *base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

static bool matches_exe(const char *pattern, const char *exe)
{
	return matches_pattern(pattern, strchr(pattern, '/') ? exe : base_name(exe));
}

static bool matches_user(const char *user, const struct subject *subject)
{
	char uid[16];

	snprintf(uid, sizeof(uid), "%" PRIu32, subject->uid);
	return strcmp(user, uid) == 0 || (subject->user && strcmp(user, subject->user) == 0);
}

/* "shop" will do for "shop.service". */
static bool matches_unit(const char *pattern, const char *unit)
{
	char name[256];
	const char *dot = unit ? strrchr(unit, '.') : NULL;

	if (matches_pattern(pattern, unit))
		return true;
	if (!dot || strcmp(dot, ".service") != 0)
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)(dot - unit), unit);
	return matches_pattern(pattern, name);
}

static bool matches_container(const char *pattern, const char *container)
{
	size_t n = strlen(pattern);

	if (!container)
		return false;
	return matches_pattern(pattern, container) ||
	       (n >= CONTAINER_PREFIX_MIN && strspn(pattern, "0123456789abcdef") == n &&
		strncmp(pattern, container, n) == 0);
}

static bool matches_netns(const char *path, const struct proc_namespace *netns)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_dev == netns->device && st.st_ino == netns->inode;
}

static bool matches_port(const struct selector *s, const struct subject *subject)
{
	uint16_t last = MAX(s->port_first, s->port_last);

	for (size_t i = 0; i < subject->n_ports; i++)
		if (subject->ports[i] >= s->port_first && subject->ports[i] <= last)
			return true;
	return false;
}

/* Cheap keys first. */
bool selector_matches(const struct selector *s, const struct subject *subject)
{
	if (s->languages && !(s->languages & 1U << subject->language))
		return false;
	if (s->port_first && !matches_port(s, subject))
		return false;
	if (s->user && !matches_user(s->user, subject))
		return false;
	if (s->unit && !matches_unit(s->unit, subject->unit))
		return false;
	if (s->container && !matches_container(s->container, subject->container))
		return false;
	if (s->exe && !matches_exe(s->exe, subject->exe))
		return false;
	if (s->command && !matches_pattern(s->command, subject->command))
		return false;
	if (s->netns && !matches_netns(s->netns, &subject->netns))
		return false;
	return true;
}

static const struct selector *first_match(const struct selector_list *list,
					  const struct subject *subject)
{
	for (size_t i = 0; i < list->n; i++)
		if (selector_matches(&list->items[i], subject))
			return &list->items[i];
	return NULL;
}

static bool list_uses_ports(const struct selector_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].port_first)
			return true;
	return false;
}

bool select_uses_ports(const struct config *config)
{
	for (size_t i = 0; i < config->n_services; i++)
		if (config->services[i].match.port_first)
			return true;
	return list_uses_ports(&config->include) || list_uses_ports(&config->exclude);
}

/* --- sentences */

struct sentence {
	char text[640];
	size_t n;
};

__attribute__((format(printf, 2, 3))) static void say(struct sentence *s, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(s->text + s->n, sizeof(s->text) - s->n, format, arguments);
	va_end(arguments);
	if (n > 0)
		s->n = MIN(s->n + (size_t)n, sizeof(s->text) - 1);
}

static void say_key(struct sentence *s, const char *key, const char *value)
{
	if (value)
		say(s, "%s%s \"%.100s\"", s->n > strlen("selected: ") ? ", " : "", key, value);
}

static void say_selected(struct sentence *s, const struct selector *rule,
			 const struct subject *subject)
{
	say(s, "selected: ");
	if (rule->languages)
		say(s, "language %s", language_name(subject->language));
	say_key(s, "exe", rule->exe);
	say_key(s, "cmd", rule->command);
	say_key(s, "user", rule->user);
	say_key(s, "unit", rule->unit);
	say_key(s, "container", rule->container);
	say_key(s, "netns", rule->netns);
	if (rule->port_first && rule->port_last > rule->port_first)
		say(s, "%sports %u to %u", s->n > strlen("selected: ") ? ", " : "",
		    rule->port_first, rule->port_last);
	else if (rule->port_first)
		say(s, "%sport %u", s->n > strlen("selected: ") ? ", " : "", rule->port_first);
	if (s->n == strlen("selected: "))
		say(s, "any process");
	if (rule->line)
		say(s, " (discover.include at line %u)", rule->line);
	else
		say(s, " (built-in rule)");
}

static void say_not_selected(struct sentence *s, const struct subject *subject)
{
	if (subject->exe)
		say(s, "not selected: no rule matches (add - exe: \"%.400s\" to discover.include)",
		    subject->exe);
	else
		say(s, "not selected: no rule matches, and its executable cannot be read");
}

/* --- decisions */

static bool decide(const struct config *config, const struct subject *subject, struct sentence *s)
{
	const char *base = base_name(subject->exe);
	const struct selector *rule;

	for (size_t i = 0; base && i < ARRAY_SIZE(builtin_excludes); i++) {
		if (!matches_pattern(builtin_excludes[i], base))
			continue;
		say(s, "excluded by built-in rule '%s'", builtin_excludes[i]);
		return false;
	}
	/*
	 * It listens on its services' behalf (socket activation); what it accepts is not its own.
	 */
	if (subject->pid == 1 && base &&
	    (strcmp(base, "systemd") == 0 || strcmp(base, "init") == 0)) {
		say(s, "excluded: the init system");
		return false;
	}

	rule = first_match(&config->exclude, subject);
	if (rule) {
		say(s,
		    rule->line ? "excluded by discover.exclude at line %u"
			       : "excluded by discover.exclude",
		    rule->line);
		return false;
	}
	rule = first_match(&config->include, subject);
	if (!rule) {
		say_not_selected(s, subject);
		return false;
	}
	say_selected(s, rule, subject);
	return true;
}

int select_decide(const struct config *config, const struct subject *subject, bool *ret_selected,
		  char **ret_why)
{
	struct sentence s = {0};
	bool is_selected = decide(config, subject, &s);
	char *why;

	why = strdup(s.text);
	if (!why)
		return -ENOMEM;
	*ret_selected = is_selected;
	*ret_why = why;
	return 0;
}

const char *select_service_name(const struct config *config, const struct subject *subject)
{
	for (size_t i = 0; i < config->n_services; i++)
		if (config->services[i].name &&
		    selector_matches(&config->services[i].match, subject))
			return config->services[i].name;
	return NULL;
}

bool select_propagates(const struct config *config, const struct subject *subject)
{
	for (size_t i = 0; i < config->n_services; i++)
		if (config->services[i].propagate != CONFIG_PROPAGATE_UNSET &&
		    selector_matches(&config->services[i].match, subject))
			return config->services[i].propagate == CONFIG_PROPAGATE_ON;
	return config->propagate == CONFIG_PROPAGATE_ON;
}

bool select_takes_agent(const struct config *config, const struct subject *subject)
{
	for (size_t i = 0; i < config->n_services; i++)
		if (config->services[i].jvm_agent != CONFIG_AGENT_UNSET &&
		    selector_matches(&config->services[i].match, subject))
			return config->services[i].jvm_agent == CONFIG_AGENT_AUTO;
	return config->jvm_agent == CONFIG_AGENT_AUTO;
}
