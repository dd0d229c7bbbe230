/* Who takes SIGQUIT; see quit_handlers.h. */
#include "probe/quit_handlers.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

#include "abi.h"
#include "skeleton/handlers.skel.h"

struct quit_handlers {
	struct handlers *skeleton;
	struct bpf_link *link;
};

int quit_handlers_new(struct quit_handlers **ret)
{
	_cleanup_(quit_handlers_freep) struct quit_handlers *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->skeleton = handlers__open_and_load();
	if (q->skeleton)
		q->link = bpf_program__attach_iter(q->skeleton->progs.quit_handlers, NULL);
	if (!q->link)
		return errno == ENOMEM ? -ENOMEM : QUIT_HANDLERS_NONE;
	*ret = TAKE_PTR(q);
	return 0;
}

void quit_handlers_free(struct quit_handlers *q)
{
	if (!q)
		return;
	bpf_link__destroy(q->link);
	handlers__destroy(q->skeleton);
	free(q);
}

int quit_handlers_fd(const struct quit_handlers *q)
{
	return q ? bpf_link__fd(q->link) : -1;
}

int quit_handlers_find(int fd, pid_t pid, uint64_t *ret)
{
	_cleanup_(closep) int iterator = fd < 0 ? -1 : bpf_iter_create(fd);
	struct quit_handler found[256];
	ssize_t n;

	if (iterator < 0)
		return fd < 0 ? -EBADF : iterator;
	/* The kernel hands out whole records; 0 is their end. */
	while ((n = read(iterator, found, sizeof(found))) != 0) {
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n < 0)
			return -errno;
		for (size_t i = 0; i < (size_t)n / sizeof(*found); i++) {
			if (found[i].pid != (uint32_t)pid)
				continue;
			*ret = found[i].handler;
			return 0;
		}
	}
	return -ESRCH;
}
