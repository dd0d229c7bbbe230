/* image_probe() on any file; the bytes go through a memfd because the probe reads a descriptor. */
#include <stdint.h>
#include <sys/mman.h>

#include "base/util.h"
#include "image/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(closep) int fd = memfd_create("image", MFD_CLOEXEC);
	struct image_facts facts;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	if (image_probe(fd, &facts) == 0) {
		assert(memchr(facts.go_version, '\0', sizeof(facts.go_version)));
		assert(memchr(facts.go_module, '\0', sizeof(facts.go_module)));
		assert(facts.is_go || !facts.go_version[0]);
	}
	return 0;
}
