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

/* Around each call of an interface's method that takes nothing; likewise with entry and exit. */
static const struct class_site calls = {
	.descriptor = "()V",
	.before = {.method = "see", .descriptor = "(Ljava/lang/Object;)V"},
	.before_in_loop = {.method = "seeOften", .descriptor = "(Ljava/lang/Object;)V"},
	.after = {.method = "leave", .descriptor = "()V"},
};
static const struct class_site around_calls = {
	.method = "run",
	.descriptor = "()V",
	.before = {.method = "see", .descriptor = "(Ljava/lang/Object;)V"},
	.before_in_loop = {.method = "seeOften", .descriptor = "(Ljava/lang/Object;)V"},
	.after = {.method = "leave", .descriptor = "()V"},
	.enter = {.method = "enter", .descriptor = "()V"},
	.leave = {.method = "leave", .descriptor = "()V"},
	.caught = {.method = "leave", .descriptor = "()V"},
};

static const struct class_reference run = {"java/lang/Runnable", "run", "()V"};

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
	{.method = "exec*",
	 .descriptor = "(L*",
	 .entry = {{.method = "see", .descriptor = "(Ljava/lang/Object;)V", .loads = "a1"}}},
};

static void rewrite(const uint8_t *data, size_t size, bool is_for_all)
{
	struct class_rewrite w = {
		.bytes = data,
		.size = size,
		.hooks = is_for_all ? &every : some,
		.n_hooks = is_for_all ? 1 : sizeof(some) / sizeof(*some),
		.site = is_for_all ? &calls : &around_calls,
		.owner = "a/B",
		.is_for_all = is_for_all,
	};
	uint8_t *once = NULL, *twice = NULL;
	size_t once_size = 0, twice_size = 0;
	uint32_t found = 0;
	int r = class_rewrite(&w, &once, &once_size, &found);

	if (r <= 0)
		return;
	assert(once_size > size);
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
	const struct class_constants constants = class_constants(data, size);
	const struct class_rewrite asked = {.bytes = data,
					    .size = size,
					    .hooks = some,
					    .n_hooks = sizeof(some) / sizeof(*some)};

	class_mentions(&constants, "(Ljava/lang/Runnable;");
	class_calls(&constants, &run);
	class_declares(&asked);
	rewrite(data, size, true);
	rewrite(data, size, false);
	return 0;
}
