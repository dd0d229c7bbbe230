/*
 * The agent's hook tables, for tests/agent/rows. Without arguments: a line for each hook, "class oldest
 * newest number method descriptor". With a class's name and its file: the bits of the hooks that found
 * their method in it, in hexadecimal; 0 where nothing was changed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hooks.h"

static const struct hook_table *const tables[] = {&hooks_jdk,     &hooks_netty,    &hooks_kotlin,
						  &hooks_clients, &hooks_messages, &hooks_servers};

static void list(const struct hook_class *class)
{
	for (size_t i = 0; i < class->n_hooks; i++)
		printf("%s %s %s %zu %s %s\n", class->name, class->oldest, class->newest, i,
		       class->hooks[i].method, class->hooks[i].descriptor ?: "-");
}

static int find(const struct hook_class *class, const char *path)
{
	static uint8_t bytes[1 << 20];
	struct class_rewrite rewrite = {.bytes = bytes, .owner = "tsunagi/agent/Context"};
	uint8_t *changed = NULL;
	uint32_t found = 0;
	size_t size;
	FILE *file;
	int r;

	rewrite.hooks = class->hooks;
	rewrite.n_hooks = class->n_hooks;
	file = fopen(path, "re");
	if (!file)
		return -errno;
	rewrite.size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);

	r = class_rewrite(&rewrite, &changed, &size, &found);
	free(changed);
	if (r >= 0)
		printf("%x\n", r > 0 ? found : 0);
	return r;
}

int main(int argc, char **argv)
{
	const struct hook_class *class;

	if (argc == 3) {
		class = hooks_find(argv[1], strlen(argv[1]));
		return class && find(class, argv[2]) >= 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		for (size_t j = 0; j < tables[i]->n_classes; j++)
			list(&tables[i]->classes[j]);
	return EXIT_SUCCESS;
}
