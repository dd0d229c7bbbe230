/* The memory that TCP has in use; see tcp_memory.h. */
#include "probe/tcp_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

#define ENOUGH_NS (10 * NSEC_PER_SEC)
#define UNLIMITED (1ULL << 60) /* the kernel says 2^63 less a page */

struct tcp_memory {
	int limits, use;
};

static int open_in(const char *proc, const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int tcp_memory_new(const char *proc, struct tcp_memory **ret)
{
	_cleanup_(tcp_memory_freep) struct tcp_memory *m = calloc(1, sizeof(*m));
	struct tcp_memory_use use;
	int r;

	if (!m)
		return -ENOMEM;
	m->limits = open_in(proc, "sys/net/ipv4/tcp_mem");
	m->use = open_in(proc, "net/sockstat");
	if (m->limits < 0 || m->use < 0)
		return m->limits < 0 ? m->limits : m->use;
	r = tcp_memory_read(m, &use);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(m);
	return 0;
}

void tcp_memory_free(struct tcp_memory *m)
{
	if (!m)
		return;
	closep(&m->limits);
	closep(&m->use);
	free(m);
}

/* From its beginning, where the kernel writes it anew. */
static int read_text(int fd, char text[1024])
{
	ssize_t n = pread(fd, text, 1023, 0);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	return 0;
}

/* "TCP: inuse 5 orphan 0 tw 0 alloc 7 mem 13", a line among others. */
static bool find_used(const char *sockstat, uint64_t *ret)
{
	const char *line = strstr(sockstat, "\nTCP: ");

	return line &&
	       sscanf(line, " TCP: inuse %*u orphan %*u tw %*u alloc %*u mem %" SCNu64, ret) == 1;
}

int tcp_memory_read(const struct tcp_memory *m, struct tcp_memory_use *ret)
{
	struct tcp_memory_use use;
	char text[1024];
	int r;

	r = read_text(m->limits, text);
	if (r < 0)
		return r;
	if (sscanf(text, "%" SCNu64 " %" SCNu64, &use.low, &use.pressure) != 2)
		return -EBADMSG;
	r = read_text(m->use, text);
	if (r < 0)
		return r;
	if (!find_used(text, &use.used))
		return -EBADMSG;
	*ret = use;
	return 0;
}

void tcp_memory_judge(struct tcp_memory_watch *w, const struct tcp_memory_use *use, uint64_t now_ns)
{
	bool has_enough = use->used < use->low && use->used < use->pressure;

	if (has_enough && !w->has_enough)
		w->enough_since_ns = now_ns;
	w->has_enough = has_enough;
	if (use->used >= use->pressure)
		w->is_short = true;
	else if (has_enough && now_ns - w->enough_since_ns >= ENOUGH_NS)
		w->is_short = false;
}

/* --- groups */

int tcp_memory_groups_find(const char *proc, struct tcp_memory_groups *ret)
{
	struct mntent *mount;
	char path[256];
	FILE *mounts;

	snprintf(path, sizeof(path), "%s/mounts", proc);
	mounts = setmntent(path, "re");
	if (!mounts)
		return -errno;
	*ret = (struct tcp_memory_groups){0};
	while (!ret->root[0] && (mount = getmntent(mounts)))
		if (strcmp(mount->mnt_type, "cgroup") == 0 && hasmntopt(mount, "memory"))
			snprintf(ret->root, sizeof(ret->root), "%s", mount->mnt_dir);
	endmntent(mounts);
	return 0;
}

static bool has_word(const char *list, const char *word)
{
	size_t n;

	for (; *list; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		if (n == strlen(word) && memcmp(list, word, n) == 0)
			return true;
	}
	return false;
}

/* "4:memory:/a/group", or with several controllers. */
static bool find_group(const char *proc, uint32_t pid, char group[4096])
{
	char path[256], *line = NULL, *controllers, *name;
	bool is_found = false;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%u/cgroup", proc, pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (!is_found && getline(&line, &size, file) > 0) {
		controllers = strchr(line, ':');
		name = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!name)
			continue;
		*name++ = '\0';
		name[strcspn(name, "\n")] = '\0';
		is_found = has_word(controllers + 1, "memory") && strlen(name) < 4096;
		if (is_found)
			strcpy(group, name);
	}
	free(line);
	fclose(file);
	return is_found;
}

static bool has_limit(const char *root, const char *group)
{
	unsigned long long limit = 0;
	char path[4096 + 512];
	FILE *file;

	snprintf(path, sizeof(path), "%s%s/memory.kmem.tcp.limit_in_bytes", root, group);
	file = fopen(path, "re");
	if (!file) {
		snprintf(path, sizeof(path), "%s%s", root, group);
		return access(path, F_OK) < 0;
	}
	if (fscanf(file, "%llu", &limit) != 1)
		limit = 0;
	fclose(file);
	return limit < UNLIMITED;
}

bool tcp_memory_is_limited(const struct tcp_memory_groups *g, const char *proc, uint32_t pid)
{
	char group[4096], *end;

	if (!g->root[0])
		return false;
	if (!find_group(proc, pid, group))
		return true;
	/* That of each group above holds as well. */
	while (!has_limit(g->root, group)) {
		end = strrchr(group, '/');
		if (!end)
			return false;
		*end = '\0';
	}
	return true;
}
