/* Header insertion; see insert.h. */
#include "probe/insert.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "abi.h"
#include "base/log.h"
#include "metrics/metrics.h"
#include "probe/foreign_sockets.h"
#include "probe/insert_check.h"
#include "probe/taker.h"
#include "probe/tap.h"
#include "skeleton/inserter.skel.h"

#define HIERARCHIES_MAX 4  /* there is one; it may be mounted several times, or in parts */
#define ROOT_INODE      1  /* of a hierarchy (fs/kernfs/dir.c); that of a group is another */
#define CHECK_SECONDS   30 /* for the self-test, of which each failure may take some */

/* States of connections, as TCP_INFO and the tables in /proc have them. */
#define CONNECTED  (1U << TCP_ESTABLISHED)
#define CONNECTING (1U << TCP_SYN_SENT)

/*
 * What Go's runtime asks of each of its connections from its beginning to its end (runtime/
 * netpoll_epoll.go, Go 1.9 to 1.27), with what the kernel adds to it. C libraries ask for others.
 */
#define GO_EVENTS (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET | EPOLLERR | EPOLLHUP)

/* What the test's process writes. */
struct check_area {
	struct insert_result results[_INSERT_CHECK_MAX];
	bool is_done;
};

struct insert {
	struct probe *probe;
	struct inserter *skeleton;
	struct bpf_map *sockets, *insertions, *leaving, *procs; /* its */
	uint32_t *is_closed; /* shared with the kernel side; written by one thread, see insert.h */
	struct taker *taker;
	/* While the test is made: */
	struct check_area *area;
	pid_t child;
	int child_fd; /* of pidfd_open(2) */
	struct bpf_link *links[HIERARCHIES_MAX];
	size_t n_links;
	struct insert_result results[_INSERT_CHECK_MAX];
	bool is_checked;
	bool has_root; /* of the host's hierarchy */
	char why_not[256];
};

/* --- every connection of this host is made in some group of the one hierarchy */

struct hierarchy {
	dev_t device;
	ino_t inode;
};

static bool is_known(const struct hierarchy *known, size_t n, const struct stat *st)
{
	for (size_t i = 0; i < n; i++)
		if (known[i].device == st->st_dev && known[i].inode == st->st_ino)
			return true;
	return false;
}

static int attach_to(struct insert *i, const struct bpf_program *program, const char *path,
		     struct hierarchy known[HIERARCHIES_MAX])
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct bpf_link *link;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (is_known(known, i->n_links, &st))
		return 0;
	link = bpf_program__attach_cgroup(program, fd);
	if (!link)
		return -errno;
	i->has_root |= st.st_ino == ROOT_INODE;
	known[i->n_links] = (struct hierarchy){.device = st.st_dev, .inode = st.st_ino};
	i->links[i->n_links++] = link;
	return 0;
}

static int attach_connections(struct insert *i, struct probe_refusal *ret_refusal)
{
	struct hierarchy known[HIERARCHIES_MAX];
	struct mntent *mount;
	int r = -ENOENT;
	FILE *mounts;

	mounts = setmntent("/proc/mounts", "re");
	if (!mounts)
		return -errno;
	while (i->n_links < HIERARCHIES_MAX && (mount = getmntent(mounts)))
		if (strcmp(mount->mnt_type, "cgroup2") == 0)
			r = attach_to(i, i->skeleton->progs.in_connection, mount->mnt_dir, known);
	endmntent(mounts);
	if (i->n_links)
		return 0;
	snprintf(ret_refusal->reason, sizeof(ret_refusal->reason), "%s",
		 r == -ENOENT ? "no cgroup2 file system is mounted" : strerror(-r));
	return INSERT_REFUSED;
}

static void detach_connections(struct insert *i)
{
	while (i->n_links)
		bpf_link__destroy(i->links[--i->n_links]);
}

/* --- sockets */

static bool is_in_map(void *userdata, int fd)
{
	struct insert *i = userdata;
	socklen_t length = sizeof(uint64_t);
	uint64_t cookie, value;

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &length) == 0 &&
	       bpf_map__lookup_elem(i->sockets, &cookie, sizeof(cookie), &value, sizeof(value),
				    0) == 0;
}

static int socket_option(int fd, int option)
{
	socklen_t length = sizeof(int);
	int value = -1;

	return getsockopt(fd, SOL_SOCKET, option, &value, &length) < 0 ? -1 : value;
}

static bool is_in_state(int fd, unsigned int states)
{
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
	       (states & 1U << info.tcpi_state);
}

/* Whether it may be taken in: user space may have thought better of it in another thread. */
static bool is_open_for(const struct insert *i, uint32_t pid)
{
	struct proc proc = {0};

	return !insert_is_suspended(i) &&
	       bpf_map__lookup_elem(i->procs, &pid, sizeof(pid), &proc, sizeof(proc), 0) == 0 &&
	       (proc.flags & PROC_PROPAGATES);
}

static void take_socket(void *userdata, const struct foreign_socket *foreign)
{
	struct insert *i = userdata;
	struct insertion insertion = {.pid = foreign->pid};
	socklen_t length = sizeof(uint64_t);
	uint64_t cookie, value = (uint64_t)foreign->fd;
	int r, fd = foreign->fd;

	/* Go's are polled by its runtime, and never blocking: it is one of C in the same process. */
	if (!foreign->is_polled) {
		metrics_increment(METRIC_PROPAGATION_CONNECTIONS_NOT_GO);
		return;
	}
	if (!(fcntl(fd, F_GETFL) & O_NONBLOCK)) {
		metrics_increment(METRIC_PROPAGATION_CONNECTIONS_BLOCKING);
		return;
	}
	if (!is_in_state(fd, CONNECTING | CONNECTED) || socket_option(fd, SO_ZEROCOPY) > 0)
		return;
	/* What is known of one that was taken out stays. */
	r = bpf_map__update_elem(i->insertions, &fd, sizeof(fd), &insertion, sizeof(insertion),
				 BPF_NOEXIST);
	if (r < 0 && r != -EEXIST) {
		metrics_increment(METRIC_PROPAGATION_CONNECTIONS_MISSED);
		return;
	}
	/* One that is made only now is taken in by the kernel side, now that it is marked. */
	if (!is_in_state(fd, CONNECTED) ||
	    getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &length) < 0)
		return;
	r = bpf_map__update_elem(i->sockets, &cookie, sizeof(cookie), &value, sizeof(value),
				 BPF_NOEXIST);
	/* It is there already, or the peer may have ended it meanwhile. */
	if (r < 0 && !is_in_map(i, fd) && is_in_state(fd, CONNECTED))
		metrics_increment(METRIC_PROPAGATION_CONNECTIONS_MISSED);
	/* Whoever empties the map does so behind what is looked at here. */
	if (!is_open_for(i, foreign->pid))
		bpf_map__delete_elem(i->sockets, &cookie, sizeof(cookie), 0);
}

static void drop_socket(void *userdata, const struct foreign_socket *foreign)
{
	const struct insert *i = userdata;
	socklen_t length = sizeof(uint64_t);
	uint64_t cookie;

	if (getsockopt(foreign->fd, SOL_SOCKET, SO_COOKIE, &cookie, &length) == 0)
		bpf_map__delete_elem(i->sockets, &cookie, sizeof(cookie), 0);
}

/* Whoever waits for room is told of it whenever this is set, to whatever it is set. */
static void wake_socket(void *userdata, const struct foreign_socket *foreign)
{
	socklen_t length = sizeof(int);
	int lowat, fd = foreign->fd;

	(void)userdata;
	if (getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, &length) == 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, length);
}

void insert_take_now(struct insert *i, const uint32_t *pids, size_t n, const bool *is_cancelled)
{
	struct foreign_sockets wanted = {.pids = pids,
					 .n_pids = n,
					 .states = CONNECTING | CONNECTED,
					 .polled_events = GO_EVENTS,
					 .is_cancelled = is_cancelled};
	int r = foreign_sockets_each(&wanted, take_socket, i);

	/* Without memory it is not known how many. */
	if (r)
		metrics_add(METRIC_PROPAGATION_CONNECTIONS_MISSED, r > 0 ? (uint64_t)r : 1);
}

static void take_processes(void *userdata, const uint32_t *pids, size_t n, const bool *is_cancelled)
{
	insert_take_now(userdata, pids, n, is_cancelled);
}

void insert_take_connections(struct insert *i, uint32_t pid)
{
	if (!taker_add(i->taker, pid))
		metrics_increment(METRIC_PROPAGATION_CONNECTIONS_MISSED);
}

void insert_drop_connections(struct insert *i, uint32_t pid)
{
	struct foreign_sockets wanted = {
		.pids = &pid, .n_pids = 1, .states = ~0U, .with_bound = true, .is_unbounded = true};

	foreign_sockets_each(&wanted, drop_socket, i);
}

void insert_wake_connections(struct insert *i, uint32_t pid)
{
	struct foreign_sockets wanted = {
		.pids = &pid, .n_pids = 1, .states = ~0U, .is_unbounded = true};

	foreign_sockets_each(&wanted, wake_socket, i);
}

/* All processes that propagate; returns how many, at most 'size'. Some may be there twice. */
static size_t find_processes(const struct insert *i, uint32_t *pids, size_t size)
{
	const uint32_t *at = NULL;
	uint32_t pid, next;
	size_t n = 0;

	/* Where the one before has ended meanwhile, the map is gone through from its start. */
	while (n < size && bpf_map__get_next_key(i->procs, at, &next, sizeof(next)) == 0) {
		struct proc proc = {0};

		pid = next;
		at = &pid;
		bpf_map__lookup_elem(i->procs, &pid, sizeof(pid), &proc, sizeof(proc), 0);
		if (proc.flags & PROC_PROPAGATES)
			pids[n++] = pid;
	}
	return n;
}

void insert_wake_all(struct insert *i, const bool *is_cancelled)
{
	size_t size = 2 * (size_t)bpf_map__max_entries(i->procs);
	_cleanup_(freep) uint32_t *pids = calloc(size, sizeof(*pids));
	struct foreign_sockets wanted = {
		.pids = pids, .states = ~0U, .is_unbounded = true, .is_cancelled = is_cancelled};

	if (!pids)
		return;
	wanted.n_pids = find_processes(i, pids, size);
	foreign_sockets_each(&wanted, wake_socket, i);
}

static const enum metric leave_counters[] = {
	[LEAVE_PASSED_ON] = METRIC_PROPAGATION_PASSED_ON,
	[LEAVE_NOT_FOLLOWED] = METRIC_PROPAGATION_NOT_FOLLOWED,
	[LEAVE_BLOCKING] = METRIC_PROPAGATION_BLOCKING,
	[LEAVE_NAGLE] = METRIC_PROPAGATION_NAGLE,
};
static_assert(ARRAY_SIZE(leave_counters) == _LEAVE_MAX, "each reason has a counter");

void insert_drop_leaving(struct insert *i)
{
	struct leave leave;

	for (size_t n = 0; n < bpf_map__max_entries(i->leaving); n++) {
		if (bpf_map__lookup_and_delete_elem(i->leaving, NULL, 0, &leave, sizeof(leave), 0) <
		    0)
			return;
		if (bpf_map__delete_elem(i->sockets, &leave.cookie, sizeof(leave.cookie), 0) == 0 &&
		    leave.why < _LEAVE_MAX)
			metrics_increment(leave_counters[leave.why]);
	}
}

/* --- while there must be none */

void insert_suspend(struct insert *i)
{
	uint64_t cookie, next;
	const uint64_t *at = NULL;

	__atomic_store_n(i->is_closed, 1, __ATOMIC_SEQ_CST);
	/* Where the one before has closed meanwhile, the map is gone through from its start. */
	for (size_t n = 0; n < 2 * (size_t)bpf_map__max_entries(i->sockets); n++) {
		int r = bpf_map__get_next_key(i->sockets, at, &next, sizeof(next));

		if (at)
			bpf_map__delete_elem(i->sockets, at, sizeof(*at), 0);
		if (r < 0)
			return;
		cookie = next;
		at = &cookie;
	}
}

void insert_resume(struct insert *i)
{
	__atomic_store_n(i->is_closed, 0, __ATOMIC_SEQ_CST);
}

bool insert_is_suspended(const struct insert *i)
{
	return __atomic_load_n(i->is_closed, __ATOMIC_SEQ_CST);
}

/* --- start */

/* In a process of its own, once it has been told to begin. */
static void check_in_child(struct insert *i, struct check_area *area, int begin)
{
	char any;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(CHECK_SECONDS);
	if (read(begin, &any, 1) == 1) {
		insert_check_run(is_in_map, i, area->results);
		area->is_done = true;
	}
	_exit(0);
}

static int begin_checks(struct probe *p, pid_t child, int begin)
{
	struct probe_process process = {
		.pid = (uint32_t)child,
		.proc_id = INSERT_CHECK_PROC_ID,
		.propagates = true,
	};
	int r = probe_process_set(p, &process);

	if (r < 0)
		return r;
	return write(begin, "", 1) == 1 ? 0 : -errno;
}

/*
 * By a child: what this process itself connects to meanwhile, in other threads, is none of it. If it
 * cannot be told to begin it ends.
 */
static int start_child(struct insert *i)
{
	_cleanup_(closep) int begin = -1;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	i->child = fork();
	if (i->child == 0) {
		close(ends[1]);
		check_in_child(i, i->area, ends[0]);
	}
	r = i->child < 0 ? -errno : 0;
	close(ends[0]);
	begin = ends[1];
	if (r < 0)
		return r;
	i->child_fd = (int)syscall(SYS_pidfd_open, i->child, 0);
	return i->child_fd < 0 ? -errno : begin_checks(i->probe, i->child, begin);
}

/* What the child has written stays. */
static void wait_for_child(struct insert *i)
{
	if (i->child <= 0)
		return;
	waitpid(i->child, NULL, 0);
	probe_process_remove(i->probe, (uint32_t)i->child);
	closep(&i->child_fd);
	i->child = i->child_fd = -1;
}

static void drop_child(struct insert *i)
{
	if (i->child > 0)
		kill(i->child, SIGKILL);
	wait_for_child(i);
	if (i->area)
		munmap(i->area, sizeof(*i->area));
	i->area = NULL;
}

static void judge_checks(struct insert *i)
{
	const struct check_area *area = i->area;

	i->why_not[0] = '\0';
	if (!area->is_done)
		snprintf(i->why_not, sizeof(i->why_not), "the self-test did not end");
	memcpy(i->results, area->results, sizeof(i->results));
	for (size_t n = 0; n < _INSERT_CHECK_MAX; n++)
		if (i->results[n].matters && i->results[n].failure[0] && !i->why_not[0])
			snprintf(i->why_not, sizeof(i->why_not), "%s: %s", i->results[n].name,
				 i->results[n].failure);
	i->is_checked = true;
}

/* The map holds the program, and we the map. */
static int attach(struct insert *i, struct probe_refusal *ret_refusal)
{
	if (bpf_prog_attach(bpf_program__fd(i->skeleton->progs.in_message), bpf_map__fd(i->sockets),
			    BPF_SK_MSG_VERDICT, 0) < 0) {
		snprintf(ret_refusal->reason, sizeof(ret_refusal->reason), "%s", strerror(errno));
		return INSERT_REFUSED;
	}
	return attach_connections(i, ret_refusal);
}

/* Nothing runs any more for anybody. */
static void detach(struct insert *i)
{
	detach_connections(i);
	bpf_prog_detach2(bpf_program__fd(i->skeleton->progs.in_message), bpf_map__fd(i->sockets),
			 BPF_SK_MSG_VERDICT);
}

int insert_check_begin(struct insert *i, struct probe_refusal *ret_refusal)
{
	void *area = mmap(NULL, sizeof(*i->area), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r;

	if (area == MAP_FAILED)
		return -errno;
	i->area = area;
	r = attach(i, ret_refusal);
	if (!r)
		r = start_child(i);
	if (!r)
		return 0;
	drop_child(i);
	detach(i);
	return r;
}

int insert_check_fd(const struct insert *i)
{
	return i->child_fd;
}

int insert_check_end(struct insert *i)
{
	wait_for_child(i);
	judge_checks(i);
	drop_child(i);
	if (i->why_not[0])
		detach(i);
	return probe_insert_counters_reset(i->probe);
}

void insert_check_again(struct insert *i)
{
	i->is_checked = false;
	i->why_not[0] = '\0';
}

bool insert_is_checked(const struct insert *i)
{
	return i->is_checked;
}

/* Tells the kernel side which map is ours. Returns 0 or a negative errno. */
static int tell_sockets_id(const struct insert *i, uint32_t *at)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	int r = bpf_obj_get_info_by_fd(bpf_map__fd(i->sockets), &info, &size);

	if (!r)
		__atomic_store_n(at, info.id, __ATOMIC_RELEASE);
	return r;
}

int insert_new(struct probe *p, struct insert_load *load, struct insert **ret,
	       struct probe_refusal *ret_refusal)
{
	_cleanup_(insert_freep) struct insert *i = calloc(1, sizeof(*i));
	int r;

	if (!i)
		return -ENOMEM;
	i->probe = p;
	i->child = i->child_fd = -1;
	r = insert_load_take(load, &i->skeleton, ret_refusal);
	if (r)
		return r > 0 ? INSERT_REFUSED : r;
	i->sockets = i->skeleton->maps.sockets;
	i->insertions = i->skeleton->maps.insertions;
	i->leaving = i->skeleton->maps.leaving;
	i->procs = i->skeleton->maps.procs;
	i->is_closed = probe_insert_gate(p);
	r = tell_sockets_id(i, probe_insert_sockets_id(p));
	if (r < 0)
		return r;
	insert_resume(i);
	r = taker_new(take_processes, i, &i->taker);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(i);
	return 0;
}

void insert_free(struct insert *i)
{
	if (!i)
		return;
	taker_free(i->taker);
	drop_child(i);
	detach_connections(i);
	inserter__destroy(i->skeleton);
	free(i);
}

struct bpf_object *insert_object(const struct insert *i)
{
	return i->skeleton->obj;
}

uint64_t insert_map_bytes(const struct insert *i)
{
	return probe_map_memlock(i->sockets) + probe_map_memlock(i->insertions) +
	       probe_map_memlock(i->leaving);
}

bool insert_has_all_groups(const struct insert *i)
{
	return i->has_root;
}

const struct insert_result *insert_results(const struct insert *i)
{
	return i->is_checked ? i->results : NULL;
}

const char *insert_why_not(const struct insert *i)
{
	return i->why_not[0] ? i->why_not : NULL;
}
