/*
 * An executable file of Go with the probes in it, and the processes that run it, for go_units.c.
 *
 * Probes are the file's, whoever runs it and through whatever mount: containers of one image are
 * many mounts of one file. A link of the kernel is made through a name, though, and holds the mount
 * that the name led through, so it may not outlive the processes of that mount. The links are
 * therefore made through the mount of one process, and when the last process of that mount has
 * ended they are made through another's, and then the old ones are taken away
 * (docs/decisions/carriers.md).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/table.h"
#include "probe/file_lease.h"
#include "probe/go_probe.h"
#include "probe/real_file.h"

#define GO_EXECUTABLE_CODE_BYTES 16 /* at each site */

/* A file as a process shows it. */
struct go_shown {
	uint64_t device, inode;
	uint64_t
		changed_ns; /* becomes another one when an overlay copies the file to its upper layer */
	uint64_t mount;     /* 0: the kernel does not tell (before Linux 5.8) */
	uint64_t bytes, written_ns; /* its size, and when it was last written to */
};

/* A process. */
struct go_user {
	struct table_node node; /* by proc_id */
	uint32_t proc_id, pid;
	uint64_t bias;   /* what to add to the addresses of its file */
	bool lacks_bias; /* that is not known */
	struct go_shown shown;
	struct go_view *view; /* go_units.c */
	struct go_executable *executable;
	struct go_user *older, *newer; /* of that */
};

struct go_executable {
	struct table_node node;          /* by 'real'; not in the table without a finder */
	struct go_probe *probe;          /* NULL: the kernel refused it */
	struct real_file_finder *finder; /* NULL: 'real' is not known */
	struct real_file real;
	unsigned int views;

	uint32_t layout; /* 0: its goroutines cannot be told */
	bool is_pie;
	uint64_t entry;        /* of its ELF header */
	uint64_t text_address; /* of its code, unbiased */
	uint64_t text_bytes;   /* 0: not known */
	bool is_followed;      /* requests are followed into goroutines, or it was tried */
	struct go_probe_layout facts;
	const char *why_not;          /* NULL: its calls have parents */
	const char *why_not_children; /* the same of calls by goroutines that a handler starts */

	uint64_t sites[_GO_PROBE_SITE_MAX]; /* 0: none */
	/* What was read: what is probed must still be it. */
	uint64_t bytes, written_ns;
	uint8_t code[_GO_PROBE_SITE_MAX][GO_EXECUTABLE_CODE_BYTES];
	unsigned int wanted; /* bits of enum go_probe_site: are to be probed */
	struct uprobe *uprobes[_GO_PROBE_SITE_MAX];
	uint64_t mount;           /* that they were made through */
	struct file_lease *lease; /* as long as there are any; NULL: there are none */
	bool is_lost;             /* it has been counted that they are wanted and not there */
	bool is_short;            /* some could not be made for want of file descriptors; counted */
	bool is_written; /* they were taken away since the file was opened for writing; counted */

	struct go_user *oldest, *newest; /* processes, by when they were met */
};

/* Opens what a process runs. Returns a file descriptor or a negative errno. */
int go_executable_open(uint32_t pid, struct go_shown *ret);

/* Notes what the file is, once its sites are known: 'fd' was opened as 'shown'. */
void go_executable_note(struct go_executable *e, int fd, const struct go_shown *shown);

/* Whether a file that was shown so has what was noted, as far as that tells. */
bool go_executable_is_noted(const struct go_executable *e, const struct go_shown *shown);

/*
 * Makes the links that are wanted and not there, through 'fd', which is the executable as a process
 * showed it. Where the others were made through another mount all are made anew, and those taken
 * away. All or nothing: returns 0 or a negative errno. Otherwise later may be -EMFILE: no file
 * descriptors were left; -EAGAIN: somebody writes to it, or waits for that. -ESTALE: it is not the
 * file that was read. -ENOLCK: it could be written to under the probes, 'why_not' says why.
 */
int go_executable_attach(struct go_executable *e, int fd, uint64_t mount);

/* The same through the mount of a process. -ESTALE: it does not run the file any more. */
int go_executable_attach_by(struct go_executable *e, const struct go_user *user);

/* Takes all links away. */
void go_executable_detach(struct go_executable *e);

/* Does so where somebody waits for the file to write to it. Call it several times a second. */
void go_executable_tick(struct go_executable *e);

/* Another program has been written to the file: this one has no links any more. */
void go_executable_abandon(struct go_executable *e);

void go_executable_join(struct go_executable *e, struct go_user *user);
/* Its links go to another mount if they have to. */
void go_executable_leave(struct go_executable *e, struct go_user *user);

/* Links that no process could give when they had to go elsewhere. Call it every second or so. */
void go_executable_repair(struct go_executable *e);

size_t go_executable_links(const struct go_executable *e);
