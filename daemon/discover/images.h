/*
 * What is known of executables that were looked into, so that the hundredth process of a program
 * costs one comparison. Keyed by device, inode, size and time of change; the least recently used
 * makes room. Used by look.c.
 */
#pragma once

#include "discover/proc.h"
#include "image/image.h"

struct image_cache;

int image_cache_new(struct image_cache **ret);
void image_cache_free(struct image_cache *cache); /* NULL is allowed */
DEFINE_CLEANUP(struct image_cache *, image_cache_free)

/*
 * The facts of the executable 'exe' of the process whose directory is 'dir'. Returns 0, one of the
 * outcomes, or a negative errno. The facts stay valid until the next call.
 */
enum {
	IMAGES_GONE = 1, /* the process has ended */
	IMAGES_DENIED,   /* we may not read the file */
	IMAGES_FUSE,     /* it is on a FUSE file system: reading could block for ever */
	IMAGES_UNKNOWN,  /* not an ELF file that we understand */
};
int image_cache_look(struct image_cache *cache, int dir, const struct proc_exe *exe,
		     const struct image_facts **ret_facts);
