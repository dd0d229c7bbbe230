/*
 * One daemon a runtime directory: whoever holds the lock owns everything in the directory. daemon.c
 * takes it before anything is loaded into the kernel, and releases it last.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/util.h"

#define LOCK_FILE   "lock"
#define LOCK_SOCKET "control.sock"

struct lock;

/*
 * Creates the directory if it is missing (mode 0755; its parent must be there), locks DIR/lock,
 * writes our pid into it, and removes a control socket that a dead daemon left.
 *
 * Returns 0; LOCK_HELD when a daemon runs there already, with its pid in 'ret_pid' (0: not known);
 * or a negative errno, -ENOTDIR when the directory is no directory.
 */
enum { LOCK_HELD = 1 };
int lock_new(const char *dir, struct lock **ret, pid_t *ret_pid);

/* Whether lock_new() found and removed the socket of a daemon that died. */
bool lock_has_removed_socket(const struct lock *lock);

/*
 * Removes the lock file, and the directory if lock_new() made it, here or in a daemon that has died
 * since, and it is empty. NULL is allowed.
 */
void lock_free(struct lock *lock);
DEFINE_CLEANUP(struct lock *, lock_free)
