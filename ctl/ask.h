/*
 * One question to the daemon over its control socket. Called by tsunagictl.c.
 */
#pragma once

#include <sys/types.h>

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

/*
 * The process that holds the lock of the directory: with no socket there, a daemon that is starting
 * or ending. 0 if none does, or if its lock cannot be seen (/proc/locks, of this pid namespace).
 */
pid_t ask_lock_holder(const char *dir);
