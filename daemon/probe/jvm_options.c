/* What a JVM was told at its start; see jvm_options.h. */
#include "probe/jvm_options.h"

#include <stdint.h>
#include <string.h>

#include "base/util.h"

/*
 * Agents that trace, by how the name of their file begins, as their vendors' documentation has it.
 * Two that rewrite the same classes would each see the other's calls.
 */
static const struct {
	const char *file, *vendor;
} tracers[] = {
	{"opentelemetry-javaagent", "OpenTelemetry"},
	{"aws-opentelemetry-agent", "OpenTelemetry (AWS)"},
	{"splunk-otel-javaagent", "OpenTelemetry (Splunk)"},
	{"grafana-opentelemetry-java", "OpenTelemetry (Grafana)"},
	{"honeycomb-opentelemetry-javaagent", "OpenTelemetry (Honeycomb)"},
	{"sentry-opentelemetry-agent", "OpenTelemetry (Sentry)"},
	{"solarwinds-apm-agent", "SolarWinds"},
	{"dd-java-agent", "Datadog"},
	{"elastic-apm-agent", "Elastic"},
	{"elastic-otel-javaagent", "Elastic"},
	{"newrelic", "New Relic"},
	{"skywalking-agent", "SkyWalking"},
	{"pinpoint-bootstrap", "Pinpoint"},
	{"applicationinsights-agent", "Application Insights"},
	{"javaagent.jar", "AppDynamics"},
	{"liboneagent", "Dynatrace"},
	{"glowroot", "Glowroot"},
	{"scouter.agent", "Scouter"},
	{"inspectit-ocelot-agent", "inspectIT"},
	{"hypertrace-agent", "Hypertrace"},
};

const char *jvm_options_tracer(struct str path)
{
	for (size_t i = path.n; i > 0; i--) {
		if (path.p[i - 1] == '/') {
			path = str_skip(path, i);
			break;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(tracers); i++)
		if (str_starts_with(path, str_from(tracers[i].file)))
			return tracers[i].vendor;
	return NULL;
}

/* "-javaagent:FILE=options", "-agentpath:FILE=options", "-agentlib:NAME" */
static void read_agent(struct str file, struct jvm_options *options)
{
	ptrdiff_t end = str_find(file, '=');
	const char *tracer;

	if (end >= 0)
		file.n = (size_t)end;
	tracer = jvm_options_tracer(file);
	if (tracer)
		options->tracer = tracer;
}

/*
 * Options that have a JVM write its classes to a file, as jvm_flags.c has them. One that is taken back
 * by a later one counts all the same: only where the JVM's flags are not to be read does it matter.
 */
static void read_archive(struct str word, struct jvm_options *options)
{
	static const struct {
		const char *text, *flag;
		bool has_value;
	} archives[] = {
		{"-XX:ArchiveClassesAtExit=", "ArchiveClassesAtExit", true},
		{"-XX:+RecordDynamicDumpInfo", "RecordDynamicDumpInfo", false},
		{"-XX:+AutoCreateSharedArchive", "AutoCreateSharedArchive", false},
		{"-XX:AOTMode=record", "AOTMode", false},
		{"-XX:AOTMode=create", "AOTMode", false},
		{"-XX:AOTCacheOutput=", "AOTCacheOutput", true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(archives); i++)
		if (archives[i].has_value ? str_starts_with(word, str_from(archives[i].text))
					  : str_equal(word, str_from(archives[i].text)))
			options->archive = archives[i].flag;
}

static void read_word(struct str word, struct jvm_options *options)
{
	static const char *const agents[] = {"-javaagent:", "-agentpath:", "-agentlib:"};

	if (str_equal(word, STR("-XX:-EnableDynamicAgentLoading")))
		options->dynamic_load_off = true;
	else if (str_equal(word, STR("-XX:+EnableDynamicAgentLoading")))
		options->dynamic_load_off = false;
	else if (str_equal(word, STR("-Xrs")) || str_equal(word, STR("-XX:+ReduceSignalUsage")))
		options->few_signals = true;
	read_archive(word, options);

	for (size_t i = 0; i < ARRAY_SIZE(agents); i++)
		if (str_starts_with(word, str_from(agents[i])))
			read_agent(str_skip(word, strlen(agents[i])), options);
}

static bool is_between(char c)
{
	return c == '\0' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_quote(char c)
{
	return c == '"' || c == '\'';
}

void jvm_options_read(struct str text, struct jvm_options *options)
{
	while (text.n > 0) {
		size_t n = 0;

		if (is_between(text.p[0]) || is_quote(text.p[0])) {
			text = str_skip(text, 1);
			continue;
		}
		while (n < text.n && !is_between(text.p[n]) && !is_quote(text.p[n]))
			n++;
		read_word((struct str){.p = text.p, .n = n}, options);
		text = str_skip(text, n);
	}
}

/* --- performance data, HotSpot's perfMemory.hpp: PerfDataPrologue, PerfDataEntry */

struct perf_prologue {
	uint8_t magic[4];
	uint8_t byte_order; /* 0: big-endian */
	uint8_t major, minor, accessible;
	int32_t used, overflow;
	int64_t mod_time_stamp;
	int32_t entry_offset, num_entries;
};
static_assert(sizeof(struct perf_prologue) == 32, "HotSpot's PerfDataPrologue");

struct perf_entry {
	int32_t entry_length, name_offset, vector_length;
	uint8_t data_type, flags, data_units, data_variability;
	int32_t data_offset;
};
static_assert(sizeof(struct perf_entry) == 20, "HotSpot's PerfDataEntry");

/* 'n' bytes at 'offset' of 'entry' that are in it; without a pointer: not all are. */
static struct str part_of(struct str entry, int32_t offset, size_t n)
{
	if (offset < (int32_t)sizeof(struct perf_entry) || (size_t)offset > entry.n ||
	    n > entry.n - (size_t)offset)
		return (struct str){0};
	return (struct str){.p = entry.p + offset, .n = n};
}

static struct str entry_text(struct str entry, const struct perf_entry *head, const char *name)
{
	struct str found, text;

	/* With the NUL behind it. */
	found = part_of(entry, head->name_offset, strlen(name) + 1);
	if (!found.p || memcmp(found.p, name, found.n) != 0 || head->data_type != 'B' ||
	    head->vector_length <= 0)
		return (struct str){0};
	text = part_of(entry, head->data_offset, (size_t)head->vector_length);
	if (text.p)
		text.n = strnlen(text.p, text.n);
	return text;
}

struct str jvm_perfdata_find(const void *data, size_t size, const char *name)
{
	static const uint8_t magic[] = {0xca, 0xfe, 0xc0, 0xc0}; /* in either byte order */
	struct str rest = {.p = data, .n = size};
	struct perf_prologue prologue;
	struct perf_entry head;
	struct str text;

	if (size < sizeof(prologue))
		return (struct str){0};
	memcpy(&prologue, data, sizeof(prologue));
	if (memcmp(prologue.magic, magic, sizeof(magic)) != 0 || prologue.major != 2 ||
	    prologue.byte_order != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) ||
	    !prologue.accessible || prologue.entry_offset < (int32_t)sizeof(prologue) ||
	    (size_t)prologue.entry_offset > size)
		return (struct str){0};

	rest = str_skip(rest, (size_t)prologue.entry_offset);
	for (int32_t i = 0; i < prologue.num_entries && rest.n >= sizeof(head); i++) {
		memcpy(&head, rest.p, sizeof(head));
		if (head.entry_length < (int32_t)sizeof(head) || (size_t)head.entry_length > rest.n)
			break;
		text = entry_text((struct str){.p = rest.p, .n = (size_t)head.entry_length}, &head,
				  name);
		if (text.p)
			return text;
		rest = str_skip(rest, (size_t)head.entry_length);
	}
	return (struct str){0};
}
