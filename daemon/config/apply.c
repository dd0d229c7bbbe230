/* Keys and values into struct config; see apply.h. */
#include "config/apply.h"

#include <errno.h>

#include "config/value.h"

#define TEXT_VALUE_BYTES_MAX 4096
#define LIST_ITEMS_MAX       1024

/* Where the keys of one mapping go. */
struct place {
	const struct problem *problem;
	enum key_scope scope;
	struct str prefix; /* of the keys here: "" or "export." */
	void *base;        /* the struct of the scope */
};

static int apply_mapping(const struct place *place, const struct node *mapping);

static void *field_of(const struct place *place, const struct key *key)
{
	return (char *)place->base + key->offset;
}

static int refuse(const struct place *place, const struct key *key, const struct node *value)
{
	static const char *const kinds[] = {
		[NODE_NULL] = "nothing",
		[NODE_SCALAR] = "a single value",
		[NODE_LIST] = "a list",
		[NODE_MAPPING] = "a mapping",
	};
	struct key_expectation expected = keys_expectation(key);
	struct excerpt got;

	/* A URL may hold a password: it is never quoted. */
	if (value->kind != NODE_SCALAR || key->type == KEY_URL)
		return problem_report(place->problem, value->at, "%s: expected %s, got %s",
				      key->path, expected.text, kinds[value->kind]);
	got = problem_excerpt(value->text);
	return problem_report(place->problem, value->at, "%s: expected %s, got '%s'", key->path,
			      expected.text, got.text);
}

static int set_text(char **field, struct str text)
{
	char *copy = strndup(text.p, text.n);

	if (!copy)
		return -ENOMEM;
	free(*field);
	*field = copy;
	return 0;
}

static int apply_text(const struct place *place, const struct key *key, const struct node *value)
{
	if (value->kind != NODE_SCALAR || value->text.n == 0 ||
	    value->text.n > TEXT_VALUE_BYTES_MAX)
		return refuse(place, key, value);

	/* Escapes in a quoted text can make any character; none of these is in a name or a path. */
	for (size_t i = 0; i < value->text.n; i++) {
		if ((unsigned char)value->text.p[i] < ' ' || value->text.p[i] == 0x7f)
			return refuse(place, key, value);
	}
	return set_text(field_of(place, key), value->text);
}

static int apply_user(const struct place *place, const struct key *key, const struct node *value)
{
	struct selector *selector = place->base;
	int r = apply_text(place, key, value);

	assert(key->offset == offsetof(struct selector, user));
	if (r)
		return r;
	selector->user_line = value->at.line;
	selector->user_column = value->at.column;
	return 0;
}

static int apply_pattern(const struct place *place, const struct key *key, const struct node *value)
{
	const char *why = value->kind == NODE_SCALAR ? value_check_pattern(value->text) : NULL;
	struct key_expectation expected = keys_expectation(key);
	struct excerpt got;

	if (!why)
		return apply_text(place, key, value);
	got = problem_excerpt(value->text);
	return problem_report(place->problem, value->at, "%s: expected %s, got '%s'; %s", key->path,
			      expected.text, got.text, why);
}

static int apply_url(const struct place *place, const struct key *key, const struct node *value)
{
	char **field = field_of(place, key);
	struct key_expectation expected;
	const char *why;

	if (value->kind == NODE_NULL) {
		free(*field);
		*field = NULL;
		return 0;
	}
	if (value->kind != NODE_SCALAR)
		return refuse(place, key, value);

	why = value_check_url(value->text);
	if (!why)
		return set_text(field, value->text);
	expected = keys_expectation(key);
	return problem_report(place->problem, value->at, "%s: expected %s; %s", key->path,
			      expected.text, why);
}

static int apply_number(const struct place *place, const struct key *key, const struct node *value)
{
	uint64_t number;
	int r;

	if (value->kind != NODE_SCALAR)
		return refuse(place, key, value);
	r = key->type == KEY_DURATION ? value_parse_duration_ms(value->text, &number)
	    : key->type == KEY_COUNT  ? value_parse_count(value->text, &number)
				      : value_parse_size(value->text, &number);
	if (r || number < key->min || number > key->max)
		return refuse(place, key, value);
	if (key->type == KEY_SIZE_POW2 && (number & (number - 1)))
		return refuse(place, key, value);

	*(uint32_t *)field_of(place, key) = (uint32_t)number;
	return 0;
}

static const struct key_choice *find_choice(const struct key *key, const struct node *value)
{
	for (size_t i = 0; value->kind == NODE_SCALAR && i < key->n_choices; i++) {
		if (str_equal(value->text, str_from(key->choices[i].name)))
			return &key->choices[i];
	}
	return NULL;
}

static int apply_choice(const struct place *place, const struct key *key, const struct node *value)
{
	const struct key_choice *choice = find_choice(key, value);

	if (!choice)
		return refuse(place, key, value);
	*(int *)field_of(place, key) = choice->value;
	return 0;
}

static int apply_languages(const struct place *place, const struct key *key,
			   const struct node *value)
{
	const struct node *items = value->kind == NODE_LIST ? value->children : value;
	size_t n = value->kind == NODE_LIST ? value->n : 1;
	uint32_t languages = 0;
	bool is_any = false;

	if (n == 0)
		return refuse(place, key, value);
	for (size_t i = 0; i < n; i++) {
		const struct key_choice *choice = find_choice(key, &items[i]);

		if (!choice)
			return refuse(place, key, &items[i]);
		languages |= (uint32_t)choice->value;
		is_any = is_any || choice->value == 0;
	}
	*(uint32_t *)field_of(place, key) = is_any ? 0 : languages;
	return 0;
}

static int apply_ports(const struct place *place, const struct key *key, const struct node *value)
{
	struct selector *selector = place->base;

	assert(key->offset == offsetof(struct selector, port_first));
	if (value->kind != NODE_SCALAR ||
	    value_parse_ports(value->text, &selector->port_first, &selector->port_last))
		return refuse(place, key, value);
	return 0;
}

static int apply_selector(const struct place *place, const struct key *key,
			  const struct node *value, struct selector *selector)
{
	struct place inside = {
		.problem = place->problem,
		.scope = KEY_SCOPE_SELECTOR,
		.base = selector,
	};

	if (value->kind != NODE_MAPPING)
		return refuse(place, key, value);
	/* Every process of the host: if that is meant, it can be said. */
	if (value->n == 0)
		return problem_report(place->problem, value->at,
				      "%s: expected at least one of %s (for any process: language: "
				      "any)",
				      key->path, keys_expected(inside.scope, inside.prefix).text);
	selector->line = place->problem->file ? value->at.line : 0;
	return apply_mapping(&inside, value);
}

static int allocate_items(const struct place *place, const struct key *key,
			  const struct node *value, size_t item_bytes, void **ret_items)
{
	if (value->kind != NODE_LIST)
		return refuse(place, key, value);
	if (value->n > LIST_ITEMS_MAX)
		return problem_report(place->problem, value->at,
				      "%s: expected at most %d items, got %zu", key->path,
				      LIST_ITEMS_MAX, value->n);
	*ret_items = calloc(MAX(value->n, 1U), item_bytes);
	return *ret_items ? 0 : -ENOMEM;
}

static int apply_selectors(const struct place *place, const struct key *key,
			   const struct node *value)
{
	_cleanup_(selector_list_done) struct selector_list list = {0};
	struct selector_list *field = field_of(place, key);
	void *items = NULL;
	int r = allocate_items(place, key, value, sizeof(struct selector), &items);

	if (r)
		return r;
	list.items = items;
	list.n = value->n;
	for (size_t i = 0; i < list.n; i++) {
		r = apply_selector(place, key, &value->children[i], &list.items[i]);
		if (r)
			return r;
	}
	selector_list_done(field);
	*field = list;
	list = (struct selector_list){0};
	return 0;
}

void apply_services_free(struct config_service *services, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		selector_done(&services[i].match);
		free(services[i].name);
	}
	free(services);
}

static int apply_service(const struct place *place, const struct key *key, const struct node *value,
			 struct config_service *service)
{
	struct place inside = {
		.problem = place->problem,
		.scope = KEY_SCOPE_SERVICE,
		.base = service,
	};
	bool has_match = false;
	int r;

	if (value->kind != NODE_MAPPING)
		return refuse(place, key, value);
	r = apply_mapping(&inside, value);
	if (r)
		return r;
	for (size_t i = 0; i < value->n; i += 2)
		has_match = has_match || str_equal(value->children[i].text, STR("match"));
	if (!has_match || (!service->name && service->propagate == CONFIG_PROPAGATE_UNSET &&
			   service->jvm_agent == CONFIG_AGENT_UNSET))
		return problem_report(
			place->problem, value->at,
			"%s: expected 'match', and 'name', 'propagate' or 'jvm', in each item",
			key->path);
	return 0;
}

static int apply_services(const struct place *place, const struct key *key,
			  const struct node *value)
{
	struct config *config = place->base;
	struct config_service *services;
	void *items = NULL;
	int r = allocate_items(place, key, value, sizeof(*services), &items);

	if (r)
		return r;
	services = items;
	for (size_t i = 0; i < value->n; i++) {
		r = apply_service(place, key, &value->children[i], &services[i]);
		if (r) {
			apply_services_free(services, value->n);
			return r;
		}
	}
	apply_services_free(config->services, config->n_services);
	config->services = services;
	config->n_services = value->n;
	return 0;
}

/* A section, or a list, of which everything is commented out is one that was not given. */
static bool is_not_given(const struct key *key, const struct node *value)
{
	if (value->kind != NODE_NULL)
		return false;
	return key->type == KEY_SECTION || key->type == KEY_SELECTORS || key->type == KEY_SERVICES;
}

static int apply_section(const struct place *place, const struct key *key, const struct node *value)
{
	struct place inside = *place;
	char prefix[64];

	if (value->kind != NODE_MAPPING)
		return refuse(place, key, value);
	snprintf(prefix, sizeof(prefix), "%s.", key->path);
	inside.prefix = str_from(prefix);
	return apply_mapping(&inside, value);
}

static int apply_key(const struct place *place, const struct key *key, const struct node *value)
{
	if (is_not_given(key, value))
		return 0;

	switch (key->type) {
	case KEY_SECTION:
		return apply_section(place, key, value);
	case KEY_URL:
		return apply_url(place, key, value);
	case KEY_TEXT:
		return apply_text(place, key, value);
	case KEY_USER:
		return apply_user(place, key, value);
	case KEY_PATTERN:
		return apply_pattern(place, key, value);
	case KEY_DURATION:
	case KEY_COUNT:
	case KEY_SIZE:
	case KEY_SIZE_POW2:
		return apply_number(place, key, value);
	case KEY_CHOICE:
		return apply_choice(place, key, value);
	case KEY_PORTS:
		return apply_ports(place, key, value);
	case KEY_LANGUAGES:
		return apply_languages(place, key, value);
	case KEY_SELECTOR:
		return apply_selector(place, key, value, field_of(place, key));
	case KEY_SELECTORS:
		return apply_selectors(place, key, value);
	case KEY_SERVICES:
		return apply_services(place, key, value);
	}
	assert(!"a type that is not in the enum");
	return -EINVAL;
}

static int refuse_unknown_key(const struct place *place, const struct node *name)
{
	struct key_expectation expected = keys_expected(place->scope, place->prefix);
	struct key_expectation hint;
	struct excerpt got;

	if (name->kind != NODE_SCALAR)
		return problem_report(place->problem, name->at, "expected a key (one of %s)",
				      expected.text);
	hint = keys_hint(place->scope, place->prefix, name->text);
	got = problem_excerpt(name->text);
	return problem_report(place->problem, name->at, "unknown key '%s', expected one of %s%s",
			      got.text, expected.text, hint.text);
}

static int apply_mapping(const struct place *place, const struct node *mapping)
{
	size_t n;
	const struct key *table = keys_table(&n);
	uint64_t seen = 0;

	for (size_t i = 0; i < mapping->n; i += 2) {
		const struct node *name = &mapping->children[i];
		const struct key *key = keys_find(place->scope, place->prefix, name->text);
		int r;

		if (!key)
			return refuse_unknown_key(place, name);
		if (seen & 1ULL << (key - table))
			return problem_report(place->problem, name->at,
					      "duplicate key '%s', expected it once", key->path);
		seen |= 1ULL << (key - table);
		r = apply_key(place, key, &mapping->children[i + 1]);
		if (r)
			return r;
	}
	return 0;
}

int apply_document(const struct node *root, const struct problem *problem, struct config *config)
{
	struct place place = {.problem = problem, .scope = KEY_SCOPE_FILE, .base = config};
	struct key_expectation expected;

	if (root->kind == NODE_NULL)
		return 0;
	if (root->kind == NODE_MAPPING)
		return apply_mapping(&place, root);
	expected = keys_expected(place.scope, place.prefix);
	return problem_report(problem, root->at, "expected a mapping with the keys %s",
			      expected.text);
}

int apply_value(const struct key *key, const struct node *value, const struct problem *problem,
		struct config *config)
{
	struct place place = {.problem = problem, .scope = KEY_SCOPE_FILE, .base = config};

	return apply_key(&place, key, value);
}
