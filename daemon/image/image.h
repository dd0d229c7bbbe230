/*
 * What an executable file is: an ELF image of which width, linked dynamically or not, and whether
 * the Go runtime is in it. Used by discover, which keeps the answers. The file is a stranger's and
 * is not trusted: it is only read (pread, never mapped, so that truncation cannot kill us), at most
 * some megabytes of it, and nothing in it makes the probe crash, block or allocate.
 */
#pragma once

#include <stdbool.h>

#define IMAGE_VERSION_MAX 32
#define IMAGE_MODULE_MAX  256

struct image_facts {
	bool is_64bit;
	bool is_dynamic; /* has a program interpreter: libraries can be mapped into it */
	bool is_go;
	char go_version[IMAGE_VERSION_MAX]; /* "go1.26.8"; empty: unknown */
	char go_module[IMAGE_MODULE_MAX]; /* module path, else the main package's; empty: unknown */
};

/*
 * 'fd' is open for reading (open it with O_NONBLOCK: it may turn out to be a FIFO) and stays the
 * caller's; its file position is not used. Returns 0, one of the outcomes, or a negative errno of
 * fstat or pread.
 */
enum {
	IMAGE_NOT_REGULAR = 1, /* no regular file */
	IMAGE_NOT_ELF, /* no ELF file for a little-endian machine, or cut off within its header */
};
int image_probe(int fd, struct image_facts *ret_facts);
