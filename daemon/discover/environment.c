/* Environments; see environment.h. */
#include "discover/environment.h"

#include <errno.h>

#include "discover/text.h"
#include "metrics/metrics.h"

static struct str trim(struct str s)
{
	while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
		s = str_skip(s, 1);
	while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

enum { MALFORMED = 1 };

static int decode(struct str s, char **ret)
{
	_cleanup_(freep) char *out = malloc(s.n + 1);
	size_t n = 0;

	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < s.n; i++) {
		int high, low;

		if (s.p[i] != '%') {
			out[n++] = s.p[i];
			continue;
		}
		high = i + 2 < s.n ? hex_digit(s.p[i + 1]) : -1;
		low = i + 2 < s.n ? hex_digit(s.p[i + 2]) : -1;
		if (high < 0 || low < 0)
			return MALFORMED;
		out[n++] = (char)(high << 4 | low);
		i += 2;
	}
	text_clean(out, n);
	out[n] = '\0';
	*ret = TAKE_PTR(out);
	return 0;
}

static void drop_attributes(struct environment *e)
{
	for (size_t i = 0; i < e->n_attributes; i++) {
		free(e->attributes[i].key);
		free(e->attributes[i].value);
	}
	e->n_attributes = 0;
}

static int add_attribute(struct environment *e, struct str pair, char **service_name)
{
	_cleanup_(freep) char *key = NULL;
	_cleanup_(freep) char *value = NULL;
	ptrdiff_t equals = str_find(pair, '=');
	struct str name;
	int r;

	if (equals < 0)
		return MALFORMED;
	name = trim((struct str){.p = pair.p, .n = (size_t)equals});
	if (name.n == 0)
		return MALFORMED;
	r = decode(trim(str_skip(pair, (size_t)equals + 1)), &value);
	if (r)
		return r;

	if (str_equal(name, STR("service.name"))) {
		free(*service_name);
		*service_name = TAKE_PTR(value);
		return 0;
	}
	if (e->n_attributes == ENVIRONMENT_ATTRIBUTES_MAX) {
		metrics_increment(METRIC_RESOURCE_ATTRIBUTES_FULL);
		return 0;
	}
	key = strndup(name.p, name.n);
	if (!key)
		return -ENOMEM;
	text_clean(key, name.n);
	e->attributes[e->n_attributes++] =
		(struct environment_attribute){.key = TAKE_PTR(key), .value = TAKE_PTR(value)};
	return 0;
}

static int parse_attributes(struct environment *e, struct str list, char **ret_service_name)
{
	_cleanup_(freep) char *service_name = NULL;
	int r;

	drop_attributes(e);
	while (list.n > 0) {
		ptrdiff_t comma = str_find(list, ',');
		struct str pair = {.p = list.p, .n = comma < 0 ? list.n : (size_t)comma};

		list = str_skip(list, pair.n + 1);
		if (trim(pair).n == 0) /* "a=b," */
			continue;
		r = add_attribute(e, pair, &service_name);
		if (r == MALFORMED) {
			drop_attributes(e);
			return 0;
		}
		if (r < 0)
			return r;
	}
	free(*ret_service_name);
	*ret_service_name = service_name && service_name[0] ? TAKE_PTR(service_name) : NULL;
	return 0;
}

int environment_parse(struct str block, struct environment *ret)
{
	_cleanup_(freep) char *attribute_name = NULL;
	struct str variable;
	int r;

	*ret = (struct environment){0};
	while ((variable = text_next(&block)).p) {
		if (str_starts_with(variable, STR("OTEL_SERVICE_NAME="))) {
			struct str name = trim(str_skip(variable, strlen("OTEL_SERVICE_NAME=")));

			if (name.n == 0 || ret->service_name)
				continue;
			ret->service_name = strndup(name.p, name.n);
			if (!ret->service_name)
				return -ENOMEM;
			text_clean(ret->service_name, name.n);
		} else if (str_starts_with(variable, STR("OTEL_RESOURCE_ATTRIBUTES="))) {
			r = parse_attributes(
				ret, str_skip(variable, strlen("OTEL_RESOURCE_ATTRIBUTES=")),
				&attribute_name);
			if (r < 0)
				return r;
		}
	}
	if (!ret->service_name)
		ret->service_name = TAKE_PTR(attribute_name);
	return 0;
}

void environment_done(struct environment *e)
{
	drop_attributes(e);
	free(e->service_name);
	*e = (struct environment){0};
}
