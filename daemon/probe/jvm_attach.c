/* Loading a library into a JVM; see jvm_attach.h. Facts: HotSpot's os/linux/attachListener_linux.cpp (posix since 18). */
#include "probe/jvm_attach.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/str.h"
#include "base/util.h"
#include "probe/jvm_target.h"

#define START_NS    (60 * NSEC_PER_SEC)  /* so long a JVM may take to catch its signals */
#define LISTEN_NS   (30 * NSEC_PER_SEC)  /* to open its socket */
#define PENDING_NS  (600 * NSEC_PER_SEC) /* to take a signal that was sent */
#define REPLY_NS    (60 * NSEC_PER_SEC)  /* to load the library */
#define OTHER_S     60                   /* a file of another attempt is older than that: stale */
#define REPLY_BYTES 4096

#define UNSAFE "others may change files in its /tmp (no sticky bit)"
#define OTHER  "somebody else attaches to it"

struct attach {
	struct jvm_target target;
	int tmp; /* its /tmp; -1: not open yet */
	const struct jvm_library *library;
	uint64_t start_ns;
	struct jvm_attach_result *result;
};

/* Always false. */
__attribute__((format(printf, 3, 4))) static bool end(struct attach *a,
						      enum jvm_attach_outcome outcome,
						      const char *format, ...)
{
	va_list args;

	a->result->outcome = outcome;
	va_start(args, format);
	vsnprintf(a->result->reason, sizeof(a->result->reason), format, args);
	va_end(args);
	return false;
}

/* With errno's text behind it. */
static bool end_error(struct attach *a, int r, const char *what)
{
	if (r == -ESRCH || r == -ENOENT)
		return end(a, JVM_ATTACH_GONE, "%s", "");
	errno = -r;
	return end(a, JVM_ATTACH_REFUSED, "%s: %m", what);
}

static void pause_ms(unsigned int ms)
{
	poll(NULL, 0, (int)ms);
}

/* --- the library's file, in the JVM's own file system */

struct library_file {
	int folder; /* -1: there is none */
	char name[64];
	char path[128]; /* as the JVM sees it */
};

static int write_all(int fd, const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

static void library_remove(struct library_file *file)
{
	if (file->folder >= 0)
		unlinkat(file->folder, file->name, 0);
	closep(&file->folder);
	file->folder = -1;
}

/* Returns 0, JVM_TARGET_UNSAFE, -EROFS or -EACCES where nothing can be written or run, or another negative errno. */
static int library_write_to(const struct attach *a, const char *folder, struct library_file *ret)
{
	_cleanup_(closep) int fd = -1;
	struct statvfs fs;
	uint64_t random;
	int r;

	r = jvm_target_open_folder(&a->target, folder, &ret->folder);
	if (r != 0)
		return r;
	if (fstatvfs(ret->folder, &fs) < 0)
		r = -errno;
	else if (fs.f_flag & (ST_RDONLY | ST_NOEXEC))
		r = fs.f_flag & ST_RDONLY ? -EROFS : -EACCES;
	else if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		r = -EIO;
	else
		r = 0;
	if (r == 0) {
		/* By this name the daemon knows it in the process (jvm_control.h). */
		snprintf(ret->name, sizeof(ret->name), ".tsunagi-agent-%016llx.so",
			 (unsigned long long)random);
		snprintf(ret->path, sizeof(ret->path), "%s/%s", folder, ret->name);
		/* Root's, and readable for all: the JVM's user may be unknown out here. */
		fd = openat(ret->folder, ret->name,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
		r = fd < 0 ? -errno : write_all(fd, a->library->bytes, a->library->size);
		if (r == 0 && fchmod(fd, 0444) < 0)
			r = -errno;
		if (fd >= 0 && r < 0)
			unlinkat(ret->folder, ret->name, 0);
	}
	if (r < 0) {
		closep(&ret->folder);
		ret->folder = -1;
	}
	return r;
}

static bool library_write(struct attach *a, struct library_file *ret)
{
	static const char *const folders[] = {"/tmp", "/var/tmp", "/dev/shm", "/run"};
	int r, first = 0;

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		r = library_write_to(a, folders[i], ret);
		if (r == 0)
			return true;
		if (!first)
			first = r;
	}
	if (first == JVM_TARGET_UNSAFE)
		return end(a, JVM_ATTACH_REFUSED, UNSAFE);
	if (first == -EACCES)
		return end(a, JVM_ATTACH_REFUSED, "nothing may be executed from its /tmp (noexec)");
	return end_error(a, first == -ENOENT ? -EACCES : first,
			 "cannot write the agent to its /tmp");
}

/* --- the JVM's socket */

enum { SOCKET_NONE = 1, SOCKET_STALE, SOCKET_STRANGE };

static int connect_as(const struct jvm_target *t, int fd, const struct sockaddr_un *address)
{
	uint64_t end_ns = now_ns(CLOCK_MONOTONIC) + NSEC_PER_SEC;
	int r;

	/*
	 * A JVM takes orders of its own user, and of root; but root out here is nobody in a user
	 * namespace of its own.
	 */
	if (setegid(t->gid) < 0 || seteuid(t->uid) < 0)
		return -errno;
	do {
		r = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno
											: 0;
		if (r == -EAGAIN)
			pause_ms(20);
	} while (r == -EAGAIN && now_ns(CLOCK_MONOTONIC) < end_ns);
	if (seteuid(0) < 0 || setegid(0) < 0)
		return -errno;
	return r;
}

/* Returns 0, one of the above, or a negative errno. */
static int socket_connect(const struct attach *a, const char *name, int *ret)
{
	const struct jvm_target *t = &a->target;
	_cleanup_(closep) int file = -1, fd = -1;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ucred peer;
	socklen_t size = sizeof(peer);
	struct stat st;
	int r;

	/* The very file that is looked at is the one that is connected to. */
	file = openat(a->tmp, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0)
		return errno == ENOENT ? SOCKET_NONE : -errno;
	if (fstat(file, &st) < 0)
		return -errno;
	if (!S_ISSOCK(st.st_mode) || st.st_uid != t->uid)
		return SOCKET_STRANGE;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", file);
	r = connect_as(t, fd, &address);
	if (r == -ECONNREFUSED)
		return SOCKET_STALE;
	if (r < 0)
		return r;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	if (peer.pid != t->pid)
		return SOCKET_STRANGE;
	*ret = TAKE_FD(fd);
	return 0;
}

/* --- asking for that socket */

/* Of another attempt that goes on, perhaps, or was left behind. Returns whether there is none any more. */
static bool trigger_clear(struct attach *a, const char *name)
{
	struct stat st;

	if (fstatat(a->tmp, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	if (!S_ISREG(st.st_mode) || (st.st_uid != a->target.uid && st.st_uid != 0))
		return end(a, JVM_ATTACH_REFUSED, "somebody else's file is in the way: /tmp/%s",
			   name);
	if ((uint64_t)st.st_mtime + OTHER_S > now_ns(CLOCK_REALTIME) / NSEC_PER_SEC)
		return end(a, JVM_ATTACH_NOT_YET, OTHER);
	unlinkat(a->tmp, name, 0);
	return true;
}

/* It makes a JVM take SIGQUIT for an order to listen; without it, it dumps its threads. */
static bool trigger_create(struct attach *a, const char *name)
{
	_cleanup_(closep) int fd = -1;

	if (!trigger_clear(a, name))
		return false;
	fd = openat(a->tmp, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST)
		return end(a, JVM_ATTACH_NOT_YET, OTHER);
	if (fd < 0)
		return end_error(a, -errno, "cannot write to its /tmp");
	/* JDK 8 takes one of its own user only. */
	if (fchown(fd, a->target.uid, a->target.gid) < 0 && a->target.uid != 0) {
		unlinkat(a->tmp, name, 0);
		return end_error(a, -errno, "cannot give a file in its /tmp to its user");
	}
	return true;
}

/* Looked at as late as possible. */
static bool may_signal(struct attach *a)
{
	struct jvm_status status;
	int r = jvm_target_status(&a->target, &status);

	if (r < 0)
		return end_error(a, r, "cannot look at it");
	if (status.is_stopped)
		return end(a, JVM_ATTACH_NOT_YET, "it is stopped, by a signal or a debugger");
	if (status.catches_quit)
		return true;
	if (jvm_target_age_ns(a->start_ns) < START_NS)
		return end(a, JVM_ATTACH_NOT_YET, "it is starting");
	return end(a, JVM_ATTACH_REFUSED,
		   "it does not catch SIGQUIT and does not listen (-Xrs without attach listener?)");
}

/* Whether the signal may still come to a JVM that would then look for the file. */
static bool is_pending(const struct attach *a)
{
	struct jvm_status status;

	return jvm_target_status(&a->target, &status) == 0 &&
	       (status.is_quit_pending || status.is_stopped);
}

/* Returns as socket_connect(). */
static int socket_await(struct attach *a, const char *name, int *ret)
{
	uint64_t began = now_ns(CLOCK_MONOTONIC), now = began;
	struct pollfd process = {.fd = a->target.process, .events = POLLIN};
	int r;

	for (int i = 0;; i++) {
		r = socket_connect(a, name, ret);
		/* Between its being made and its being listened on it looks like a stale one. */
		if (r != SOCKET_NONE && r != SOCKET_STALE)
			return r;
		now = now_ns(CLOCK_MONOTONIC);
		if (now - began > PENDING_NS || (now - began > LISTEN_NS && !is_pending(a)))
			return r;
		if (poll(&process, 1, i < 20 ? 2 : 50) > 0)
			return -ESRCH;
	}
}

static bool socket_demand(struct attach *a, const char *name, int *ret)
{
	char trigger[32];
	int r;

	snprintf(trigger, sizeof(trigger), ".attach_pid%d", (int)a->target.inner_pid);
	if (!trigger_create(a, trigger))
		return false;
	if (!may_signal(a)) {
		unlinkat(a->tmp, trigger, 0);
		return false;
	}
	if (syscall(SYS_pidfd_send_signal, a->target.process, SIGQUIT, NULL, 0) < 0) {
		r = -errno;
		unlinkat(a->tmp, trigger, 0);
		return end_error(a, r, "cannot signal it");
	}

	r = socket_await(a, name, ret);
	if (r == 0 || !is_pending(a))
		unlinkat(a->tmp, trigger, 0);
	if (r == SOCKET_NONE || r == SOCKET_STALE)
		return end(a, JVM_ATTACH_FAILED, "it did not open its attach socket");
	if (r == SOCKET_STRANGE)
		return end(a, JVM_ATTACH_REFUSED, "its attach socket is somebody else's");
	return r == 0 ? true : end_error(a, r, "cannot connect to its attach socket");
}

static bool socket_open(struct attach *a, int *ret)
{
	char name[32];
	int r;

	r = jvm_target_open_folder(&a->target, "/tmp", &a->tmp);
	if (r == JVM_TARGET_UNSAFE)
		return end(a, JVM_ATTACH_REFUSED, UNSAFE);
	if (r < 0)
		return end_error(a, r == -ENOENT ? -ENOTDIR : r, "cannot use its /tmp");

	snprintf(name, sizeof(name), ".java_pid%d", (int)a->target.inner_pid);
	r = socket_connect(a, name, ret);
	switch (r) {
	case 0:
		return true;
	case SOCKET_STALE:
		unlinkat(a->tmp, name, 0); /* of a JVM that died and had its number */
		return socket_demand(a, name, ret);
	case SOCKET_NONE:
		return socket_demand(a, name, ret);
	case SOCKET_STRANGE:
		return end(a, JVM_ATTACH_REFUSED, "somebody else's file is in the way: /tmp/%s",
			   name);
	default:
		return end_error(a, r, "cannot connect to its attach socket");
	}
}

/* --- the order */

/* Version, command and three arguments, each with its NUL. */
static int order_send(int fd, const char *path, const char *options)
{
	char order[512];
	int n;

	n = snprintf(order, sizeof(order), "1%cload%c%s%ctrue%c%s", 0, 0, path, 0, 0, options);
	if (n < 0 || n + 1 >= (int)sizeof(order))
		return -ENAMETOOLONG;
	/* It is new and empty: all fits. */
	if (send(fd, order, (size_t)n + 1, MSG_NOSIGNAL) != n + 1)
		return errno ? -errno : -EIO;
	return 0;
}

/* Returns the number of bytes, or a negative errno. */
static ssize_t reply_read(int fd, char *reply, size_t size)
{
	uint64_t end_ns = now_ns(CLOCK_MONOTONIC) + REPLY_NS, now;
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	size_t used = 0;
	ssize_t n;

	while (used < size && (now = now_ns(CLOCK_MONOTONIC)) < end_ns) {
		if (poll(&readable, 1, (int)((end_ns - now) / NSEC_PER_MSEC) + 1) <= 0)
			continue;
		n = recv(fd, reply + used, size - used, 0);
		if (n == 0)
			return (ssize_t)used;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n > 0)
			used += (size_t)n;
	}
	return used == size ? (ssize_t)used : -ETIMEDOUT;
}

/* A line without its end; what is left of the text. */
static struct str take_line(struct str *text)
{
	ptrdiff_t end = str_find(*text, '\n');
	struct str line = {.p = text->p, .n = end < 0 ? text->n : (size_t)end};

	*text = str_skip(*text, line.n + 1);
	return line;
}

void jvm_attach_judge(const char *reply, size_t size, struct jvm_attach_result *ret)
{
	struct str text = {.p = reply, .n = size};
	struct str first = take_line(&text), second = take_line(&text), why;

	*ret = (struct jvm_attach_result){.outcome = JVM_ATTACH_LOADED};
	if (str_equal(first, STR("0")) &&
	    (str_equal(second, STR("return code: 0")) || str_equal(second, STR("0"))))
		return;

	ret->outcome = first.n ? JVM_ATTACH_REFUSED : JVM_ATTACH_FAILED;
	why = second.n ? second : first;
	snprintf(ret->reason, sizeof(ret->reason), "the JVM does not load the agent: %.*s",
		 (int)MIN(why.n, sizeof(ret->reason)), why.p ? why.p : "");
	for (char *c = ret->reason; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
}

static bool load(struct attach *a)
{
	_cleanup_(library_remove) struct library_file file = {.folder = -1};
	_cleanup_(closep) int fd = -1;
	char reply[REPLY_BYTES];
	ssize_t n;
	int r;

	if (!library_write(a, &file) || !socket_open(a, &fd))
		return false;
	r = order_send(fd, file.path, a->library->options);
	if (r < 0)
		return end_error(a, r, "cannot order it to load the agent");
	n = reply_read(fd, reply, sizeof(reply));
	if (n == -ETIMEDOUT)
		return end(a, JVM_ATTACH_FAILED, "it did not answer");
	if (n < 0)
		return end_error(a, (int)n, "cannot read its answer");
	jvm_attach_judge(reply, (size_t)n, a->result);
	return a->result->outcome == JVM_ATTACH_LOADED;
}

void jvm_attach(uint32_t pid, uint64_t start_ns, const struct jvm_library *library,
		struct jvm_attach_result *ret)
{
	struct attach a = {.target = JVM_TARGET_NONE,
			   .tmp = -1,
			   .library = library,
			   .start_ns = start_ns,
			   .result = ret};
	struct jvm_refusal refusal;
	int r;

	*ret = (struct jvm_attach_result){.outcome = JVM_ATTACH_LOADED};
	if (!library->size) {
		end(&a, JVM_ATTACH_REFUSED, "this daemon was built without the agent");
		return;
	}
	r = jvm_target_open(pid, start_ns, &a.target);
	if (r < 0) {
		end_error(&a, r, "cannot look at it");
		return;
	}
	r = jvm_target_judge(&a.target, &refusal);
	if (r == JVM_TARGET_REFUSES)
		end(&a, JVM_ATTACH_REFUSED, "%s", refusal.reason);
	else if (r < 0)
		end_error(&a, r, "cannot look at it");
	else
		load(&a);
	closep(&a.tmp);
	jvm_target_close(&a.target);
}
