/*
 * One question to the daemon over its control socket. Called by tsunagictl.c.
 */
#pragma once

#include <stddef.h>

enum {
	ASK_NO_SOCKET = 1, /* there is none in the directory */
	ASK_DEAD_SOCKET,   /* nobody listens on the one that is there */
	ASK_NOT_ALLOWED,   /* only root may open it */
	ASK_NO_ANSWER,     /* connected, but no whole answer came in time */
};

/*
 * Sends the request (one line, without its newline) to DIR/control.sock. Returns 0 and the answer,
 * terminated and to be freed; an outcome above; or a negative errno.
 */
int ask_daemon(const char *dir, const char *request, char **ret_answer);
