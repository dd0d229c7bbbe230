/*
 * Text of strangers made fit to be shown and exported: valid UTF-8 (OTLP strings must be; one bad
 * byte and a collector refuses the whole batch) and free of control characters (a name must not
 * move somebody's cursor). Also argument vectors as /proc/PID/cmdline has them. Used by all of
 * discover; pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* Replaces control characters and bytes that are not UTF-8 by '?', in place. */
void text_clean(char *text, size_t n);

/* The next NUL-terminated string of a block, which is advanced behind it; p NULL at the end. */
struct str text_next(struct str *block);

/* The part behind the last '/'. */
struct str text_base_name(struct str path);

/*
 * The arguments joined by blanks, at most 'max' bytes, terminated and cleaned; the caller frees it.
 * With 'redact', values of options that look like credentials (--db-password=x, -Dtoken=x,
 * --api-key x) and the user of a URL become REDACTED: command lines are exported. NULL: no memory.
 */
char *text_command_line(struct str arguments, size_t max, bool redact);
