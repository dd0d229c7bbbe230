/* The lock on a runtime directory; see lock.h. */
#include "service/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/str.h"

/*
 * The directory or the lock file may vanish between two steps when another daemon ends just then. And
 * of one that was killed a child may be there a moment longer, and the lock with it.
 */
#define ATTEMPTS_MAX    100
#define ATTEMPT_WAIT_US 10000

/* A holder writes its pid right after it took the lock. */
#define PID_WAIT_MS_MAX 100

/* In the lock file, behind the pid: the directory goes with the daemon. */
#define MADE_DIR "made its directory"

/* Our own "try again" of one attempt. */
enum { LOCK_VANISHED = 2 };

struct lock {
	char *dir;
	int dir_fd;
	int fd;
	bool has_made_dir;
	bool has_removed_socket;
};

void lock_free(struct lock *lock)
{
	if (!lock)
		return;
	/*
	 * Unlinked while it is still locked: who waits for it sees that it is gone, and starts
	 * over.
	 */
	if (lock->fd >= 0) {
		unlinkat(lock->dir_fd, LOCK_FILE, 0);
		close(lock->fd);
	}
	if (lock->dir_fd >= 0)
		close(lock->dir_fd);
	if (lock->has_made_dir)
		rmdir(lock->dir);
	free(lock->dir);
	free(lock);
}

static int open_dir(struct lock *lock)
{
	if (mkdir(lock->dir, 0755) == 0)
		lock->has_made_dir = true;
	else if (errno != EEXIST)
		return -errno;

	lock->dir_fd = open(lock->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (lock->dir_fd < 0)
		return errno == ENOENT ? LOCK_VANISHED : -errno;
	/*
	 * The umask may have taken bits away, and then tsunagictl could not say that the daemon
	 * runs.
	 */
	if (lock->has_made_dir && fchmod(lock->dir_fd, 0755) < 0)
		return -errno;
	return 0;
}

static pid_t read_pid(int fd)
{
	for (int waited_ms = 0; waited_ms < PID_WAIT_MS_MAX; waited_ms += 10) {
		char text[32] = {0};
		long pid;

		if (pread(fd, text, sizeof(text) - 1, 0) > 0 && strchr(text, '\n')) {
			pid = strtol(text, NULL, 10);
			return pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
		}
		usleep(10 * 1000);
	}
	return 0;
}

/*
 * The second line of a file that a daemon left which died: it had made the directory, and whoever
 * comes after it takes it away.
 */
static bool read_has_made_dir(int fd)
{
	char text[64] = {0};

	return pread(fd, text, sizeof(text) - 1, 0) > 0 && strstr(text, "\n" MADE_DIR "\n");
}

static int write_pid(const struct lock *lock)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%d\n%s", (int)getpid(),
			 lock->has_made_dir ? MADE_DIR "\n" : "");
	ssize_t written;

	if (ftruncate(lock->fd, 0) < 0)
		return -errno;
	written = pwrite(lock->fd, text, (size_t)n, 0);
	if (written < 0)
		return -errno;
	return written == n ? 0 : -EIO;
}

/*
 * Whether DIR/lock is still the file we locked, and not one that was made after ours was unlinked.
 */
static bool is_current(const struct lock *lock, int fd)
{
	struct stat ours, current;

	return fstat(fd, &ours) == 0 && fstatat(lock->dir_fd, LOCK_FILE, &current, 0) == 0 &&
	       ours.st_ino == current.st_ino && ours.st_dev == current.st_dev;
}

static int take_file(struct lock *lock, pid_t *ret_pid)
{
	_cleanup_(closep) int fd =
		openat(lock->dir_fd, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	struct stat st;

	/* ENOENT: the directory itself was removed after we opened it. */
	if (fd < 0)
		return errno == ENOENT ? LOCK_VANISHED : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EEXIST;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return -errno;
		*ret_pid = read_pid(fd);
		return LOCK_HELD;
	}
	if (!is_current(lock, fd))
		return LOCK_VANISHED;
	lock->fd = TAKE_FD(fd);
	lock->has_made_dir |= read_has_made_dir(lock->fd);
	return write_pid(lock);
}

/* Only a socket is ours to remove. */
static int remove_stale_socket(struct lock *lock)
{
	struct stat st;

	if (fstatat(lock->dir_fd, LOCK_SOCKET, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	if (unlinkat(lock->dir_fd, LOCK_SOCKET, 0) < 0)
		return -errno;
	lock->has_removed_socket = true;
	return 0;
}

static int take(const char *dir, struct lock **ret, pid_t *ret_pid)
{
	_cleanup_(lock_freep) struct lock *lock = calloc(1, sizeof(*lock));
	int r;

	if (!lock)
		return -ENOMEM;
	lock->dir_fd = -1;
	lock->fd = -1;
	lock->dir = strdup(dir);
	if (!lock->dir)
		return -ENOMEM;

	r = open_dir(lock);
	if (r)
		return r;
	r = take_file(lock, ret_pid);
	if (r)
		return r;
	r = remove_stale_socket(lock);
	if (r)
		return r;
	*ret = TAKE_PTR(lock);
	return 0;
}

/* In another namespace of processes it may be there all the same, and hold the lock to the last attempt. */
static bool is_gone(pid_t pid)
{
	return pid > 0 && kill(pid, 0) < 0 && errno == ESRCH;
}

int lock_new(const char *dir, struct lock **ret, pid_t *ret_pid)
{
	int r = LOCK_VANISHED;

	for (int i = 0; i < ATTEMPTS_MAX; i++) {
		r = take(dir, ret, ret_pid);
		if (r == LOCK_HELD && is_gone(*ret_pid))
			usleep(ATTEMPT_WAIT_US);
		else if (r != LOCK_VANISHED)
			break;
	}
	return r == LOCK_VANISHED ? -EAGAIN : r;
}

bool lock_has_removed_socket(const struct lock *lock)
{
	return lock->has_removed_socket;
}
