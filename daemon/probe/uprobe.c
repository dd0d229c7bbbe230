/* Probes at instructions; see uprobe.h. */
#include "probe/uprobe.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * include/uapi/linux/bpf.h of Linux 6.6: younger than the headers of the oldest distribution that
 * this is built on.
 */
#define ATTACH_UPROBE_MULTI 48

#define PATH_BYTES 32

struct link_create_uprobe_multi {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t ref_ctr_offsets;
	uint64_t cookies;
	uint32_t count;
	uint32_t multi_flags;
	uint32_t pid; /* 0: every process */
	uint32_t pad;
};

struct uprobe {
	struct file_lease *lease;
	int fd; /* of a uprobe_multi link, else -1 */
	size_t n_links;
	struct bpf_link *links[];
};

/* The kernel takes names only: this one is of the very file, whatever has become of its own. */
static void path_of(int fd, char ret[static PATH_BYTES])
{
	snprintf(ret, PATH_BYTES, "/proc/self/fd/%d", fd);
}

/* Returns a file descriptor or a negative errno. */
static int link_multi(int program_fd, int file, const uint64_t *offsets, size_t n)
{
	char path[PATH_BYTES];
	struct link_create_uprobe_multi attr = {
		.prog_fd = (uint32_t)program_fd,
		.attach_type = ATTACH_UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.count = (uint32_t)n,
	};
	long fd;

	path_of(file, path);
	fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	return fd < 0 ? -errno : (int)fd;
}

/* A program that does nothing. Returns a file descriptor or a negative errno. */
static int load_nothing(enum uprobe_way way)
{
	const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options,
		    .expected_attach_type = way == UPROBE_MULTI
						    ? (enum bpf_attach_type)ATTACH_UPROBE_MULTI
						    : (enum bpf_attach_type)0, );

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "nothing", "Dual MIT/GPL", nothing,
			     ARRAY_SIZE(nothing), &options);
}

/* At the first byte of a file that nobody runs. */
static bool takes_multi(void)
{
	_cleanup_(closep) int file = memfd_create("tsunagi", MFD_CLOEXEC);
	_cleanup_(closep) int program = load_nothing(UPROBE_MULTI);
	_cleanup_(closep) int link = -1;
	const uint64_t offset = 0;

	if (file < 0 || program < 0 || ftruncate(file, 4096) < 0)
		return false;
	link = link_multi(program, file, &offset, 1);
	return link >= 0;
}

enum uprobe_way uprobe_find_way(void)
{
	_cleanup_(closep) int program = -1;

	if (takes_multi())
		return UPROBE_MULTI;
	program = load_nothing(UPROBE_PERF);
	return program >= 0 ? UPROBE_PERF : UPROBE_NONE;
}

void uprobe_prepare(struct bpf_program *program, enum uprobe_way way)
{
	if (way == UPROBE_MULTI)
		bpf_program__set_expected_attach_type(program,
						      (enum bpf_attach_type)ATTACH_UPROBE_MULTI);
}

static int attach_perf(struct uprobe *u, const struct uprobe_options *o)
{
	char path[PATH_BYTES];

	path_of(o->fd, path);
	for (size_t i = 0; i < o->n_offsets; i++) {
		struct bpf_link *link =
			bpf_program__attach_uprobe(o->program, false, -1, path, o->offsets[i]);

		if (!link)
			return -errno;
		u->links[u->n_links++] = link;
	}
	return 0;
}

int uprobe_attach(const struct uprobe_options *o, struct uprobe **ret)
{
	_cleanup_(uprobe_detachp) struct uprobe *u = NULL;
	int r = 0;

	if (o->way == UPROBE_NONE)
		return -EOPNOTSUPP;
	u = calloc(1, sizeof(*u) + o->n_offsets * sizeof(u->links[0]));
	if (!u)
		return -ENOMEM;
	u->fd = -1;
	if (o->way == UPROBE_PERF)
		r = attach_perf(u, o);
	else
		u->fd = link_multi(bpf_program__fd(o->program), o->fd, o->offsets, o->n_offsets);
	if (r < 0 || (o->way == UPROBE_MULTI && u->fd < 0))
		return r < 0 ? r : u->fd;
	u->lease = file_lease_ref(o->lease);
	*ret = TAKE_PTR(u);
	return 0;
}

void uprobe_detach(struct uprobe *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->n_links; i++)
		bpf_link__destroy(u->links[i]);
	if (u->fd >= 0)
		close(u->fd);
	/* The last: now others may write to it. */
	file_lease_unref(u->lease);
	free(u);
}

size_t uprobe_links(const struct uprobe *u)
{
	return u->n_links + (u->fd >= 0);
}
