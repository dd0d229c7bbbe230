/* Loads agents into JVMs; see jvm_loader.h. */
#include "probe/jvm_loader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/str.h"

/* All that may take long together has its own limits (jvm_attach.c); this is for what has none. */
#define LOADER_NS (900 * NSEC_PER_SEC)

struct jvm_loader {
	pid_t pid;
	int output; /* its standard output: "OUTCOME REASON" */
	uint64_t began_ns;
	bool is_killed;
};

static int spawn(struct jvm_loader *l, int output, char **arguments)
{
	posix_spawn_file_actions_t actions;
	int r;

	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return -r;
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	/* This program, also if its file has been replaced since it was started. */
	if (r == 0)
		r = posix_spawn(&l->pid, "/proc/self/exe", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

int jvm_loader_new(uint32_t pid, uint64_t start_ns, struct jvm_loader **ret)
{
	char pid_text[16], start_text[24];
	char *arguments[] = {"tsunagid", JVM_LOADER_OPTION, pid_text, start_text, NULL};
	struct jvm_loader *l = calloc(1, sizeof(*l));
	int ends[2], r;

	if (!l)
		return -ENOMEM;
	snprintf(pid_text, sizeof(pid_text), "%" PRIu32, pid);
	snprintf(start_text, sizeof(start_text), "%" PRIu64, start_ns);
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
		r = -errno;
		free(l);
		return r;
	}
	r = spawn(l, ends[1], arguments);
	close(ends[1]);
	if (r < 0) {
		close(ends[0]);
		free(l);
		return r;
	}
	l->output = ends[0];
	l->began_ns = now_ns(CLOCK_MONOTONIC);
	*ret = l;
	return 0;
}

void jvm_loader_free(struct jvm_loader *l)
{
	if (!l)
		return;
	close(l->output);
	free(l);
}

static void result_read(const struct jvm_loader *l, struct jvm_attach_result *ret)
{
	char text[sizeof(ret->reason) + 2];
	ssize_t n = read(l->output, text, sizeof(text));

	if (n >= 2 && text[0] >= '0' && text[0] < '0' + _JVM_ATTACH_OUTCOME_MAX && text[1] == ' ') {
		ret->outcome = (enum jvm_attach_outcome)(text[0] - '0');
		snprintf(ret->reason, sizeof(ret->reason), "%.*s", (int)n - 2, text + 2);
		return;
	}
	ret->outcome = JVM_ATTACH_FAILED;
	snprintf(ret->reason, sizeof(ret->reason), "%s",
		 l->is_killed ? "a file system or the JVM did not answer"
			      : "the process that loads it came to a bad end");
}

bool jvm_loader_has_ended(struct jvm_loader *l, struct jvm_attach_result *ret)
{
	pid_t r = waitpid(l->pid, NULL, WNOHANG);

	if (r == 0 && !l->is_killed && now_ns(CLOCK_MONOTONIC) - l->began_ns > LOADER_NS) {
		kill(l->pid, SIGKILL);
		l->is_killed = true;
	}
	if (r == 0)
		return false;
	result_read(l, ret);
	return true;
}

/* --- the other end */

static bool number_parse(const char *text, uint64_t max, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return !errno && *text >= '0' && *text <= '9' && !*end && *ret <= max;
}

int jvm_loader_main(int n, char **arguments, const struct jvm_library *library)
{
	struct jvm_attach_result result;
	char text[sizeof(result.reason) + 2];
	uint64_t pid, start_ns;
	int length;

	if (n != 2 || !number_parse(arguments[0], INT32_MAX, &pid) ||
	    !number_parse(arguments[1], UINT64_MAX, &start_ns))
		return EXIT_FAILURE;

	/* Nothing of the daemon's is held on to, nor is its end ours. */
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
	setpriority(PRIO_PROCESS, 0, 0);
	setsid();
	signal(SIGPIPE, SIG_IGN);
	umask(077);

	jvm_attach((uint32_t)pid, start_ns, library, &result);
	length = snprintf(text, sizeof(text), "%d %s", (int)result.outcome, result.reason);
	return write(STDOUT_FILENO, text, (size_t)length) == length ? EXIT_SUCCESS : EXIT_FAILURE;
}
