/* Routes; see route.h. */
#include "http/route.h"

#include "base/util.h"

struct str http_route_check(struct str route)
{
	if (!route.n || route.p[0] != '/' || route.n > HTTP_ROUTE_BYTES_MAX)
		return STR_NONE;
	for (size_t i = 0; i < route.n; i++)
		if (route.p[i] < ' ' || route.p[i] > '~')
			return STR_NONE;
	return route;
}

struct str http_route_of_pattern(struct str pattern)
{
	ptrdiff_t slash = str_find(pattern, '/');

	/* Neither a method nor a host has one. */
	return slash < 0 ? STR_NONE : http_route_check(str_skip(pattern, (size_t)slash));
}

/* Takes one of two slashes that have only a '*' between them, and the '*', again and again. */
static size_t drop_wildcards(char *text, size_t n)
{
	for (size_t i = 0; i + 3 <= n;) {
		if (memcmp(text + i, "/*/", 3) != 0) {
			i++;
			continue;
		}
		memmove(text + i, text + i + 2, n - i - 2);
		n -= 2;
	}
	return n;
}

struct str http_route_of_chi(struct str patterns, char ret[static HTTP_ROUTE_BYTES_MAX])
{
	size_t n = patterns.n;

	if (!http_route_check(patterns).n)
		return STR_NONE;
	memcpy(ret, patterns.p, n);
	n = drop_wildcards(ret, n);
	if (n > 2 && memcmp(ret + n - 2, "//", 2) == 0)
		n -= 2;
	if (n > 1 && ret[n - 1] == '/')
		n--;
	return (struct str){.p = ret, .n = n};
}
