/*
 * For the tests of discover: real children, events made by hand, and a clock that the test turns.
 * What discover does with the kernel's help is seen through the two calls it makes, select and
 * unselect.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/util.h"
#include "discover/discover.h"
#include "metrics/metrics.h"

#define LANGUAGES_TRACED (1U << LANGUAGE_JVM | 1U << LANGUAGE_GO)
#define CALLS_MAX        64

static struct selector includes[2], excludes[1];

/* A discover, and what it asked for. */
struct fixture {
	struct config config;
	struct discover *d;
	uint32_t selected[CALLS_MAX], unselected[CALLS_MAX]; /* proc_ids */
	size_t n_selected, n_unselected;
	uint32_t judged; /* the last pid */
	int refusal;     /* what select answers */
};

static inline int on_select(void *userdata, const struct process *p)
{
	struct fixture *f = userdata;

	assert_int_not_equal(p->proc_id, 0);
	assert_int_equal(p->state, PROCESS_SELECTED);
	assert_non_null(p->resource);
	/* A scan meets the host's own processes as well. */
	if (f->n_selected < CALLS_MAX)
		f->selected[f->n_selected++] = p->proc_id;
	return f->refusal;
}

static inline void on_unselect(void *userdata, const struct process *p)
{
	struct fixture *f = userdata;

	if (f->n_unselected < CALLS_MAX)
		f->unselected[f->n_unselected++] = p->proc_id;
}

static inline void on_judged(void *userdata, uint32_t pid)
{
	struct fixture *f = userdata;

	f->judged = pid;
}

/* JVM and Go by default, and one more rule; an exclude rule with no pattern would match all. */
static inline void start(struct fixture *f, struct selector include, struct selector exclude)
{
	includes[0] = (struct selector){.languages = LANGUAGES_TRACED};
	includes[1] = include;
	excludes[0] = exclude;
	*f = (struct fixture){
		.config =
			{
				.include = {.items = includes, .n = 2},
				.exclude = {.items = excludes, .n = 1},
				.processes_max = 4096,
			},
	};
	assert_int_equal(discover_new(
				 &(struct discover_options){
					 .config = &f->config,
					 .self_pid = (uint32_t)getpid(),
					 .select = on_select,
					 .unselect = on_unselect,
					 .judged = on_judged,
					 .userdata = f,
				 },
				 &f->d),
			 0);
}

static const struct selector nothing = {.exe = "/none"};

static inline void stop(struct fixture *f)
{
	discover_free(f->d);
}

/* --- children */

/* Starts a program and waits until it has executed. */
static inline pid_t spawn(char *const arguments[], char *const environment[])
{
	int gate[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		execve(arguments[0], arguments, environment);
		_exit(127);
	}
	close(gate[1]);
	assert_int_equal(read(gate[0], &byte, 1), 0); /* closed by the exec */
	close(gate[0]);
	return pid;
}

static inline pid_t spawn_sleep(void)
{
	char *const arguments[] = {"/bin/sleep", "60", NULL};
	char *const environment[] = {NULL};

	return spawn(arguments, environment);
}

/* Forks a child that runs 'work', says so, and sleeps. */
static inline pid_t fork_child(void (*work)(void *), void *userdata)
{
	int gate[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (work)
			work(userdata);
		if (write(gate[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(gate[1]);
	assert_int_equal(read(gate[0], &byte, 1), 1);
	close(gate[0]);
	return pid;
}

static inline void reap(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* --- events */

static inline uint64_t now(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

static inline void send_event(struct fixture *f, enum event_process what, pid_t pid,
			      struct event event)
{
	event.type = EVENT_PROCESS;
	event.pid = (uint32_t)pid;
	event.process.what = what;
	if (!event.time_ns)
		event.time_ns = now();
	discover_event(f->d, &event);
}

#define SEND(f, what, pid, ...) \
	send_event(f, EVENT_PROCESS_##what, pid, (struct event){__VA_ARGS__})

/* Turns the clock to 'ms' after 'since'. */
static inline void turn(struct fixture *f, uint64_t since, uint64_t ms)
{
	discover_tick(f->d, since + ms * NSEC_PER_MSEC);
}

static inline const struct process *find(struct fixture *f, pid_t pid)
{
	return discover_find(f->d, (uint32_t)pid);
}

static inline const char *attribute(const struct process *p, const char *key)
{
	const struct resource_attribute *a = resource_get(p->resource, key);

	return a ? a->text : NULL;
}
