/* TCP connections of another process; see foreign_sockets.h. */
#include "probe/foreign_sockets.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"

#define SOCKETS_MAX  4096      /* of one process, unless all are asked for */
#define LINES_MAX    (1 << 20) /* of its network's tables */
#define PORTS        65536
#define LISTEN_STATE 10 /* TCP_LISTEN, include/net/tcp_states.h */

struct candidate {
	uint64_t inode;
	int fd; /* in the other process */
	uint16_t port;
	bool is_connection; /* of a wanted state */
};

struct candidates {
	struct candidate *items;
	size_t n, size;
	uint8_t listens[PORTS / 8]; /* bits, by port */
	int n_missed;
};

DEFINE_CLEANUP(DIR *, closedir)
DEFINE_CLEANUP(FILE *, fclose)

static int add(struct candidates *c, uint64_t inode, int fd)
{
	if (c->n == c->size) {
		size_t size = c->size ? 2 * c->size : 64;
		struct candidate *items = realloc(c->items, size * sizeof(*items));

		if (!items)
			return -ENOMEM;
		c->items = items;
		c->size = size;
	}
	c->items[c->n++] = (struct candidate){.inode = inode, .fd = fd};
	return 0;
}

/* All sockets that the process has, of whatever kind, by the names of its descriptors. */
static int find_sockets(struct candidates *c, const struct foreign_sockets *wanted)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	const struct dirent *entry;
	char path[64], target[40];

	snprintf(path, sizeof(path), "/proc/%u/fd", wanted->pid);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		unsigned long long inode;
		int r;

		if (length < 0)
			continue;
		target[length] = '\0';
		if (sscanf(target, "socket:[%llu]", &inode) != 1)
			continue;
		if (!wanted->is_unbounded && c->n == SOCKETS_MAX) {
			c->n_missed++;
			return 0;
		}
		r = add(c, inode, atoi(entry->d_name));
		if (r < 0)
			return r;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* One socket may have several descriptors. */
static void note_connection(struct candidates *c, uint64_t inode, uint16_t port)
{
	size_t from = 0, to = c->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (c->items[middle].inode < inode)
			from = middle + 1;
		else
			to = middle;
	}
	for (; from < c->n && c->items[from].inode == inode; from++) {
		c->items[from].port = port;
		c->items[from].is_connection = true;
	}
}

/* "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 627 ..." */
static void note_line(struct candidates *c, const char *line, uint32_t states)
{
	unsigned long long inode;
	unsigned int port, state;

	if (sscanf(line,
		   " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %llu",
		   &port, &state, &inode) != 3 ||
	    port >= PORTS || state > 31)
		return;
	if (state == LISTEN_STATE)
		c->listens[port / 8] |= (uint8_t)(1U << port % 8);
	else if (inode && (states & 1U << state))
		note_connection(c, inode, (uint16_t)port);
}

static int read_table(struct candidates *c, const struct foreign_sockets *wanted, const char *name)
{
	_cleanup_(fclosep) FILE *file = NULL;
	char path[64], line[512];
	unsigned int n = 0;

	snprintf(path, sizeof(path), "/proc/%u/net/%s", wanted->pid, name);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOENT ? 0 : -errno; /* a kernel without IPv6 */
	while (fgets(line, sizeof(line), file)) {
		if (n++ == LINES_MAX) {
			c->n_missed++;
			break;
		}
		note_line(c, line, wanted->states);
	}
	return 0;
}

static bool is_wanted(const struct candidates *c, const struct candidate *one, bool with_bound)
{
	return one->is_connection &&
	       (with_bound || !(c->listens[one->port / 8] & 1U << one->port % 8));
}

/* The descriptor may be another one by now. */
static bool is_same(int fd, uint64_t inode)
{
	socklen_t length = sizeof(int);
	int protocol = -1;
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_ino == inode &&
	       getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) == 0 &&
	       protocol == IPPROTO_TCP;
}

static int visit(struct candidates *c, const struct foreign_sockets *wanted, foreign_socket_fn fn,
		 void *userdata)
{
	_cleanup_(closep) int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)wanted->pid, 0);

	if (pidfd < 0)
		return -errno;
	for (size_t i = 0; i < c->n; i++) {
		_cleanup_(closep) int fd = -1;

		if (!is_wanted(c, &c->items[i], wanted->with_bound))
			continue;
		fd = (int)syscall(SYS_pidfd_getfd, pidfd, c->items[i].fd, 0);
		if (fd < 0 && errno != EBADF)
			c->n_missed++;
		if (fd >= 0 && is_same(fd, c->items[i].inode))
			fn(userdata, fd);
	}
	return c->n_missed;
}

static int read_tables(struct candidates *c, const struct foreign_sockets *wanted)
{
	int r = read_table(c, wanted, "tcp");

	return r < 0 ? r : read_table(c, wanted, "tcp6");
}

int foreign_sockets_each(const struct foreign_sockets *wanted, foreign_socket_fn fn, void *userdata)
{
	struct candidates *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	r = find_sockets(c, wanted);
	/* Most have none when they are met: the tables may be long. */
	if (r >= 0 && c->n) {
		qsort(c->items, c->n, sizeof(*c->items), compare);
		r = read_tables(c, wanted);
		if (r >= 0)
			r = visit(c, wanted, fn, userdata);
	}
	free(c->items);
	free(c);
	return r;
}

bool foreign_sockets_are_reachable(uint32_t pid)
{
	_cleanup_(closep) int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);

	/* Permission is looked at before the number, which no process has (kernel/pid.c). */
	return pidfd >= 0 && syscall(SYS_pidfd_getfd, pidfd, INT_MAX, 0) < 0 && errno == EBADF;
}
