/* A JVM's own listening socket; see jvm_listener.h. Facts: proc(5), HotSpot's attachListener_linux.cpp. */
#include "probe/jvm_listener.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

#define SOCKETS_MAX (1 << 20) /* of a network, and files of a process, that are looked at */
#define ACCEPTS     0x10000   /* __SO_ACCEPTCON, in the kernel's net/unix/af_unix.c */

/* Whether the process has a file that is called so. */
static int has_file(const struct jvm_target *t, const char *name, bool *ret)
{
	_cleanup_(closedirp) DIR *files = opendir_at(t->dir, "fd");
	const struct dirent *entry;
	int n_files = 0;
	char path[64];
	ssize_t n;

	if (!files)
		return -errno;
	*ret = false;
	while (!*ret && (entry = readdir(files))) {
		if (++n_files > SOCKETS_MAX)
			return -E2BIG;
		n = readlinkat(dirfd(files), entry->d_name, path, sizeof(path));
		*ret = n == (ssize_t)strlen(name) && !memcmp(path, name, (size_t)n);
	}
	return 0;
}

/*
 * "0000000000000000: 00000002 00000000 00010000 0001 01 23456 /tmp/.java_pid17.tmp": it is bound to a
 * name that its file has only until it listens. Another JVM of the same network, with the same number in
 * a namespace of its own, may have that name, too: whose it is tells the inode.
 */
static bool read_line(const struct jvm_target *t, const char *line, unsigned long *ret_inode)
{
	unsigned int flags, type;
	char wanted[32];
	int at = 0;

	if (sscanf(line, "%*x: %*x %*x %x %x %*x %lu %n", &flags, &type, ret_inode, &at) != 3 ||
	    !(flags & ACCEPTS) || !at)
		return false;
	line = strrchr(line + at, '/');
	snprintf(wanted, sizeof(wanted), "/.java_pid%d", (int)t->inner_pid);
	if (!line || strncmp(line, wanted, strlen(wanted)) != 0)
		return false;
	line += strlen(wanted);
	return !strcmp(line, "\n") || !strcmp(line, ".tmp\n");
}

int jvm_listener_find(const struct jvm_target *t, bool *ret)
{
	_cleanup_(fclosep) FILE *sockets = fopen_at(t->dir, "net/unix");
	char line[PATH_MAX], name[64];
	unsigned long inode;
	int r;

	if (!sockets)
		return -errno;
	*ret = false;
	for (int i = 0; !*ret && fgets(line, sizeof(line), sockets); i++) {
		if (i > SOCKETS_MAX)
			return -E2BIG;
		if (!read_line(t, line, &inode))
			continue;
		snprintf(name, sizeof(name), "socket:[%lu]", inode);
		r = has_file(t, name, ret);
		if (r < 0)
			return r;
	}
	return 0;
}
