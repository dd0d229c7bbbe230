/* Loads agents into JVMs; see jvm_loader.h. */
#include "probe/jvm_loader.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
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
#include "probe/jvm_control.h"
#include "probe/jvm_target.h"

/* All that may take long together has its own limits (jvm_attach.c); this is for what has none. */
#define LOADER_NS (300 * NSEC_PER_SEC)

/* What processes are usually given. */
#define DESCRIPTORS 1024

static const char *const words[] = {[JVM_LOADER_LOAD] = "load",
				    [JVM_LOADER_ON] = "on",
				    [JVM_LOADER_OFF] = "off",
				    [JVM_LOADER_READ] = "read"};
static_assert(ARRAY_SIZE(words) == _JVM_LOADER_TASK_MAX, "each task has a word");

struct jvm_loader {
	pid_t pid;
	int output; /* its standard output: "OUTCOME IS_NEW SLOT LOST REASON" */
	uint64_t began_ns, lost_before;
	bool is_killed;
};

/* The one descriptor of the daemon's that the process is given: as quit_handlers_fd(). */
#define QUIT_HANDLERS_FILENO (STDERR_FILENO + 1)

/* To itself: then it does not close on exec, which posix_spawn_file_actions_adddup2(3p) promises. */
static int spawn(struct jvm_loader *l, int output, int quit_handlers, char **arguments)
{
	posix_spawn_file_actions_t actions;
	int r;

	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return -r;
	r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	if (r == 0 && quit_handlers >= 0)
		r = posix_spawn_file_actions_adddup2(&actions, quit_handlers, QUIT_HANDLERS_FILENO);
	/* This program, also if its file has been replaced since it was started. */
	if (r == 0)
		r = posix_spawn(&l->pid, "/proc/self/exe", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

int jvm_loader_new(const struct jvm_loader_order *order, struct jvm_loader **ret)
{
	char pid_text[16], start_text[24];
	char *arguments[] = {"tsunagid", JVM_LOADER_OPTION, (char *)words[order->task],
			     pid_text,   start_text,        NULL};
	struct jvm_loader *l = calloc(1, sizeof(*l));
	int ends[2], r;

	if (!l)
		return -ENOMEM;
	snprintf(pid_text, sizeof(pid_text), "%" PRIu32, order->pid);
	snprintf(start_text, sizeof(start_text), "%" PRIu64, order->start_ns);
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
		r = -errno;
		free(l);
		return r;
	}
	r = spawn(l, ends[1], order->quit_handlers, arguments);
	close(ends[1]);
	if (r < 0) {
		close(ends[0]);
		free(l);
		return r;
	}
	l->output = ends[0];
	l->began_ns = now_ns(CLOCK_MONOTONIC);
	l->lost_before = order->lost_before;
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

static void result_read(const struct jvm_loader *l, struct jvm_loader_result *ret)
{
	char text[sizeof(ret->reason) + 96];
	ssize_t n = read(l->output, text, sizeof(text) - 1);
	int outcome, is_new, at = 0;

	*ret = (struct jvm_loader_result){.outcome = JVM_ATTACH_FAILED};
	ret->handovers_lost = JVM_LOADER_UNKNOWN;
	text[n > 0 ? n : 0] = '\0';
	if (sscanf(text, "%d %d %" SCNd64 " %" SCNu64 " %n", &outcome, &is_new, &ret->slot,
		   &ret->handovers_lost, &at) == 4 &&
	    at > 0 && outcome >= 0 && outcome < _JVM_ATTACH_OUTCOME_MAX) {
		ret->outcome = (enum jvm_attach_outcome)outcome;
		ret->is_new = is_new;
		snprintf(ret->reason, sizeof(ret->reason), "%s", text + at);
		if (l->lost_before != JVM_LOADER_UNKNOWN &&
		    ret->handovers_lost != JVM_LOADER_UNKNOWN &&
		    ret->handovers_lost > l->lost_before)
			ret->newly_lost = ret->handovers_lost - l->lost_before;
		return;
	}
	ret->slot = 0;
	ret->handovers_lost = JVM_LOADER_UNKNOWN;
	snprintf(ret->reason, sizeof(ret->reason), "%s",
		 l->is_killed ? "a file system or the JVM did not answer"
			      : "the process that loads it came to a bad end");
}

bool jvm_loader_has_ended(struct jvm_loader *l, struct jvm_loader_result *ret)
{
	uint64_t age = now_ns(CLOCK_MONOTONIC) - l->began_ns;
	pid_t r = waitpid(l->pid, NULL, WNOHANG);

	if (r == 0 && age > LOADER_NS && !l->is_killed) {
		kill(l->pid, SIGKILL);
		l->is_killed = true;
	}
	/* One that not even that ends waits for a file system: the init process will have it. */
	if (r == 0 && age < LOADER_NS + NSEC_PER_SEC)
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

static void explain(struct jvm_loader_result *result, enum jvm_attach_outcome outcome,
		    const char *what, const char *more)
{
	result->outcome = outcome;
	snprintf(result->reason, sizeof(result->reason), "%s%s", what, more);
}

/* What there is, switched on if that is wanted. Returns false if there is none. */
static bool look_at(uint32_t pid, bool is_to_be_on, struct jvm_loader_result *result)
{
	struct jvm_control_view view;
	int r = jvm_control_find(pid, &view);

	if (r == JVM_CONTROL_NONE)
		return false;
	result->outcome = JVM_ATTACH_LOADED;
	if (r == 0)
		result->handovers_lost = view.handovers_lost;
	if (r == JVM_CONTROL_OTHER) {
		jvm_control_enable(pid, view.address, false);
		explain(result, JVM_ATTACH_REFUSED,
			"the one that is there is of another version, and was switched off: "
			"restart the process to trace its tasks",
			"");
	} else if (r < 0) {
		explain(result, r == -ENOENT || r == -ESRCH ? JVM_ATTACH_GONE : JVM_ATTACH_NOT_YET,
			"its memory cannot be read: ", strerror(-r));
	} else if (view.is_loading) {
		explain(result, JVM_ATTACH_NOT_YET, "it is being loaded", "");
	} else if (view.is_broken) {
		explain(result, JVM_ATTACH_REFUSED, "the agent gave itself up: ", view.reason);
	} else if (!view.is_ready) {
		explain(result, JVM_ATTACH_REFUSED,
			"the one that is there is not ready: ", view.reason);
	} else if (is_to_be_on && jvm_control_enable(pid, view.address, true) != 0) {
		explain(result, JVM_ATTACH_FAILED, "it cannot be switched on", "");
	} else {
		result->slot = view.slot;
		explain(result, JVM_ATTACH_LOADED, view.reason, "");
	}
	return true;
}

static void switch_off(uint32_t pid, struct jvm_loader_result *result)
{
	struct jvm_control_view view;
	int r = jvm_control_find(pid, &view);

	if (r == 0)
		result->handovers_lost = view.handovers_lost;
	if (r == 0 || r == JVM_CONTROL_OTHER)
		r = jvm_control_enable(pid, view.address, false);
	if (r < 0)
		explain(result, JVM_ATTACH_FAILED, "it cannot be switched off: ", strerror(-r));
}

static void switch_on(uint32_t pid, struct jvm_loader_result *result)
{
	if (!look_at(pid, true, result))
		explain(result, JVM_ATTACH_FAILED, "it is not there any more", "");
}

static void load(const struct jvm_attach_order *order, struct jvm_loader_result *result)
{
	struct jvm_attach_result attached;

	if (look_at(order->pid, false, result))
		return;
	jvm_attach(order, &attached);
	explain(result, attached.outcome, attached.reason, "");
	if (attached.outcome != JVM_ATTACH_LOADED)
		return;
	result->is_new = true;
	if (!look_at(order->pid, false, result))
		explain(result, JVM_ATTACH_FAILED, "the JVM says that it is, but it is not there",
			"");
}

/* And not another that has its number now. */
static bool is_there(uint32_t pid, uint64_t start_ns)
{
	struct jvm_target target;

	if (jvm_target_open(pid, start_ns, &target) < 0)
		return false;
	jvm_target_close(&target);
	return true;
}

/* The daemon's limit is for its probes; what goes through all numbers of files has few here. */
static void limit_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= DESCRIPTORS)
		return;
	limit.rlim_cur = DESCRIPTORS;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int jvm_loader_main(int n, char **arguments, const struct jvm_library *library)
{
	struct jvm_loader_result result = {.outcome = JVM_ATTACH_LOADED,
					   .handovers_lost = JVM_LOADER_UNKNOWN};
	char text[sizeof(result.reason) + 96];
	uint64_t pid, start_ns;
	int length;

	if (n != 3 || !number_parse(arguments[1], INT32_MAX, &pid) ||
	    !number_parse(arguments[2], UINT64_MAX, &start_ns))
		return EXIT_FAILURE;

	/*
	 * Nothing else of the daemon's is held on to, nor is its end ours: what has been begun with the
	 * JVM is brought to an end, also when all of a service's processes are told to go.
	 */
	syscall(SYS_close_range, QUIT_HANDLERS_FILENO + 1, ~0U, 0);
	limit_descriptors();
	setpriority(PRIO_PROCESS, 0, 0);
	setsid();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	umask(077);
	if (setgroups(0, NULL) < 0)
		return EXIT_FAILURE;

	if (!is_there((uint32_t)pid, start_ns))
		result.outcome = JVM_ATTACH_GONE;
	else if (!strcmp(arguments[0], words[JVM_LOADER_LOAD]))
		load(&(struct jvm_attach_order){.pid = (uint32_t)pid,
						.start_ns = start_ns,
						.library = library,
						.quit_handlers = QUIT_HANDLERS_FILENO},
		     &result);
	else if (!strcmp(arguments[0], words[JVM_LOADER_ON]))
		switch_on((uint32_t)pid, &result);
	else if (!strcmp(arguments[0], words[JVM_LOADER_READ]))
		look_at((uint32_t)pid, false, &result);
	else
		switch_off((uint32_t)pid, &result);
	length = snprintf(text, sizeof(text), "%d %d %" PRId64 " %" PRIu64 " %s",
			  (int)result.outcome, result.is_new, result.slot, result.handovers_lost,
			  result.reason);
	return write(STDOUT_FILENO, text, (size_t)length) == length ? EXIT_SUCCESS : EXIT_FAILURE;
}
