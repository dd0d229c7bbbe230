/*
 * Which processes are traced: selectors of the config and the built-in exclusions against one
 * process. Used by look.c (selection) and describe.c (services). Pure but for the path of a `netns`
 * key, which is looked up.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "config/config.h"
#include "discover/proc.h"

/* A process as selectors see it: views, valid as long as what they were cut from. */
struct subject {
	uint32_t pid;
	enum language language;
	const char *exe; /* NULL: unreadable */
	const char
		*command; /* the whole command line, arguments joined by blanks; NULL: unreadable */
	const char *user; /* name, or number as text */
	uint32_t uid;
	const char *unit;      /* NULL: none */
	const char *container; /* NULL: none */
	struct proc_namespace netns;
	const uint16_t *ports; /* it is known to listen on */
	size_t n_ports;
};

bool selector_matches(const struct selector *selector, const struct subject *subject);

/*
 * Whether any selector of the config has a port: then a process must be judged again when it
 * listens.
 */
bool select_uses_ports(const struct config *config);

/* True: to be traced. 'ret_why' gets a sentence in any case; -ENOMEM is the only error. */
int select_decide(const struct config *config, const struct subject *subject, bool *ret_selected,
		  char **ret_why);

/* The configured name of a process, from the first item of `services:` that matches; NULL: none. */
const char *select_service_name(const struct config *config, const struct subject *subject);

/* Whether its requests are to carry 'traceparent' on: by the first item that says so, else for all. */
bool select_propagates(const struct config *config, const struct subject *subject);

/* Whether an agent may be in it, if it is a JVM: likewise. */
bool select_takes_agent(const struct config *config, const struct subject *subject);
