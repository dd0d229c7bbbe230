/* The pass over /proc; see discover.h. */
#include <dirent.h>
#include <errno.h>

#include "base/util.h"
#include "discover/discover.h"
#include "discover/life.h"
#include "discover/proc.h"
#include "discover/sockets.h"
#include "discover/text.h"

/* Whether the entry still is the process that has this pid, and runs the same program. */
static bool is_current(const struct entry *e, int dir, const struct proc_stat *stat)
{
	_cleanup_(freep) char *path = NULL;
	struct proc_exe exe;

	if (e->process.start_ns &&
	    proc_tick_floor(e->process.start_ns) != proc_tick_floor(stat->start_ns))
		return false;
	if (!e->process.exe || proc_exe(dir, &exe))
		return true;
	path = exe.path;
	text_clean(path, strlen(path));
	return strcmp(e->process.exe, path) == 0;
}

/*
 * When the process is taken to have begun: now where it is so young that a JVM may be on its way,
 * or executed since it started; that keeps the queues in order as well.
 */
static uint64_t since_of(const struct proc_stat *stat, uint64_t now)
{
	uint64_t age_ns = now_ns(CLOCK_BOOTTIME) - stat->start_ns;

	if (age_ns < queue_delay_ns(QUEUE_LOOK_5))
		return now;
	return age_ns < now ? now - age_ns : 0;
}

static void scan_process(struct discover *d, uint32_t pid)
{
	struct entry *e = entries_find(&d->entries, pid);
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	_cleanup_(closep) int dir = -1;
	struct proc_stat stat;

	if (proc_open(pid, &dir) || proc_stat(dir, &stat) || stat.is_kernel_thread ||
	    stat.is_zombie)
		return;
	if (e && is_current(e, dir, &stat)) {
		e->scan = d->scan;
		d->options.judged(d->options.userdata, pid);
		return;
	}
	if (e)
		life_end(d, e, now);

	e = entries_add(&d->entries, pid, since_of(&stat, now));
	if (!e)
		return;
	e->scan = d->scan;
	e = life_look(d, e);
	if (e)
		life_queue(d, e, QUEUE_LOOK_1, now);
}

static int end_unmet(struct table_node *node, void *userdata)
{
	struct entry *e = container_of(node, struct entry, by_pid);
	struct discover *d = userdata;

	if (e->scan != d->scan)
		life_end(d, e, now_ns(CLOCK_MONOTONIC));
	return 0;
}

int discover_scan(struct discover *d)
{
	_cleanup_(closedirp) DIR *list = opendir("/proc");
	struct dirent *entry;
	int r;

	if (!list)
		return -errno;
	r = sockets_new(&d->sockets);
	if (r < 0)
		return r;
	d->scan++;
	while ((entry = readdir(list))) {
		char *end;
		unsigned long pid = strtoul(entry->d_name, &end, 10);

		if (end != entry->d_name && *end == '\0' && pid > 0 && pid <= UINT32_MAX)
			scan_process(d, (uint32_t)pid);
	}
	sockets_free(TAKE_PTR(d->sockets));
	table_walk(&d->entries.by_pid, end_unmet, d);
	return 0;
}
