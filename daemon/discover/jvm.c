/* The JVM in a process; see jvm.h. */
#include "discover/jvm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "discover/proc.h"
#include "discover/text.h"

#define MAPS_BYTES_MAX    (32 << 20)
#define RELEASE_BYTES_MAX 16384

struct search {
	char path[PATH_MAX]; /* of libjvm.so; empty: not found */
	uint64_t inode;
	bool is_deleted;
	bool is_openj9;
};

/* Cuts the field up to the next blank off the line, and the blanks behind it. */
static struct str take_field(struct str *line)
{
	ptrdiff_t end = str_find(*line, ' ');
	struct str field = {.p = line->p, .n = end < 0 ? line->n : (size_t)end};

	*line = str_skip(*line, field.n);
	while (line->n > 0 && line->p[0] == ' ')
		*line = str_skip(*line, 1);
	return field;
}

static uint64_t number(struct str s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++)
		n = n * 10 + (uint64_t)(s.p[i] - '0');
	return n;
}

/* "7f5-7f6 r-xp 00000000 08:01 1234   /usr/lib/libjvm.so (deleted)", proc(5) */
static bool match_mapping(struct str line, void *userdata)
{
	struct search *search = userdata;
	struct str permissions, inode, base, deleted = STR(" (deleted)");
	bool is_deleted = false;

	take_field(&line); /* addresses */
	permissions = take_field(&line);
	if (permissions.n < 3 || permissions.p[2] != 'x')
		return false;
	take_field(&line); /* offset */
	take_field(&line); /* device */
	inode = take_field(&line);
	if (line.n > deleted.n && str_equal(str_skip(line, line.n - deleted.n), deleted)) {
		line.n -= deleted.n;
		is_deleted = true;
	}

	base = text_base_name(line);
	if (str_starts_with(base, STR("libj9vm")))
		search->is_openj9 = true;
	if (!str_equal(base, STR("libjvm.so")) || search->path[0])
		return false;
	snprintf(search->path, sizeof(search->path), "%.*s", STR_ARG(line));
	search->inode = number(inode);
	search->is_deleted = is_deleted;
	/* The walk goes on: OpenJ9 has a libjvm.so too, in front of its own library. */
	return false;
}

/* Opens a path inside a root that is a stranger's: its symbolic links cannot lead out of there. */
static int open_in_root(int root, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned int)flags | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* Cuts the last element of a path off; false when there is none. */
static bool cut_element(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return false;
	*slash = '\0';
	return true;
}

static void take_version(struct str text, char version[32])
{
	struct str key = STR("JAVA_VERSION=\"");

	while (text.n > 0) {
		ptrdiff_t end = str_find(text, '\n'), quote;

		if (str_starts_with(text, key)) {
			text = str_skip(text, key.n);
			quote = str_find(text, '"');
			if (quote <= 0 || quote >= 32)
				return;
			memcpy(version, text.p, (size_t)quote);
			version[quote] = '\0';
			text_clean(version, (size_t)quote);
			return;
		}
		text = str_skip(text, end < 0 ? text.n : (size_t)end + 1);
	}
}

static void read_release(int root, const char *home, char version[32])
{
	char path[PATH_MAX + 16], text[RELEASE_BYTES_MAX];
	_cleanup_(closep) int fd = -1;
	struct stat st;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/release", home);
	/*
	 * It could be a FIFO or a device: neither blocks at this open, and only a regular file is
	 * read.
	 */
	fd = open_in_root(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	n = pread(fd, text, sizeof(text), 0);
	if (n > 0)
		take_version((struct str){.p = text, .n = (size_t)n}, version);
}

/*
 * Whether the path, seen from 'root', is the mapped file, on a file system that does not block us.
 */
static bool is_mapped_file(int dir, int root, const struct search *search)
{
	_cleanup_(closep) int fd = open_in_root(root, search->path, O_PATH);
	struct statx st;

	return fd >= 0 &&
	       statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_MNT_ID, &st) ==
		       0 &&
	       st.stx_ino == search->inode && !proc_mount_is_fuse(dir, st.stx_mnt_id);
}

/*
 * A path in maps is as the mount namespace has it, which is not as the process has it after
 * chroot(2). So both roots are tried, and the inode decides: another file's version would be wrong.
 */
static void find_version(int dir, const struct search *search, char version[32])
{
	static const char *const roots[] = {"root", "/"};
	char home[PATH_MAX];

	if (search->is_deleted)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(roots) && !version[0]; i++) {
		_cleanup_(closep) int root =
			openat(dir, roots[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (root < 0 || !is_mapped_file(dir, root, search))
			continue;
		/*
		 * lib/server/libjvm.so since 9; jre/lib/ARCH/server/libjvm.so in 8, where jre/ has
		 * no release.
		 */
		memcpy(home, search->path, sizeof(home));
		for (unsigned int up = 0; up < 5 && cut_element(home) && !version[0]; up++)
			if (up >= 2)
				read_release(root, home, version);
	}
}

int jvm_find(int dir, struct jvm *ret)
{
	struct search search = {0};
	struct jvm jvm = {0};
	int r;

	r = proc_each_line(dir, "maps", MAPS_BYTES_MAX, match_mapping, &search);
	if (r == PROC_GONE || r == PROC_DENIED)
		return JVM_GONE;
	if (r < 0)
		return r;
	if (!search.path[0])
		return JVM_NONE;

	jvm.is_openj9 = search.is_openj9;
	find_version(dir, &search, jvm.version);
	*ret = jvm;
	return 0;
}
