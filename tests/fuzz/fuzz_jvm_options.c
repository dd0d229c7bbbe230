/* Fuzzer of probe/jvm_options.c and of replies: views stay inside the input, whatever it is. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "probe/jvm_attach.h"
#include "probe/jvm_options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_perfdata(const char *bytes, size_t size, const char *name)
{
	struct str found = jvm_perfdata_find(bytes, size, name);

	if (found.p)
		assert(found.p > bytes && found.p + found.n <= bytes + size &&
		       !memchr(found.p, '\0', found.n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jvm_options options = {0};
	struct jvm_attach_result result;
	char *copy = malloc(size ? size : 1);

	if (!copy)
		return 0;
	if (size)
		memcpy(copy, data, size);
	jvm_options_read((struct str){.p = copy, .n = size}, &options);
	check_perfdata(copy, size, "sun.rt.jvmCapabilities");
	check_perfdata(copy, size, "java.rt.vmArgs");
	jvm_attach_judge(copy, size, &result);
	assert(result.outcome < _JVM_ATTACH_OUTCOME_MAX);
	for (const char *c = result.reason; *c; c++)
		assert(*c >= ' ' && *c <= '~');
	free(copy);
	return 0;
}
