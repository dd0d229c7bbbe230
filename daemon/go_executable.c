/* Executables of Go and their links; see go_executable.h. */
#include "go_executable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/util.h"
#include "descriptors.h"
#include "metrics/metrics.h"

int go_executable_open(uint32_t pid, struct go_shown *ret)
{
	_cleanup_(closep) int fd = -1;
	struct statx st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_CTIME | STATX_MNT_ID, &st) < 0)
		return -errno;
	*ret = (struct go_shown){
		.device = makedev(st.stx_dev_major, st.stx_dev_minor),
		.inode = st.stx_ino,
		.changed_ns = (uint64_t)st.stx_ctime.tv_sec * NSEC_PER_SEC + st.stx_ctime.tv_nsec,
		.mount = st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : 0,
	};
	return TAKE_FD(fd);
}

/* Returns a file descriptor, -ESTALE if it is not the file any more, or another negative errno. */
static int open_by(const struct go_executable *e, const struct go_user *user)
{
	_cleanup_(closep) int fd = -1;
	struct real_file real;
	struct go_shown shown;
	int r;

	fd = go_executable_open(user->pid, &shown);
	if (fd < 0)
		return fd;
	if (shown.mount != user->shown.mount || shown.device != user->shown.device ||
	    shown.inode != user->shown.inode)
		return -ESTALE;
	if (!e->finder)
		return TAKE_FD(fd);
	r = real_file_find(e->finder, fd, &real);
	if (r < 0)
		return r;
	return real_file_equal(&real, &e->real) ? TAKE_FD(fd) : -ESTALE;
}

static void detach_all(struct go_executable *e, struct uprobe *uprobes[static _GO_PROBE_SITE_MAX])
{
	for (size_t i = 0; i < _GO_PROBE_SITE_MAX; i++) {
		if (uprobes[i])
			go_probe_detach(e->probe, uprobes[i]);
		uprobes[i] = NULL;
	}
}

/* Returns 0 or a negative errno. */
static int attach_site(struct go_executable *e, int fd, enum go_probe_site site,
		       struct uprobe **ret)
{
	int r = -EMFILE;

	if (!descriptors_are_short(fd))
		r = go_probe_attach(e->probe, fd, site, e->sites[site], ret);
	if (r == -ENFILE)
		r = -EMFILE;
	if (r == -EMFILE && !e->is_short) {
		e->is_short = true;
		metrics_increment(METRIC_GO_PROBES_NO_DESCRIPTORS);
	}
	return r;
}

int go_executable_attach(struct go_executable *e, int fd, uint64_t mount)
{
	/* Where one ends before where one begins: whatever was noted is forgotten. */
	static const enum go_probe_site order[] = {
		GO_PROBE_ROUND_TRIP, GO_PROBE_END,    GO_PROBE_SERVE, GO_PROBE_READ,
		GO_PROBE_BEGIN,      GO_PROBE_BEGUN,  GO_PROBE_GIN,   GO_PROBE_GIN_NEXT,
		GO_PROBE_ECHO,       GO_PROBE_ECHO_5, GO_PROBE_CHI,   GO_PROBE_GORILLA,
	};
	struct uprobe *made[_GO_PROBE_SITE_MAX] = {0};

	static_assert(ARRAY_SIZE(order) == _GO_PROBE_SITE_MAX, "each site has its turn");
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		enum go_probe_site site = order[i];
		int r;

		if (!(e->wanted & 1U << site) || (e->uprobes[site] && e->mount == mount))
			continue;
		r = attach_site(e, fd, site, &made[site]);
		if (r < 0) {
			detach_all(e, made);
			return r;
		}
	}
	for (size_t i = 0; i < _GO_PROBE_SITE_MAX; i++) {
		if (!made[i])
			continue;
		go_probe_detach(e->probe, e->uprobes[i]);
		e->uprobes[i] = made[i];
	}
	e->mount = mount;
	e->is_lost = false;
	e->is_short = false;
	return 0;
}

int go_executable_attach_by(struct go_executable *e, const struct go_user *user)
{
	_cleanup_(closep) int fd = open_by(e, user);

	return fd < 0 ? fd : go_executable_attach(e, fd, user->shown.mount);
}

void go_executable_detach(struct go_executable *e)
{
	detach_all(e, e->uprobes);
}

size_t go_executable_links(const struct go_executable *e)
{
	size_t n = 0;

	for (size_t i = 0; i < _GO_PROBE_SITE_MAX; i++)
		if (e->uprobes[i])
			n += uprobe_links(e->uprobes[i]);
	return n;
}

/* --- the processes that run it */

void go_executable_join(struct go_executable *e, struct go_user *user)
{
	user->executable = e;
	user->newer = NULL;
	user->older = e->newest;
	if (e->newest)
		e->newest->newer = user;
	else
		e->oldest = user;
	e->newest = user;
}

static void unlink_user(struct go_executable *e, struct go_user *user)
{
	if (user->newer)
		user->newer->older = user->older;
	else
		e->newest = user->older;
	if (user->older)
		user->older->newer = user->newer;
	else
		e->oldest = user->newer;
}

static bool is_on_its_mount(const struct go_executable *e)
{
	for (const struct go_user *user = e->oldest; user; user = user->newer)
		if (user->shown.mount == e->mount)
			return true;
	return false;
}

/* Who has lived long is likely to live on: the eldest first. */
static bool attach_by_any(struct go_executable *e)
{
	for (const struct go_user *user = e->oldest; user; user = user->newer) {
		int r = go_executable_attach_by(e, user);

		if (r == 0)
			return true;
		if (r == -EMFILE)
			return false; /* nor by any other */
	}
	return false;
}

void go_executable_leave(struct go_executable *e, struct go_user *user)
{
	unlink_user(e, user);
	if (!e->oldest || !go_executable_links(e) || is_on_its_mount(e))
		return;
	if (attach_by_any(e)) {
		metrics_increment(METRIC_GO_PROBES_MOVED);
		return;
	}
	/* Whatever comes of it: nobody is left who holds the mount. */
	go_executable_detach(e);
}

void go_executable_repair(struct go_executable *e)
{
	if (!e->wanted || go_executable_links(e) || attach_by_any(e) || e->is_lost || e->is_short)
		return;
	e->is_lost = true;
	metrics_increment(METRIC_GO_PROBES_LOST);
}
