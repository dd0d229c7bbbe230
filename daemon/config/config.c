/* Loading the configuration; see config.h. */
#include "config/config.h"

#include <errno.h>

#include "config/apply.h"
#include "config/text.h"
#include "config/value.h"

void config_done(struct config *config)
{
	free(config->endpoint);
	selector_list_done(&config->include);
	selector_list_done(&config->exclude);
	apply_services_free(config->services, config->n_services);
	*config = (struct config){0};
}

/* Defaults go the way of a file's values, so that what the reference shows is what they are. */
static int set_default(const struct key *key, struct config *config)
{
	_cleanup_(node_done) struct node value = {0};
	struct config_error error;
	struct problem problem = {.error = &error};
	int r = node_parse(str_from(key->value), &problem, &value);

	if (r == 0)
		r = apply_value(key, &value, &problem, config);
	assert(r <= 0);
	return r;
}

int config_default(struct config *ret)
{
	_cleanup_(config_done) struct config config = {0};
	size_t n;
	const struct key *keys = keys_table(&n);

	for (size_t i = 0; i < n; i++) {
		int r = keys[i].value ? set_default(&keys[i], &config) : 0;

		if (r)
			return r;
	}
	*ret = config;
	config = (struct config){0};
	return 0;
}

static int parse_text(struct str text, const struct problem *problem, struct config *ret)
{
	_cleanup_(config_done) struct config config = {0};
	_cleanup_(node_done) struct node root = {0};
	int r = config_default(&config);

	if (r)
		return r;
	r = text_check(text, problem, &text);
	if (r)
		return r;
	r = node_parse(text, problem, &root);
	if (r)
		return r;
	r = apply_document(&root, problem, &config);
	if (r)
		return r;
	*ret = config;
	config = (struct config){0};
	return 0;
}

int config_parse(struct str text, const char *name, struct config *ret,
		 struct config_error *ret_error)
{
	struct problem problem = {.file = name, .error = ret_error};

	return parse_text(text, &problem, ret);
}

int config_load(const char *path, struct config *ret, struct config_error *ret_error)
{
	struct problem problem = {.file = path, .error = ret_error};
	_cleanup_(freep) char *bytes = NULL;
	size_t n;
	int r = text_read(&problem, &bytes, &n);

	if (r)
		return r;
	return parse_text((struct str){.p = bytes, .n = n}, &problem, ret);
}

int config_endpoint_shown(const char *endpoint, char **ret)
{
	struct str url = str_from(endpoint);
	struct str user = value_url_user(url);
	char *shown = NULL;

	if (!endpoint) {
		*ret = NULL;
		return 0;
	}
	if (user.p) {
		if (asprintf(&shown, "%.*s***%s", (int)(user.p - url.p), url.p, user.p + user.n) <
		    0)
			return -ENOMEM;
	} else {
		shown = strdup(endpoint);
	}
	if (!shown)
		return -ENOMEM;
	*ret = shown;
	return 0;
}
