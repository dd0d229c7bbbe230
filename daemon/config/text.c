/* Reading and checking the bytes of a configuration file; see text.h. */
#include "config/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/util.h"

#define BYTE_ORDER_MARK STR("\xef\xbb\xbf")

static const struct position whole_file = {0};

static const char *kind_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "a directory";
	case S_IFSOCK:
		return "a socket";
	default:
		return "a device";
	}
}

/* Of the devices, the one that is known to hold nothing may stand for an empty file. */
static bool is_readable(const struct stat *st)
{
	return S_ISREG(st->st_mode) || S_ISFIFO(st->st_mode) ||
	       (S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3));
}

/* Looked at before it is opened: some devices begin something when they are. */
static int open_file(const struct problem *problem, int *ret_fd, bool *ret_is_pipe)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;

	if (stat(problem->file, &st) == 0 && !is_readable(&st))
		return problem_report(problem, whole_file, "expected a file, got %s",
				      kind_of(st.st_mode));

	fd = open(problem->file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return problem_report(problem, whole_file, "cannot be opened: %s", strerror(errno));
	if (!is_readable(&st)) /* another one by now */
		return problem_report(problem, whole_file, "expected a file, got %s",
				      kind_of(st.st_mode));

	*ret_is_pipe = S_ISFIFO(st.st_mode);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Until there is something to read from a pipe, or its last writer has gone. */
static int wait_for_writer(int fd, const struct problem *problem, uint64_t until_ms)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	uint64_t now = now_ns(CLOCK_MONOTONIC) / NSEC_PER_MSEC;

	if (now < until_ms && (poll(&poll_fd, 1, (int)(until_ms - now)) >= 0 || errno == EINTR))
		return 0;
	return problem_report(problem, whole_file,
			      "expected a file, got a pipe that is not closed within %d s",
			      TEXT_PIPE_MS_MAX / 1000);
}

int text_read(const struct problem *problem, char **ret_bytes, size_t *ret_n)
{
	uint64_t until_ms = now_ns(CLOCK_MONOTONIC) / NSEC_PER_MSEC + TEXT_PIPE_MS_MAX;
	_cleanup_(freep) char *bytes = NULL;
	_cleanup_(closep) int fd = -1;
	bool is_pipe = false;
	size_t n = 0;
	int r = open_file(problem, &fd, &is_pipe);

	if (r)
		return r;
	bytes = malloc(TEXT_BYTES_MAX + 1);
	if (!bytes)
		return -ENOMEM;

	/*
	 * The size is what read(2) gives: that of a pipe or a file in /proc is 0, and files grow.
	 */
	while (n <= TEXT_BYTES_MAX) {
		ssize_t got = read(fd, bytes + n, TEXT_BYTES_MAX + 1 - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EAGAIN && is_pipe) {
			r = wait_for_writer(fd, problem, until_ms);
			if (r)
				return r;
			continue;
		}
		if (got < 0)
			return problem_report(problem, whole_file, "cannot be read: %s",
					      strerror(errno));
		if (got == 0)
			break;
		n += (size_t)got;
	}
	if (n > TEXT_BYTES_MAX)
		return problem_report(problem, whole_file, "expected at most 1 MB, got more");
	/* Nobody has written, or not yet: not the same as a file that says nothing. */
	if (n == 0 && is_pipe)
		return problem_report(problem, whole_file,
				      "expected a file, got a pipe with nothing in it");

	*ret_bytes = TAKE_PTR(bytes);
	*ret_n = n;
	return 0;
}

/*
 * Bytes of the UTF-8 sequence at the start of 's' (RFC 3629: shortest form, no surrogates), or 0.
 */
static size_t utf8_decode(struct str s, uint32_t *ret_code)
{
	static const uint32_t code_min[] = {[1] = 0, [2] = 0x80, [3] = 0x800, [4] = 0x10000};
	const unsigned char *p = (const unsigned char *)s.p;
	size_t n = p[0] < 0x80       ? 1
		   : p[0] >> 5 == 6  ? 2
		   : p[0] >> 4 == 14 ? 3
		   : p[0] >> 3 == 30 ? 4
				     : 0;
	uint32_t code;

	if (n == 0 || n > s.n)
		return 0;
	code = n == 1 ? p[0] : p[0] & (0x7fU >> n);
	for (size_t i = 1; i < n; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	if (code < code_min[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	*ret_code = code;
	return n;
}

/* What YAML 1.1 allows in a stream (5.1, "c-printable"), less the byte order mark inside it. */
static bool code_is_printable(uint32_t code)
{
	if (code < 0x20)
		return code == '\t' || code == '\n' || code == '\r';
	if (code >= 0x7f && code < 0xa0)
		return code == 0x85;
	return code != 0xfeff && code != 0xfffe && code != 0xffff;
}

int text_check(struct str text, const struct problem *problem, struct str *ret_text)
{
	struct position at = {.line = 1, .column = 1};
	bool in_comment = false;
	uint32_t before = '\n';
	struct str rest;

	if (str_starts_with(text, BYTE_ORDER_MARK))
		text = str_skip(text, BYTE_ORDER_MARK.n);

	for (rest = text; rest.n;) {
		uint32_t code = 0;
		size_t n = utf8_decode(rest, &code);

		if (n == 0)
			return problem_report(problem, at, "expected UTF-8, got the byte 0x%02x",
					      (unsigned char)rest.p[0]);
		if (!code_is_printable(code))
			return problem_report(problem, at,
					      "expected text, got the control character 0x%02x",
					      code);
		if (code == '\t' && !in_comment)
			return problem_report(
				problem, at,
				"expected blanks, got a tab (in a quoted text write \\t)");

		if (code == '#' && (before == ' ' || before == '\n'))
			in_comment = true;
		at.column++;
		rest = str_skip(rest, n);
		if (code == '\n' || (code == '\r' && !str_starts_with(rest, STR("\n")))) {
			at = (struct position){.line = at.line + 1, .column = 1};
			in_comment = false;
			code = '\n';
		}
		before = code;
	}
	*ret_text = text;
	return 0;
}
