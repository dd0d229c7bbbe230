/*
 * go_program_read() on any file, and the cache's check of the same bytes: whatever a file says, a
 * site lies in it, a reason stands where there is none, and a program that was just read is known
 * again.
 */
#include <stdint.h>
#include <sys/mman.h>

#include "base/util.h"
#include "image/go_program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_site(const struct go_site *site, size_t size)
{
	assert((site->class == GO_SITE_NONE) == (site->reason != NULL));
	assert(site->class == GO_SITE_NONE || site->offset < size);
}

static void check_function(const struct go_function_facts *f, size_t size)
{
	check_site(&f->site, size);
	assert(f->n_returns <= GO_RETURNS_MAX);
	assert((f->n_returns == 0) == (f->no_returns_reason != NULL));
	for (unsigned int i = 0; i < f->n_returns; i++)
		assert(f->returns[i] >= f->offset && f->returns[i] - f->offset < f->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(closep) int fd = memfd_create("program", MFD_CLOEXEC);
	_cleanup_(go_program_freep) struct go_program *program = NULL;
	_cleanup_(go_cache_freep) struct go_cache *cache = NULL;
	const struct go_program *again;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	if (go_program_read(fd, NULL, &program) != 0)
		return 0;
	for (size_t i = 0; i < _GO_FUNCTION_MAX; i++)
		check_function(&program->functions[i], size);
	check_site(&program->newproc_runqput, size);
	check_site(&program->newproc_begun, size);
	check_site(&program->request_read, size);
	for (size_t i = 0; i < _GO_FIELD_MAX; i++)
		assert(program->offsets[i].bytes < 1 << 20);
	assert(memchr(program->version, '\0', sizeof(program->version)));
	assert(memchr(program->build_id, '\0', sizeof(program->build_id)));

	if (go_cache_new(1, &cache) < 0)
		return 0;
	for (int i = 0; i < 2; i++) {
		assert(go_cache_get(cache, fd, &again) == 0);
		for (size_t k = 0; k < _GO_FUNCTION_MAX; k++)
			assert(again->functions[k].site.offset ==
			       program->functions[k].site.offset);
	}
	assert(go_cache_stats(cache)->hits == 1);
	return 0;
}
