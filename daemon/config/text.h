/*
 * The bytes of a configuration file: read whole, bounded, and proved to be text before YAML sees
 * them. First step of config_load().
 */
#pragma once

#include "base/str.h"
#include "config/problem.h"

#define TEXT_BYTES_MAX   (1024 * 1024)
#define TEXT_PIPE_MS_MAX 5000

/*
 * Reads problem->file: a regular file, /dev/null, or a pipe, such as /dev/stdin or what a shell
 * makes of <(...), which is to be written and closed within TEXT_PIPE_MS_MAX. Returns 0 and the
 * bytes, to be freed; CONFIG_INVALID with the problem reported (missing, unreadable, something else,
 * a pipe without a writer, longer than TEXT_BYTES_MAX); or a negative errno.
 */
int text_read(const struct problem *problem, char **ret_bytes, size_t *ret_n);

/*
 * Checks that the text is UTF-8 without control characters and without tabs outside comments, and
 * cuts off a byte order mark. Returns 0 or CONFIG_INVALID.
 */
int text_check(struct str text, const struct problem *problem, struct str *ret_text);
