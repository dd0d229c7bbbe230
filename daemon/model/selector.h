/*
 * One item of discover.include, discover.exclude or services[].match: the keys of an item are
 * ANDed, items of a list ORed. A NULL string or a zero port is a key that was not given; an item
 * with none, as "language: any" is, matches all.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/process.h"

struct selector {
	char *exe;     /* fnmatch(3) pattern on the path of the executable; without '/': on its last
			  element */
	char *command; /* fnmatch pattern on the whole command line */
	char *user;    /* user name or numeric uid */
	char *unit;    /* fnmatch pattern on the systemd unit */
	char *container; /* fnmatch pattern on the container id; a prefix of 12 or more hex digits
			    will do */
	char *netns;     /* path of a network namespace, e.g. /run/netns/a */
	uint16_t port_first, port_last; /* a port it listens on; 0: not given */
	uint32_t languages;             /* bit 1 << enum language; 0: not given, which is "any" */
	unsigned int line;              /* in the config file, 0 for built-in items */
	unsigned int user_line, user_column; /* where 'user' stands there */
};

struct selector_list {
	struct selector *items;
	size_t n;
};

/* Frees the strings, not the selector. */
void selector_done(struct selector *s);

/* Frees the strings and the array. */
void selector_list_done(struct selector_list *list);
