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

static int read_text(const char *proc, const char *name, char text[1024])
{
	_cleanup_(closep) int fd = -1;
	char path[256];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, 1023);
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

int tcp_memory_read(const char *proc, struct tcp_memory *ret)
{
	struct tcp_memory m;
	char text[1024];
	int r;

	r = read_text(proc, "sys/net/ipv4/tcp_mem", text);
	if (r < 0)
		return r;
	if (sscanf(text, "%" SCNu64 " %" SCNu64, &m.low, &m.pressure) != 2)
		return -EBADMSG;
	r = read_text(proc, "net/sockstat", text);
	if (r < 0)
		return r;
	if (!find_used(text, &m.used))
		return -EBADMSG;
	*ret = m;
	return 0;
}

void tcp_memory_judge(struct tcp_memory_watch *w, const struct tcp_memory *m, uint64_t now_ns)
{
	bool has_enough = m->used < m->low && m->used < m->pressure;

	if (has_enough && !w->has_enough)
		w->enough_since_ns = now_ns;
	w->has_enough = has_enough;
	if (m->used >= m->pressure)
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
