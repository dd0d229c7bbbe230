/*
 * A YAML document as a tree of nodes that know their place in the file. Built once by config.c,
 * read by apply.c, freed. Only the plain part of YAML is accepted: one document, no anchors,
 * aliases or tags, NODE_DEPTH_MAX levels; so the tree is never larger than the text it came from.
 */
#pragma once

#include "base/str.h"
#include "config/problem.h"

#define NODE_DEPTH_MAX 16

enum node_kind {
	NODE_NULL, /* nothing, or '~', or 'null', not quoted */
	NODE_SCALAR,
	NODE_LIST,
	NODE_MAPPING,
};

struct node {
	enum node_kind kind;
	struct position at;
	struct str text; /* of a scalar; owned */
	size_t n;        /* children: items of a list; key, value, key, value of a mapping */
	size_t n_allocated;
	struct node *children; /* owned */
};

/*
 * Parses a text that text_check() accepted. Returns 0, CONFIG_INVALID with the problem reported, or
 * -ENOMEM.
 */
int node_parse(struct str text, const struct problem *problem, struct node *ret_root);

/* Frees what the node owns, not the node. */
void node_done(struct node *node);
