/*
 * The bytes of a configuration file: read whole, bounded, and proved to be text before YAML sees
 * them. First step of config_load().
 */
#pragma once

#include "base/str.h"
#include "config/problem.h"

#define TEXT_BYTES_MAX (1024 * 1024)

/*
 * Reads problem->file. Returns 0 and the bytes, to be freed; CONFIG_INVALID with the problem
 * reported (missing, unreadable, a directory, longer than TEXT_BYTES_MAX); or a negative errno.
 */
int text_read(const struct problem *problem, char **ret_bytes, size_t *ret_n);

/*
 * Checks that the text is UTF-8 without control characters and without tabs outside comments, and
 * cuts off a byte order mark. Returns 0 or CONFIG_INVALID.
 */
int text_check(struct str text, const struct problem *problem, struct str *ret_text);
