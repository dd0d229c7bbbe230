/* Executables of Go and their links; see go_executable.h. */
#include "go_executable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/util.h"
#include "descriptors.h"
#include "metrics/metrics.h"

static uint64_t time_ns(const struct statx_timestamp *t)
{
	return (uint64_t)t->tv_sec * NSEC_PER_SEC + t->tv_nsec;
}

int go_executable_open(uint32_t pid, struct go_shown *ret)
{
	_cleanup_(closep) int fd = -1;
	struct statx st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &st) < 0)
		return -errno;
	*ret = (struct go_shown){
		.device = makedev(st.stx_dev_major, st.stx_dev_minor),
		.inode = st.stx_ino,
		.changed_ns = time_ns(&st.stx_ctime),
		.mount = st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : 0,
		.bytes = st.stx_size,
		.written_ns = time_ns(&st.stx_mtime),
	};
	return TAKE_FD(fd);
}

/* --- is it still what was read? */

void go_executable_note(struct go_executable *e, int fd, const struct go_shown *shown)
{
	e->bytes = shown->bytes;
	e->written_ns = shown->written_ns;
	for (size_t i = 0; i < _GO_PROBE_SITE_MAX; i++)
		if (e->sites[i] &&
		    pread(fd, e->code[i], sizeof(e->code[i]), (off_t)e->sites[i]) < 0)
			memset(e->code[i], 0, sizeof(e->code[i])); /* which no code is */
}

bool go_executable_is_noted(const struct go_executable *e, const struct go_shown *shown)
{
	return e->bytes == shown->bytes && e->written_ns == shown->written_ns;
}

/*
 * Who writes to a file may set its times back, and whoever renames it or takes its name away changes
 * the one that nobody can set: so not that one, and the code itself.
 */
static bool is_unchanged(const struct go_executable *e, int fd)
{
	uint8_t code[GO_EXECUTABLE_CODE_BYTES];
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_SIZE | STATX_MTIME, &st) < 0 ||
	    st.stx_size != e->bytes || time_ns(&st.stx_mtime) != e->written_ns)
		return false;
	for (size_t i = 0; i < _GO_PROBE_SITE_MAX; i++) {
		if (!(e->wanted & 1U << i))
			continue;
		if (pread(fd, code, sizeof(code), (off_t)e->sites[i]) != sizeof(code) ||
		    memcmp(code, e->code[i], sizeof(code)) != 0)
			return false;
	}
	return true;
}

static void note_written(struct go_executable *e)
{
	if (!e->is_written)
		metrics_increment(METRIC_GO_FILES_WRITTEN);
	e->is_written = true;
}

/* The lease that links through 'fd' are made under, and the file is what was read. */
static int take_lease(struct go_executable *e, int fd, uint64_t mount, struct file_lease **ret)
{
	_cleanup_(file_lease_unrefp) struct file_lease *lease = NULL;
	int r = 0;

	if (e->lease && e->mount == mount)
		lease = file_lease_ref(e->lease);
	else
		r = descriptors_are_short(fd) ? -EMFILE : file_lease_new(fd, &lease);
	if (r == -EAGAIN || r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	if (r < 0) {
		e->why_not = file_lease_why_not(r);
		return -ENOLCK;
	}
	if (!is_unchanged(e, fd)) {
		note_written(e);
		return -ESTALE;
	}
	*ret = TAKE_PTR(lease);
	return 0;
}

/* --- links */

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

/* What becomes of an attempt that failed with 'r', a negative errno. */
static int note_failure(struct go_executable *e, int r)
{
	if (r != -EMFILE && r != -ENFILE)
		return r;
	if (!e->is_short)
		metrics_increment(METRIC_GO_PROBES_NO_DESCRIPTORS);
	descriptors_warn_short();
	e->is_short = true;
	return -EMFILE;
}

int go_executable_attach(struct go_executable *e, int fd, uint64_t mount)
{
	/* Where one ends before where one begins: whatever was noted is forgotten. */
	static const enum go_probe_site order[] = {
		GO_PROBE_ROUND_TRIP, GO_PROBE_END,    GO_PROBE_SERVE, GO_PROBE_READ,
		GO_PROBE_BEGIN,      GO_PROBE_BEGUN,  GO_PROBE_GIN,   GO_PROBE_GIN_NEXT,
		GO_PROBE_ECHO,       GO_PROBE_ECHO_5, GO_PROBE_CHI,   GO_PROBE_GORILLA,
	};
	_cleanup_(file_lease_unrefp) struct file_lease *lease = NULL;
	struct uprobe *made[_GO_PROBE_SITE_MAX] = {0};
	int r;

	static_assert(ARRAY_SIZE(order) == _GO_PROBE_SITE_MAX, "each site has its turn");
	r = take_lease(e, fd, mount, &lease);
	for (size_t i = 0; i < ARRAY_SIZE(order) && r >= 0; i++) {
		struct go_probe_place place = {
			.fd = fd,
			.lease = lease,
			.site = order[i],
			.offset = e->sites[order[i]],
		};

		if (!(e->wanted & 1U << place.site) ||
		    (e->uprobes[place.site] && e->mount == mount))
			continue;
		r = descriptors_are_short(fd)
			    ? -EMFILE
			    : go_probe_attach(e->probe, &place, &made[place.site]);
	}
	/* Who waits for it would wait longer, and then others must not be in his way. */
	if (r >= 0 && !file_lease_is_whole(lease))
		r = -EAGAIN;
	if (r < 0) {
		detach_all(e, made);
		return note_failure(e, r);
	}
	for (size_t i = 0; i < _GO_PROBE_SITE_MAX; i++) {
		if (!made[i])
			continue;
		go_probe_detach(e->probe, e->uprobes[i]);
		e->uprobes[i] = made[i];
	}
	file_lease_unref(e->lease);
	e->lease = TAKE_PTR(lease);
	e->mount = mount;
	e->is_lost = e->is_short = e->is_written = false;
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
	file_lease_unref(e->lease);
	e->lease = NULL;
}

void go_executable_tick(struct go_executable *e)
{
	if (!e->lease || file_lease_is_whole(e->lease))
		return;
	note_written(e);
	go_executable_detach(e);
}

void go_executable_abandon(struct go_executable *e)
{
	note_written(e);
	e->wanted = 0;
	go_executable_detach(e);
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
		if (r == -EMFILE || r == -EAGAIN || r == -ENOLCK)
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
	if (!e->wanted || go_executable_links(e) || attach_by_any(e) || e->is_lost || e->is_short ||
	    e->is_written)
		return;
	e->is_lost = true;
	metrics_increment(METRIC_GO_PROBES_LOST);
}
