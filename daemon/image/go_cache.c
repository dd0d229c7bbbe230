/* Programs by build id; see go_program.h. A list, most recently asked for first. */
#include <errno.h>

#include "image/go_identity.h"
#include "image/go_read.h"

struct entry {
	struct entry *next;
	struct go_program *program;
};

struct go_cache {
	size_t n, max;
	struct entry *first;
	struct go_cache_stats stats;
};

static void entry_free(struct entry *e)
{
	if (e)
		go_program_free(e->program);
	free(e);
}

int go_cache_new(size_t programs_max, struct go_cache **ret_cache)
{
	struct go_cache *cache = calloc(1, sizeof(*cache));

	assert(programs_max > 0);
	if (!cache)
		return -ENOMEM;
	cache->max = programs_max;
	*ret_cache = cache;
	return 0;
}

void go_cache_free(struct go_cache *cache)
{
	while (cache && cache->first) {
		struct entry *e = cache->first;

		cache->first = e->next;
		entry_free(e);
	}
	free(cache);
}

const struct go_cache_stats *go_cache_stats(const struct go_cache *cache)
{
	return &cache->stats;
}

/* Takes the entry of a build id out of the list; NULL: there is none. */
static struct entry *take_entry(struct go_cache *cache, const char *build_id)
{
	for (struct entry **link = &cache->first; *link; link = &(*link)->next) {
		struct entry *e = *link;

		if (strcmp(e->program->build_id, build_id) != 0)
			continue;
		*link = e->next;
		cache->n--;
		return e;
	}
	return NULL;
}

static void put_entry(struct go_cache *cache, struct entry *e)
{
	struct entry **link = &cache->first;

	if (cache->n == cache->max) {
		while ((*link)->next)
			link = &(*link)->next;
		entry_free(*link);
		*link = NULL;
		cache->n--;
		cache->stats.evictions++;
	}
	e->next = cache->first;
	cache->first = e;
	cache->n++;
}

/* 1: the file's program is in the cache, and now its first; 0: it is not; or a negative errno. */
static int find(struct go_cache *cache, struct go_file *file)
{
	char build_id[GO_BUILD_ID_MAX];
	struct entry *e;
	int r;

	r = go_identity_read(file, build_id);
	if (r)
		return r;
	e = take_entry(cache, build_id);
	if (!e)
		return 0;
	r = go_read_check(file, e->program);
	if (r > 0) {
		cache->stats.hits++;
		put_entry(cache, e);
		return 1;
	}
	entry_free(e);
	if (r == 0)
		cache->stats.mismatches++;
	return r;
}

int go_cache_get(struct go_cache *cache, int fd, const struct go_program **ret_program)
{
	_cleanup_(go_file_freep) struct go_file *file = NULL;
	struct elf_image image;
	struct entry *e;
	int r;

	r = elf_image_open(fd, &image);
	if (r)
		return r;
	r = go_file_new(&image, &file);
	if (r)
		return r;
	r = find(cache, file);
	if (r == 0) {
		e = calloc(1, sizeof(*e));
		if (!e)
			return -ENOMEM;
		r = go_read(file, NULL, &e->program);
		if (r) {
			entry_free(e);
			return r;
		}
		cache->stats.reads++;
		put_entry(cache, e);
	} else if (r < 0) {
		return r;
	}
	*ret_program = cache->first->program;
	return 0;
}
