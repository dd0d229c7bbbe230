/*
 * The table of keys: everything that can stand in a configuration file. It drives the parser
 * (apply.c), the defaults, the words of every complaint, and the reference file (reference.c).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* Which struct a key's value goes into, and so where in the file the key may stand. */
enum key_scope {
	KEY_SCOPE_FILE, /* struct config; nested keys have their section in front: "export.timeout"
			 */
	KEY_SCOPE_SELECTOR, /* struct selector */
	KEY_SCOPE_SERVICE,  /* struct config_service */
};

enum key_type {
	KEY_SECTION,   /* a mapping of the keys that have this one in front */
	KEY_URL,       /* char *; may be null */
	KEY_TEXT,      /* char * */
	KEY_USER,      /* the same; struct selector only */
	KEY_PATTERN,   /* char *, for fnmatch(3) */
	KEY_DURATION,  /* uint32_t, milliseconds */
	KEY_COUNT,     /* uint32_t */
	KEY_SIZE,      /* uint32_t, bytes */
	KEY_SIZE_POW2, /* the same, a power of two */
	KEY_CHOICE,    /* int */
	KEY_PORTS,     /* two uint16_t, first and last */
	KEY_LANGUAGES, /* uint32_t, a bit for each enum language; 0 is any */
	KEY_SELECTOR,  /* struct selector */
	KEY_SELECTORS, /* struct selector_list */
	KEY_SERVICES,  /* struct config_service * and size_t; struct config only */
};

struct key_choice {
	const char *name;
	int value;
};

struct key {
	const char *path;
	const char
		*value; /* the default as it would be written in a file; NULL: none, or a section */
	const char *example;              /* a value worth copying; NULL: the default is one */
	const char *help;                 /* one or more sentences, for the reference */
	const struct key_choice *choices; /* of KEY_CHOICE and KEY_LANGUAGES */
	size_t n_choices;
	uint64_t min, max; /* of numbers, both allowed */
	size_t offset;     /* in the struct of its scope */
	enum key_scope scope;
	enum key_type type;
};

#define KEYS_MAX 64 /* a mapping notes in a uint64_t which keys it has had */

/* All rows, in the order of the reference; sections stand before their keys. */
const struct key *keys_table(size_t *ret_n);

/*
 * The row of a key written in a mapping whose keys have 'prefix' in front ("" or "export."), or
 * NULL.
 */
const struct key *keys_find(enum key_scope scope, struct str prefix, struct str name);

/* Whether the row is a direct child there; and the part of its path that is written there. */
bool keys_is_child(const struct key *key, enum key_scope scope, struct str prefix);
const char *keys_leaf(const struct key *key);

/* What is expected there, as in "a duration from 10ms to 1m"; and with ", such as 1s" after it. */
struct key_expectation {
	char text[192];
};
struct key_expectation keys_kind(const struct key *key);
struct key_expectation keys_expectation(const struct key *key);

/* The names of the keys expected in a mapping, separated by commas. */
struct key_expectation keys_expected(enum key_scope scope, struct str prefix);

/*
 * Where an unknown key probably belongs or what it probably was meant to be: "; did you mean
 * 'timeout'?". Empty when nothing is near.
 */
struct key_expectation keys_hint(enum key_scope scope, struct str prefix, struct str name);
