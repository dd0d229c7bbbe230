/* The URL of the collector; see endpoint.h. */
#include "export/endpoint.h"

#include <curl/curl.h>
#include <errno.h>

#define TRACES_PATH "/v1/traces"

static void curl_urlp(CURLU **u)
{
	curl_url_cleanup(*u);
}

static void curl_stringp(char **s)
{
	curl_free(*s);
}

/* libcurl's answer as ours. */
static int outcome(CURLUcode code)
{
	if (code == CURLUE_OUT_OF_MEMORY)
		return -ENOMEM;
	return code ? ENDPOINT_INVALID : 0;
}

static int url_get(CURLU *u, CURLUPart part, char **ret)
{
	_cleanup_(curl_stringp) char *text = NULL;
	char *copy;
	int r;

	r = outcome(curl_url_get(u, part, &text, 0));
	if (r)
		return r;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

/* http and https only: libcurl could also write files. */
static int scheme_check(CURLU *u)
{
	_cleanup_(freep) char *scheme = NULL;
	int r;

	r = url_get(u, CURLUPART_SCHEME, &scheme);
	if (r)
		return r;
	return strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0 ? 0 : ENDPOINT_INVALID;
}

static int path_complete(CURLU *u)
{
	_cleanup_(freep) char *path = NULL;
	int r;

	r = url_get(u, CURLUPART_PATH, &path);
	if (r)
		return r;
	if (strcmp(path, "/") != 0)
		return 0;
	return outcome(curl_url_set(u, CURLUPART_PATH, TRACES_PATH, 0));
}

/* What must not be read in a log. */
static int secrets_remove(CURLU *u)
{
	static const CURLUPart parts[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS,
					  CURLUPART_QUERY, CURLUPART_FRAGMENT};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		int r = outcome(curl_url_set(u, parts[i], NULL, 0));

		if (r)
			return r;
	}
	return 0;
}

int endpoint_parse(const char *text, struct endpoint *ret)
{
	_cleanup_(curl_urlp) CURLU *u = curl_url();
	_cleanup_(freep) char *url = NULL, *display = NULL;
	int r;

	if (!u)
		return -ENOMEM;
	r = outcome(curl_url_set(u, CURLUPART_URL, text, 0));
	if (r)
		return r;
	r = scheme_check(u);
	if (r)
		return r;
	r = path_complete(u);
	if (r)
		return r;
	r = url_get(u, CURLUPART_URL, &url);
	if (r)
		return r;
	r = secrets_remove(u);
	if (r)
		return r;
	r = url_get(u, CURLUPART_URL, &display);
	if (r)
		return r;

	*ret = (struct endpoint){.url = TAKE_PTR(url), .display = TAKE_PTR(display)};
	return 0;
}

void endpoint_done(struct endpoint *e)
{
	free(e->url);
	free(e->display);
	*e = (struct endpoint){0};
}
