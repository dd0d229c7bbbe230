/* Answers as tables; see print.h. */
#include "print.h"

#include "base/util.h"
#include "sheet.h"

static const char *text_of(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

/* 64-bit times may come as text, because not all readers of JSON keep their digits. */
static double number_of(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	if (cJSON_IsNumber(item))
		return item->valuedouble;
	return cJSON_IsString(item) ? strtod(item->valuestring, NULL) : 0;
}

static const cJSON *member(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

static bool is_true(const cJSON *object, const char *name)
{
	return cJSON_IsTrue(member(object, name));
}

struct text {
	char s[64];
};

static struct text format_bytes(double bytes)
{
	struct text t;

	if (bytes < 1024 * 1024)
		snprintf(t.s, sizeof(t.s), "%.0f KB", bytes / 1024);
	else
		snprintf(t.s, sizeof(t.s), "%.1f MB", bytes / (1024 * 1024));
	return t;
}

static struct text format_uptime(double seconds)
{
	unsigned long long s = seconds > 0 && seconds < 1e15 ? (unsigned long long)seconds : 0;
	struct text t;

	if (s < 60)
		snprintf(t.s, sizeof(t.s), "%llus", s);
	else if (s < 3600)
		snprintf(t.s, sizeof(t.s), "%llum %02llus", s / 60, s % 60);
	else if (s < 86400)
		snprintf(t.s, sizeof(t.s), "%lluh %02llum", s / 3600, s / 60 % 60);
	else
		snprintf(t.s, sizeof(t.s), "%llud %02lluh", s / 86400, s / 3600 % 24);
	return t;
}

static struct text format_duration(double ns)
{
	struct text t;

	if (ns < 1e6)
		snprintf(t.s, sizeof(t.s), "%.0f us", ns / 1e3);
	else if (ns < 1e9)
		snprintf(t.s, sizeof(t.s), "%.1f ms", ns / 1e6);
	else
		snprintf(t.s, sizeof(t.s), "%.2f s", ns / 1e9);
	return t;
}

/* Local time to the millisecond. */
static struct text format_time(double unix_ns)
{
	uint64_t ms = unix_ns > 0 && unix_ns < 1e19 ? (uint64_t)(unix_ns / 1e6) : 0;
	time_t when = (time_t)(ms / 1000);
	struct text t = {"-"};
	struct tm tm;
	char date[32];

	if (!ms || !localtime_r(&when, &tm) || !strftime(date, sizeof(date), "%F %T", &tm))
		return t;
	snprintf(t.s, sizeof(t.s), "%s.%03u", date, (unsigned int)(ms % 1000));
	return t;
}

static void add_features(struct sheet *sheet, const cJSON *features)
{
	const char *heading = "Features";
	const cJSON *feature;

	cJSON_ArrayForEach(feature, features)
	{
		const char *reason = text_of(feature, "reason");
		const char *name = text_of(feature, "name");

		sheet_add(sheet, heading);
		sheet_addf(sheet, "%s: %s%s%s", name ? name : "-",
			   is_true(feature, "available") ? "yes" : "no",
			   reason && *reason ? ", " : "", reason ? reason : "");
		heading = " ";
	}
}

static void add_tap(struct sheet *sheet, const cJSON *tap)
{
	const char *name = text_of(tap, "name");
	const char *reason = text_of(tap, "reason");
	const cJSON *refused;

	sheet_add(sheet, "Tap");
	sheet_addf(sheet, "%s%s%s", name ? name : "none", reason && *reason ? ": " : "",
		   reason ? reason : "");
	cJSON_ArrayForEach(refused, member(tap, "refused"))
	{
		name = text_of(refused, "tap");
		reason = text_of(refused, "reason");
		sheet_add(sheet, " ");
		sheet_addf(sheet, "not %s: %s", name ? name : "-",
			   reason ? reason : "no reason given");
	}
}

void print_status(const cJSON *answer, const struct print_options *options, FILE *out)
{
	_cleanup_(sheet_done) struct sheet sheet = {.n_columns = 2};
	const cJSON *spans = member(answer, "spans");
	const cJSON *processes = member(answer, "processes");
	const cJSON *memory = member(answer, "memory");
	const char *version = text_of(answer, "version");
	const char *endpoint = text_of(answer, "endpoint");

	(void)options;
	sheet_add(&sheet, "tsunagid");
	sheet_addf(&sheet, "%s, pid %.0f, up %s", version ? version : "-", number_of(answer, "pid"),
		   format_uptime(number_of(answer, "uptime_s")).s);
	add_tap(&sheet, member(answer, "tap"));
	add_features(&sheet, member(answer, "features"));
	sheet_add(&sheet, "Endpoint");
	sheet_add(&sheet, endpoint ? endpoint : "none: traces are kept in memory");
	sheet_add(&sheet, "Processes");
	sheet_addf(&sheet, "%.0f traced, %.0f seen", number_of(processes, "traced"),
		   number_of(processes, "seen"));
	sheet_add(&sheet, "Connections");
	sheet_addf(&sheet, "%.0f", number_of(answer, "connections"));
	sheet_add(&sheet, "Spans");
	sheet_addf(&sheet, "%.0f server, %.0f client, %.0f exported, %.0f lost",
		   number_of(spans, "server"), number_of(spans, "client"),
		   number_of(spans, "exported"), number_of(spans, "lost"));
	sheet_add(&sheet, "Memory");
	sheet_addf(&sheet, "%s resident, %s in maps",
		   format_bytes(number_of(memory, "rss_bytes")).s,
		   format_bytes(number_of(memory, "map_bytes")).s);
	sheet_print(&sheet, out);
}

static void add_checks(struct sheet *sheet, const cJSON *checks)
{
	const char *heading = "Self-test";
	const cJSON *check;

	cJSON_ArrayForEach(check, checks)
	{
		const char *name = text_of(check, "name"), *failure = text_of(check, "failure");

		sheet_add(sheet, heading);
		sheet_addf(sheet, "%s: %s%s%s%s", name ? name : "-",
			   is_true(check, "passed") ? "passed" : "FAILED", failure ? ", " : "",
			   failure ? failure : "",
			   failure && !is_true(check, "matters") ? " (Go never asks)" : "");
		heading = " ";
	}
}

void print_doctor(const cJSON *answer, const struct print_options *options, FILE *out)
{
	_cleanup_(sheet_done) struct sheet sheet = {.n_columns = 2};
	const char *kernel = text_of(answer, "kernel"), *version = text_of(answer, "version");

	(void)options;
	sheet_add(&sheet, "tsunagid");
	sheet_add(&sheet, version ? version : "-");
	sheet_add(&sheet, "Kernel");
	sheet_add(&sheet, kernel ? kernel : "-");
	add_tap(&sheet, member(answer, "tap"));
	add_features(&sheet, member(answer, "features"));
	add_checks(&sheet, member(answer, "checks"));
	sheet_print(&sheet, out);
}

static void print_process(const cJSON *process, FILE *out)
{
	static const char *const rows[][2] = {
		{"Name", "name"},       {"Language", "language"},
		{"Version", "version"}, {"State", "state"},
		{"Why", "why"},         {"Agent", "agent"},
		{"Seen", "seen"},       {"No parents", "no_parents"},
		{"Unit", "unit"},       {"Container", "container"},
		{"Executable", "exe"},  {"Command", "command"},
	};
	_cleanup_(sheet_done) struct sheet sheet = {.n_columns = 2};

	sheet_add(&sheet, "PID");
	sheet_addf(&sheet, "%.0f", number_of(process, "pid"));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		sheet_add(&sheet, rows[i][0]);
		sheet_add(&sheet, text_of(process, rows[i][1]));
	}
	sheet_add(&sheet, "Port");
	if (number_of(process, "port") > 0)
		sheet_addf(&sheet, "%.0f", number_of(process, "port"));
	else
		sheet_add(&sheet, NULL);
	sheet_add(&sheet, "Spans");
	sheet_addf(&sheet, "%.0f", number_of(process, "spans"));
	if (cJSON_GetObjectItem(process, "handovers_lost")) {
		sheet_add(&sheet, "Hand-overs lost");
		sheet_addf(&sheet, "%.0f", number_of(process, "handovers_lost"));
	}
	sheet_print(&sheet, out);
}

static void add_headings(struct sheet *sheet, const char *const *headings)
{
	for (size_t i = 0; i < sheet->n_columns; i++)
		sheet_add(sheet, headings[i]);
}

static void add_process(struct sheet *sheet, const cJSON *process)
{
	const char *language = text_of(process, "language");
	const char *version = text_of(process, "version");

	sheet_addf(sheet, "%.0f", number_of(process, "pid"));
	if (number_of(process, "port") > 0)
		sheet_addf(sheet, "%.0f", number_of(process, "port"));
	else
		sheet_add(sheet, NULL);
	sheet_addf(sheet, "%.0f", number_of(process, "spans"));
	sheet_add(sheet, text_of(process, "name"));
	sheet_addf(sheet, "%s%s%s", language ? language : "-", version ? " " : "",
		   version ? version : "");
	sheet_add(sheet, text_of(process, "state"));
	sheet_add(sheet, text_of(process, "why"));
}

void print_processes(const cJSON *answer, const struct print_options *options, FILE *out)
{
	static const char *const headings[] = {"PID",      "PORT",  "SPANS", "NAME",
					       "LANGUAGE", "STATE", "WHY"};
	_cleanup_(sheet_done) struct sheet sheet = {
		.n_columns = ARRAY_SIZE(headings),
		.right = 1 << 0 | 1 << 1 | 1 << 2,
	};
	const cJSON *processes = member(answer, "processes");
	const cJSON *process;

	if (cJSON_GetArraySize(processes) == 0) {
		fputs("No process yet\n", out);
		return;
	}
	if (options->is_for_one) {
		print_process(cJSON_GetArrayItem(processes, 0), out);
		return;
	}
	add_headings(&sheet, headings);
	cJSON_ArrayForEach(process, processes) add_process(&sheet, process);
	sheet_print(&sheet, out);
}

void print_traces(const cJSON *answer, const struct print_options *options, FILE *out)
{
	static const char *const headings[] = {"STARTED", "DURATION", "SPANS", "ERRORS",
					       "TRACE",   "SERVICE",  "ROOT"};
	_cleanup_(sheet_done) struct sheet sheet = {
		.n_columns = ARRAY_SIZE(headings),
		.right = 1 << 1 | 1 << 2 | 1 << 3,
	};
	const cJSON *traces = member(answer, "traces");
	const cJSON *trace;

	(void)options;
	if (cJSON_GetArraySize(traces) == 0) {
		fputs("No trace yet\n", out);
		return;
	}
	add_headings(&sheet, headings);
	cJSON_ArrayForEach(trace, traces)
	{
		sheet_add(&sheet, format_time(number_of(trace, "start_unix_nano")).s);
		sheet_add(&sheet, format_duration(number_of(trace, "duration_ns")).s);
		sheet_addf(&sheet, "%.0f", number_of(trace, "spans"));
		sheet_addf(&sheet, "%.0f", number_of(trace, "errors"));
		sheet_add(&sheet, text_of(trace, "trace_id"));
		sheet_add(&sheet, text_of(trace, "service"));
		sheet_add(&sheet, text_of(trace, "root"));
	}
	sheet_print(&sheet, out);
}

void print_trace(const cJSON *answer, const struct print_options *options, FILE *out)
{
	_cleanup_(freep) char *text = NULL;
	const char *drawn = text_of(answer, "text");
	size_t n;

	(void)options;
	text = strdup(drawn ? drawn : "");
	if (!text)
		return;
	sheet_clean_text(text, true);
	n = strlen(text);
	fprintf(out, "%s%s", text, n && text[n - 1] == '\n' ? "" : "\n");
}

void print_counters(const cJSON *answer, const struct print_options *options, FILE *out)
{
	_cleanup_(sheet_done) struct sheet sheet = {.n_columns = 4, .right = 1 << 0};
	const cJSON *counter;

	cJSON_ArrayForEach(counter, member(answer, "counters"))
	{
		double value = number_of(counter, "value");

		if (value == 0 && !options->shows_all)
			continue;
		sheet_addf(&sheet, "%.0f", value);
		sheet_add(&sheet, text_of(counter, "name"));
		sheet_add(&sheet, text_of(counter, "side"));
		sheet_add(&sheet, text_of(counter, "help"));
	}
	if (sheet.n_cells == 0)
		fputs("All counters are zero\n", out);
	else
		sheet_print(&sheet, out);
}

static void print_newline(unsigned int depth, FILE *out)
{
	fprintf(out, "\n%*s", (int)(2 * depth), "");
}

/* The end of a string that starts at 'text', its quote included. */
static const char *string_end(const char *text)
{
	for (text++; *text && *text != '"'; text++) {
		if (*text == '\\' && text[1])
			text++;
	}
	return *text ? text + 1 : text;
}

void print_json(const char *text, FILE *out)
{
	unsigned int depth = 0;
	const char *end;

	for (; *text; text = end) {
		end = text + 1;
		switch (*text) {
		case '"':
			end = string_end(text);
			fwrite(text, 1, (size_t)(end - text), out);
			break;
		case '{':
		case '[':
			fputc(*text, out);
			end += strspn(end, " \t\r\n");
			if (*end != '}' && *end != ']')
				print_newline(++depth, out);
			else
				fputc(*end++, out);
			break;
		case '}':
		case ']':
			print_newline(depth ? --depth : 0, out);
			fputc(*text, out);
			break;
		case ',':
			fputc(',', out);
			print_newline(depth, out);
			break;
		case ':':
			fputs(": ", out);
			break;
		case ' ':
		case '\t':
		case '\r':
		case '\n':
			break;
		default:
			fputc(*text, out);
		}
	}
	fputc('\n', out);
}
