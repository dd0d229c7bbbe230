/* Listening sockets; see sockets.h. */
#include "discover/sockets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "metrics/metrics.h"

/*
 * Listening sockets come first in these files (net/ipv4/tcp_ipv4.c, tcp_seq_start): a bound for
 * those alone.
 */
#define NET_BYTES_MAX   (4 << 20)
#define LISTENERS_MAX   16384
#define DESCRIPTORS_MAX 4096 /* of one process */

#define STATE_LISTEN 0x0a /* include/net/tcp_states.h, TCP_LISTEN */

/* A socket's inode is unique on the whole host, so one table serves all namespaces. */
struct listener {
	uint64_t inode;
	uint16_t port;
};

struct sockets {
	struct listener *listeners; /* sorted by inode once 'is_sorted' */
	size_t n_listeners, size_listeners;
	bool is_sorted;
	struct proc_namespace *namespaces; /* whose files were read */
	size_t n_namespaces;
};

int sockets_new(struct sockets **ret)
{
	struct sockets *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	*ret = s;
	return 0;
}

void sockets_free(struct sockets *s)
{
	if (!s)
		return;
	free(s->listeners);
	free(s->namespaces);
	free(s);
}

static bool add_listener(struct sockets *s, uint64_t inode, uint16_t port)
{
	if (s->n_listeners == s->size_listeners) {
		size_t size = s->size_listeners ? s->size_listeners * 2 : 64;
		struct listener *larger;

		if (size > LISTENERS_MAX)
			return false;
		larger = realloc(s->listeners, size * sizeof(*larger));
		if (!larger)
			return false;
		s->listeners = larger;
		s->size_listeners = size;
	}
	s->listeners[s->n_listeners++] = (struct listener){.inode = inode, .port = port};
	s->is_sorted = false;
	return true;
}

/*
 * "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000  0 12345 1
 * ...", proc(5). The first line that is not a listener ends them.
 */
static bool take_socket(struct str line, void *userdata)
{
	struct sockets *s = userdata;
	unsigned int port, state;
	char text[256];
	uint64_t inode;

	snprintf(text, sizeof(text), "%.*s", (int)MIN(line.n, sizeof(text) - 1), line.p);
	if (sscanf(text,
		   " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %*u %*u "
		   "%" SCNu64,
		   &port, &state, &inode) != 3)
		return false; /* the heading */
	if (state != STATE_LISTEN)
		return true;
	if (inode && port && port <= UINT16_MAX && !add_listener(s, inode, (uint16_t)port)) {
		metrics_increment(METRIC_PROCESS_READS_CUT);
		return true;
	}
	return false;
}

static int read_namespace(struct sockets *s, int dir, const struct proc_namespace *netns)
{
	struct proc_namespace *larger;

	for (size_t i = 0; i < s->n_namespaces; i++)
		if (s->namespaces[i].inode == netns->inode &&
		    s->namespaces[i].device == netns->device)
			return 0;
	larger = realloc(s->namespaces, (s->n_namespaces + 1) * sizeof(*larger));
	if (!larger)
		return -ENOMEM;
	s->namespaces = larger;

	/*
	 * Of a process that ended just now nothing can be read: the next one of its namespace is
	 * asked instead.
	 */
	if (proc_each_line(dir, "net/tcp", NET_BYTES_MAX, take_socket, s))
		return 0;
	(void)proc_each_line(dir, "net/tcp6", NET_BYTES_MAX, take_socket, s); /* no IPv6: no file */
	s->namespaces[s->n_namespaces++] = *netns;
	return 0;
}

static int compare_listeners(const void *a, const void *b)
{
	const struct listener *x = a, *y = b;

	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* The port of a descriptor's link text ("socket:[123]"), 0: none that listens. */
static uint16_t listening_port(const struct sockets *s, const char *link)
{
	struct listener key = {0}, *found;

	if (sscanf(link, "socket:[%" SCNu64 "]", &key.inode) != 1 || s->n_listeners == 0)
		return 0;
	found = bsearch(&key, s->listeners, s->n_listeners, sizeof(key), compare_listeners);
	return found ? found->port : 0;
}

static void add_port(uint16_t port, uint16_t *ports, size_t max, size_t *n)
{
	for (size_t i = 0; i < *n; i++)
		if (ports[i] == port)
			return;
	if (*n < max)
		ports[(*n)++] = port;
	else
		metrics_increment(METRIC_PROCESS_PORTS_FULL);
}

static void read_descriptors(const struct sockets *s, int dir, uint16_t *ports, size_t max,
			     size_t *n)
{
	_cleanup_(closedirp) DIR *list = opendir_at(dir, "fd");
	const struct dirent *entry;

	for (unsigned int i = 0; list && (entry = readdir(list)); i++) {
		char link[64];
		ssize_t length;
		uint16_t port;

		if (i == DESCRIPTORS_MAX) {
			metrics_increment(METRIC_PROCESS_READS_CUT);
			break;
		}
		length = readlinkat(dirfd(list), entry->d_name, link, sizeof(link) - 1);
		if (length <= 0)
			continue;
		link[length] = '\0';
		port = listening_port(s, link);
		if (port)
			add_port(port, ports, max, n);
	}
}

int sockets_ports(struct sockets *s, int dir, const struct proc_namespace *netns, uint16_t *ports,
		  size_t max, size_t *ret_n)
{
	size_t n = 0;
	int r;

	r = read_namespace(s, dir, netns);
	if (r < 0)
		return r;
	if (!s->is_sorted && s->n_listeners > 0)
		qsort(s->listeners, s->n_listeners, sizeof(s->listeners[0]), compare_listeners);
	s->is_sorted = true;
	if (s->n_listeners > 0)
		read_descriptors(s, dir, ports, max, &n);
	*ret_n = n;
	return 0;
}
