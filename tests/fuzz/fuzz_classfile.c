/* Class files that are rewritten: whatever they hold, and what comes out can be read again. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "classfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct class_hook every = {
	.entry = {{.method = "enter", .descriptor = "()V"}},
	.exit = {.method = "leave", .descriptor = "()V"},
	.is_finally = true,
};

/* Parameters and results as a method may have them. */
static const struct class_hook some[] = {
	{.method = "put",
	 .entry = {{.method = "see", .descriptor = "(Ljava/lang/Object;)V", .loads = "a0"}},
	 .exit = {.method = "see", .descriptor = "(Ljava/lang/Object;)V", .loads = "a0"}},
	{.method = "of", .exit = {.method = "change", .descriptor = "(J)J", .loads = "r"}},
	{.method = "mount",
	 .entry = {{.method = "change", .descriptor = "(J)J", .loads = "l0", .store = "l0"}}},
	{.method = "ofThread",
	 .exit = {.method = "same",
		  .descriptor = "(Ljava/lang/Object;)Ljava/lang/Object;",
		  .loads = "r"}},
};

static void rewrite(const uint8_t *data, size_t size, bool is_for_all)
{
	struct class_rewrite w = {
		.bytes = data,
		.size = size,
		.hooks = is_for_all ? &every : some,
		.n_hooks = is_for_all ? 1 : sizeof(some) / sizeof(*some),
		.owner = "a/B",
		.is_for_all = is_for_all,
	};
	uint8_t *once = NULL, *twice = NULL;
	size_t once_size = 0, twice_size = 0;
	uint32_t found = 0;
	int r = class_rewrite(&w, &once, &once_size, &found);

	if (r <= 0)
		return;
	assert(found && once_size > size);
	w.bytes = once;
	w.size = once_size;
	r = class_rewrite(&w, &twice, &twice_size, &found);
	assert(r != -EBADMSG);
	free(once);
	if (r > 0)
		free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	rewrite(data, size, true);
	rewrite(data, size, false);
	return 0;
}
