/*
 * The control socket: how tsunagictl asks the daemon. A client sends one line, "command
 * argument\n", and gets one JSON document; then the connection is closed. daemon.c owns the server,
 * report.c answers the commands.
 *
 * Everything is bounded: CONTROL_CLIENTS_MAX at a time, CONTROL_REQUEST_BYTES_MAX a request,
 * CONTROL_TIMEOUT_S a client; who is turned away is counted. Nothing blocks: a slow reader of a
 * long answer costs its memory, for that long. Only root (and the user the daemon runs as) is
 * answered.
 */
#pragma once

#include <cjson/cJSON.h>
#include <systemd/sd-event.h>

#include "base/str.h"
#include "base/util.h"

#define CONTROL_CLIENTS_MAX       8
#define CONTROL_REQUEST_BYTES_MAX 256 /* with its newline */
#define CONTROL_TIMEOUT_S         5

struct control;

/*
 * Answers a command; the argument is empty when there was none. Both are printable ASCII. Returns 0
 * and an answer that is freed by the caller, one of the outcomes below, or a negative errno, which
 * the client is told.
 */
enum {
	CONTROL_UNKNOWN_COMMAND = 1,
	CONTROL_NOT_FOUND, /* nothing there by the name of the argument */
};
typedef int (*control_handler_fn)(void *userdata, struct str command, struct str argument,
				  cJSON **ret_answer);

/*
 * Listens at 'path', mode 0600; nothing may be there (lock.h removes what a dead daemon left).
 * Returns 0 or a negative errno: -EADDRINUSE, -ENAMETOOLONG beyond 107 bytes, or from socket(2),
 * bind(2) and sd-event.
 */
int control_new(sd_event *event, const char *path, control_handler_fn handler, void *userdata,
		struct control **ret);

/* Drops all clients and removes the socket. NULL is allowed. */
void control_free(struct control *control);
DEFINE_CLEANUP(struct control *, control_free)
