/* Reading /proc/PID; see proc.h. */
#include "discover/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "metrics/metrics.h"

#define LINE_MAX_BYTES  16384
#define MOUNTINFO_BYTES (1 << 20)

/* include/linux/sched.h; field "flags" of /proc/PID/stat, proc(5). */
#define FLAG_KERNEL_THREAD 0x00200000

int proc_outcome(int error)
{
	switch (error) {
	case ENOENT:
	case ESRCH:
		return PROC_GONE;
	case EACCES:
	case EPERM:
		return PROC_DENIED;
	}
	return -error;
}

int proc_open(uint32_t pid, int *ret_dir)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return proc_outcome(errno);
	*ret_dir = fd;
	return 0;
}

/* read(2) until 'size' bytes are there or the file ends: files of /proc answer in pages. */
static int read_full(int fd, char *buffer, size_t size, size_t *ret_n)
{
	size_t n = 0;

	while (n < size) {
		ssize_t got = read(fd, buffer + n, size - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return proc_outcome(errno);
		if (got == 0)
			break;
		n += (size_t)got;
	}
	*ret_n = n;
	return 0;
}

static int open_file(int dir, const char *name, int *ret_fd)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return proc_outcome(errno);
	*ret_fd = fd;
	return 0;
}

int proc_read(int dir, const char *name, char *buffer, size_t size, size_t *ret_n)
{
	_cleanup_(closep) int fd = -1;
	size_t n;
	int r;

	r = open_file(dir, name, &fd);
	if (r)
		return r;
	r = read_full(fd, buffer, size - 1, &n);
	if (r)
		return r;
	buffer[n] = '\0';
	*ret_n = n;
	return 0;
}

int proc_read_whole(int dir, const char *name, size_t max, char **ret, size_t *ret_n)
{
	_cleanup_(freep) char *text = NULL;
	_cleanup_(closep) int fd = -1;
	size_t n = 0, size = 0;
	int r;

	r = open_file(dir, name, &fd);
	if (r)
		return r;

	/* Most are shorter than a page or two; only the few long ones take more than one round. */
	while (n == size && size < max) {
		size_t got, grown = size ? size * 4 : 4096;
		char *larger = realloc(text, MIN(grown, max) + 1);

		if (!larger)
			return -ENOMEM;
		text = larger;
		size = MIN(grown, max);
		r = read_full(fd, text + n, size - n, &got);
		if (r)
			return r;
		n += got;
	}
	if (n == max)
		metrics_increment(METRIC_PROCESS_READS_CUT);

	text[n] = '\0';
	*ret = TAKE_PTR(text);
	*ret_n = n;
	return 0;
}

/*
 * Hands the whole lines of 'text' on; the bytes behind the last one are left in 'text'. True:
 * enough.
 */
static bool each_line(struct str *text, proc_line_fn line, void *userdata)
{
	ptrdiff_t end;

	while ((end = str_find(*text, '\n')) >= 0) {
		if (line((struct str){.p = text->p, .n = (size_t)end}, userdata))
			return true;
		*text = str_skip(*text, (size_t)end + 1);
	}
	return false;
}

int proc_each_line(int dir, const char *name, size_t max, proc_line_fn line, void *userdata)
{
	_cleanup_(closep) int fd = -1;
	char buffer[2 * LINE_MAX_BYTES];
	size_t kept = 0, total = 0, got;
	bool is_overlong = false; /* the rest of a line that did not fit is being skipped */
	int r;

	r = open_file(dir, name, &fd);
	if (r)
		return r;

	while (total < max) {
		struct str text;

		r = read_full(fd, buffer + kept, sizeof(buffer) - kept, &got);
		if (r)
			return r;
		if (got == 0)
			return 0;
		total += got;
		text = (struct str){.p = buffer, .n = kept + got};
		if (is_overlong) {
			ptrdiff_t end = str_find(text, '\n');

			text = str_skip(text, end < 0 ? text.n : (size_t)end + 1);
			is_overlong = end < 0;
		}
		if (each_line(&text, line, userdata))
			return 0;
		if (text.n > LINE_MAX_BYTES) {
			is_overlong = true;
			text.n = 0;
		}
		memmove(buffer, text.p, text.n);
		kept = text.n;
	}
	metrics_increment(METRIC_PROCESS_READS_CUT);
	return 0;
}

static uint64_t tick_ns(void)
{
	static uint64_t ns;

	if (!ns)
		ns = NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	return ns;
}

uint64_t proc_tick_floor(uint64_t start_ns)
{
	return start_ns - start_ns % tick_ns();
}

int proc_stat(int dir, struct proc_stat *ret)
{
	char text[1024], state;
	unsigned int flags;
	uint32_t parent_pid;
	uint64_t start;
	const char *at;
	size_t n;
	int r;

	r = proc_read(dir, "stat", text, sizeof(text), &n);
	if (r)
		return r;
	/*
	 * The name in parentheses may hold anything, also parentheses: the fields start after the
	 * last one.
	 */
	at = strrchr(text, ')');
	if (!at)
		return -EBADMSG;
	if (sscanf(at + 1,
		   " %c %" SCNu32
		   " %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
		   "%" SCNu64,
		   &state, &parent_pid, &flags, &start) != 4)
		return -EBADMSG;

	*ret = (struct proc_stat){
		.start_ns = start * tick_ns(),
		.parent_pid = parent_pid,
		.is_kernel_thread = flags & FLAG_KERNEL_THREAD,
		.is_zombie = state == 'Z' || state == 'X',
	};
	return 0;
}

int proc_uid(int dir, uint32_t *ret_uid)
{
	char text[2048];
	const char *at;
	uint32_t uid;
	size_t n;
	int r;

	r = proc_read(dir, "status", text, sizeof(text), &n);
	if (r)
		return r;
	at = strstr(text, "\nUid:");
	if (!at || sscanf(at, "\nUid: %*u %" SCNu32, &uid) != 1)
		return -EBADMSG;
	*ret_uid = uid;
	return 0;
}

static void cut_deleted(char *path)
{
	static const char mark[] = " (deleted)";
	size_t n = strlen(path);

	if (n >= sizeof(mark) && strcmp(path + n - (sizeof(mark) - 1), mark) == 0)
		path[n - (sizeof(mark) - 1)] = '\0';
}

int proc_exe(int dir, struct proc_exe *ret)
{
	char path[PATH_MAX];
	struct statx st;
	ssize_t n;

	n = readlinkat(dir, "exe", path, sizeof(path) - 1);
	if (n < 0)
		return proc_outcome(errno);
	path[n] = '\0';

	if (statx(dir, "exe", AT_STATX_DONT_SYNC,
		  STATX_NLINK | STATX_INO | STATX_SIZE | STATX_MTIME | STATX_MNT_ID, &st) < 0)
		return proc_outcome(errno);
	/*
	 * A file may bear that ending in its own name; only one that is in no directory any more
	 * lost its own.
	 */
	if (st.stx_nlink == 0)
		cut_deleted(path);

	*ret = (struct proc_exe){
		.path = strdup(path),
		.is_deleted = st.stx_nlink == 0,
		.device = makedev(st.stx_dev_major, st.stx_dev_minor),
		.inode = st.stx_ino,
		.size = st.stx_size,
		.mtime_ns = (uint64_t)st.stx_mtime.tv_sec * NSEC_PER_SEC + st.stx_mtime.tv_nsec,
		.mount_id = st.stx_mnt_id,
	};
	return ret->path ? 0 : -ENOMEM;
}

struct mount_search {
	uint64_t id;
	bool is_fuse;
};

/* "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue", proc(5) */
static bool match_mount(struct str line, void *userdata)
{
	struct mount_search *search = userdata;
	const char *type;
	uint64_t id = 0;
	size_t i;

	for (i = 0; i < line.n && line.p[i] >= '0' && line.p[i] <= '9'; i++)
		id = id * 10 + (uint64_t)(line.p[i] - '0');
	if (i == 0 || id != search->id)
		return false;
	type = memmem(line.p, line.n, " - fuse", strlen(" - fuse"));
	search->is_fuse = type != NULL;
	return true;
}

bool proc_mount_is_fuse(int dir, uint64_t mount_id)
{
	struct mount_search search = {.id = mount_id};

	/*
	 * A mount that cannot be found is a memfd's or was detached: neither is looked for any
	 * further.
	 */
	if (proc_each_line(dir, "mountinfo", MOUNTINFO_BYTES, match_mount, &search))
		return false;
	return search.is_fuse;
}

int proc_namespace(int dir, const char *name, struct proc_namespace *ret)
{
	struct stat st;

	if (fstatat(dir, name, &st, 0) < 0)
		return proc_outcome(errno);
	*ret = (struct proc_namespace){.device = st.st_dev, .inode = st.st_ino};
	return 0;
}
