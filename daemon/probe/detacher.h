/*
 * Takes uprobes away in threads of its own, for go_probe.c: the kernel waits for every program that
 * may still run, some 40 ms a link, and whoever reads records must not wait that long when many
 * processes end at a time. Threads that wait together wait for the same moment, so many links take
 * hardly longer than one. There are none while there is nothing to take away.
 */
#pragma once

#include "base/util.h"
#include "probe/uprobe.h"

struct detacher;

/* Returns 0 or -ENOMEM. */
int detacher_new(struct detacher **ret);

/* Waits until the last one is gone. NULL is allowed. */
void detacher_free(struct detacher *d);
DEFINE_CLEANUP(struct detacher *, detacher_free)

/* Takes the uprobe over, and returns at once unless too many wait already. NULL is allowed. */
void detacher_take(struct detacher *d, struct uprobe *u);
