/*
 * A resource: who produced spans, as OTLP has it. Made by discover for each selected process, then
 * constant: spans hold references to it, also on the exporter's thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/util.h"

/*
 * Strings are terminated and owned by the resource. An attribute with 'text' NULL is the integer
 * 'number'.
 */
struct resource_attribute {
	char *key;
	char *text;
	int64_t number;
};

#define RESOURCE_ATTRIBUTES_MAX 64

struct resource {
	unsigned int refs; /* atomic */
	uint64_t spans;    /* made for it so far: the daemon's count, main thread only */
	uint32_t pid;
	const char *service_name; /* the text of its "service.name" attribute, never NULL once it is
				     set */
	size_t n_attributes;
	struct resource_attribute attributes[RESOURCE_ATTRIBUTES_MAX];
};

/* Empty, with one reference. Returns 0 or -ENOMEM. */
int resource_new(uint32_t pid, struct resource **ret);

/*
 * Sets or replaces an attribute; "service.name" also sets 'service_name'. Only before the resource
 * is shared. Returns 0, -ENOMEM, or -E2BIG when RESOURCE_ATTRIBUTES_MAX are there already.
 */
int resource_set(struct resource *r, const char *key, struct str text);
int resource_set_number(struct resource *r, const char *key, int64_t number);

/* The attribute, or NULL. */
const struct resource_attribute *resource_get(const struct resource *r, const char *key);

struct resource *resource_ref(struct resource *r);
void resource_unref(struct resource *r); /* NULL is allowed */
DEFINE_CLEANUP(struct resource *, resource_unref)
