/*
 * Who listens on which port: /proc/PID/net/tcp{,6} of each network namespace met, against the
 * descriptors of a process. For processes that are older than the daemon or that inherited their
 * sockets; all others are told of by the kernel side. A table lives for one scan (scan.c)
 * or one look (life.c); look.c asks it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "discover/proc.h"

struct sockets;

int sockets_new(struct sockets **ret);
void sockets_free(struct sockets *sockets); /* NULL is allowed */
DEFINE_CLEANUP(struct sockets *, sockets_free)

/*
 * The ports that the process with directory 'dir' in network namespace 'netns' listens on, each
 * once, at most 'max'. Returns 0 or -ENOMEM; what cannot be read gives no ports.
 */
int sockets_ports(struct sockets *sockets, int dir, const struct proc_namespace *netns,
		  uint16_t *ports, size_t max, size_t *ret_n);
