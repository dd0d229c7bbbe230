/*
 * tsunagid: the command line. Finds and loads the configuration, then runs the daemon (daemon.c).
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent_library.h"
#include "base/log.h"
#include "config/config.h"
#include "daemon.h"
#include "probe/jvm_loader.h"

#define CONFIG_PATH "/etc/tsunagi/tsunagi.yaml"
#define RUNTIME_DIR "/run/tsunagi"

enum { EXIT_USAGE = 2 };

struct arguments {
	const char *config_path;
	const char *runtime_dir;
	enum daemon_print print;
	bool check_config;
};

static void usage(FILE *out)
{
	fputs("Usage: tsunagid [OPTION]...\n"
	      "Distributed traces from the services of this host, without touching them.\n\n"
	      "  --config FILE         configuration (default: " CONFIG_PATH " if there is one)\n"
	      "  --print[=tree|json]   write traces to standard output: drawn, or one span a line\n"
	      "  --check-config        read the configuration, say whether it is good, and end\n"
	      "  --runtime-dir DIR     lock and control socket (default: " RUNTIME_DIR ")\n"
	      "  --version             print the version and end\n"
	      "  --help                print this and end\n",
	      out);
}

static int print_parse(const char *text, enum daemon_print *ret)
{
	if (!text || strcmp(text, "tree") == 0)
		*ret = DAEMON_PRINT_TREE;
	else if (strcmp(text, "json") == 0)
		*ret = DAEMON_PRINT_JSON;
	else
		return -EINVAL;
	return 0;
}

/* Returns -1 to go on, else the exit status. */
static int arguments_parse(int argc, char **argv, struct arguments *a)
{
	static const struct option options[] = {
		{"config", required_argument, NULL, 'c'},
		{"print", optional_argument, NULL, 'p'},
		{"check-config", no_argument, NULL, 'k'},
		{"runtime-dir", required_argument, NULL, 'r'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'c':
			a->config_path = optarg;
			break;
		case 'p':
			if (print_parse(optarg, &a->print) < 0) {
				log_error("Cannot print as '%s': expected tree or json", optarg);
				return EXIT_USAGE;
			}
			break;
		case 'k':
			a->check_config = true;
			break;
		case 'r':
			a->runtime_dir = optarg;
			break;
		case 'v':
			puts("tsunagid " TSUNAGI_VERSION);
			return EXIT_SUCCESS;
		case 'h':
			usage(stdout);
			return EXIT_SUCCESS;
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		log_error("Unexpected argument '%s'", argv[optind]);
		return EXIT_USAGE;
	}
	return -1;
}

/* The file that was asked for, else the one of the system if there is one, else the defaults. */
static int configuration_load(struct arguments *a, struct config *ret)
{
	struct config_error error;
	int r;

	if (!a->config_path && access(CONFIG_PATH, F_OK) == 0)
		a->config_path = CONFIG_PATH;
	if (!a->config_path) {
		r = config_default(ret);
		return r < 0 ? log_error_errno(r, "Cannot set up the configuration: %m") : 0;
	}

	r = config_load(a->config_path, ret, &error);
	if (r < 0)
		return log_error_errno(r, "Cannot load '%s': %m", a->config_path);
	if (r == CONFIG_INVALID) {
		log_error("%s", error.text);
		return -EINVAL;
	}
	return 0;
}

static void warn(const char *line)
{
	log_warning("%s", line);
}

/* What the daemon starts itself as, to have an agent loaded. */
static int load_agent(int n, char **arguments)
{
	struct jvm_library library = {.options = "off"};

	library.bytes = agent_library(&library.size);
	return jvm_loader_main(n, arguments, &library);
}

int main(int argc, char **argv)
{
	struct arguments a = {.runtime_dir = RUNTIME_DIR};
	struct config config;
	int r;

	if (argc > 1 && strcmp(argv[1], JVM_LOADER_OPTION) == 0)
		return load_agent(argc - 2, argv + 2);
	r = arguments_parse(argc, argv, &a);
	if (r >= 0)
		return r;
	if (configuration_load(&a, &config) < 0)
		return EXIT_FAILURE;
	if (!a.check_config)
		log_set_level((enum log_level)config.log_level);
	config_check_users(&config, a.config_path, warn);
	if (a.check_config) {
		printf("%s: good\n", a.config_path ? a.config_path : "built-in defaults");
		config_done(&config);
		return EXIT_SUCCESS;
	}

	r = daemon_run(&(struct daemon_options){
		.config = &config,
		.config_path = a.config_path,
		.runtime_dir = a.runtime_dir,
		.print = a.print,
	});
	config_done(&config);
	return r;
}
