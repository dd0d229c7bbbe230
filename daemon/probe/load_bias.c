/* Load biases; see load_bias.h. */
#include "probe/load_bias.h"

#include <elf.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/util.h"

#define ENTRIES_MAX 64   /* the kernel writes some twenty */
#define PAGE_BYTES  4096 /* the least; the bias is one of whole pages */

bool load_bias_find(uint32_t pid, uint64_t entry, uint64_t *ret_bias)
{
	Elf64_auxv_t vector[ENTRIES_MAX];
	char path[64];
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%u/auxv", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	n = fread(vector, sizeof(vector[0]), ARRAY_SIZE(vector), file);
	fclose(file);
	for (size_t i = 0; i < n && vector[i].a_type != AT_NULL; i++) {
		uint64_t bias = vector[i].a_un.a_val - entry;

		if (vector[i].a_type != AT_ENTRY)
			continue;
		if (bias % PAGE_BYTES != 0)
			return false; /* of another program */
		*ret_bias = bias;
		return true;
	}
	return false;
}
