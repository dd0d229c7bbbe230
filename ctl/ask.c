/* One question over the control socket; see ask.h. */
#include "ask.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/util.h"

#define ANSWER_BYTES_MAX (64UL * 1024 * 1024)

/* The daemon gives a client five seconds; longer than this it is not answering at all. */
#define WAIT_S 10

static int connect_to(const char *dir, int *ret_fd)
{
	struct timeval wait = {.tv_sec = WAIT_S};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock", dir);

	if (fd < 0)
		return -errno;
	if (n < 0 || (size_t)n >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
		*ret_fd = TAKE_FD(fd);
		return 0;
	}
	switch (errno) {
	case ENOENT:
	case ENOTDIR:
		return ASK_NO_SOCKET;
	case ECONNREFUSED:
		return ASK_DEAD_SOCKET;
	case EACCES:
	case EPERM:
		return ASK_NOT_ALLOWED;
	case EAGAIN:
		return ASK_NO_ANSWER;
	default:
		return -errno;
	}
}

/*
 * A client that is turned away may find the socket closed before it wrote; its answer is there all
 * the same.
 */
static int send_line(int fd, const char *request)
{
	char line[512];
	int n = snprintf(line, sizeof(line), "%s\n", request);

	if (n < 0 || (size_t)n >= sizeof(line))
		return -E2BIG;
	if (send(fd, line, (size_t)n, MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
		return errno == EAGAIN ? ASK_NO_ANSWER : -errno;
	return 0;
}

static int receive_all(int fd, char **ret)
{
	_cleanup_(freep) char *text = NULL;
	size_t n = 0, allocated = 0;

	for (;;) {
		ssize_t got;

		if (n + 1 >= allocated) {
			char *larger;

			allocated = allocated ? allocated * 2 : 64UL * 1024;
			if (allocated > ANSWER_BYTES_MAX)
				return -EFBIG;
			larger = realloc(text, allocated);
			if (!larger)
				return -ENOMEM;
			text = larger;
		}
		got = recv(fd, text + n, allocated - n - 1, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno != EAGAIN && errno != ECONNRESET)
			return -errno;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	/* An answer is one line; a part of one is none. */
	if (n == 0 || text[n - 1] != '\n')
		return ASK_NO_ANSWER;
	text[n] = '\0';
	*ret = TAKE_PTR(text);
	return 0;
}

int ask_daemon(const char *dir, const char *request, char **ret_answer)
{
	_cleanup_(closep) int fd = -1;
	int r = connect_to(dir, &fd);

	if (r)
		return r;
	r = send_line(fd, request);
	if (r)
		return r;
	return receive_all(fd, ret_answer);
}

/*
 * Read, not tried: who took the lock for a moment to see whether it is free could turn a daemon
 * away that starts just then. A killed daemon leaves a file with its pid, but no lock; a lock on
 * another file system may have the inode's number, but not the pid.
 */
pid_t ask_lock_holder(const char *dir)
{
	char path[PATH_MAX], line[256];
	unsigned long inode;
	int written = 0, pid;
	struct stat st;
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/lock", dir) >= (int)sizeof(path))
		return 0;
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fstat(fileno(file), &st) < 0 || fscanf(file, "%d", &written) != 1)
		written = 0;
	fclose(file);
	file = written > 0 ? fopen("/proc/locks", "re") : NULL;
	if (!file)
		return 0;

	/* A line is as lock_get_status() in Linux's fs/locks.c writes it. */
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*d: FLOCK %*s WRITE %d %*x:%*x:%lu", &pid, &inode) == 2 &&
		    pid == written && inode == st.st_ino) {
			fclose(file);
			return pid;
		}
	}
	fclose(file);
	return 0;
}
