/* Files behind files; see real_file.h. */
#include "probe/real_file.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "abi.h"
#include "skeleton/mapped.skel.h"

struct real_file_finder {
	struct mapped *skeleton;
};

DEFINE_CLEANUP(struct bpf_link *, bpf_link__destroy)

/* One record, or nothing; several where something is mapped anew meanwhile. */
static int read_found(int fd, struct mapped_file *ret)
{
	ssize_t n;

	do
		n = read(fd, ret, sizeof(*ret));
	while (n < 0 && (errno == EAGAIN || errno == EINTR));
	if (n < 0)
		return -errno;
	return n == (ssize_t)sizeof(*ret) && ret->address ? 0 : -ENOENT;
}

/* What the kernel has mapped here at an address. */
static int find_mapped(struct real_file_finder *f, const void *at, struct mapped_file *ret)
{
	union bpf_iter_link_info info = {.task = {.tid = (uint32_t)gettid()}};
	struct bpf_iter_attach_opts options;
	_cleanup_(bpf_link__destroyp) struct bpf_link *link = NULL;
	_cleanup_(closep) int fd = -1;

	/* LIBBPF_OPTS() may leave something in the padding, which libbpf then refuses. */
	memset(&options, 0, sizeof(options));
	options.sz = sizeof(options);
	options.link_info = &info;
	options.link_info_len = sizeof(info);
	f->skeleton->bss->wanted_pid = (uint32_t)getpid();
	f->skeleton->bss->wanted_start = (uintptr_t)at;
	link = bpf_program__attach_iter(f->skeleton->progs.mapped_file, &options);
	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	return fd < 0 ? fd : read_found(fd, ret);
}

int real_file_find(struct real_file_finder *f, int fd, struct real_file *ret)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = mmap(NULL, page, PROT_NONE, MAP_PRIVATE, fd, 0);
	struct mapped_file found;
	int r;

	if (at == MAP_FAILED)
		return -errno;
	r = find_mapped(f, at, &found);
	munmap(at, page);
	if (r < 0)
		return r;
	*ret = (struct real_file){
		.address = found.address,
		.number = found.number,
		.device = found.device,
		.generation = found.generation,
	};
	return 0;
}

/* Of a file that is nothing but itself. Returns a reason to do without, or NULL. */
static const char *try_out(struct real_file_finder *f)
{
	_cleanup_(closep) int fd = memfd_create("tsunagi", MFD_CLOEXEC);
	struct real_file found;
	int r;

	r = fd < 0 ? -errno : real_file_find(f, fd, &found);
	if (r < 0)
		return strerror(-r);
	if (f->skeleton->bss->sees_others)
		return "this kernel looks through every process for it (before Linux 6.1)";
	return NULL;
}

int real_file_finder_new(struct real_file_finder **ret, struct probe_refusal *ret_refusal)
{
	_cleanup_(real_file_finder_freep) struct real_file_finder *f = calloc(1, sizeof(*f));
	const char *reason;

	if (!f)
		return -ENOMEM;
	f->skeleton = mapped__open_and_load();
	if (!f->skeleton && errno == ENOMEM)
		return -ENOMEM;
	reason = f->skeleton ? try_out(f)
			     : "this kernel does not tell which file is behind a mapping";
	if (reason) {
		snprintf(ret_refusal->reason, sizeof(ret_refusal->reason), "%s", reason);
		return REAL_FILE_REFUSED;
	}
	*ret = TAKE_PTR(f);
	return 0;
}

void real_file_finder_free(struct real_file_finder *f)
{
	if (!f)
		return;
	mapped__destroy(f->skeleton);
	free(f);
}
