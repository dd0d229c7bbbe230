/* Loading, attaching and map access; see probe.h. */
#include "probe/probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>

#include "abi.h"
#include "base/log.h"
#include "skeleton/tap_tracepoint.skel.h"

struct probe {
	enum probe_tap tap;
	struct tap_tracepoint *skeleton;
	struct probe_refusal refusals[_PROBE_TAP_MAX];
	int n_cpus;
	uint16_t selected[SELECTED_SLOTS]; /* selected processes by slot, see abi.h */
};

static const char *const tap_names[] = {
	[PROBE_TAP_FENTRY] = "fentry",
	[PROBE_TAP_TRACEPOINT] = "tracepoint",
	[PROBE_TAP_KPROBE] = "kprobe",
};
static_assert(ARRAY_SIZE(tap_names) == _PROBE_TAP_MAX, "each tap has a name");

const char *probe_tap_name(enum probe_tap tap)
{
	return tap_names[tap];
}

/* libbpf's last warning: the best reason there is when a load is refused. */
static char last_warning[256];

static int libbpf_log(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[256];

	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(line, sizeof(line), format, args);
	line[strcspn(line, "\n")] = '\0';
	/* The verifier's log comes as one huge warning: its first line says nothing. */
	if (level == LIBBPF_WARN && !strstr(line, "BEGIN PROG LOAD LOG"))
		memcpy(last_warning, line, sizeof(last_warning));
	log_debug("%s", line);
	return 0;
}

static bool is_locked_down(void)
{
	_cleanup_(closep) int fd = open("/sys/kernel/security/lockdown", O_RDONLY | O_CLOEXEC);
	char text[128] = "";

	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strstr(text, "[confidentiality]");
}

/* Before 5.11 the memory of maps counts against RLIMIT_MEMLOCK. */
static void raise_memlock(void)
{
	struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};

	if (setrlimit(RLIMIT_MEMLOCK, &unlimited) < 0)
		log_debug("Cannot raise RLIMIT_MEMLOCK, ignoring: %m");
}

static int tracepoint_load(struct probe *p, const struct probe_options *o)
{
	struct tap_tracepoint *skeleton = tap_tracepoint__open();
	int r;

	if (!skeleton)
		return -errno;
	skeleton->rodata->head_bytes_max = o->head_bytes_max;
	bpf_map__set_max_entries(skeleton->maps.ring, o->ring_bytes);
	bpf_map__set_max_entries(skeleton->maps.procs, o->processes_max);
	bpf_map__set_max_entries(skeleton->maps.requests, o->requests_max);
	bpf_map__set_max_entries(skeleton->maps.units, o->requests_max);
	bpf_map__set_max_entries(skeleton->maps.joins, o->requests_max);

	r = tap_tracepoint__load(skeleton);
	if (!r)
		r = tap_tracepoint__attach(skeleton);
	if (r) {
		tap_tracepoint__destroy(skeleton);
		return r;
	}
	p->skeleton = skeleton;
	p->tap = PROBE_TAP_TRACEPOINT;
	return 0;
}

static int (*const tap_loads[_PROBE_TAP_MAX])(struct probe *p, const struct probe_options *o) = {
	[PROBE_TAP_TRACEPOINT] = tracepoint_load,
};

int probe_new(const struct probe_options *o, struct probe **ret,
	      struct probe_refusal ret_refusals[_PROBE_TAP_MAX])
{
	_cleanup_(probe_freep) struct probe *p = calloc(1, sizeof(*p));
	int last = 0;

	if (!p)
		return -ENOMEM;
	libbpf_set_print(libbpf_log);
	raise_memlock();
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		return PROBE_NO_BTF;
	p->n_cpus = libbpf_num_possible_cpus();
	if (p->n_cpus < 1)
		return p->n_cpus < 0 ? p->n_cpus : -EIO;

	for (int tap = 0; tap < _PROBE_TAP_MAX; tap++) {
		int r = -EOPNOTSUPP;

		if (o->tap >= 0 && o->tap != tap)
			continue;
		if (!tap_loads[tap]) {
			snprintf(p->refusals[tap].reason, sizeof(p->refusals[tap].reason),
				 "this version has no such tap");
			continue;
		}
		last_warning[0] = '\0';
		r = tap_loads[tap](p, o);
		if (r >= 0) {
			*ret = TAKE_PTR(p);
			return 0;
		}
		last = r;
		errno = -r;
		snprintf(p->refusals[tap].reason, sizeof(p->refusals[tap].reason), "%m (%.200s)",
			 last_warning);
	}
	memcpy(ret_refusals, p->refusals, sizeof(p->refusals));
	if (last == -EPERM)
		return is_locked_down() ? PROBE_LOCKDOWN : PROBE_NO_PERMISSION;
	return PROBE_NO_TAP;
}

void probe_free(struct probe *p)
{
	if (!p)
		return;
	tap_tracepoint__destroy(p->skeleton);
	free(p);
}

enum probe_tap probe_tap_used(const struct probe *p)
{
	return p->tap;
}

const struct probe_refusal *probe_refusals(const struct probe *p)
{
	return p->refusals;
}

int probe_ring_fd(const struct probe *p)
{
	return bpf_map__fd(p->skeleton->maps.ring);
}

void probe_reader_sleeps(struct probe *p)
{
	__atomic_store_n(&p->skeleton->bss->reader_sleeps, 1, __ATOMIC_SEQ_CST);
}

/* Behind each change of 'procs': connections look again. The kernel side also counts it up; any change will do. */
static void processes_changed(struct probe *p)
{
	__atomic_add_fetch(&p->skeleton->data->procs_generation, 1, __ATOMIC_SEQ_CST);
}

int probe_process_set(struct probe *p, uint32_t pid, uint32_t proc_id, bool has_thread_units)
{
	struct proc proc = {.proc_id = proc_id, .flags = has_thread_units ? PROC_THREAD_UNITS : 0};
	struct bpf_map *procs = p->skeleton->maps.procs;
	uint32_t slot = pid % SELECTED_SLOTS;
	int r;

	r = bpf_map__update_elem(procs, &pid, sizeof(pid), &proc, sizeof(proc), BPF_NOEXIST);
	if (r == -EEXIST) {
		/* What the kernel side found out stays. */
		struct proc there = {0};

		if (bpf_map__lookup_elem(procs, &pid, sizeof(pid), &there, sizeof(there), 0) == 0 &&
		    there.proc_id == proc_id) {
			proc.seen = there.seen;
			proc.hands_over = there.hands_over;
		}
		r = bpf_map__update_elem(procs, &pid, sizeof(pid), &proc, sizeof(proc), BPF_ANY);
		processes_changed(p);
		return r;
	}
	if (r < 0)
		return r;
	processes_changed(p);
	/* A slot that is full stays set for good: that costs its processes a look-up, no more. */
	if (p->selected[slot] < UINT16_MAX)
		p->selected[slot]++;
	p->skeleton->bss->selected[slot] = 1;
	return 0;
}

void probe_process_remove(struct probe *p, uint32_t pid)
{
	uint32_t slot = pid % SELECTED_SLOTS;

	/* The kernel side may have been first, at the exit or exec. */
	bpf_map__delete_elem(p->skeleton->maps.procs, &pid, sizeof(pid), 0);
	processes_changed(p);
	if (p->selected[slot] && p->selected[slot] < UINT16_MAX)
		p->selected[slot]--;
	if (!p->selected[slot])
		p->skeleton->bss->selected[slot] = 0;
}

void probe_process_seen(const struct probe *p, uint32_t pid, struct probe_seen *ret)
{
	struct proc proc = {0};

	bpf_map__lookup_elem(p->skeleton->maps.procs, &pid, sizeof(pid), &proc, sizeof(proc), 0);
	*ret = (struct probe_seen){
		.http1 = proc.seen & PROC_SEEN_HTTP1,
		.http2 = proc.seen & PROC_SEEN_HTTP2,
		.tls = proc.seen & PROC_SEEN_TLS,
		.other = proc.seen & PROC_SEEN_OTHER,
	};
}

void probe_request_revoke(struct probe *p, uint64_t connection, uint32_t exchange)
{
	struct request_key key = {.connection = connection, .exchange = exchange};
	struct bpf_map *requests = p->skeleton->maps.requests;
	struct request request;

	/* It stays open, for its thread is busy with it; only nobody's parent. */
	if (bpf_map__lookup_elem(requests, &key, sizeof(key), &request, sizeof(request), 0) < 0)
		return;
	request.is_blind = 1;
	bpf_map__update_elem(requests, &key, sizeof(key), &request, sizeof(request), BPF_EXIST);
}

#define COUNTER_NAME(id, name, help) name,
static const char *const counter_names[] = {KERNEL_COUNTERS(COUNTER_NAME) "recursion_misses"};
/* A program that is preempted by itself is skipped by the kernel: a loss as any other. */
#define RECURSION_HELP \
	"events missed: their program was preempted on that CPU (preemptible kernels)"
#define COUNTER_HELP(id, name, help) help,
static const char *const counter_helps[] = {KERNEL_COUNTERS(COUNTER_HELP) RECURSION_HELP};

size_t probe_counters(void)
{
	return ARRAY_SIZE(counter_names);
}

const char *probe_counter_name(size_t i)
{
	return counter_names[i];
}

const char *probe_counter_help(size_t i)
{
	return counter_helps[i];
}

static uint64_t recursion_misses(const struct probe *p)
{
	struct bpf_program *program;
	uint64_t sum = 0;

	bpf_object__for_each_program(program, p->skeleton->obj)
	{
		struct bpf_prog_info info = {0};
		__u32 length = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length) == 0)
			sum += info.recursion_misses;
	}
	return sum;
}

uint64_t probe_counter_read(const struct probe *p, size_t i)
{
	_cleanup_(freep) uint64_t *values = NULL;
	__u32 key = (__u32)i;
	uint64_t sum = 0;

	if (i >= _KERNEL_COUNTER_MAX)
		return recursion_misses(p);
	values = calloc((size_t)p->n_cpus, sizeof(*values));
	if (!values || bpf_map__lookup_elem(p->skeleton->maps.counters, &key, sizeof(key), values,
					    (size_t)p->n_cpus * sizeof(*values), 0) < 0)
		return 0;
	for (int cpu = 0; cpu < p->n_cpus; cpu++)
		sum += values[cpu];
	return sum;
}

uint64_t probe_processes_lost(const struct probe *p)
{
	return probe_counter_read(p, COUNT_LOST_PROCESS);
}

/* "memlock:" of a map's fdinfo is what the kernel charges for it. */
static uint64_t map_memlock(int fd)
{
	char path[64], line[128];
	unsigned long long bytes = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	fclose(file);
	return bytes;
}

uint64_t probe_map_bytes(const struct probe *p)
{
	struct bpf_map *map;
	uint64_t sum = 0;

	bpf_object__for_each_map(map, p->skeleton->obj) sum += map_memlock(bpf_map__fd(map));
	return sum;
}

size_t probe_links(const struct probe *p)
{
	struct bpf_link *const *links = (struct bpf_link *const *)&p->skeleton->links;
	size_t n = 0;

	for (size_t i = 0; i < sizeof(p->skeleton->links) / sizeof(*links); i++)
		n += links[i] != NULL;
	return n;
}
