/* Leases on files with probes in them; see file_lease.h. */
#include "probe/file_lease.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>

struct file_lease {
	int fd;
	atomic_uint users;
};

int file_lease_new(int fd, struct file_lease **ret)
{
	_cleanup_(file_lease_unrefp) struct file_lease *lease = calloc(1, sizeof(*lease));

	if (!lease)
		return -ENOMEM;
	atomic_init(&lease->users, 1);
	/* The lease is the open file's, not the descriptor's. */
	lease->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (lease->fd < 0 || fcntl(lease->fd, F_SETLEASE, F_RDLCK) < 0)
		return -errno;
	*ret = TAKE_PTR(lease);
	return 0;
}

struct file_lease *file_lease_ref(struct file_lease *lease)
{
	if (lease)
		atomic_fetch_add(&lease->users, 1);
	return lease;
}

void file_lease_unref(struct file_lease *lease)
{
	if (!lease || atomic_fetch_sub(&lease->users, 1) > 1)
		return;
	if (lease->fd >= 0) {
		(void)fcntl(lease->fd, F_SETLEASE, F_UNLCK);
		close(lease->fd);
	}
	free(lease);
}

bool file_lease_is_whole(const struct file_lease *lease)
{
	/* What it is to become, where somebody waits. */
	return fcntl(lease->fd, F_GETLEASE) == F_RDLCK;
}

const char *file_lease_why_not(int error)
{
	switch (error) {
	case -EACCES:
		return "no CAP_LEASE: its file could be written to under the probes";
	case -EINVAL:
	case -EOPNOTSUPP:
		return "its file system has no leases: the file could be written to under the "
		       "probes";
	}
	return "the kernel refused a lease on its file, which could be written to under the probes";
}
