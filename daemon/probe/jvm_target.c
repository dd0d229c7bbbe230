/* A JVM that an agent is to be loaded into; see jvm_target.h. */
#include "probe/jvm_target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/str.h"
#include "probe/jvm_flags.h"
#include "probe/jvm_options.h"
#include "probe/quit_handlers.h"

#define TEXT_BYTES_MAX     (256U << 10) /* of a command line or an environment */
#define PERFDATA_BYTES_MAX (1U << 20)
#define FDS_MAX            65536
#define OWNERS_MAX         3

/* --- identity */

/* Field 22 of /proc/PID/stat, proc_pid_stat(5); 0: not to be read. */
static uint64_t start_of(int dir)
{
	_cleanup_(fclosep) FILE *file = fopen_at(dir, "stat");
	unsigned long long ticks = 0;
	char line[1024], *name_end;

	if (!file || !fgets(line, sizeof(line), file))
		return 0;
	name_end = strrchr(line, ')');
	if (!name_end || sscanf(name_end + 1,
				" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
				"%*d %*d %*d %llu",
				&ticks) != 1)
		return 0;
	return ticks;
}

bool jvm_target_has_ended(const struct jvm_target *t)
{
	struct pollfd fd = {.fd = t->process, .events = POLLIN};

	return poll(&fd, 1, 0) != 0;
}

int jvm_target_open(uint32_t pid, uint64_t start_ns, struct jvm_target *ret)
{
	struct jvm_target t = {.process = -1, .dir = -1, .pid = (pid_t)pid};
	uint64_t ticks = start_ns / (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
	struct jvm_status status;
	char path[32];
	int r = 0;

	t.process = (int)syscall(SYS_pidfd_open, t.pid, 0);
	snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
	if (t.process >= 0)
		t.dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (t.dir < 0)
		r = -errno;
	else if (start_of(t.dir) != ticks || jvm_target_has_ended(&t))
		r = -ESRCH;
	else
		r = jvm_target_status(&t, &status);
	if (r < 0) {
		jvm_target_close(&t);
		return r;
	}
	t.inner_pid = status.inner_pid;
	t.uid = status.uid;
	t.gid = status.gid;
	*ret = t;
	return 0;
}

void jvm_target_close(struct jvm_target *t)
{
	closep(&t->dir);
	closep(&t->process);
	*t = JVM_TARGET_NONE;
}

uint64_t jvm_target_age_ns(uint64_t start_ns)
{
	uint64_t now = now_ns(CLOCK_BOOTTIME);

	return now > start_ns ? now - start_ns : 0;
}

static bool has_signal(const char *hex, int signal)
{
	return strtoull(hex, NULL, 16) >> (signal - 1) & 1;
}

int jvm_target_status(const struct jvm_target *t, struct jvm_status *ret)
{
	_cleanup_(fclosep) FILE *file = fopen_at(t->dir, "status");
	struct jvm_status s = {.inner_pid = t->pid, .uid = (uid_t)-1};
	unsigned int id;
	char line[4096], state;

	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "State: %c", &state) == 1)
			s.is_stopped = strchr("TtZX", state) != NULL; /* proc_pid_stat(5) */
		else if (sscanf(line, "Uid: %*u %u", &id) == 1)
			s.uid = id;
		else if (sscanf(line, "Gid: %*u %u", &id) == 1)
			s.gid = id;
		else if (!strncmp(line, "NSpid:", 6) && strrchr(line, '\t'))
			s.inner_pid = (pid_t)strtol(strrchr(line, '\t'), NULL, 10);
		else if (!strncmp(line, "SigCgt:", 7))
			s.catches_quit = has_signal(line + 7, SIGQUIT);
		else if (!strncmp(line, "ShdPnd:", 7) || !strncmp(line, "SigPnd:", 7))
			s.is_quit_pending |= has_signal(line + 7, SIGQUIT);
	}
	if (s.uid == (uid_t)-1 || s.inner_pid <= 0 || jvm_target_has_ended(t))
		return -ESRCH;
	*ret = s;
	return 0;
}

/* --- what it says of itself */

struct said {
	struct jvm_options options;
	bool is_openj9;
	uint64_t perf_from, perf_to; /* its performance data, in its memory; 0: none */
	bool attach_off;
	bool reopens_socket;
	uint64_t quit_handler; /* 0: the kernel does not tell */
	uint64_t library;      /* where the last libjvm.so begins that was seen; 0: none */
	unsigned long long library_inode; /* of its file */
	uint64_t quit_library,
		only_library; /* the one that has that handler; if there is but one */
	unsigned int n_libraries;
};

/* "7f5-7f6 rw-s 00000000 08:01 1234   /tmp/hsperfdata_shop/17", proc_pid_maps(5); tools map others' read-only. */
static bool is_own_perfdata(const struct jvm_target *t, const char *permissions, const char *path)
{
	char name[16];

	snprintf(name, sizeof(name), "/%d", (int)t->inner_pid);
	return !strncmp(permissions, "rw-s", 4) && strstr(path, "/hsperfdata_") &&
	       !strncmp(strrchr(path, '/'), name, strlen(name)) &&
	       strchr("\n ", strrchr(path, '/')[strlen(name)]);
}

struct mapping {
	uint64_t from, to, offset;
	char permissions[5];
	unsigned long long inode;
};

/* Its file's parts lie one behind the other, the first byte at the beginning. */
static void read_library(const struct mapping *m, struct said *said)
{
	if (m->offset == 0) {
		said->library = m->from;
		said->library_inode = m->inode;
		said->n_libraries++;
		said->only_library = said->n_libraries == 1 ? m->from : 0;
	}
	if (m->permissions[2] == 'x' && said->library && m->inode == said->library_inode &&
	    said->quit_handler >= m->from && said->quit_handler < m->to)
		said->quit_library = said->library;
}

static void read_mapping(const struct jvm_target *t, const char *line, struct said *said)
{
	const char *path = strchr(line, '/'), *base, *tracer;
	struct mapping m;

	if (!path || sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %llu", &m.from,
			    &m.to, m.permissions, &m.offset, &m.inode) != 5)
		return;
	base = strrchr(path, '/') + 1;
	if (!strncmp(base, "libjvm.so", 9) && strchr("\n ", base[9]))
		read_library(&m, said);
	if (!strncmp(base, "libj9vm", 7))
		said->is_openj9 = true;
	tracer = jvm_options_tracer(str_from(base));
	if (tracer)
		said->options.tracer = tracer;
	if (is_own_perfdata(t, m.permissions, path) && m.to > m.from &&
	    m.to - m.from <= PERFDATA_BYTES_MAX) {
		said->perf_from = m.from;
		said->perf_to = m.to;
	}
}

static int read_maps(const struct jvm_target *t, struct said *said)
{
	_cleanup_(fclosep) FILE *maps = fopen_at(t->dir, "maps");
	char line[PATH_MAX + 256];

	if (!maps)
		return -errno;
	while (fgets(line, sizeof(line), maps))
		read_mapping(t, line, said);
	return 0;
}

/* Agents that were loaded into it are no options of its start, but their files are open. */
static int read_files(const struct jvm_target *t, struct said *said)
{
	_cleanup_(closedirp) DIR *files = opendir_at(t->dir, "fd");
	const struct dirent *entry;
	const char *tracer;
	char path[PATH_MAX];
	int n_files = 0;
	ssize_t n;

	if (!files)
		return -errno;
	while ((entry = readdir(files))) {
		if (++n_files > FDS_MAX)
			return -E2BIG;
		n = readlinkat(dirfd(files), entry->d_name, path, sizeof(path));
		tracer = n > 0 ? jvm_options_tracer((struct str){.p = path, .n = (size_t)n}) : NULL;
		if (tracer)
			said->options.tracer = tracer;
	}
	return 0;
}

/* Returns the number of bytes, which is 0 if the file is not to be read. */
static size_t read_file(const struct jvm_target *t, const char *name, char **ret)
{
	_cleanup_(closep) int fd = openat(t->dir, name, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n = 1;

	*ret = fd >= 0 ? malloc(TEXT_BYTES_MAX) : NULL;
	while (*ret && n > 0 && used < TEXT_BYTES_MAX) {
		n = read(fd, *ret + used, TEXT_BYTES_MAX - used);
		if (n > 0)
			used += (size_t)n;
	}
	return used;
}

/*
 * Agents that are named at its start, in whatever way, and what it writes at its end; nothing else is
 * believed of these texts.
 */
static void read_texts(const struct jvm_target *t, struct said *said)
{
	static const char *const names[] = {"cmdline", "environ"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_(freep) char *text = NULL;
		size_t n = read_file(t, names[i], &text);
		struct jvm_options options = {0};

		for (size_t c = 0; names[i][0] == 'e' && c < n; c++)
			if (text[c] == '=')
				text[c] =
					' '; /* the name of a variable is no part of its first word */
		jvm_options_read((struct str){.p = text, .n = n}, &options);
		if (options.tracer)
			said->options.tracer = options.tracer;
		if (options.archive)
			said->options.archive = options.archive;
	}
}

static int read_memory(void *userdata, uint64_t address, void *ret, size_t size)
{
	const struct jvm_target *t = userdata;
	struct iovec here = {ret, size}, there = {(void *)(uintptr_t)address, size};
	ssize_t n = process_vm_readv(t->pid, &here, 1, &there, 1, 0);

	if (n < 0)
		return -errno;
	if (jvm_target_has_ended(t))
		return -ESRCH;
	return (size_t)n == size ? 0 : -EFAULT;
}

/*
 * What the JVM itself says of its options. Read from its memory: the file may have been removed, or
 * be another's.
 */
static bool read_perfdata(const struct jvm_target *t, struct said *said)
{
	size_t size = (size_t)(said->perf_to - said->perf_from);
	_cleanup_(freep) char *data = size ? malloc(size) : NULL;
	struct str can;

	if (!data || read_memory((void *)t, said->perf_from, data, size) < 0)
		return false;
	can = jvm_perfdata_find(data, size, "sun.rt.jvmCapabilities");
	if (!can.n)
		return false;

	/* The first character says whether it may be attached to. */
	said->attach_off = can.p[0] != '1';
	jvm_options_read(jvm_perfdata_find(data, size, "java.rt.vmArgs"), &said->options);
	return true;
}

/* Where there are two JVMs, by the one that is asked. */
static bool read_flags(const struct jvm_target *t, struct said *said)
{
	const struct jvm_memory memory = {.read = read_memory, .userdata = (void *)t};
	uint64_t library = said->quit_library ? said->quit_library : said->only_library;
	struct jvm_flags flags;

	if (!library || jvm_flags_read(&memory, library, &flags) != 0)
		return false;
	said->attach_off |= flags.attach_off;
	said->reopens_socket = flags.reopens_socket;
	said->options.few_signals |= flags.few_signals;
	said->options.dynamic_load_off |= flags.dynamic_load_off;
	said->options.archive = flags.archive; /* whatever stands on its command line */
	return true;
}

/* Another program that has made a JVM may have a use of its own for SIGQUIT. */
static bool is_launcher(const struct jvm_target *t)
{
	char path[PATH_MAX];
	ssize_t n = readlinkat(t->dir, "exe", path, sizeof(path) - 1);

	if (n <= 0)
		return false;
	path[n] = '\0';
	return strrchr(path, '/') && (!strcmp(strrchr(path, '/'), "/java") ||
				      !strcmp(strrchr(path, '/'), "/java (deleted)"));
}

static int refuse(struct jvm_judgement *ret, const char *format, const char *what)
{
	snprintf(ret->reason, sizeof(ret->reason), format, what);
	return JVM_TARGET_REFUSES;
}

static void forbid(struct jvm_judgement *ret, const char *why)
{
	if (ret->may_listen)
		snprintf(ret->reason, sizeof(ret->reason), "%s", why);
	ret->may_listen = false;
}

/* 0 and 1 are no functions: SIGQUIT ends the process, or is ignored (the kernel's SIG_DFL, SIG_IGN). */
static bool is_function(uint64_t handler)
{
	return handler > 1;
}

static void judge_quit(const struct jvm_target *t, const struct said *said,
		       struct jvm_judgement *ret)
{
	if (said->options.few_signals)
		forbid(ret, "it does not listen for tools, and takes no signals (-Xrs)");
	if (is_function(said->quit_handler) && !said->quit_library)
		forbid(ret,
		       "it does not listen for tools, and has a use of its own for the signal that "
		       "would ask it to");
	if (!said->quit_handler && !is_launcher(t))
		forbid(ret,
		       "it does not listen for tools, and its program is not java, which may have "
		       "a use of its own for the signal that would ask it to");
}

int jvm_target_judge(const struct jvm_target *t, int quit_handlers, struct jvm_judgement *ret)
{
	struct jvm_status status;
	struct said said = {0};
	bool is_sure;
	int r;

	*ret = (struct jvm_judgement){.may_listen = true};
	/* First of all: what takes it says that the JVM has come so far that its flags are as they stay. */
	r = jvm_target_status(t, &status);
	if (r < 0)
		return r;
	if (quit_handlers_find(quit_handlers, t->pid, &said.quit_handler) < 0)
		said.quit_handler = 0;
	ret->is_early = !status.catches_quit;
	ret->quit_handler = said.quit_handler;

	r = read_maps(t, &said);
	if (r >= 0)
		r = read_files(t, &said);
	if (r < 0)
		return r;
	read_texts(t, &said);
	is_sure = read_perfdata(t, &said);
	is_sure |= read_flags(t, &said);
	ret->reopens_socket = said.reopens_socket;

	if (said.is_openj9)
		return refuse(ret, "OpenJ9 takes no agent that is loaded as HotSpot's are%s", "");
	if (said.options.tracer)
		return refuse(ret, "it is traced by another agent already (%s)",
			      said.options.tracer);
	if (said.attach_off)
		return refuse(ret, "its attach mechanism is off (-XX:+DisableAttachMechanism)%s",
			      "");
	if (said.options.dynamic_load_off)
		return refuse(ret, "it loads no agents (-XX:-EnableDynamicAgentLoading)%s", "");
	/* With the agent's calls in it: a JVM that starts from that file without the agent finds none of them. */
	if (said.options.archive)
		return refuse(ret, "it writes its classes to an archive (-XX:%s)",
			      said.options.archive);
	if (!is_sure)
		forbid(ret, "it does not listen for tools, and neither performance data nor its "
			    "flags tell whether it may be asked to");
	judge_quit(t, &said, ret);
	return 0;
}

/* --- folders */

/* Who may own a folder that the JVM trusts: itself, root, and root of its own user namespace. */
static size_t owners_of(const struct jvm_target *t, uid_t owners[OWNERS_MAX])
{
	_cleanup_(fclosep) FILE *map = fopen_at(t->dir, "uid_map");
	unsigned int inside, outside;
	size_t n = 0;

	owners[n++] = 0;
	owners[n++] = t->uid;
	while (map && n < OWNERS_MAX && fscanf(map, "%u %u %*u", &inside, &outside) == 2)
		if (inside == 0)
			owners[n++] = outside;
	return n;
}

static bool is_safe(const struct jvm_target *t, int folder)
{
	uid_t owners[OWNERS_MAX];
	size_t n = owners_of(t, owners);
	struct stat st;

	if (fstat(folder, &st) < 0 || (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX)))
		return false;
	for (size_t i = 0; i < n; i++)
		if (st.st_uid == owners[i])
			return true;
	return false;
}

int jvm_target_open_folder(const struct jvm_target *t, const char *path, int *ret)
{
	_cleanup_(closep) int folder = openat(t->dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	char name[64];
	int next;

	if (folder < 0)
		return -errno;
	while (is_safe(t, folder)) {
		path += strspn(path, "/");
		if (!*path) {
			*ret = TAKE_FD(folder);
			return 0;
		}
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(path, "/"), path);
		path += strcspn(path, "/");
		next = (int)syscall(SYS_openat2, folder, name, &how, sizeof(how));
		if (next < 0)
			return -errno;
		close(folder);
		folder = next;
	}
	return JVM_TARGET_UNSAFE;
}

int jvm_target_open_cwd(const struct jvm_target *t, int *ret)
{
	int folder = openat(t->dir, "cwd", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (folder < 0)
		return -errno;
	*ret = folder;
	return 0;
}
