/* probe/quit_handlers.c: which function takes SIGQUIT here and in another process, as the kernel has it. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "probe/quit_handlers.h"

static void first(int number)
{
	(void)number;
}

static void second(int number)
{
	(void)number;
}

static struct quit_handlers *handlers;

static uint64_t found(pid_t pid)
{
	uint64_t handler = UINT64_MAX;

	assert_int_equal(quit_handlers_find(quit_handlers_fd(handlers), pid, &handler), 0);
	return handler;
}

static void test_own(void **state)
{
	(void)state;
	signal(SIGQUIT, first);
	assert_int_equal(found(getpid()), (uintptr_t)first);
	signal(SIGQUIT, second);
	assert_int_equal(found(getpid()), (uintptr_t)second);
	signal(SIGQUIT, SIG_IGN);
	assert_int_equal(found(getpid()), 1);
	signal(SIGQUIT, SIG_DFL);
	assert_int_equal(found(getpid()), 0);
}

static void test_other(void **state)
{
	int ends[2];
	char byte;
	pid_t pid;

	(void)state;
	signal(SIGQUIT, first);
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		signal(SIGQUIT, second);
		alarm(30); /* if the test fails */
		_exit(write(ends[1], "", 1) == 1 ? pause() : 1);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(found(pid), (uintptr_t)second);
	assert_int_equal(found(getpid()), (uintptr_t)first);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	signal(SIGQUIT, SIG_DFL);
}

/* A pid that nobody has, and descriptors of something else. */
static void test_none(void **state)
{
	uint64_t handler;
	int ends[2];

	(void)state;
	assert_true(quit_handlers_find(quit_handlers_fd(handlers), 1 << 30, &handler) < 0);
	assert_true(quit_handlers_find(-1, getpid(), &handler) < 0);
	assert_int_equal(pipe(ends), 0);
	assert_true(quit_handlers_find(ends[0], getpid(), &handler) < 0);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_other),
		cmocka_unit_test(test_none),
	};
	int r;

	if (geteuid() != 0) {
		printf("needs root\n");
		return 77;
	}
	r = quit_handlers_new(&handlers);
	if (r != 0) {
		printf("this kernel does not tell\n");
		return 1;
	}
	r = cmocka_run_group_tests(tests, NULL, NULL);
	quit_handlers_free(handlers);
	return r;
}
