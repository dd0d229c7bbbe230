/*
 * Nobody writes to a file while there are probes in it: a probe is in the file's pages, whoever
 * executes them, and where other code has been written there the kernel still executes the
 * instruction that it found once. A lease (fcntl(2), F_SETLEASE) makes whoever opens the file for
 * writing wait until the lease is gone, at most /proc/sys/fs/lease-break-time; its holder asks now
 * and then whether somebody waits. A file that is executed cannot be opened for writing in the first
 * place (ETXTBSY; not so on Linux 6.11): what a lease is for is the time from the end of the last
 * process to that of the probes.
 *
 * For daemon's go_executable.c, and uprobe.c, whose probes keep the lease until they are gone.
 */
#pragma once

#include <stdbool.h>

#include "base/util.h"

struct file_lease;

/*
 * Of the file that 'fd' was opened for reading from, which stays open, and so does its mount. Returns
 * 0 or a negative errno: -EAGAIN, somebody has it open for writing; others, see
 * file_lease_why_not().
 */
int file_lease_new(int fd, struct file_lease **ret);

/* Shared by threads. The file is free when the last one lets go of it. NULL is allowed. */
struct file_lease *file_lease_ref(struct file_lease *lease);
void file_lease_unref(struct file_lease *lease);
DEFINE_CLEANUP(struct file_lease *, file_lease_unref)

/* False: somebody waits for the file, and has not written to it as long as the lease is there. */
bool file_lease_is_whole(const struct file_lease *lease);

/* A sentence for the user that says why a file has no probes, of an error but -EAGAIN. */
const char *file_lease_why_not(int error);
