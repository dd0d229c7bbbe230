/*
 * OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES in the environment of a process, by the rules of
 * OpenTelemetry's specification (resource SDK: comma-separated key=value, values percent-encoded,
 * the whole variable is dropped when a part of it is malformed). The daemon's own environment never
 * counts. Used by describe.c; pure.
 */
#pragma once

#include <stddef.h>

#include "base/str.h"
#include "base/util.h"

#define ENVIRONMENT_ATTRIBUTES_MAX 32

struct environment_attribute {
	char *key;
	char *value; /* decoded */
};

struct environment {
	char *service_name;  /* the variable, else the attribute; NULL: neither */
	size_t n_attributes; /* without service.name */
	struct environment_attribute attributes[ENVIRONMENT_ATTRIBUTES_MAX];
};

/*
 * 'block' is NUL-terminated strings as in /proc/PID/environ. Returns 0 or -ENOMEM; call _done in
 * any case.
 */
int environment_parse(struct str block, struct environment *ret);
void environment_done(struct environment *environment);
