/*
 * The daemon: one event loop that reads the ring, keeps the processes and the exchanges, and hands
 * spans to the exporter's thread. main.c parses the command line and calls daemon_run(); everything
 * that modules exchange is wired here, because modules do not know their siblings.
 */
#pragma once

#include <stdint.h>

#include "config/config.h"

enum daemon_print { DAEMON_PRINT_NONE, DAEMON_PRINT_TREE, DAEMON_PRINT_JSON };

struct daemon_options {
	const struct config *config;
	const char *config_path; /* as given or found; NULL: built-in defaults */
	const char *runtime_dir;
	enum daemon_print print;
};

/*
 * Runs until SIGTERM or SIGINT. Every failure to start has been logged, in one line, when it
 * returns. Returns the process's exit status: 0 after an orderly end, 1 when it could not start or
 * run.
 */
int daemon_run(const struct daemon_options *options);
