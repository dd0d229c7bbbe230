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
 * that is known to take SIGQUIT itself, and to be let itself be attached to. The first the kernel
 * knows ('quit_handlers': as quit_handlers_fd()), and where it does not tell, a program called java
 * counts as one. The second the JVM says in its performance data, and where it has none, in its flags;
 * what stands on a command line never counts.
 */
enum { JVM_TARGET_REFUSES = 1 };
struct jvm_judgement {
	bool may_listen;
	bool is_early; /* it does not catch SIGQUIT yet: the rest may be otherwise in a moment */
	bool reopens_socket;   /* as in jvm_flags.h; false where it is not known */
	uint64_t quit_handler; /* what takes SIGQUIT; 0: the kernel does not tell */
	char reason[160];
};
int jvm_target_judge(const struct jvm_target *t, int quit_handlers, struct jvm_judgement *ret);

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
