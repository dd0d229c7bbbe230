/* Executables that were looked into; see images.h. */
#include "discover/images.h"

#include <errno.h>
#include <fcntl.h>

#define IMAGES_MAX 128

/*
 * The programs that a host runs again and again are few: a linear search of the keys takes less
 * than one read.
 */
struct cached_image {
	uint64_t device, inode, size, mtime_ns;
	uint64_t used; /* 0: free */
	int outcome;   /* 0 or IMAGES_UNKNOWN */
	struct image_facts facts;
};

struct image_cache {
	uint64_t clock;
	struct cached_image images[IMAGES_MAX];
};

int image_cache_new(struct image_cache **ret)
{
	struct image_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return -ENOMEM;
	*ret = cache;
	return 0;
}

void image_cache_free(struct image_cache *cache)
{
	free(cache);
}

static bool is_same(const struct cached_image *image, const struct proc_exe *exe)
{
	return image->used && image->device == exe->device && image->inode == exe->inode &&
	       image->size == exe->size && image->mtime_ns == exe->mtime_ns;
}

/* The entry of this file, else the one to be replaced. */
static struct cached_image *find(struct image_cache *cache, const struct proc_exe *exe)
{
	struct cached_image *oldest = &cache->images[0];

	for (size_t i = 0; i < IMAGES_MAX; i++) {
		struct cached_image *image = &cache->images[i];

		if (is_same(image, exe))
			return image;
		if (image->used < oldest->used)
			oldest = image;
	}
	return oldest;
}

/* Opens and reads the file: 0, IMAGES_UNKNOWN, or what keeps us from knowing. */
static int probe(int dir, const struct proc_exe *exe, struct image_facts *ret)
{
	_cleanup_(closep) int fd = -1;
	int r;

	if (proc_mount_is_fuse(dir, exe->mount_id))
		return IMAGES_FUSE;
	fd = openat(dir, "exe", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		r = proc_outcome(errno);
		return r == PROC_GONE ? IMAGES_GONE : r == PROC_DENIED ? IMAGES_DENIED : r;
	}
	r = image_probe(fd, ret);
	return r > 0 ? IMAGES_UNKNOWN : r;
}

int image_cache_look(struct image_cache *cache, int dir, const struct proc_exe *exe,
		     const struct image_facts **ret_facts)
{
	struct cached_image *image = find(cache, exe);
	int r;

	if (!is_same(image, exe)) {
		struct image_facts facts = {0};

		r = probe(dir, exe, &facts);
		if (r < 0 || (r > 0 && r != IMAGES_UNKNOWN))
			return r;
		*image = (struct cached_image){
			.device = exe->device,
			.inode = exe->inode,
			.size = exe->size,
			.mtime_ns = exe->mtime_ns,
			.outcome = r,
			.facts = facts,
		};
	}
	image->used = ++cache->clock;
	if (image->outcome)
		return image->outcome;
	*ret_facts = &image->facts;
	return 0;
}
