/* The table of configuration keys and what is asked of it; see keys.h. */
#include "config/keys.h"

#include <stdio.h>

#include "base/log.h"
#include "base/nearest.h"
#include "base/util.h"
#include "config/config.h"
#include "config/value.h"

#define KIB 1024ULL
#define MIB (1024 * KIB)

static const struct key_choice taps[] = {
	{"auto", CONFIG_TAP_AUTO},
	{"fentry", CONFIG_TAP_FENTRY},
	{"tracepoint", CONFIG_TAP_TRACEPOINT},
	{"kprobe", CONFIG_TAP_KPROBE},
};

static const struct key_choice log_levels[] = {
	{"error", LOG_LEVEL_ERROR},
	{"warning", LOG_LEVEL_WARNING},
	{"info", LOG_LEVEL_INFO},
	{"debug", LOG_LEVEL_DEBUG},
};

static const struct key_choice agents[] = {
	{"auto", CONFIG_AGENT_AUTO},
	{"off", CONFIG_AGENT_OFF},
};

static const struct key_choice propagation[] = {
	{"off", CONFIG_PROPAGATE_OFF},
	{"on", CONFIG_PROPAGATE_ON},
};

/* The values are the bits of struct selector; "any" has none. */
static const struct key_choice languages[] = {
	{"any", 0},
	{"jvm", 1 << LANGUAGE_JVM},
	{"go", 1 << LANGUAGE_GO},
	{"other", 1 << LANGUAGE_OTHER},
};
static_assert(ARRAY_SIZE(languages) == _LANGUAGE_MAX + 1, "each language can be selected");

#define CHOICES(array)      .choices = (array), .n_choices = ARRAY_SIZE(array)
#define IN_CONFIG(member)   .scope = KEY_SCOPE_FILE, .offset = offsetof(struct config, member)
#define IN_SELECTOR(member) .scope = KEY_SCOPE_SELECTOR, .offset = offsetof(struct selector, member)
#define IN_SERVICE(member) \
	.scope = KEY_SCOPE_SERVICE, .offset = offsetof(struct config_service, member)

/* clang-format off */
static const struct key keys[] = {
	{"endpoint", .type = KEY_URL, IN_CONFIG(endpoint), .value = "null",
	 .example = "http://localhost:4318",
	 .help = "Where spans go: the base URL of an OTLP/HTTP collector. /v1/traces is appended unless a path is given. "
		 "Without one the newest traces are kept in memory."},

	{"export", .type = KEY_SECTION, .help = "How spans are sent to the endpoint."},
	{"export.timeout", .type = KEY_DURATION, IN_CONFIG(export_timeout_ms), .value = "10s",
	 .min = 100, .max = 600000, .help = "How long the collector may take for one batch."},
	{"export.batch_spans", .type = KEY_COUNT, IN_CONFIG(export_batch_spans), .value = "512",
	 .min = 1, .max = 8192, .help = "A batch is sent when it has so many spans."},
	{"export.batch_delay", .type = KEY_DURATION, IN_CONFIG(export_batch_ms), .value = "1s",
	 .min = 10, .max = 60000, .help = "A batch is sent when its oldest span has waited so long."},
	{"export.queue_spans", .type = KEY_COUNT, IN_CONFIG(export_queue_spans), .value = "16384",
	 .min = 1, .max = 1048576,
	 .help = "So many spans wait for the collector; further ones are dropped and counted (queue_full)."},

	{"discover", .type = KEY_SECTION,
	 .help = "Which processes are traced: those that an item of 'include' matches and no item of 'exclude'. "
		 "An item matches when all its keys do. The keys of an item:"},
	{"exe", .type = KEY_PATTERN, IN_SELECTOR(exe), .example = "\"/srv/*\"",
	 .help = "Pattern on the executable's path; without '/', on its name."},
	{"cmd", .type = KEY_PATTERN, IN_SELECTOR(command), .example = "\"*-jar shop.jar*\"",
	 .help = "Pattern on the whole command line."},
	{"user", .type = KEY_USER, IN_SELECTOR(user), .example = "www-data",
	 .help = "User name or number."},
	{"unit", .type = KEY_PATTERN, IN_SELECTOR(unit), .example = "\"shop-*.service\"",
	 .help = "Pattern on the systemd unit."},
	{"container", .type = KEY_PATTERN, IN_SELECTOR(container), .example = "\"4f2a9c0d71be*\"",
	 .help = "Pattern on the container id, or its first 12 or more digits."},
	{"netns", .type = KEY_TEXT, IN_SELECTOR(netns), .example = "/run/netns/a",
	 .help = "Path of a network namespace."},
	{"port", .type = KEY_PORTS, IN_SELECTOR(port_first), .example = "8080-8090",
	 .help = "A port that it listens on, or a range."},
	{"language", .type = KEY_LANGUAGES, IN_SELECTOR(languages), CHOICES(languages),
	 .example = "[jvm, go]", .help = "An item without this key matches any language."},

	{"discover.include", .type = KEY_SELECTORS, IN_CONFIG(include),
	 .value = "[{language: jvm}, {language: go}]",
	 .example = "[{exe: \"/srv/*\"}, {unit: \"shop-*.service\", port: 8080-8090}]",
	 .help = "A list given here takes the place of the default: JVM and Go processes."},
	{"discover.exclude", .type = KEY_SELECTORS, IN_CONFIG(exclude), .value = "[]",
	 .example = "[{user: backup}]",
	 .help = "In addition to the tools that are never traced (tsunagi itself, collectors, container engines)."},

	{"services", .type = KEY_SERVICES, IN_CONFIG(services), .value = "[]",
	 .example = "[{match: {port: 8080}, name: shop}]",
	 .help = "Names of services, and what differs for them; the first item that matches a process and has the key "
		 "counts. 'match' is a selector as above."},
	{"match", .type = KEY_SELECTOR, IN_SERVICE(match), .example = "{port: 8080}",
	 .help = "Which processes are of the service."},
	{"name", .type = KEY_TEXT, IN_SERVICE(name), .example = "shop",
	 .help = "The service's name."},
	{"propagate", .type = KEY_CHOICE, IN_SERVICE(propagate), .example = "off", CHOICES(propagation),
	 .help = "Instead of 'propagate' below."},

	{"jvm", .type = KEY_SECTION, IN_SERVICE(jvm_agent), .example = "{agent: off}",
	 .help = "Instead of 'jvm' below."},
	{"jvm.agent", .type = KEY_CHOICE, IN_SERVICE(jvm_agent), CHOICES(agents)},

	{"propagate", .type = KEY_CHOICE, IN_CONFIG(propagate), .value = "on", CHOICES(propagation),
	 .help = "Whether HTTP/1 requests in the clear that Go processes send, and that have no traceparent header, are "
		 "given one, so that the next host continues the trace."},

	{"jvm", .type = KEY_SECTION, .help = "What is done for JVMs."},
	{"jvm.agent", .type = KEY_CHOICE, IN_CONFIG(jvm_agent), .value = "auto", CHOICES(agents),
	 .help = "Whether an agent is loaded into JVMs that serve requests: it tells which request a thread works for, "
		 "and has to stay until the JVM ends. 'off' also switches one off that is there."},

	{"http", .type = KEY_SECTION, .help = "What is followed of HTTP."},
	{"http.head_bytes_max", .type = KEY_SIZE, IN_CONFIG(head_bytes_max), .value = "16KB",
	 .min = 256, .max = 64 * KIB,
	 .help = "Longer heads are cut: their spans are marked, and get no parent from a header."},
	{"http.exchange_idle", .type = KEY_DURATION, IN_CONFIG(exchange_idle_ms), .value = "10m",
	 .min = 100, .max = 86400000, .help = "A request without news for so long is given up."},

	{"limits", .type = KEY_SECTION,
	 .help = "Bounds of what is followed at a time; what is beyond them is counted."},
	{"limits.connections", .type = KEY_COUNT, IN_CONFIG(connections_max), .value = "131072",
	 .min = 1, .max = 16777216, .help = "TCP connections of traced processes."},
	{"limits.processes", .type = KEY_COUNT, IN_CONFIG(processes_max), .value = "4096",
	 .min = 1, .max = 1048576, .help = "Processes known at a time."},
	{"limits.open_requests", .type = KEY_COUNT, IN_CONFIG(requests_max), .value = "65536",
	 .min = 1, .max = 16777216, .help = "Requests that wait for their response."},
	{"limits.open_bytes", .type = KEY_SIZE, IN_CONFIG(open_bytes), .value = "16MB",
	 .min = 64 * KIB, .max = 1024 * MIB,
	 .help = "Memory for connections and what is open on them."},
	{"limits.ring_bytes", .type = KEY_SIZE_POW2, IN_CONFIG(ring_bytes), .value = "2MB",
	 .min = 64 * KIB, .max = 1024 * MIB, .help = "The buffer between the kernel and the daemon."},

	{"store", .type = KEY_SECTION, .help = "The traces kept in memory: the newest, up to the smaller bound."},
	{"store.traces", .type = KEY_COUNT, IN_CONFIG(store_traces), .value = "1000",
	 .min = 1, .max = 1000000, .help = "Traces."},
	{"store.bytes", .type = KEY_SIZE, IN_CONFIG(store_bytes), .value = "8MB",
	 .min = 64 * KIB, .max = 1024 * MIB, .help = "Memory for them."},

	{"tap", .type = KEY_CHOICE, IN_CONFIG(tap), .value = "auto", CHOICES(taps),
	 .help = "How sockets are watched; 'auto' takes the first that this kernel offers."},
	{"log_level", .type = KEY_CHOICE, IN_CONFIG(log_level), .value = "info", CHOICES(log_levels),
	 .help = "The least important messages that are written."},
};
/* clang-format on */
static_assert(ARRAY_SIZE(keys) <= KEYS_MAX, "a mapping can note each key it has had");
static_assert(sizeof(((struct config *)0)->tap) == sizeof(int), "KEY_CHOICE stores an int");
static_assert(sizeof(enum config_propagate) == sizeof(int), "KEY_CHOICE stores an int");
static_assert(sizeof(enum config_agent) == sizeof(int), "KEY_CHOICE stores an int");

const struct key *keys_table(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(keys);
	return keys;
}

const char *keys_leaf(const struct key *key)
{
	const char *dot = strrchr(key->path, '.');

	return dot ? dot + 1 : key->path;
}

bool keys_is_child(const struct key *key, enum key_scope scope, struct str prefix)
{
	struct str path = str_from(key->path);

	return key->scope == scope && str_starts_with(path, prefix) &&
	       keys_leaf(key) == key->path + prefix.n;
}

const struct key *keys_find(enum key_scope scope, struct str prefix, struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (keys_is_child(&keys[i], scope, prefix) &&
		    str_equal(str_from(keys_leaf(&keys[i])), name))
			return &keys[i];
	}
	return NULL;
}

static void append(struct key_expectation *e, const char *separator, const char *word)
{
	size_t n = strlen(e->text);

	snprintf(e->text + n, sizeof(e->text) - n, "%s%s", n ? separator : "", word);
}

struct key_expectation keys_expected(enum key_scope scope, struct str prefix)
{
	struct key_expectation e = {0};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (keys_is_child(&keys[i], scope, prefix))
			append(&e, ", ", keys_leaf(&keys[i]));
	}
	return e;
}

/* A key of that very name, in another place. */
static struct key_expectation hint_elsewhere(const struct key *key)
{
	const char *leaf = keys_leaf(key);
	struct key_expectation e = {0};

	switch (key->scope) {
	case KEY_SCOPE_FILE:
		if (leaf == key->path)
			snprintf(e.text, sizeof(e.text), "; '%s' stands at the top level", leaf);
		else
			snprintf(e.text, sizeof(e.text), "; '%s' stands in '%.*s'", leaf,
				 (int)(leaf - key->path - 1), key->path);
		return e;
	case KEY_SCOPE_SELECTOR:
		snprintf(e.text, sizeof(e.text), "; '%s' is a key of a selector", leaf);
		return e;
	case KEY_SCOPE_SERVICE:
		snprintf(e.text, sizeof(e.text), "; '%s' is a key of an item of 'services'", leaf);
		return e;
	}
	return e;
}

struct key_expectation keys_hint(enum key_scope scope, struct str prefix, struct str name)
{
	const char *siblings[ARRAY_SIZE(keys)];
	struct key_expectation e = {0};
	const char *nearest;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (keys_is_child(&keys[i], scope, prefix))
			siblings[n++] = keys_leaf(&keys[i]);
		else if (str_equal(str_from(keys_leaf(&keys[i])), name))
			return hint_elsewhere(&keys[i]);
	}
	nearest = nearest_find(name, siblings, n);
	if (nearest)
		snprintf(e.text, sizeof(e.text), "; did you mean '%s'?", nearest);
	return e;
}

static struct key_expectation kind_of_choice(const struct key *key)
{
	struct key_expectation e = {0};

	for (size_t i = 0; i < key->n_choices; i++)
		append(&e, i + 1 == key->n_choices ? " or " : ", ", key->choices[i].name);
	if (key->type == KEY_LANGUAGES)
		append(&e, ", ", "or a list of them");
	return e;
}

static struct key_expectation kind_of_number(const struct key *key)
{
	struct value_text (*format)(uint64_t) = value_format_size;
	const char *what = "a size";
	struct key_expectation e;

	if (key->type == KEY_DURATION) {
		format = value_format_duration;
		what = "a duration";
	} else if (key->type == KEY_COUNT) {
		format = value_format_count;
		what = "a whole number";
	} else if (key->type == KEY_SIZE_POW2) {
		what = "a power of two";
	}
	snprintf(e.text, sizeof(e.text), "%s from %s to %s", what, format(key->min).text,
		 format(key->max).text);
	return e;
}

struct key_expectation keys_kind(const struct key *key)
{
	struct key_expectation e = {0};

	switch (key->type) {
	case KEY_DURATION:
	case KEY_COUNT:
	case KEY_SIZE:
	case KEY_SIZE_POW2:
		return kind_of_number(key);
	case KEY_CHOICE:
	case KEY_LANGUAGES:
		return kind_of_choice(key);
	case KEY_SECTION:
		append(&e, "", "a mapping");
		return e;
	case KEY_URL:
		append(&e, "", "http:// or https:// and a host");
		return e;
	case KEY_TEXT:
	case KEY_USER:
		append(&e, "", "a text");
		return e;
	case KEY_PATTERN:
		append(&e, "", "a pattern");
		return e;
	case KEY_PORTS:
		append(&e, "", "a port or a range of ports");
		return e;
	case KEY_SELECTOR:
		append(&e, "", "a selector");
		return e;
	case KEY_SELECTORS:
		append(&e, "", "a list of selectors");
		return e;
	case KEY_SERVICES:
		append(&e, "", "a list of services");
		return e;
	}
	assert(!"a type that is not in the enum");
	return e;
}

struct key_expectation keys_expectation(const struct key *key)
{
	struct key_expectation e = keys_kind(key);
	const char *example = key->example ? key->example : key->value;

	if (example && !key->n_choices)
		append(&e, ", such as ", example);
	return e;
}
