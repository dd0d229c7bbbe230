/* load_bias_find() on this process, whose bias the loader tells as well, and on a child. */
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "probe/load_bias.h"

static int first(struct dl_phdr_info *info, size_t size, void *userdata)
{
	(void)size;
	*(struct dl_phdr_info *)userdata = *info;
	return 1; /* it is the program itself */
}

/* By the header, which is where the program's first segment is. */
static uint64_t entry_in_file(void)
{
	_cleanup_(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr header;

	assert_int_equal(read(fd, &header, sizeof(header)), sizeof(header));
	return header.e_entry;
}

static void test_own(void **state)
{
	struct dl_phdr_info info;
	uint64_t bias = 1;

	(void)state;
	dl_iterate_phdr(first, &info);
	assert_true(load_bias_find((uint32_t)getpid(), entry_in_file(), &bias));
	assert_int_equal(bias, info.dlpi_addr);
}

static void test_other_program(void **state)
{
	uint64_t bias = 1;

	(void)state;
	assert_false(load_bias_find((uint32_t)getpid(), entry_in_file() + 8, &bias));
	assert_int_equal(bias, 1);
}

/* A process that has ended and was not waited for has no vector any more. */
static void test_ended(void **state)
{
	pid_t child = fork();
	uint64_t bias = 1;
	siginfo_t info;

	(void)state;
	if (child == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_false(load_bias_find((uint32_t)child, entry_in_file(), &bias));
	assert_int_equal(bias, 1);
	waitpid(child, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_other_program),
		cmocka_unit_test(test_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
