/* Loading, attaching and map access; see probe.h. */
#include "probe/probe.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>

#include "abi.h"
#include "base/log.h"
#include "probe/tap.h"

struct probe {
	enum probe_tap used;
	bool has_io_threads; /* io_uring's workers are threads of their process */
	bool allocates_late; /* entries of tables, when they are needed, in whatever program */
	struct tap tap;
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

/*
 * libbpf's first warning: the best reason there is when a load is refused. What follows only
 * repeats it. Of each thread, as several may load.
 */
static _Thread_local char first_warning[200];

void probe_warning_forget(void)
{
	first_warning[0] = '\0';
}

const char *probe_warning(void)
{
	return first_warning[0] ? first_warning : NULL;
}

static int libbpf_log(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[256];

	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(line, sizeof(line), format, args);
	line[strcspn(line, "\n")] = '\0';
	if (level == LIBBPF_WARN && !first_warning[0])
		sscanf(line, "libbpf: %199[^\n]", first_warning);
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

static void tap_close(struct tap *tap)
{
	if (!tap->skeleton)
		return;
	bpf_object__destroy_skeleton(tap->base);
	free(tap->skeleton);
	tap->skeleton = NULL;
}

/*
 * Before Linux 6.1 entries of tables that kprobes write, and so probes in Go programs, must be
 * allocated in advance, or the kernel warns in its log. Tables are smaller there: most of what is
 * allocated is never used.
 */
#define IN_ADVANCE_PART 8 /* of the limit, */
#define IN_ADVANCE_MIN  4096

static uint32_t in_advance(uint32_t limit)
{
	return MAX(limit / IN_ADVANCE_PART, MIN(limit, IN_ADVANCE_MIN));
}

static void choose_sizes(struct probe *p, const struct probe_options *o)
{
	struct tap *tap = &p->tap;
	struct bpf_map *const by_requests[] = {tap->requests,   tap->units,       tap->joins,
					       tap->go_calls,   tap->go_contexts, tap->go_children,
					       tap->receivings, tap->waiting};
	uint32_t requests = o->requests_max, connections = o->connections_max;

	if (!p->allocates_late) {
		requests = in_advance(requests);
		/* Written by kprobes where there are any. */
		if (tap->receivings)
			connections = in_advance(connections);
	}
	bpf_map__set_max_entries(tap->ring, o->ring_bytes);
	bpf_map__set_max_entries(tap->procs, o->processes_max);
	for (size_t i = 0; i < ARRAY_SIZE(by_requests); i++) {
		if (!by_requests[i])
			continue;
		bpf_map__set_max_entries(by_requests[i], requests);
		if (!p->allocates_late && by_requests[i] != tap->waiting)
			bpf_map__set_map_flags(by_requests[i], 0);
	}
	if (tap->conns) {
		bpf_map__set_max_entries(tap->conns, connections);
		if (!p->allocates_late && tap->receivings)
			bpf_map__set_map_flags(tap->conns, 0);
	}
}

static int tap_load(struct probe *p, const struct probe_options *o)
{
	struct tap *tap = &p->tap;
	int r;

	*tap->head_bytes_max = o->head_bytes_max;
	choose_sizes(p, o);
	if (o->before_load)
		o->before_load(tap->object);
	r = bpf_object__load_skeleton(tap->base);
	return r ? r : bpf_object__attach_skeleton(tap->base);
}

static const struct {
	tap_open_fn open;
	tap_share_fn share;
} taps[_PROBE_TAP_MAX] = {
	[PROBE_TAP_FENTRY] = {tap_fentry_open, tap_fentry_share},
	[PROBE_TAP_TRACEPOINT] = {tap_tracepoint_open, tap_tracepoint_share},
	[PROBE_TAP_KPROBE] = {tap_kprobe_open, tap_kprobe_share},
};

/* Returns 0, TAP_REFUSED with the reason kept, or a negative errno, with the reason kept too. */
static int tap_try(struct probe *p, enum probe_tap tap, const struct btf *kernel,
		   const struct probe_options *o)
{
	struct probe_refusal *refusal = &p->refusals[tap];
	int r;

	probe_warning_forget();
	r = taps[tap].open(kernel, &p->tap, refusal);
	if (r > 0)
		return r;
	if (!r)
		r = tap_load(p, o);
	if (r) {
		tap_close(&p->tap);
		snprintf(refusal->reason, sizeof(refusal->reason), "%s",
			 probe_warning() ?: strerror(-r));
		return r;
	}
	taps[tap].share(&p->tap);
	p->used = tap;
	return 0;
}

/*
 * Whether this process may load any program at all: a kernel may refuse one kind with the same
 * error.
 */
static bool may_load(void)
{
	return libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL) == 1;
}

/* Tries the taps in their order. Returns as probe_new(). */
static int choose_tap(struct probe *p, const struct btf *kernel, const struct probe_options *o)
{
	bool is_refused = false;

	for (int tap = 0; tap < _PROBE_TAP_MAX; tap++) {
		int r;

		if (o->tap >= 0 && o->tap != tap)
			continue;
		r = tap_try(p, (enum probe_tap)tap, kernel, o);
		if (!r)
			return 0;
		is_refused |= r == -EPERM;
	}
	if (is_locked_down())
		return PROBE_LOCKDOWN;
	return is_refused && !may_load() ? PROBE_NO_PERMISSION : PROBE_NO_TAP;
}

DEFINE_CLEANUP(struct btf *, btf__free)

int probe_new(const struct probe_options *o, struct probe **ret,
	      struct probe_refusal ret_refusals[_PROBE_TAP_MAX])
{
	_cleanup_(probe_freep) struct probe *p = calloc(1, sizeof(*p));
	_cleanup_(btf__freep) struct btf *kernel = NULL;
	int r;

	if (!p)
		return -ENOMEM;
	libbpf_set_print(libbpf_log);
	raise_memlock();
	p->n_cpus = libbpf_num_possible_cpus();
	if (p->n_cpus < 1)
		return p->n_cpus < 0 ? p->n_cpus : -EIO;
	kernel = btf__load_vmlinux_btf();
	if (!kernel)
		return errno == ENOMEM ? -ENOMEM : PROBE_NO_BTF;

	p->allocates_late = btf__find_by_name_kind(kernel, "bpf_mem_alloc", BTF_KIND_STRUCT) >= 0;
	p->has_io_threads = tap_arguments(kernel, "create_io_thread") >= 0;
	r = choose_tap(p, kernel, o);
	memcpy(ret_refusals, p->refusals, sizeof(p->refusals));
	if (r)
		return r;
	*ret = TAKE_PTR(p);
	return 0;
}

void probe_free(struct probe *p)
{
	if (!p)
		return;
	tap_close(&p->tap);
	free(p);
}

struct bpf_object *probe_object(const struct probe *p)
{
	return p->tap.object;
}

bool probe_keeps_with_socket(const struct probe *p)
{
	return !p->tap.conns;
}

uint32_t *probe_insert_gate(struct probe *p)
{
	return p->tap.insert_is_closed;
}

uint32_t *probe_insert_sockets_id(struct probe *p)
{
	return p->tap.sockets_id;
}

int probe_share_maps(const struct probe *p, struct bpf_object *object)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		const struct bpf_map *ours =
			bpf_object__find_map_by_name(p->tap.object, bpf_map__name(map));
		int r = 0;

		if (ours && !bpf_map__is_internal(map))
			r = bpf_map__reuse_fd(map, bpf_map__fd(ours));
		if (r < 0)
			return r;
	}
	return 0;
}

int probe_share_variables(const struct probe *p, struct bpf_object *object)
{
	/* By their sections, whose names bpf_map__name() changes; 0 at the start, and others. */
	static const char *const sections[] = {".bss", ".data"};

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		const struct bpf_map *ours =
			bpf_object__find_map_by_name(p->tap.object, sections[i]);
		struct bpf_map *map = bpf_object__find_map_by_name(object, sections[i]);
		int r;

		assert(ours && map && bpf_map__value_size(ours) == bpf_map__value_size(map));
		r = bpf_map__reuse_fd(map, bpf_map__fd(ours));
		if (r < 0)
			return r;
	}
	return 0;
}

enum probe_tap probe_tap_used(const struct probe *p)
{
	return p->used;
}

const struct probe_refusal *probe_refusals(const struct probe *p)
{
	return p->refusals;
}

void probe_features(const struct probe *p, struct probe_feature ret_features[PROBE_FEATURES])
{
	static const char by_registers[] = "the tracepoint tap finds bytes by the system call";
	bool is_blind = p->used == PROBE_TAP_TRACEPOINT;
	const char *io_uring = NULL;

	if (is_blind)
		io_uring = by_registers;
	else if (!p->has_io_threads)
		io_uring = "its workers are threads of the kernel before Linux 5.12";
	ret_features[0] = (struct probe_feature){"receives by io_uring", io_uring};
	ret_features[1] = (struct probe_feature){"every message of a recvmmsg",
						 is_blind ? by_registers : NULL};
	ret_features[2] = (struct probe_feature){"receives of 32-bit processes",
						 is_blind ? by_registers : NULL};
}

int probe_ring_fd(const struct probe *p)
{
	return bpf_map__fd(p->tap.ring);
}

void probe_reader_sleeps(struct probe *p)
{
	__atomic_store_n(p->tap.reader_sleeps, 1, __ATOMIC_SEQ_CST);
}

/*
 * Behind each change of 'procs': connections look again. The kernel side also counts it up; any
 * change will do.
 */
static void processes_changed(struct probe *p)
{
	__atomic_add_fetch(p->tap.procs_generation, 1, __ATOMIC_SEQ_CST);
}

static void slot_take(struct probe *p, uint32_t pid)
{
	uint32_t slot = pid % SELECTED_SLOTS;

	/* A slot that is full stays set for good: that costs its processes a look-up, no more. */
	if (p->selected[slot] < UINT16_MAX)
		p->selected[slot]++;
	p->tap.selected[slot] = 1;
}

int probe_process_set(struct probe *p, const struct probe_process *process)
{
	struct proc proc = {
		.proc_id = process->proc_id,
		.flags = (process->has_thread_units ? PROC_THREAD_UNITS : 0) |
			 (process->passes_on ? PROC_PASSES_ON : 0) |
			 (process->propagates ? PROC_PROPAGATES : 0),
		.go_layout = process->go_layout,
		.go_bias = process->go_bias,
		.go_text = process->go_text,
		.go_text_bytes = process->go_text_bytes,
		.jvm_slot = process->jvm_slot,
	};
	struct bpf_map *procs = p->tap.procs;
	uint32_t pid = process->pid;
	struct proc there = {0};
	bool is_ours;
	int r;

	r = bpf_map__update_elem(procs, &pid, sizeof(pid), &proc, sizeof(proc), BPF_NOEXIST);
	if (r != -EEXIST) {
		if (r < 0)
			return r;
		processes_changed(p);
		slot_take(p, pid);
		return 0;
	}

	/* What the kernel side found out stays, as does a child that it put there itself. */
	bpf_map__lookup_elem(procs, &pid, sizeof(pid), &there, sizeof(there), 0);
	is_ours = there.proc_id != 0;
	if (!is_ours || there.proc_id == proc.proc_id) {
		proc.seen = there.seen;
		proc.hands_over = there.hands_over;
		proc.answered = there.answered;
	}
	r = bpf_map__update_elem(procs, &pid, sizeof(pid), &proc, sizeof(proc), BPF_ANY);
	processes_changed(p);
	if (r == 0 && !is_ours)
		slot_take(p, pid);
	return r;
}

void probe_process_remove(struct probe *p, uint32_t pid)
{
	uint32_t slot = pid % SELECTED_SLOTS;

	/* The kernel side may have been first, at the exit or exec. */
	bpf_map__delete_elem(p->tap.procs, &pid, sizeof(pid), 0);
	processes_changed(p);
	if (p->selected[slot] && p->selected[slot] < UINT16_MAX)
		p->selected[slot]--;
	if (!p->selected[slot])
		p->tap.selected[slot] = 0;
}

void probe_process_judged(struct probe *p, uint32_t pid)
{
	p->tap.unjudged[pid % SELECTED_SLOTS] = 0;
}

void probe_process_forget(struct probe *p, uint32_t pid)
{
	struct proc there = {.proc_id = 1};

	bpf_map__lookup_elem(p->tap.procs, &pid, sizeof(pid), &there, sizeof(there), 0);
	if (there.proc_id)
		return;
	bpf_map__delete_elem(p->tap.procs, &pid, sizeof(pid), 0);
	processes_changed(p);
}

void probe_process_seen(const struct probe *p, uint32_t pid, struct probe_seen *ret)
{
	struct proc proc = {0};

	bpf_map__lookup_elem(p->tap.procs, &pid, sizeof(pid), &proc, sizeof(proc), 0);
	*ret = (struct probe_seen){
		.http1 = proc.seen & PROC_SEEN_HTTP1,
		.http2 = proc.seen & PROC_SEEN_HTTP2,
		.tls = proc.seen & PROC_SEEN_TLS,
		.other = proc.seen & PROC_SEEN_OTHER,
		.unix_http = proc.seen & PROC_SEEN_UNIX_HTTP,
		.io_uring = proc.seen & PROC_SEEN_IO_URING,
		.propagates = proc.flags & PROC_PROPAGATES,
	};
}

void probe_request_revoke(struct probe *p, uint64_t connection, uint32_t exchange)
{
	struct request_key key = {.connection = connection, .exchange = exchange};
	struct bpf_map *requests = p->tap.requests;
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

static uint64_t program_misses(const struct bpf_program *program)
{
	struct bpf_prog_info info = {0};
	__u32 length = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length) < 0)
		return 0;
	return info.recursion_misses;
}

/*
 * What a program and its copies ('name'_2 and so on) all missed: no more can have been lost than
 * the least of them.
 */
static uint64_t least_misses(const struct probe *p, const struct bpf_program *program)
{
	uint64_t least = program_misses(program);

	for (int i = 2; i <= 9; i++) {
		const struct bpf_program *copy;
		char name[64];
		uint64_t n;

		snprintf(name, sizeof(name), "%.60s_%d", bpf_program__name(program), i);
		copy = bpf_object__find_program_by_name(p->tap.object, name);
		if (!copy || bpf_program__fd(copy) < 0)
			break;
		n = program_misses(copy);
		if (n < least)
			least = n;
	}
	return least;
}

static uint64_t recursion_misses(const struct probe *p)
{
	struct bpf_program *program;
	uint64_t sum = 0;

	bpf_object__for_each_program(program, p->tap.object)
	{
		if (!tap_is_copy(program))
			sum += least_misses(p, program);
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
	if (!values || bpf_map__lookup_elem(p->tap.counters, &key, sizeof(key), values,
					    (size_t)p->n_cpus * sizeof(*values), 0) < 0)
		return 0;
	for (int cpu = 0; cpu < p->n_cpus; cpu++)
		sum += values[cpu];
	return sum;
}

int probe_insert_counters_reset(struct probe *p)
{
	_cleanup_(freep) uint64_t *zeros = calloc((size_t)p->n_cpus, sizeof(*zeros));
	int r = zeros ? 0 : -ENOMEM;

	for (__u32 key = COUNT_INSERTED; !r && key <= COUNT_INSERT_BUSY; key++)
		r = bpf_map__update_elem(p->tap.counters, &key, sizeof(key), zeros,
					 (size_t)p->n_cpus * sizeof(*zeros), BPF_ANY);
	return r;
}

uint64_t probe_processes_lost(const struct probe *p)
{
	return probe_counter_read(p, COUNT_LOST_PROCESS);
}

/* "memlock:" of a map's fdinfo is what the kernel charges for it. */
uint64_t probe_map_memlock(const struct bpf_map *map)
{
	char path[64], line[128];
	unsigned long long bytes = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", bpf_map__fd(map));
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

	bpf_object__for_each_map(map, p->tap.object) sum += probe_map_memlock(map);
	return sum;
}

size_t probe_links(const struct probe *p)
{
	size_t n = 0;

	for (int i = 0; i < p->tap.base->prog_cnt; i++)
		n += *p->tap.base->progs[i].link != NULL;
	return n;
}
