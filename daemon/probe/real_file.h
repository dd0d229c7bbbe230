/*
 * Which file is behind a file: that of a layer behind one of an overlay, else itself. Containers of
 * one image have a file system each, and the same files behind them. For daemon's go_units.c, whose
 * probes sit in the file behind.
 *
 * The file is mapped here for a moment, and the kernel side says what that mapping is of
 * (bpf/mapped.bpf.c); the processes that run it are not touched. Needs Linux 6.1.
 */
#pragma once

#include <stdint.h>

#include "base/util.h"
#include "probe/probe.h"

/* Two that are equal are one file, as long as that file is open, mapped or probed. */
struct real_file {
	uint64_t address, number;
	uint32_t device, generation;
};

static inline bool real_file_equal(const struct real_file *a, const struct real_file *b)
{
	return a->address == b->address && a->number == b->number && a->device == b->device &&
	       a->generation == b->generation;
}

struct real_file_finder;

/* Returns 0, REAL_FILE_REFUSED with the reason, or a negative errno. */
enum { REAL_FILE_REFUSED = 1 };
int real_file_finder_new(struct real_file_finder **ret, struct probe_refusal *ret_refusal);
void real_file_finder_free(struct real_file_finder *f); /* NULL is allowed */
DEFINE_CLEANUP(struct real_file_finder *, real_file_finder_free)

/*
 * 'fd': open for reading, and since the file was last copied to an upper layer. Returns 0 or a
 * negative errno: -ENODEV, its file system maps nothing.
 */
int real_file_find(struct real_file_finder *f, int fd, struct real_file *ret);
