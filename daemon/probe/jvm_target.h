/*
 * A JVM that an agent is to be loaded into: its directories, held open so that no path is looked up
 * twice, and what it says of itself. Everything it says is a stranger's; nothing here writes, and a
 * pid that is given to somebody else in the meantime answers -ESRCH. Used by jvm_attach.c, in the
 * process that loads the agent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/util.h"

struct jvm_target {
	int process; /* a pidfd */
	int dir;     /* /proc/PID */
	pid_t pid;
	pid_t inner_pid; /* the same in its own namespace, where its files are named after it */
	uid_t uid;       /* effective, as we see them */
	gid_t gid;
};

#define JVM_TARGET_NONE ((struct jvm_target){.process = -1, .dir = -1})

/* 'start_ns' as in struct process: another process with that pid is not taken. Returns 0 or a negative errno. */
int jvm_target_open(uint32_t pid, uint64_t start_ns, struct jvm_target *ret);
void jvm_target_close(struct jvm_target *t);
bool jvm_target_has_ended(const struct jvm_target *t);

/* What /proc/PID/status says now. Returns 0 or a negative errno. */
struct jvm_status {
	pid_t inner_pid;
	uid_t uid;
	gid_t gid;
	bool is_stopped;      /* by a signal or a debugger: it cannot take part in anything */
	bool catches_quit;    /* SIGQUIT would end it otherwise */
	bool is_quit_pending; /* a SIGQUIT was sent and not taken yet */
};
int jvm_target_status(const struct jvm_target *t, struct jvm_status *ret);

/* How long ago it was started, ns. */
uint64_t jvm_target_age_ns(uint64_t start_ns);

/*
 * Whether it takes agents at all, as far as can be known without asking it. Returns 0;
 * JVM_TARGET_REFUSES with a sentence in 'reason'; or a negative errno. With 0 'may_listen' says whether
 * it may be asked by a signal to open its socket, and if not, 'reason' says why not: that takes a JVM
 * that is known to be its process's own program, to take SIGQUIT itself, and to be let itself be
 * attached to. What it says in its performance data counts, never what stands on a command line.
 */
enum { JVM_TARGET_REFUSES = 1 };
struct jvm_judgement {
	bool may_listen;
	char reason[160];
};
int jvm_target_judge(const struct jvm_target *t, struct jvm_judgement *ret);

/*
 * A folder as the JVM sees it, inside its own root directory, by an absolute path without links. Returns
 * 0 with a descriptor (O_PATH); JVM_TARGET_UNSAFE: it, or one above it, is of a stranger, or others may
 * write there and are not kept from each other's files (no sticky bit); or a negative errno: -ELOOP, a
 * link.
 */
enum { JVM_TARGET_UNSAFE = 1 };
int jvm_target_open_folder(const struct jvm_target *t, const char *path, int *ret);
/* The one that it is in, whosever it is. Returns 0 or a negative errno. */
int jvm_target_open_cwd(const struct jvm_target *t, int *ret);
