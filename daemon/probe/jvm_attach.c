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
#include "probe/jvm_listener.h"
#include "probe/jvm_target.h"
#include "probe/quit_handlers.h"

#define START_NS    (60 * NSEC_PER_SEC)  /* so long a JVM may take to catch its signals */
#define ANSWER_NS   (120 * NSEC_PER_SEC) /* to open its socket, and to load the library */
#define REPLY_BYTES 4096

#define UNSAFE "others may change files in its /tmp (whose it is, no sticky bit)"
#define OTHER  "somebody else attaches to it"

struct attach {
	struct jvm_target target;
	int tmp; /* its /tmp; -1: not open yet */
	struct jvm_judgement judgement;
	const struct jvm_attach_order *order;
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
	if (a->target.process < 0 || jvm_target_has_ended(&a->target))
		return end(a, JVM_ATTACH_GONE, "%s", "");
	errno = -r;
	return end(a,
		   r == -EAGAIN || r == -EMFILE || r == -ENOMEM ? JVM_ATTACH_NOT_YET
								: JVM_ATTACH_REFUSED,
		   "%s: %m", what);
}

static void pause_ms(unsigned int ms)
{
	poll(NULL, 0, (int)ms);
}

/*
 * What is done in folders that the JVM sees is done with its rights: it may show us any folder. And a
 * JVM takes orders of its own user; root out here is nobody in a user namespace of its own. Returns 0 or
 * a negative errno.
 */
static int become_target(const struct jvm_target *t)
{
	return setegid(t->gid) < 0 || seteuid(t->uid) < 0 ? -errno : 0;
}

static void become_root(void)
{
	/* Else it would go on in a state that nothing here is made for. */
	if (seteuid(0) < 0 || setegid(0) < 0)
		abort();
}

static int create_as(const struct attach *a, int folder, const char *name)
{
	int r = become_target(&a->target), fd;

	if (r < 0) {
		become_root();
		return r;
	}
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : fd;
	become_root();
	return r;
}

static void unlink_as(const struct attach *a, int folder, const char *name)
{
	if (become_target(&a->target) == 0)
		unlinkat(folder, name, 0);
	become_root();
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

static void library_close(struct library_file *file)
{
	closep(&file->folder);
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
		return -errno;
	if (fs.f_flag & (ST_RDONLY | ST_NOEXEC))
		return fs.f_flag & ST_RDONLY ? -EROFS : -EACCES;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;

	/* By this name the daemon knows it in the process (jvm_control.h). */
	snprintf(ret->name, sizeof(ret->name), ".tsunagi-agent-%016llx.so",
		 (unsigned long long)random);
	snprintf(ret->path, sizeof(ret->path), "%s/%s", folder, ret->name);
	fd = create_as(a, ret->folder, ret->name);
	if (fd < 0)
		return fd;
	r = write_all(fd, a->order->library->bytes, a->order->library->size);
	if (r < 0)
		unlink_as(a, ret->folder, ret->name);
	return r;
}

static bool library_write(struct attach *a, struct library_file *ret)
{
	static const char *const folders[] = {"/tmp", "/var/tmp", "/dev/shm"};
	int r, first = 0;

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		r = library_write_to(a, folders[i], ret);
		if (r == 0)
			return true;
		closep(&ret->folder);
		ret->folder = -1;
		if (!first)
			first = r;
	}
	if (first == JVM_TARGET_UNSAFE)
		return end(a, JVM_ATTACH_REFUSED, UNSAFE);
	if (first == -EACCES)
		return end(a, JVM_ATTACH_REFUSED,
			   "nothing may be written to its /tmp, or executed there (noexec)");
	return end_error(a, first, "cannot write the agent to its /tmp");
}

/* --- the JVM's socket */

enum { SOCKET_NONE = 1, SOCKET_STALE, SOCKET_STRANGE };

static int connect_as(const struct jvm_target *t, int fd, const struct sockaddr_un *address)
{
	uint64_t end_ns = now_ns(CLOCK_MONOTONIC) + NSEC_PER_SEC;
	int r = become_target(t);

	while (r == 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0) {
		r = -errno;
		if (r == -EAGAIN && now_ns(CLOCK_MONOTONIC) < end_ns) {
			pause_ms(20);
			r = 0;
		}
	}
	become_root();
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

/*
 * The file that makes a JVM take SIGQUIT for an order to listen; without it, it dumps its threads. One
 * that is there already may keep it from that because somebody, an earlier one of us too, has asked: it
 * stays, unless it is older than the process.
 */
static bool trigger_clear(struct attach *a, int folder, const char *name)
{
	uint64_t now = now_ns(CLOCK_REALTIME), age = jvm_target_age_ns(a->order->start_ns);
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || end_error(a, -errno, "cannot look at its folders");
	if (!S_ISREG(st.st_mode) || (st.st_uid != a->target.uid && st.st_uid != 0))
		return end(a, JVM_ATTACH_REFUSED, "somebody else's file is in the way: %s", name);
	if ((uint64_t)st.st_mtime * NSEC_PER_SEC + age + NSEC_PER_SEC > now)
		return end(a, JVM_ATTACH_NOT_YET, OTHER);
	unlink_as(a, folder, name);
	return true;
}

/* A JVM looks for that file in the folder that it is in, first. */
static bool cwd_is_clear(struct attach *a, const char *name)
{
	_cleanup_(closep) int cwd = -1;
	struct stat st, tmp;
	int r = jvm_target_open_cwd(&a->target, &cwd);

	if (r < 0 || fstat(cwd, &st) < 0 || fstat(a->tmp, &tmp) < 0)
		return end_error(a, r < 0 ? r : -errno, "cannot look at the folder that it is in");
	if (st.st_dev == tmp.st_dev && st.st_ino == tmp.st_ino)
		return true;
	if (st.st_mode & S_IWOTH)
		return end(a, JVM_ATTACH_REFUSED,
			   "it does not listen for tools, and everybody may write to the folder "
			   "that it is in");
	return trigger_clear(a, cwd, name);
}

static bool trigger_create(struct attach *a, const char *name)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;

	if (!trigger_clear(a, a->tmp, name))
		return false;
	fd = create_as(a, a->tmp, name);
	if (fd == -EEXIST)
		return end(a, JVM_ATTACH_NOT_YET, OTHER);
	if (fd < 0)
		return end_error(a, fd, "cannot write to its /tmp");
	/* A file system may have ideas of its own of whose a file is. */
	if (fstat(fd, &st) == 0 && st.st_uid == a->target.uid)
		return true;
	unlink_as(a, a->tmp, name);
	return end(a, JVM_ATTACH_REFUSED, "files in its /tmp become somebody else's");
}

/* What was known of it when it was judged holds for that function. */
static bool is_handler_as_judged(const struct attach *a)
{
	uint64_t handler;

	if (!a->judgement.quit_handler)
		return true;
	return quit_handlers_find(a->order->quit_handlers, a->target.pid, &handler) == 0 &&
	       handler == a->judgement.quit_handler;
}

static bool is_starting(const struct attach *a)
{
	return jvm_target_age_ns(a->order->start_ns) < START_NS;
}

static bool may_signal(struct attach *a)
{
	struct jvm_status status;
	int r = jvm_target_status(&a->target, &status);

	if (r < 0)
		return end_error(a, r, "cannot look at it");
	if (status.is_stopped)
		return end(a, JVM_ATTACH_NOT_YET, "it is stopped, by a signal or a debugger");
	if (status.is_quit_pending)
		return end(a, JVM_ATTACH_NOT_YET, "a signal is on its way to it");
	if (status.uid != a->target.uid || status.gid != a->target.gid)
		return end(a, JVM_ATTACH_NOT_YET, "it changes its user");
	if (status.catches_quit && !is_handler_as_judged(a))
		return end(a, JVM_ATTACH_NOT_YET, "what takes its signals has just changed");
	if (status.catches_quit)
		return true;
	if (is_starting(a))
		return end(a, JVM_ATTACH_NOT_YET, "it is starting");
	return end(a, JVM_ATTACH_REFUSED,
		   "it does not listen for tools, nor catch the signal that "
		   "would ask it to");
}

/* Returns as socket_connect(); SOCKET_NONE if there is none for long. */
static int socket_await(struct attach *a, const char *name, int *ret)
{
	uint64_t end_ns = now_ns(CLOCK_MONOTONIC) + ANSWER_NS;
	struct pollfd process = {.fd = a->target.process, .events = POLLIN};
	int r;

	for (int i = 0;; i++) {
		r = socket_connect(a, name, ret);
		if ((r != SOCKET_NONE && r != SOCKET_STALE) || now_ns(CLOCK_MONOTONIC) > end_ns)
			return r;
		if (poll(&process, 1, i < 20 ? 2 : 50) > 0)
			return -ESRCH;
	}
}

/*
 * What listens already would dump its threads, unless it is new enough to look whether its socket's
 * file is gone, and that is so: then it opens it anew.
 */
static bool may_ask(struct attach *a, const char *socket)
{
	struct stat st;
	bool listens;
	int r = jvm_listener_find(&a->target, &listens);

	if (r < 0)
		return end_error(a, r, "cannot tell whether it listens for tools");
	if (fstatat(a->tmp, socket, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return end(a, JVM_ATTACH_NOT_YET, OTHER);
	if (listens && !a->judgement.reopens_socket)
		return end(
			a, JVM_ATTACH_REFUSED,
			"it listens for tools, but its socket is gone from its /tmp; asked again "
			"it would dump its threads");
	return true;
}

/* Whether it may have been asked to listen: then that goes on, whatever comes of it here. */
static bool signal_send(struct attach *a, const char *trigger, const char *socket)
{
	int r;

	if (!cwd_is_clear(a, trigger) || !may_signal(a) || !trigger_create(a, trigger))
		return false;
	/* Again, as late as possible. */
	if (!may_signal(a) || !may_ask(a, socket)) {
		unlink_as(a, a->tmp, trigger);
		return false;
	}
	if (syscall(SYS_pidfd_send_signal, a->target.process, SIGQUIT, NULL, 0) == 0)
		return true;
	r = -errno;
	unlink_as(a, a->tmp, trigger);
	return end_error(a, r, "cannot signal it");
}

static bool socket_demand(struct attach *a, const char *name, int *ret)
{
	char trigger[32];
	int r;

	if (a->judgement.is_early && is_starting(a))
		return end(a, JVM_ATTACH_NOT_YET, "it is starting");
	if (!a->judgement.may_listen)
		return end(a, JVM_ATTACH_REFUSED, "%s", a->judgement.reason);
	snprintf(trigger, sizeof(trigger), ".attach_pid%d", (int)a->target.inner_pid);
	if (!signal_send(a, trigger, name))
		return false;

	/*
	 * HotSpot takes the signal at once, but looks for the file only when it gets to it, which a
	 * long collection may delay: without an answer the file stays.
	 */
	r = socket_await(a, name, ret);
	if (r == 0)
		unlink_as(a, a->tmp, trigger);
	if (r == SOCKET_NONE || r == SOCKET_STALE)
		return end(a, JVM_ATTACH_REFUSED,
			   "it was asked to listen for tools, and does not; /tmp/%s stays, for "
			   "it would dump its threads without",
			   trigger);
	if (r == SOCKET_STRANGE)
		return end(a, JVM_ATTACH_REFUSED, "its attach socket is somebody else's");
	return r == 0 ? true : end_error(a, r, "cannot connect to its attach socket");
}

/* What has a socket was not looked at yet. */
static bool may_order(struct attach *a)
{
	struct jvm_status status;
	int r = jvm_target_status(&a->target, &status);

	if (r < 0)
		return end_error(a, r, "cannot look at it");
	return !status.is_stopped ||
	       end(a, JVM_ATTACH_NOT_YET, "it is stopped, by a signal or a debugger");
}

static bool socket_open(struct attach *a, int *ret)
{
	char name[32];
	int r;

	r = jvm_target_open_folder(&a->target, "/tmp", &a->tmp);
	if (r == JVM_TARGET_UNSAFE)
		return end(a, JVM_ATTACH_REFUSED, UNSAFE);
	if (r < 0)
		return end_error(a, r, "cannot use its /tmp");

	snprintf(name, sizeof(name), ".java_pid%d", (int)a->target.inner_pid);
	r = socket_connect(a, name, ret);
	switch (r) {
	case 0:
		return true;
	case SOCKET_STALE:
		unlink_as(a, a->tmp, name); /* of a JVM that died and had its number */
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
static ssize_t reply_read(const struct attach *a, int fd, char *reply, size_t size)
{
	uint64_t end_ns = now_ns(CLOCK_MONOTONIC) + ANSWER_NS, now;
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
			       {.fd = a->target.process, .events = POLLIN}};
	size_t used = 0;
	ssize_t n;

	while (used < size && (now = now_ns(CLOCK_MONOTONIC)) < end_ns) {
		if (poll(fds, 2, (int)((end_ns - now) / NSEC_PER_MSEC) + 1) <= 0)
			continue;
		if (!fds[0].revents)
			return -ESRCH;
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

/* 'ret_is_asked': the JVM may still load the file. */
static bool give_order(struct attach *a, const struct library_file *file, bool *ret_is_asked)
{
	_cleanup_(closep) int fd = -1;
	char reply[REPLY_BYTES];
	ssize_t n;
	int r;

	if (!socket_open(a, &fd) || !may_order(a))
		return false;
	*ret_is_asked = true;
	r = order_send(fd, file->path, a->order->library->options);
	if (r < 0)
		return end_error(a, r, "cannot order it to load the agent");
	n = reply_read(a, fd, reply, sizeof(reply));
	if (n == -ETIMEDOUT)
		return end(a, JVM_ATTACH_REFUSED,
			   "it does not answer; %s stays, for it may load it still", file->path);
	*ret_is_asked = false;
	if (n < 0)
		return end_error(a, (int)n, "cannot read its answer");
	jvm_attach_judge(reply, (size_t)n, a->result);
	return a->result->outcome == JVM_ATTACH_LOADED;
}

static void load(struct attach *a)
{
	_cleanup_(library_close) struct library_file file = {.folder = -1};
	bool is_asked = false;

	if (!library_write(a, &file))
		return;
	give_order(a, &file, &is_asked);
	/* Under this name nobody else may put a library where the JVM would find it. */
	if (!is_asked)
		unlink_as(a, file.folder, file.name);
}

void jvm_attach(const struct jvm_attach_order *order, struct jvm_attach_result *ret)
{
	struct attach a = {.target = JVM_TARGET_NONE, .tmp = -1, .order = order, .result = ret};
	int r;

	*ret = (struct jvm_attach_result){.outcome = JVM_ATTACH_LOADED};
	if (!order->library->size) {
		end(&a, JVM_ATTACH_REFUSED, "this daemon was built without the agent");
		return;
	}
	r = jvm_target_open(order->pid, order->start_ns, &a.target);
	if (r < 0) {
		errno = -r;
		end(&a, r == -ESRCH || r == -ENOENT ? JVM_ATTACH_GONE : JVM_ATTACH_NOT_YET,
		    "cannot look at it: %m");
		return;
	}
	r = jvm_target_judge(&a.target, order->quit_handlers, &a.judgement);
	if (r == JVM_TARGET_REFUSES)
		end(&a, JVM_ATTACH_REFUSED, "%s", a.judgement.reason);
	else if (r < 0)
		end_error(&a, r, "cannot look at it");
	else
		load(&a);
	closep(&a.tmp);
	jvm_target_close(&a.target);
}
