/*
 * Takes processes in a thread of its own, several at once, for what may take longer than the daemon's
 * loop has (insert.c: the tables of a network are read once for all processes that wait).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

/* In that thread. 'is_cancelled' becomes true, atomically, when the taker is about to end. */
typedef void (*taker_fn)(void *userdata, const uint32_t *pids, size_t n, const bool *is_cancelled);

struct taker;

/* Returns 0 or a negative errno. */
int taker_new(taker_fn take, void *userdata, struct taker **ret);
/* Those that wait are forgotten, and no call of 'take' runs or comes any more. NULL is allowed. */
void taker_free(struct taker *t);
DEFINE_CLEANUP(struct taker *, taker_free)

/* Whether it will be taken: false where too many wait. */
bool taker_add(struct taker *t, uint32_t pid);
