/*
 * Fuzzer of probe/jvm_flags.c: a JVM's memory with changes, each a place (two bytes) and a byte. Whatever it
 * says, a bounded part of it is read.
 */
#include <assert.h>
#include <stdint.h>

#include "../jvm_image.h"
#include "probe/jvm_flags.h"

#define READ_MAX (64U << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image image;
	struct image_memory memory = {.bytes = (const uint8_t *)&image, .size = sizeof(image)};
	struct jvm_flags flags;

	image_make(&image);
	for (size_t i = 0; i + 3 <= size; i += 3)
		((uint8_t *)&image)[(data[i] << 8 | data[i + 1]) % sizeof(image)] = data[i + 2];
	jvm_flags_read(&(struct jvm_memory){.read = image_read, .userdata = &memory}, IMAGE_BASE,
		       &flags);
	assert(memory.read < READ_MAX);
	return 0;
}
