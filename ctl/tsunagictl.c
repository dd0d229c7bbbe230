/*
 * tsunagictl: asks the daemon what it does, and prints the answer. Exit status: 0 answered, 1 not
 * answered (no daemon, not root, nothing by that name), 2 wrong usage.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>

#include "ask.h"
#include "base/nearest.h"
#include "base/str.h"
#include "base/util.h"
#include "print.h"

enum { EXIT_ANSWERED = 0, EXIT_NOT_ANSWERED = 1, EXIT_USAGE = 2 };

enum argument_kind { ARGUMENT_NONE, ARGUMENT_PID, ARGUMENT_TRACE_ID };

struct command {
	const char *name;
	enum argument_kind argument;
	bool needs_argument;
	print_fn print;
};

static const struct command commands[] = {
	{"status", ARGUMENT_NONE, false, print_status},
	{"processes", ARGUMENT_PID, false, print_processes},
	{"traces", ARGUMENT_NONE, false, print_traces},
	{"trace", ARGUMENT_TRACE_ID, true, print_trace},
	{"counters", ARGUMENT_NONE, false, print_counters},
};

struct options {
	const char *dir;
	bool is_json;
	struct print_options print;
	const struct command *command;
	char argument[64];
};

static const char usage[] =
	"Usage: tsunagictl [OPTIONS] COMMAND\n"
	"\n"
	"  status            what the daemon does, how it watches, and why that way\n"
	"  processes [PID]   the processes it knows, and why each is traced or not\n"
	"  traces            the newest traces it keeps\n"
	"  trace ID          one of them, drawn as a tree\n"
	"  counters          what was made, lost, cut or refused, and how often\n"
	"\n"
	"  --runtime-dir DIR where the daemon's socket is (default: /run/tsunagi)\n"
	"  --json            the answer as JSON\n"
	"  --all             counters: also those that are zero\n"
	"  --help, --version\n";

__attribute__((format(printf, 2, 3))) static int complain(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("tsunagictl: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return status;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	}
	return NULL;
}

static int refuse_command(const char *name)
{
	const char *names[ARRAY_SIZE(commands)];
	const char *nearest;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		names[i] = commands[i].name;
	nearest = nearest_find(str_from(name), names, ARRAY_SIZE(names));
	if (nearest)
		return complain(EXIT_USAGE, "unknown command '%s'; did you mean '%s'?", name,
				nearest);
	return complain(EXIT_USAGE, "unknown command '%s'; --help lists them", name);
}

/* Digits of one kind only: nothing else goes into the request. */
static bool has_only(const char *text, int (*is_kind)(int), size_t max)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++) {
		if (!isascii(text[i]) || !is_kind((unsigned char)text[i]))
			return false;
	}
	return n > 0 && n <= max;
}

static int take_argument(struct options *o, const char *text)
{
	switch (o->command->argument) {
	case ARGUMENT_NONE:
		return complain(EXIT_USAGE, "'%s' takes no argument, got '%s'", o->command->name,
				text);
	case ARGUMENT_PID:
		if (!has_only(text, isdigit, 10))
			return complain(EXIT_USAGE, "expected a PID, got '%s'", text);
		o->print.is_for_one = true;
		break;
	case ARGUMENT_TRACE_ID:
		if (!has_only(text, isxdigit, 32))
			return complain(EXIT_USAGE,
					"expected a trace ID of 32 hex digits, got '%s'", text);
		break;
	}
	for (size_t i = 0; i <= strlen(text); i++)
		o->argument[i] = (char)tolower((unsigned char)text[i]);
	return 0;
}

static int take_command(struct options *o, char **words, int n)
{
	if (n == 0) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	o->command = find_command(words[0]);
	if (!o->command)
		return refuse_command(words[0]);
	if (n == 1 && o->command->needs_argument)
		return complain(EXIT_USAGE, "'%s' needs an ID; 'tsunagictl traces' lists them",
				o->command->name);
	if (n > 2)
		return complain(EXIT_USAGE, "'%s' takes one argument at most, got '%s' too",
				o->command->name, words[2]);
	return n == 2 ? take_argument(o, words[1]) : 0;
}

/* Returns 0, or -1 when there is nothing more to do than to exit with 'ret_status'. */
static int parse_options(int argc, char **argv, struct options *o, int *ret_status)
{
	enum { OPTION_DIR = 256, OPTION_JSON, OPTION_ALL, OPTION_HELP, OPTION_VERSION };
	static const struct option table[] = {
		{"runtime-dir", required_argument, NULL, OPTION_DIR},
		{"json", no_argument, NULL, OPTION_JSON},
		{"all", no_argument, NULL, OPTION_ALL},
		{"help", no_argument, NULL, OPTION_HELP},
		{"version", no_argument, NULL, OPTION_VERSION},
		{0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "h", table, NULL)) >= 0) {
		switch (option) {
		case OPTION_DIR:
			o->dir = optarg;
			break;
		case OPTION_JSON:
			o->is_json = true;
			break;
		case OPTION_ALL:
			o->print.shows_all = true;
			break;
		case 'h':
		case OPTION_HELP:
			fputs(usage, stdout);
			*ret_status = EXIT_ANSWERED;
			return -1;
		case OPTION_VERSION:
			puts("tsunagictl " TSUNAGI_VERSION);
			*ret_status = EXIT_ANSWERED;
			return -1;
		default:
			*ret_status = EXIT_USAGE;
			return -1;
		}
	}
	*ret_status = take_command(o, argv + optind, argc - optind);
	return *ret_status ? -1 : 0;
}

static int explain_no_socket(const struct options *o)
{
	pid_t holder = ask_lock_holder(o->dir);

	if (holder)
		return complain(EXIT_NOT_ANSWERED,
				"tsunagid is starting or ending: process %d has the lock on '%s', "
				"but no socket there yet",
				(int)holder, o->dir);
	return complain(EXIT_NOT_ANSWERED, "tsunagid is not running: no socket in '%s'", o->dir);
}

static int explain_silence(const struct options *o, int r)
{
	switch (r) {
	case ASK_NO_SOCKET:
		return explain_no_socket(o);
	case ASK_DEAD_SOCKET:
		return complain(EXIT_NOT_ANSWERED,
				"tsunagid is not running: nobody listens on the socket in '%s'",
				o->dir);
	case ASK_NOT_ALLOWED:
		return complain(EXIT_NOT_ANSWERED, "only root may ask tsunagid: try with sudo");
	case ASK_NO_ANSWER:
		return complain(EXIT_NOT_ANSWERED, "tsunagid does not answer");
	default:
		return complain(EXIT_NOT_ANSWERED, "cannot ask tsunagid in '%s': %s", o->dir,
				strerror(-r));
	}
}

/* The daemon's own words, unless ours can say more. */
static int explain_error(const struct options *o, const cJSON *answer, const char *error)
{
	const char *code = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(answer, "code"));
	bool is_not_found = code && strcmp(code, "not_found") == 0;

	if (is_not_found && o->command->argument == ARGUMENT_TRACE_ID)
		return complain(EXIT_NOT_ANSWERED,
				"unknown trace '%s'; 'tsunagictl traces' lists those kept",
				o->argument);
	if (is_not_found && o->command->argument == ARGUMENT_PID)
		return complain(EXIT_NOT_ANSWERED,
				"unknown process %s; 'tsunagictl processes' lists those known",
				o->argument);
	return complain(EXIT_NOT_ANSWERED, "tsunagid says: %s", error);
}

static int show_answer(const struct options *o, const char *text)
{
	cJSON *answer = cJSON_Parse(text);
	const char *error = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(answer, "error"));
	int status = EXIT_ANSWERED;

	if (!cJSON_IsObject(answer))
		status = complain(EXIT_NOT_ANSWERED, "tsunagid's answer cannot be read");
	else if (error)
		status = explain_error(o, answer, error);
	else if (o->is_json)
		print_json(text, stdout);
	else
		o->command->print(answer, &o->print, stdout);
	cJSON_Delete(answer);

	if (fflush(stdout) != 0 || ferror(stdout))
		return complain(EXIT_NOT_ANSWERED, "cannot write: %s", strerror(errno));
	return status;
}

int main(int argc, char **argv)
{
	struct options o = {.dir = "/run/tsunagi"};
	_cleanup_(freep) char *answer = NULL;
	char request[128];
	int status, r;

	if (parse_options(argc, argv, &o, &status) < 0)
		return status;
	snprintf(request, sizeof(request), "%s%s%s", o.command->name, o.argument[0] ? " " : "",
		 o.argument);
	r = ask_daemon(o.dir, request, &answer);
	if (r)
		return explain_silence(&o, r);
	return show_answer(&o, answer);
}
