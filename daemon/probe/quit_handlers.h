/*
 * Which function of a process takes SIGQUIT, by the kernel's word (bpf/handlers.bpf.c). The daemon
 * holds what is to be asked, in jvm_agents.c, and hands its descriptor to the process that attaches
 * (jvm_loader.h), which asks as late as it can.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/util.h"

struct quit_handlers;

/* Returns 0, QUIT_HANDLERS_NONE where the kernel does not tell (errno says why), or -ENOMEM. */
enum { QUIT_HANDLERS_NONE = 1 };
int quit_handlers_new(struct quit_handlers **ret);
void quit_handlers_free(struct quit_handlers *q); /* NULL is allowed */
DEFINE_CLEANUP(struct quit_handlers *, quit_handlers_free)

/* -1 for NULL. It closes on exec. */
int quit_handlers_fd(const struct quit_handlers *q);

/*
 * 'fd': quit_handlers_fd()'s, in this process or another one that was given it; it may be of anything.
 * Returns 0, with an address that is 0 or 1 where no function takes it, or a negative errno.
 */
int quit_handlers_find(int fd, pid_t pid, uint64_t *ret);
