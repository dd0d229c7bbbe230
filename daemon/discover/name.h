/*
 * The name of a service from what its process looks like, where nobody gave it one: systemd unit,
 * jar or main class, Go module, script, executable, in this order. Used by describe.c; pure.
 */
#pragma once

#include "base/str.h"
#include "model/process.h"

#define SERVICE_NAME_MAX 256

struct name_source {
	enum language language;
	struct str exe;       /* path of the executable */
	struct str arguments; /* NUL-terminated strings, as in /proc/PID/cmdline */
	struct str unit;      /* systemd unit; empty: none */
	struct str go_module; /* empty: none */
};

/* Never empty and never just "java"; terminated and clean. */
void name_service(const struct name_source *source, char ret_name[SERVICE_NAME_MAX]);

/*
 * The interpreter's language as telemetry.sdk.language spells it ("python"), or NULL when it is
 * none we know.
 */
const char *name_interpreter(struct str exe);
