/*
 * Takes uprobes away in a thread of its own, for go_probe.c: the kernel waits for every program that
 * may still run, some 40 ms a probe, and whoever reads records must not wait that long when many
 * processes end at a time.
 */
#pragma once

#include "base/util.h"
#include "probe/uprobe.h"

struct detacher;

/* Returns 0 or a negative errno. */
int detacher_new(struct detacher **ret);

/* Waits until the last one is gone. NULL is allowed. */
void detacher_free(struct detacher *d);
DEFINE_CLEANUP(struct detacher *, detacher_free)

/* Takes the uprobe over, and returns at once unless too many wait already. NULL is allowed. */
void detacher_take(struct detacher *d, struct uprobe *u);
