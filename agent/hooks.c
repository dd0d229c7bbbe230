/* Which class is hooked: asked for each class that the JVM loads, so by a hash of its name. */
#include <string.h>

#include "hooks.h"

/* Each is in a file of its own, and is done without where that is not built. */
extern const struct hook_table hooks_netty __attribute__((weak));
extern const struct hook_table hooks_kotlin __attribute__((weak));
extern const struct hook_table hooks_clients __attribute__((weak));
extern const struct hook_table hooks_messages __attribute__((weak));
extern const struct hook_table hooks_servers __attribute__((weak));

#define PLACES 512 /* at least twice the classes, and a power of two */

static const struct hook_class *places[PLACES];

static uint32_t name_hash(const char *name, size_t length)
{
	uint32_t hash = 2166136261U; /* FNV-1a */

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)name[i]) * 16777619U;
	return hash;
}

static void table_add(const struct hook_table *table)
{
	for (size_t i = 0; i < table->n_classes && i < PLACES / 4; i++) {
		const struct hook_class *class = &table->classes[i];
		uint32_t place = name_hash(class->name, strlen(class->name)) % PLACES;

		while (places[place])
			place = (place + 1) % PLACES;
		places[place] = class;
	}
}

__attribute__((constructor)) static void hooks_index(void)
{
	table_add(&hooks_jdk);
	if (&hooks_netty)
		table_add(&hooks_netty);
	if (&hooks_kotlin)
		table_add(&hooks_kotlin);
	if (&hooks_clients)
		table_add(&hooks_clients);
	if (&hooks_messages)
		table_add(&hooks_messages);
	if (&hooks_servers)
		table_add(&hooks_servers);
}

const struct hook_class *hooks_find(const char *name, size_t length)
{
	uint32_t place = name_hash(name, length) % PLACES;

	for (; places[place]; place = (place + 1) % PLACES) {
		const char *known = places[place]->name;

		if (!strncmp(known, name, length) && !known[length])
			return places[place];
	}
	return NULL;
}
