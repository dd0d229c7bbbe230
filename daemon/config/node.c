/* From libyaml's events to a tree of nodes; see node.h. */
#include "config/node.h"

#include <errno.h>
#include <yaml.h>

#define NO_REFERENCES \
	"anchors and aliases are not accepted (put a text that starts with '*' or '&' in quotes)"

struct builder {
	yaml_parser_t parser;
	const struct problem *problem;
	unsigned int depth;
};

void node_done(struct node *node)
{
	for (size_t i = 0; i < node->n; i++)
		node_done(&node->children[i]);
	free(node->children);
	free((char *)node->text.p);
	*node = (struct node){0};
}

static struct position position_of(yaml_mark_t mark)
{
	return (struct position){.line = (unsigned int)mark.line + 1,
				 .column = (unsigned int)mark.column + 1};
}

/* libyaml's words are about its tokens; the frequent slips get words about what to do. */
static const char *explain_problem(const yaml_parser_t *parser)
{
	static const struct {
		const char *theirs, *ours;
	} words[] = {
		{"mapping values are not allowed in this context",
		 "a ':' where no key can be: put the value in quotes, or check the indentation"},
		{"found character that cannot start any token",
		 "a character that no value starts with: put the value in quotes"},
		{"did not find expected key", "expected a key: check the indentation"},
		{"did not find expected ',' or '}'", "expected ',' or '}'"},
		{"did not find expected ',' or ']'", "expected ',' or ']'"},
	};
	const char *context = parser->context ? parser->context : "";
	const char *problem = parser->problem ? parser->problem : "unreadable";

	if (strstr(context, "alias") || strstr(context, "anchor"))
		return NO_REFERENCES;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(problem, words[i].theirs) == 0)
			return words[i].ours;
	}
	return problem;
}

static int next_event(struct builder *b, yaml_event_t *ret_event)
{
	if (yaml_parser_parse(&b->parser, ret_event))
		return 0;
	if (b->parser.error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	return problem_report(b->problem, position_of(b->parser.problem_mark), "not YAML: %s",
			      explain_problem(&b->parser));
}

static int refuse_extras(struct builder *b, const yaml_event_t *event)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;
	struct position at = position_of(event->start_mark);

	switch (event->type) {
	case YAML_SCALAR_EVENT:
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
		break;
	case YAML_ALIAS_EVENT:
		return problem_report(b->problem, at, NO_REFERENCES);
	default:
		return problem_report(b->problem, at, "expected a value");
	}
	if (anchor)
		return problem_report(b->problem, at, NO_REFERENCES);
	if (tag)
		return problem_report(b->problem, at,
				      "tags (a '!' before a value) are not accepted");
	return 0;
}

static int build_scalar(const yaml_event_t *event, struct node *ret)
{
	struct str text = {.p = (const char *)event->data.scalar.value,
			   .n = event->data.scalar.length};
	bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	struct node node = {.kind = NODE_SCALAR, .at = position_of(event->start_mark)};
	char *copy;

	if (is_plain &&
	    (text.n == 0 || str_equal(text, STR("~")) || str_equal(text, STR("null")))) {
		node.kind = NODE_NULL;
		*ret = node;
		return 0;
	}

	copy = malloc(text.n + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	node.text = (struct str){.p = copy, .n = text.n};
	*ret = node;
	return 0;
}

static int append_child(struct node *parent, struct node *child)
{
	if (parent->n == parent->n_allocated) {
		size_t n = parent->n_allocated ? parent->n_allocated * 2 : 4;
		struct node *children = reallocarray(parent->children, n, sizeof(*children));

		if (!children)
			return -ENOMEM;
		parent->children = children;
		parent->n_allocated = n;
	}
	parent->children[parent->n++] = *child;
	*child = (struct node){0};
	return 0;
}

static int build_node(struct builder *b, const yaml_event_t *event, struct node *ret);

/*
 * What stands between a start event and its end; libyaml sees to it that a mapping's children come
 * in pairs.
 */
static int build_children(struct builder *b, yaml_event_type_t end, struct node *parent)
{
	for (;;) {
		_cleanup_(yaml_event_delete) yaml_event_t event = {0};
		_cleanup_(node_done) struct node child = {0};
		int r = next_event(b, &event);

		if (r)
			return r;
		if (event.type == end)
			return 0;
		r = build_node(b, &event, &child);
		if (r)
			return r;
		r = append_child(parent, &child);
		if (r)
			return r;
	}
}

static int build_node(struct builder *b, const yaml_event_t *event, struct node *ret)
{
	bool is_list = event->type == YAML_SEQUENCE_START_EVENT;
	_cleanup_(node_done) struct node node = {.kind = is_list ? NODE_LIST : NODE_MAPPING,
						 .at = position_of(event->start_mark)};
	int r = refuse_extras(b, event);

	if (r)
		return r;
	if (event->type == YAML_SCALAR_EVENT)
		return build_scalar(event, ret);
	if (b->depth == NODE_DEPTH_MAX)
		return problem_report(b->problem, node.at, "expected at most %d levels, got more",
				      NODE_DEPTH_MAX);

	b->depth++;
	r = build_children(b, is_list ? YAML_SEQUENCE_END_EVENT : YAML_MAPPING_END_EVENT, &node);
	b->depth--;
	if (r)
		return r;
	*ret = node;
	node = (struct node){0};
	return 0;
}

/* The root; an empty stream has none, and stays NODE_NULL. */
static int build_document(struct builder *b, struct node *root)
{
	bool has_root = false;

	for (;;) {
		_cleanup_(yaml_event_delete) yaml_event_t event = {0};
		int r = next_event(b, &event);

		if (r)
			return r;
		switch (event.type) {
		case YAML_STREAM_END_EVENT:
			return 0;
		case YAML_STREAM_START_EVENT:
		case YAML_DOCUMENT_END_EVENT:
			break;
		case YAML_DOCUMENT_START_EVENT:
			if (has_root)
				return problem_report(b->problem, position_of(event.start_mark),
						      "expected one document, got a second one");
			break;
		default:
			r = build_node(b, &event, root);
			if (r)
				return r;
			has_root = true;
		}
	}
}

int node_parse(struct str text, const struct problem *problem, struct node *ret_root)
{
	_cleanup_(node_done) struct node root = {.at = {.line = 1, .column = 1}};
	struct builder b = {.problem = problem};
	int r;

	if (!yaml_parser_initialize(&b.parser))
		return -ENOMEM;
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)text.p, text.n);

	r = build_document(&b, &root);
	yaml_parser_delete(&b.parser);
	if (r)
		return r;
	*ret_root = root;
	root = (struct node){0};
	return 0;
}
