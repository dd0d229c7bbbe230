/*
 * Reading /proc/PID: one process at a time, through a descriptor of its directory, so that a pid
 * that is given to somebody else in mid-read answers "gone" instead of mixing two processes. Every
 * read has a limit. Used by everything in discover; does not log.
 *
 * All functions that take 'dir' return 0, PROC_GONE, PROC_DENIED or a negative errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/util.h"

enum {
	PROC_GONE = 1, /* the process has ended (or never was) */
	PROC_DENIED,   /* we may not read this */
};

/* errno as one of the above. */
int proc_outcome(int error);

int proc_open(uint32_t pid, int *ret_dir);

/* At most 'size' - 1 bytes of a file, terminated. */
int proc_read(int dir, const char *name, char *buffer, size_t size, size_t *ret_n);

/*
 * At most 'max' bytes in memory of its own, terminated; the caller frees it. A longer file is cut
 * and counted.
 */
int proc_read_whole(int dir, const char *name, size_t max, char **ret, size_t *ret_n);

/*
 * Calls 'line' for each line of a file (without its end) until it returns true or 'max' bytes are
 * read. A line of more than 16 KiB is left out.
 */
typedef bool (*proc_line_fn)(struct str line, void *userdata);
int proc_each_line(int dir, const char *name, size_t max, proc_line_fn line, void *userdata);

struct proc_stat {
	uint64_t start_ns; /* CLOCK_BOOTTIME, in units of the kernel's clock tick */
	uint32_t parent_pid;
	bool is_kernel_thread;
	bool is_zombie;
};
int proc_stat(int dir, struct proc_stat *ret);

/* A start time as /proc would show it: in whole clock ticks. */
uint64_t proc_tick_floor(uint64_t start_ns);

int proc_uid(int dir, uint32_t *ret_uid); /* the effective one */

/*
 * The executable: identity without opening it, which on a network or FUSE file system could block.
 */
struct proc_exe {
	char *path; /* as the link says, without " (deleted)" if the file is; the caller frees it */
	bool is_deleted;
	uint64_t device, inode, size, mtime_ns, mount_id;
};
int proc_exe(int dir, struct proc_exe *ret);

/* Whether the mount is a FUSE file system, where a stopped server would block us for ever. */
bool proc_mount_is_fuse(int dir, uint64_t mount_id);

/* Device and inode of a namespace link, e.g. "ns/net". */
struct proc_namespace {
	uint64_t device, inode;
};
int proc_namespace(int dir, const char *name, struct proc_namespace *ret);
