/* Threads that wait since before the tap was there; see waiting.h. */
#include "probe/waiting.h"

#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "metrics/metrics.h"
#include "probe/tap.h"

#define WALK_NS  NSEC_PER_SEC
#define WALK_MAX 4096 /* threads that are looked at again at a time */

struct waiting {
	struct bpf_map *map; /* NULL: the tap has no need of it */
	struct bpf_program *program;
	struct bpf_link *link;
	const char *why_not;
	uint64_t start_ns; /* CLOCK_BOOTTIME; whoever begins later waits for nothing unseen */
	uint32_t newest;   /* proc_id that was looked at */
	uint64_t walk_ns;  /* when to look next at those that are there */
};

static void attach(struct waiting *w)
{
	if (w->link)
		return;
	w->link = bpf_program__attach(w->program);
	w->why_not = w->link ? NULL : "the kernel refuses to attach its program";
}

int waiting_new(const struct probe *p, struct waiting **ret)
{
	struct bpf_object *object = probe_object(p);
	struct waiting *w = calloc(1, sizeof(*w));
	struct bpf_program *program;

	if (!w)
		return -ENOMEM;
	w->start_ns = now_ns(CLOCK_BOOTTIME);
	w->map = bpf_object__find_map_by_name(object, "waiting");
	if (!w->map) {
		*ret = w;
		return 0;
	}
	bpf_object__for_each_program(program, object)
	{
		if (tap_is_for_waiting(program) && bpf_program__fd(program) >= 0)
			w->program = program;
	}
	if (w->program)
		attach(w);
	else
		w->why_not = "this kernel has no function that shows it";
	*ret = w;
	return 0;
}

void waiting_free(struct waiting *w)
{
	if (!w)
		return;
	bpf_link__destroy(w->link);
	free(w);
}

const char *waiting_why_not(const struct waiting *w)
{
	return w->why_not;
}

size_t waiting_links(const struct waiting *w)
{
	return w->link != NULL;
}

static bool is_receive(long number)
{
	static const long calls[] = {SYS_read, SYS_readv, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i] == number)
			return true;
	return false;
}

/* Of a socket's name (sockfs, net/socket.c); where it has none that can be read it may be anything. */
static bool may_be_tcp(int process, unsigned long long fd)
{
	char path[64], name[16];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/fd/%llu", process, fd);
	length = readlink(path, name, sizeof(name) - 1);
	if (length < 0)
		return false;
	name[length] = '\0';
	if (strncmp(name, "socket:", 7) != 0)
		return false;
	length = getxattr(path, "system.sockprotoname", name, sizeof(name) - 1);
	if (length < 0)
		return true;
	name[length] = '\0';
	return strcmp(name, "TCP") == 0 || strcmp(name, "TCPv6") == 0;
}

/* "0 0x5 0x7f... ...", the number of the call and its arguments, of a thread that sleeps in one. */
static bool is_waiting(int tasks, const char *tid, uint32_t pid)
{
	_cleanup_(closep) int fd = -1;
	char path[64], text[256];
	unsigned long long first;
	ssize_t length;
	long number;

	snprintf(path, sizeof(path), "%.20s/syscall", tid);
	fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (length <= 0)
		return false;
	text[length] = '\0';
	return sscanf(text, "%ld 0x%llx", &number, &first) == 2 && is_receive(number) &&
	       may_be_tcp((int)pid, first);
}

static void note(struct waiting *w, uint32_t pid, const char *tid)
{
	uint64_t key = (uint64_t)pid << 32 | (uint32_t)atoi(tid);
	uint32_t seen = 0;

	if (bpf_map__update_elem(w->map, &key, sizeof(key), &seen, sizeof(seen), BPF_NOEXIST) ==
	    -E2BIG)
		metrics_increment(METRIC_WAITING_FULL);
}

void waiting_add(struct waiting *w, uint32_t pid, uint32_t proc_id, uint64_t start_ns)
{
	_cleanup_(closedirp) DIR *tasks = NULL;
	const struct dirent *entry;
	char path[32];

	if (!w->program || proc_id <= w->newest)
		return;
	w->newest = proc_id;
	if (start_ns > w->start_ns)
		return;
	/* First, lest one begins to wait, or to go on, between the look at it and that. */
	attach(w);
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)))
		if (entry->d_name[0] != '.' && is_waiting(dirfd(tasks), entry->d_name, pid))
			note(w, pid, entry->d_name);
}

/* It has received something a while ago, or is gone. */
static bool is_over(const struct waiting *w, uint64_t key)
{
	uint32_t seen = 0;

	if (bpf_map__lookup_elem(w->map, &key, sizeof(key), &seen, sizeof(seen), 0) < 0)
		return false;
	return seen ||
	       (syscall(SYS_tgkill, (int)(key >> 32), (int)(uint32_t)key, 0) < 0 && errno == ESRCH);
}

void waiting_tick(struct waiting *w, uint64_t now_monotonic_ns)
{
	uint64_t key, next;
	bool is_first = true;
	size_t left = 0;
	int r;

	if (!w->link || now_monotonic_ns < w->walk_ns)
		return;
	w->walk_ns = now_monotonic_ns + WALK_NS;
	for (size_t i = 0; i < WALK_MAX; i++) {
		r = bpf_map__get_next_key(w->map, is_first ? NULL : &key, &next, sizeof(next));
		if (r < 0)
			break;
		/* The next one is found behind one that is still there. */
		if (is_over(w, next)) {
			bpf_map__delete_elem(w->map, &next, sizeof(next), 0);
			continue;
		}
		key = next;
		is_first = false;
		left++;
	}
	if (left)
		return;
	bpf_link__destroy(w->link);
	w->link = NULL;
}
