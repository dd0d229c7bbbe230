/* TCP connections of other processes; see foreign_sockets.h. */
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
#define BATCH_MAX    65536     /* of all processes, before the tables are read for them */
#define EPOLLS_MAX   8         /* of one process */
#define LINES_MAX    (1 << 20) /* of a network's tables */
#define LOOK_LINES   1024      /* whether it is cancelled */
#define TABLE_BYTES  65536     /* read at once; the kernel gives what it has for a page */
#define PORTS        65536
#define LISTEN_STATE 10 /* TCP_LISTEN, include/net/tcp_states.h */

struct candidate {
	uint64_t inode;
	uint32_t pid;
	int fd; /* in that process */
	uint16_t port;
	bool is_connection; /* of a wanted state */
	bool is_polled;
};

/* Of processes of one network. */
struct candidates {
	const struct foreign_sockets *wanted;
	foreign_socket_fn fn;
	void *userdata;
	struct candidate *items;
	size_t n, size;
	uint8_t listens[PORTS / 8]; /* bits, by port */
	uint64_t *polled;           /* inodes that one process polls as is asked for */
	size_t n_polled, polled_size;
	int n_missed;
};

/* Of our own, behind what failed. */
static bool has_no_descriptor(void)
{
	return errno == EMFILE || errno == ENFILE;
}

static bool is_cancelled(const struct candidates *c)
{
	const bool *cancelled = c->wanted->is_cancelled;

	return cancelled && __atomic_load_n(cancelled, __ATOMIC_RELAXED);
}

static int add(struct candidates *c, const struct candidate *one)
{
	if (c->n == c->size) {
		size_t size = c->size ? 2 * c->size : 64;
		struct candidate *items = realloc(c->items, size * sizeof(*items));

		if (!items)
			return -ENOMEM;
		c->items = items;
		c->size = size;
	}
	c->items[c->n++] = *one;
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int add_polled(struct candidates *c, uint64_t inode)
{
	if (c->n_polled == c->polled_size) {
		size_t size = c->polled_size ? 2 * c->polled_size : 64;
		uint64_t *polled = realloc(c->polled, size * sizeof(*polled));

		if (!polled)
			return -ENOMEM;
		c->polled = polled;
		c->polled_size = size;
	}
	c->polled[c->n_polled++] = inode;
	return 0;
}

/* "tfd:       15 events: 8000201d data: ...  pos:0 ino:1f2a3 sdev:8" (fs/eventpoll.c) */
static int read_epoll(struct candidates *c, uint32_t pid, int epoll)
{
	_cleanup_(fclosep) FILE *file = NULL;
	char path[64], line[256];
	unsigned int events;
	uint64_t inode;
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%u/fdinfo/%d", pid, epoll);
	file = fopen(path, "re");
	if (!file)
		c->n_missed += has_no_descriptor();
	while (file && r == 0 && fgets(line, sizeof(line), file)) {
		const char *ino = strstr(line, " ino:");

		if (!ino || sscanf(line, "tfd: %*d events: %x", &events) != 1 ||
		    events != c->wanted->polled_events)
			continue;
		inode = strtoull(ino + 5, NULL, 16);
		r = add_polled(c, inode);
	}
	return r;
}

static int find_polled(struct candidates *c, size_t begin, const int *epolls, size_t n)
{
	int r = 0;

	c->n_polled = 0;
	for (size_t i = 0; i < n && r == 0; i++)
		r = read_epoll(c, c->items[begin].pid, epolls[i]);
	if (r < 0 || !c->n_polled)
		return r;
	qsort(c->polled, c->n_polled, sizeof(*c->polled), compare_numbers);
	for (size_t i = begin; i < c->n; i++)
		c->items[i].is_polled = bsearch(&c->items[i].inode, c->polled, c->n_polled,
						sizeof(*c->polled), compare_numbers) != NULL;
	return 0;
}

/* All sockets that a process has, of whatever kind, by the names of its descriptors. */
static int find_sockets(struct candidates *c, uint32_t pid)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	const struct dirent *entry;
	char path[64], target[40];
	int epolls[EPOLLS_MAX];
	size_t before = c->n, n_epolls = 0;

	snprintf(path, sizeof(path), "/proc/%u/fd", pid);
	dir = opendir(path);
	if (!dir) {
		c->n_missed += has_no_descriptor();
		return 0;
	}
	while ((entry = readdir(dir))) {
		ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		struct candidate one = {.pid = pid};
		unsigned long long inode;
		int r;

		if (length < 0)
			continue;
		target[length] = '\0';
		if (strcmp(target, "anon_inode:[eventpoll]") == 0 && n_epolls < EPOLLS_MAX)
			epolls[n_epolls++] = atoi(entry->d_name);
		if (sscanf(target, "socket:[%llu]", &inode) != 1)
			continue;
		if (!c->wanted->is_unbounded && c->n - before == SOCKETS_MAX) {
			c->n_missed++;
			break;
		}
		one.inode = inode;
		one.fd = atoi(entry->d_name);
		r = add(c, &one);
		if (r < 0)
			return r;
	}
	/* The kernel holds up whoever waits there while it tells: not for nothing. */
	if (!c->wanted->polled_events || c->n == before)
		return 0;
	return find_polled(c, before, epolls, n_epolls);
}

static int compare_inodes(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static int compare_pids(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* One socket may have several descriptors, also in several processes. */
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

/* --- the tables: /proc/PID/net/tcp, of the network that the process is in */

/* Where the n-th word behind this place begins. */
static const char *skip_words(const char *at, unsigned int n)
{
	at += strspn(at, " ");
	while (n--) {
		at += strcspn(at, " ");
		at += strspn(at, " ");
	}
	return at;
}

/*
 * "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 627 ...", a
 * hundred thousand times: sscanf() takes ten times as long.
 */
static void note_line(struct candidates *c, const char *line)
{
	const char *local = skip_words(line, 1), *colon = strchr(local, ':');
	unsigned long port, state;
	uint64_t inode;

	if (!colon)
		return;
	port = strtoul(colon + 1, NULL, 16);
	local = skip_words(local, 2);
	state = strtoul(local, NULL, 16);
	inode = strtoull(skip_words(local, 6), NULL, 10);
	if (port >= PORTS || state > 31)
		return;
	if (state == LISTEN_STATE)
		c->listens[port / 8] |= (uint8_t)(1U << port % 8);
	else if (inode && (c->wanted->states & 1U << state))
		note_connection(c, inode, (uint16_t)port);
}

static int read_table(struct candidates *c, uint32_t pid, const char *name)
{
	_cleanup_(fclosep) FILE *file = NULL;
	_cleanup_(freep) char *buffer = malloc(TABLE_BYTES);
	char path[64], line[512];
	unsigned int n = 0;

	if (!buffer)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%u/net/%s", pid, name);
	file = fopen(path, "re");
	if (!file) {
		c->n_missed += has_no_descriptor();
		return -errno;
	}
	setvbuf(file, buffer, _IOFBF, TABLE_BYTES);
	while (fgets(line, sizeof(line), file)) {
		if (n % LOOK_LINES == 0 && is_cancelled(c))
			break;
		if (n++ == LINES_MAX) {
			c->n_missed++;
			break;
		}
		note_line(c, line);
	}
	fclose(TAKE_PTR(file)); /* before its buffer */
	return 0;
}

/* By any of the processes that are in that network: the others may have ended. */
static int read_tables(struct candidates *c, const uint32_t *pids, size_t n)
{
	int r = -ESRCH;

	while (n && r < 0 && r != -ENOMEM)
		r = read_table(c, pids[--n], "tcp");
	/* There are kernels without IPv6. */
	if (r == 0)
		read_table(c, pids[n], "tcp6");
	return r == -ENOMEM ? r : 0;
}

/* --- the connections */

static bool is_wanted(const struct candidates *c, const struct candidate *one)
{
	return one->is_connection &&
	       (c->wanted->with_bound || !(c->listens[one->port / 8] & 1U << one->port % 8));
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

static void visit(struct candidates *c, const struct candidate *one, int pidfd)
{
	_cleanup_(closep) int fd = (int)syscall(SYS_pidfd_getfd, pidfd, one->fd, 0);

	if (fd < 0 && errno != EBADF && errno != ESRCH)
		c->n_missed++;
	if (fd >= 0 && is_same(fd, one->inode))
		c->fn(c->userdata, &(struct foreign_socket){one->pid, fd, one->is_polled});
}

static void visit_all(struct candidates *c)
{
	_cleanup_(closep) int pidfd = -1;
	uint32_t pid = 0;

	for (size_t i = 0; i < c->n && !is_cancelled(c); i++) {
		const struct candidate *one = &c->items[i];

		if (!is_wanted(c, one))
			continue;
		if (pid != one->pid) {
			pid = one->pid;
			closep(&pidfd);
			pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
			c->n_missed += pidfd < 0 && has_no_descriptor();
		}
		if (pidfd >= 0)
			visit(c, one, pidfd);
	}
}

/* Those that were found in processes, which are 'n' of one network. */
static int do_batch(struct candidates *c, const uint32_t *pids, size_t n)
{
	int r;

	/* Most have none when they are met: the tables may be long. */
	if (!c->n)
		return 0;
	qsort(c->items, c->n, sizeof(*c->items), compare_inodes);
	r = read_tables(c, pids, n);
	if (r == 0) {
		qsort(c->items, c->n, sizeof(*c->items), compare_pids);
		visit_all(c);
	}
	c->n = 0;
	memset(c->listens, 0, sizeof(c->listens));
	return r;
}

static int do_network(struct candidates *c, const uint32_t *pids, size_t n)
{
	size_t begin = 0;
	int r = 0;

	for (size_t i = 0; i < n && r == 0 && !is_cancelled(c); i++) {
		r = find_sockets(c, pids[i]);
		if (r == 0 && (c->n >= BATCH_MAX || i + 1 == n)) {
			r = do_batch(c, pids + begin, i + 1 - begin);
			begin = i + 1;
		}
	}
	return r;
}

/* --- networks */

struct member {
	uint64_t network; /* inode of its namespace */
	uint32_t pid;
};

static int compare_members(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->network != y->network)
		return x->network < y->network ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* Those that are still there, by their networks, and each once. */
static size_t find_members(const struct foreign_sockets *wanted, struct member *members)
{
	size_t n = 0, unique = 0;

	for (size_t i = 0; i < wanted->n_pids; i++) {
		char path[64];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%u/ns/net", wanted->pids[i]);
		if (stat(path, &st) == 0)
			members[n++] = (struct member){st.st_ino, wanted->pids[i]};
	}
	qsort(members, n, sizeof(*members), compare_members);
	for (size_t i = 0; i < n; i++)
		if (!unique || compare_members(&members[unique - 1], &members[i]) != 0)
			members[unique++] = members[i];
	return unique;
}

static int do_members(struct candidates *c, const struct member *members, size_t n, uint32_t *pids)
{
	size_t begin = 0;
	int r = 0;

	for (size_t i = 0; i < n; i++)
		pids[i] = members[i].pid;
	for (size_t i = 0; i < n && r == 0; i++)
		if (i + 1 == n || members[i + 1].network != members[i].network) {
			r = do_network(c, pids + begin, i + 1 - begin);
			begin = i + 1;
		}
	return r;
}

int foreign_sockets_each(const struct foreign_sockets *wanted, foreign_socket_fn fn, void *userdata)
{
	_cleanup_(freep) struct member *members = calloc(wanted->n_pids + 1, sizeof(*members));
	_cleanup_(freep) uint32_t *pids = calloc(wanted->n_pids + 1, sizeof(*pids));
	_cleanup_(freep) struct candidates *c = calloc(1, sizeof(*c));
	int r;

	if (!members || !pids || !c)
		return -ENOMEM;
	c->wanted = wanted;
	c->fn = fn;
	c->userdata = userdata;
	r = do_members(c, members, find_members(wanted, members), pids);
	free(c->items);
	free(c->polled);
	return r < 0 ? r : c->n_missed;
}

int foreign_sockets_reach(uint32_t pid)
{
	_cleanup_(closep) int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);

	if (pidfd < 0)
		return has_no_descriptor() ? -errno : FOREIGN_SOCKETS_UNREACHABLE;
	/* Permission is looked at before the number, which no process has (kernel/pid.c). */
	if (syscall(SYS_pidfd_getfd, pidfd, INT_MAX, 0) < 0 && errno == EBADF)
		return 0;
	return has_no_descriptor() ? -errno : FOREIGN_SOCKETS_UNREACHABLE;
}
