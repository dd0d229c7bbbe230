/*
 * Answers for tsunagictl: what the daemon knows, as JSON; see service/control.h for the protocol.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "daemon_private.h"
#include "export/json.h"
#include "export/tree.h"
#include "metrics/metrics.h"

#define TRACE_COLUMNS 100

/*
 * cJSON's adders return NULL without memory: the answer then lacks that key, which beats no answer.
 */
static void add_text(cJSON *object, const char *key, const char *text)
{
	if (text)
		cJSON_AddStringToObject(object, key, text);
	else
		cJSON_AddNullToObject(object, key);
}

static uint64_t rss_bytes(void)
{
	unsigned long long total, resident = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file)
		return 0;
	if (fscanf(file, "%llu %llu", &total, &resident) != 2)
		resident = 0;
	fclose(file);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void add_tap(struct daemon *d, cJSON *answer)
{
	const struct probe_refusal *refusals = probe_refusals(d->probe);
	cJSON *tap = cJSON_AddObjectToObject(answer, "tap");
	cJSON *refused = cJSON_AddArrayToObject(tap, "refused");

	cJSON_AddStringToObject(tap, "name", probe_tap_name(probe_tap_used(d->probe)));
	cJSON_AddStringToObject(tap, "reason",
				d->config->tap == CONFIG_TAP_AUTO ? "the best this kernel takes"
								  : "configured");
	for (int i = 0; i < _PROBE_TAP_MAX; i++) {
		cJSON *item;

		if (!refusals[i].reason[0])
			continue;
		item = cJSON_CreateObject();
		cJSON_AddStringToObject(item, "tap", probe_tap_name((enum probe_tap)i));
		cJSON_AddStringToObject(item, "reason", refusals[i].reason);
		cJSON_AddItemToArray(refused, item);
	}
}

static void add_feature(cJSON *features, const struct probe_feature *feature)
{
	cJSON *item = cJSON_CreateObject();

	cJSON_AddStringToObject(item, "name", feature->name);
	cJSON_AddBoolToObject(item, "available", !feature->missing);
	add_text(item, "reason", feature->missing);
	cJSON_AddItemToArray(features, item);
}

static void add_features(struct daemon *d, cJSON *answer)
{
	cJSON *features = cJSON_AddArrayToObject(answer, "features");
	struct probe_feature known[PROBE_FEATURES];

	probe_features(d->probe, known);
	for (size_t i = 0; i < PROBE_FEATURES; i++)
		add_feature(features, &known[i]);
	add_feature(features, &(struct probe_feature){"receives that had begun before the daemon",
						      waiting_why_not(d->waiting)});
	add_feature(features, &(struct probe_feature){"parents of calls of Go processes",
						      go_units_refusal(d->go)});
	add_feature(features, &(struct probe_feature){"Go probes shared by containers of one image",
						      go_units_why_not_shared(d->go)});
	add_feature(features, &(struct probe_feature){"traceparent in requests of Go processes",
						      propagation_why_not(d)});
	add_feature(features, &(struct probe_feature){"traceparent in requests from every cgroup",
						      propagation_why_not_everywhere(d)});
}

static double spans_lost(void)
{
	static const enum metric losses[] = {METRIC_QUEUE_FULL,        METRIC_SPANS_REFUSED,
					     METRIC_SPANS_UNREACHABLE, METRIC_SPANS_SHUTDOWN,
					     METRIC_SPANS_NO_MEMORY,   METRIC_SPANS_NO_PROCESS};
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(losses); i++)
		sum += metrics_get(losses[i]);
	return (double)sum;
}

/* Without the password that may stand in it. */
static void add_endpoint(struct daemon *d, cJSON *answer)
{
	_cleanup_(freep) char *shown = NULL;

	if (d->config->endpoint && config_endpoint_shown(d->config->endpoint, &shown) < 0)
		shown = NULL;
	add_text(answer, "endpoint", shown);
}

static int count_if_traced(const struct process *p, void *userdata)
{
	*(unsigned int *)userdata += p->state == PROCESS_SELECTED;
	return 0;
}

static unsigned int count_traced(struct daemon *d)
{
	unsigned int n = 0;

	discover_walk(d->discover, count_if_traced, &n);
	return n;
}

static int report_status(struct daemon *d, cJSON *answer)
{
	cJSON *object;

	cJSON_AddStringToObject(answer, "version", TSUNAGI_VERSION);
	cJSON_AddNumberToObject(answer, "pid", getpid());
	cJSON_AddNumberToObject(answer, "uptime_s",
				(double)((now_ns(CLOCK_MONOTONIC) - d->start_ns) / NSEC_PER_SEC));
	add_text(answer, "config", d->options->config_path);
	add_tap(d, answer);
	add_features(d, answer);
	add_endpoint(d, answer);

	object = cJSON_AddObjectToObject(answer, "spans");
	cJSON_AddNumberToObject(object, "server", (double)metrics_get(METRIC_SPANS_SERVER));
	cJSON_AddNumberToObject(object, "client", (double)metrics_get(METRIC_SPANS_CLIENT));
	cJSON_AddNumberToObject(object, "exported", (double)metrics_get(METRIC_SPANS_EXPORTED));
	cJSON_AddNumberToObject(object, "lost", spans_lost());

	object = cJSON_AddObjectToObject(answer, "processes");
	cJSON_AddNumberToObject(object, "traced", count_traced(d));
	cJSON_AddNumberToObject(object, "seen", (double)metrics_get(METRIC_PROCESSES_SEEN));
	cJSON_AddNumberToObject(answer, "connections", (double)stitch_connections(d->stitch));

	object = cJSON_AddObjectToObject(answer, "memory");
	cJSON_AddNumberToObject(object, "rss_bytes", (double)rss_bytes());
	cJSON_AddNumberToObject(object, "open_bytes", (double)stitch_bytes(d->stitch));
	cJSON_AddNumberToObject(object, "map_bytes",
				(double)(probe_map_bytes(d->probe) +
					 (d->insert ? insert_map_bytes(d->insert) : 0)));
	cJSON_AddNumberToObject(answer, "links",
				(double)(probe_links(d->probe) + waiting_links(d->waiting) +
					 go_units_links(d->go)));
	object = cJSON_AddObjectToObject(answer, "go");
	cJSON_AddNumberToObject(object, "executables", (double)go_units_executables(d->go));
	cJSON_AddNumberToObject(object, "links", (double)go_units_links(d->go));
	return 0;
}

/* --- doctor */

static void add_checks(const struct daemon *d, cJSON *answer)
{
	cJSON *checks = cJSON_AddArrayToObject(answer, "checks");
	const struct insert_result *results = d->insert ? insert_results(d->insert) : NULL;

	for (size_t i = 0; results && i < _INSERT_CHECK_MAX; i++) {
		cJSON *item = cJSON_CreateObject();

		cJSON_AddStringToObject(item, "name", results[i].name);
		cJSON_AddBoolToObject(item, "passed", !results[i].failure[0]);
		add_text(item, "failure", results[i].failure[0] ? results[i].failure : NULL);
		cJSON_AddBoolToObject(item, "matters", results[i].matters);
		cJSON_AddItemToArray(checks, item);
	}
}

static int report_doctor(struct daemon *d, cJSON *answer)
{
	struct utsname kernel;

	cJSON_AddStringToObject(answer, "version", TSUNAGI_VERSION);
	add_text(answer, "kernel", uname(&kernel) == 0 ? kernel.release : NULL);
	add_tap(d, answer);
	add_features(d, answer);
	add_checks(d, answer);
	return 0;
}

/* --- processes */

struct process_walk {
	struct daemon *d;
	cJSON *array;
	uint32_t pid; /* 0: all */
};

static const char *process_name(const struct process *p)
{
	const char *slash;

	if (p->resource)
		return p->resource->service_name;
	slash = p->exe ? strrchr(p->exe, '/') : NULL;
	return slash ? slash + 1 : p->exe;
}

static int add_process(const struct process *p, void *userdata)
{
	struct process_walk *walk = userdata;
	uint64_t lost;
	cJSON *item;

	if (walk->pid ? p->pid != walk->pid : p->state == PROCESS_NEW)
		return 0;
	item = cJSON_CreateObject();
	cJSON_AddNumberToObject(item, "pid", p->pid);
	add_text(item, "name", process_name(p));
	add_text(item, "language", language_name(p->language));
	add_text(item, "version", p->version);
	add_text(item, "state", process_state_name(p->state));
	add_text(item, "why", p->why);
	add_text(item, "no_parents",
		 p->state == PROCESS_SELECTED && p->language == LANGUAGE_GO
			 ? go_units_why_not(walk->d->go, p->proc_id)
			 : NULL);
	add_text(item, "agent", jvm_agents_state(walk->d->jvm, p->proc_id));
	if (jvm_agents_lost(walk->d->jvm, p->proc_id, &lost))
		cJSON_AddNumberToObject(item, "handovers_lost", (double)lost);
	add_text(item, "seen", p->state == PROCESS_SELECTED ? hints_seen(walk->d, p) : NULL);
	cJSON_AddNumberToObject(item, "spans", p->resource ? (double)p->resource->spans : 0);
	add_text(item, "container", p->container_id);
	add_text(item, "unit", p->unit);
	if (p->has_listening_port)
		cJSON_AddNumberToObject(item, "port", p->listening_port);
	else
		cJSON_AddNullToObject(item, "port");
	add_text(item, "exe", p->exe);
	add_text(item, "command", p->command);
	cJSON_AddItemToArray(walk->array, item);
	return 0;
}

static int report_processes(struct daemon *d, struct str argument, cJSON *answer)
{
	struct process_walk walk = {.d = d, .array = cJSON_AddArrayToObject(answer, "processes")};
	char text[16] = "", *end;
	unsigned long pid;

	if (argument.n) {
		if (argument.n >= sizeof(text))
			return CONTROL_NOT_FOUND;
		memcpy(text, argument.p, argument.n);
		errno = 0;
		pid = strtoul(text, &end, 10);
		if (errno || *end || !pid || pid > UINT32_MAX)
			return CONTROL_NOT_FOUND;
		walk.pid = (uint32_t)pid;
	}
	discover_walk(d->discover, add_process, &walk);
	return walk.pid && cJSON_GetArraySize(walk.array) == 0 ? CONTROL_NOT_FOUND : 0;
}

/* --- traces */

static void add_number_text(cJSON *object, const char *key, uint64_t value)
{
	char text[24];

	/* Times in nanoseconds have more digits than a double keeps. */
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	cJSON_AddRawToObject(object, key, text);
}

static cJSON *trace_summary(const struct store_trace *trace)
{
	const struct span *root = store_trace_root(trace);
	uint64_t start = UINT64_MAX, end = 0;
	char id[TRACE_ID_HEX + 1], name[256];
	cJSON *item = cJSON_CreateObject();
	unsigned int errors = 0;

	for (size_t i = 0; i < trace->n_spans; i++) {
		start = MIN(start, trace->spans[i]->start_unix_ns);
		end = MAX(end, trace->spans[i]->end_unix_ns);
		errors += trace->spans[i]->status == SPAN_STATUS_ERROR;
	}
	ids_to_hex(trace->id.b, sizeof(trace->id.b), id);
	snprintf(name, sizeof(name), "%.*s", STR_ARG(root->name));
	cJSON_AddStringToObject(item, "trace_id", id);
	cJSON_AddStringToObject(item, "root", name);
	cJSON_AddStringToObject(item, "service",
				root->resource ? root->resource->service_name : "");
	add_number_text(item, "start_unix_nano", start);
	add_number_text(item, "duration_ns", end - start);
	cJSON_AddNumberToObject(item, "spans", (double)trace->n_spans);
	cJSON_AddNumberToObject(item, "errors", errors);
	return item;
}

static int report_traces(struct daemon *d, cJSON *answer)
{
	cJSON *array = cJSON_AddArrayToObject(answer, "traces");

	if (!d->store) {
		cJSON_AddStringToObject(
			answer, "error",
			"traces go to the collector and are not kept here (endpoint is set)");
		return 0;
	}
	for (const struct store_trace *t = store_newest(d->store); t; t = store_older(t))
		cJSON_AddItemToArray(array, trace_summary(t));
	return 0;
}

static int report_trace(struct daemon *d, struct str argument, cJSON *answer)
{
	struct tree_options options = {.width = TRACE_COLUMNS};
	const struct store_trace *trace;
	char hex[TRACE_ID_HEX + 1];
	struct trace_id id;
	cJSON *array;
	char *text = NULL;
	size_t n = 0;
	FILE *out;

	if (!d->store || argument.n != TRACE_ID_HEX ||
	    !ids_from_hex(argument.p, sizeof(id.b), id.b))
		return CONTROL_NOT_FOUND;
	trace = store_find(d->store, &id);
	if (!trace)
		return CONTROL_NOT_FOUND;

	out = open_memstream(&text, &n);
	if (!out)
		return -errno;
	tree_draw(out, trace->spans, trace->n_spans, &options);
	fclose(out);
	ids_to_hex(id.b, sizeof(id.b), hex);
	cJSON_AddStringToObject(answer, "trace_id", hex);
	add_text(answer, "text", text);
	free(text);

	array = cJSON_AddArrayToObject(answer, "spans");
	for (size_t i = 0; i < trace->n_spans; i++) {
		_cleanup_(freep) char *json = NULL;

		if (json_format_span(trace->spans[i], &json) == 0)
			cJSON_AddItemToArray(array, cJSON_CreateRaw(json));
	}
	return 0;
}

/* --- counters */

static void add_counter(cJSON *array, const char *name, uint64_t value, const char *help,
			const char *side)
{
	cJSON *item = cJSON_CreateObject();

	cJSON_AddStringToObject(item, "name", name);
	cJSON_AddNumberToObject(item, "value", (double)value);
	cJSON_AddStringToObject(item, "help", help);
	cJSON_AddStringToObject(item, "side", side);
	cJSON_AddItemToArray(array, item);
}

static int report_counters(struct daemon *d, cJSON *answer)
{
	cJSON *array = cJSON_AddArrayToObject(answer, "counters");

	for (int i = 0; i < _METRIC_MAX; i++)
		add_counter(array, metrics_name((enum metric)i), metrics_get((enum metric)i),
			    metrics_help((enum metric)i), "daemon");
	for (size_t i = 0; i < probe_counters(); i++)
		add_counter(array, probe_counter_name(i), probe_counter_read(d->probe, i),
			    probe_counter_help(i), "kernel");
	return 0;
}

int report_command(void *userdata, struct str command, struct str argument, cJSON **ret_answer)
{
	struct daemon *d = userdata;
	cJSON *answer = cJSON_CreateObject();
	int r;

	if (!answer)
		return -ENOMEM;
	if (str_equal(command, STR("status")))
		r = report_status(d, answer);
	else if (str_equal(command, STR("processes")))
		r = report_processes(d, argument, answer);
	else if (str_equal(command, STR("traces")))
		r = report_traces(d, answer);
	else if (str_equal(command, STR("trace")))
		r = report_trace(d, argument, answer);
	else if (str_equal(command, STR("counters")))
		r = report_counters(d, answer);
	else if (str_equal(command, STR("doctor")))
		r = report_doctor(d, answer);
	else
		r = CONTROL_UNKNOWN_COMMAND;
	if (r != 0) {
		cJSON_Delete(answer);
		return r;
	}
	*ret_answer = answer;
	return 0;
}
