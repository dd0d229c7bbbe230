/*
 * http.route (OpenTelemetry's HTTP semantic conventions): the template of a path by which a server
 * chose its handler, made of what its router calls it. Used by stitch. The texts are a stranger's:
 * one that is no template of a path gives none.
 */
#pragma once

#include "base/str.h"

#define HTTP_ROUTE_BYTES_MAX 128

/*
 * Of net/http.ServeMux's pattern, "[METHOD ][HOST]/[PATH]" (Go 1.22): the path's part of it, a view.
 * STR_NONE: it is no pattern.
 */
struct str http_route_of_pattern(struct str pattern);

/*
 * Of chi's patterns of a router and those below it, one behind the other ("/a/ *" without the blank,
 * then "/{id}"): as its RoutePattern() has them. Writes at most as much as it is given.
 */
struct str http_route_of_chi(struct str patterns, char ret[static HTTP_ROUTE_BYTES_MAX]);

/* STR_NONE in place of what is no path of printable characters. */
struct str http_route_check(struct str route);
