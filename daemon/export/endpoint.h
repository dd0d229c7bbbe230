/*
 * Where spans go: `endpoint:` of the config as a URL to post to.
 */
#pragma once

#include "base/util.h"

struct endpoint {
	char *url;     /* to post to */
	char *display; /* for log lines: without user, password and query */
};

/*
 * A base URL (no path, or "/") gets /v1/traces appended; any other path is used as it is. Host
 * names, IPv4 and bracketed IPv6 addresses. Returns 0, ENDPOINT_INVALID when it is no http or https
 * URL, or -ENOMEM.
 */
enum { ENDPOINT_INVALID = 1 };
int endpoint_parse(const char *text, struct endpoint *ret);

void endpoint_done(struct endpoint *e);
