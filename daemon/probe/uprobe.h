/*
 * Probes at instructions of an executable file, in every process that runs it, for probe/ alone:
 * one link for all of a program's places where the kernel has such links (uprobe_multi, Linux 6.6;
 * they also need fewer capabilities), else a perf event for each.
 *
 * The kernel writes a breakpoint into the memory of the processes, never into the file, and takes
 * it out when the link is closed, at the latest with the end of the daemon.
 */
#pragma once

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "probe/file_lease.h"

/* Programs must be loaded for the way they will be attached. */
enum uprobe_way { UPROBE_NONE, UPROBE_PERF, UPROBE_MULTI };

/* Finds out by trying; tells the program so, before it is loaded. */
enum uprobe_way uprobe_find_way(void);
void uprobe_prepare(struct bpf_program *program, enum uprobe_way way);

struct uprobe;

struct uprobe_options {
	struct bpf_program *program; /* loaded, kind "uprobe" */
	enum uprobe_way way;
	int fd;                   /* of the file, which may have been deleted */
	struct file_lease *lease; /* is kept until the probe is gone; NULL: nobody writes to it */
	const uint64_t *offsets;  /* in the file */
	size_t n_offsets;
};

/* All of the places or none. Returns 0 or a negative errno. */
int uprobe_attach(const struct uprobe_options *options, struct uprobe **ret);
void uprobe_detach(struct uprobe *u); /* NULL is allowed */
DEFINE_CLEANUP(struct uprobe *, uprobe_detach)

/* Links of the kernel that it holds. */
size_t uprobe_links(const struct uprobe *u);
