/* Reading /proc: odd names, processes that end in mid-read, files that are too long. */
#include <sys/prctl.h>

#include "discover/proc.h"
#include "unit/discover/fixture.h"

static void take_odd_name(void *userdata)
{
	prctl(PR_SET_NAME, userdata);
}

static void test_stat(void **state)
{
	pid_t pid = fork_child(take_odd_name, ") R 1 (");
	uint64_t before_ns = now_ns(CLOCK_BOOTTIME);
	struct proc_stat stat;
	siginfo_t info;
	int dir;

	(void)state;
	assert_int_equal(proc_open((uint32_t)pid, &dir), 0);
	assert_int_equal(proc_stat(dir, &stat), 0);
	assert_int_equal(stat.parent_pid, getpid());
	assert_false(stat.is_kernel_thread);
	assert_false(stat.is_zombie);
	assert_true(stat.start_ns <= before_ns);
	assert_true(before_ns - stat.start_ns < 10 * NSEC_PER_SEC);
	assert_int_equal(proc_tick_floor(stat.start_ns), stat.start_ns);

	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	assert_int_equal(proc_stat(dir, &stat), 0);
	assert_true(stat.is_zombie);
	reap(pid);
	close(dir);
}

/* The directory stays that of the process that is gone, whoever gets its pid. */
static void test_gone(void **state)
{
	pid_t pid = spawn_sleep();
	struct proc_stat stat;
	struct proc_exe exe;
	char *text;
	size_t n;
	int dir;

	(void)state;
	assert_int_equal(proc_open((uint32_t)pid, &dir), 0);
	reap(pid);
	assert_int_equal(proc_stat(dir, &stat), PROC_GONE);
	assert_int_equal(proc_exe(dir, &exe), PROC_GONE);
	assert_int_equal(proc_read_whole(dir, "cmdline", 4096, &text, &n), PROC_GONE);
	close(dir);
	assert_int_equal(proc_open((uint32_t)pid, &dir), PROC_GONE);
}

/* " (deleted)" is the end of a name like any other, until the file is in no directory any more. */
static void test_exe(void **state)
{
	char dir_path[] = "/tmp/tsunagi-test-XXXXXX", path[64], command[256];
	char *arguments[] = {path, "60", NULL};
	char *const environment[] = {NULL};
	struct proc_exe exe;
	pid_t pid;
	int dir;

	(void)state;
	assert_non_null(mkdtemp(dir_path));
	snprintf(path, sizeof(path), "%s/x (deleted)", dir_path);
	snprintf(command, sizeof(command), "cp /bin/sleep '%s'", path);
	assert_int_equal(system(command), 0);
	pid = spawn(arguments, environment);
	assert_int_equal(proc_open((uint32_t)pid, &dir), 0);

	assert_int_equal(proc_exe(dir, &exe), 0);
	assert_string_equal(exe.path, path);
	assert_false(exe.is_deleted);
	assert_false(proc_mount_is_fuse(dir, exe.mount_id));
	free(exe.path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(proc_exe(dir, &exe), 0);
	assert_string_equal(exe.path, path);
	assert_true(exe.is_deleted);
	free(exe.path);
	close(dir);
	reap(pid);
	rmdir(dir_path);
}

static int write_file(char *path, size_t n)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(write(fd, "x", 1), 1);
	return fd;
}

static void test_long_file_is_cut(void **state)
{
	uint64_t cut = metrics_get(METRIC_PROCESS_READS_CUT);
	char path[] = "/tmp/tsunagi-test-XXXXXX";
	char *text;
	size_t n;
	int fd;

	(void)state;
	fd = write_file(path, 5000);
	assert_int_equal(proc_read_whole(AT_FDCWD, path, 8192, &text, &n), 0);
	assert_int_equal(n, 5000);
	assert_int_equal(strlen(text), 5000);
	free(text);
	assert_int_equal(metrics_get(METRIC_PROCESS_READS_CUT), cut);
	assert_int_equal(proc_read_whole(AT_FDCWD, path, 4999, &text, &n), 0);
	assert_int_equal(n, 4999);
	free(text);
	assert_int_equal(metrics_get(METRIC_PROCESS_READS_CUT), cut + 1);
	close(fd);
	unlink(path);
}

struct seen {
	unsigned int lines;
	size_t longest;
};

static bool see_line(struct str line, void *userdata)
{
	struct seen *seen = userdata;

	seen->lines++;
	seen->longest = MAX(seen->longest, line.n);
	return false;
}

/* A line that is longer than any we know is left out; those around it are not. */
static void test_lines(void **state)
{
	char path[] = "/tmp/tsunagi-test-XXXXXX";
	struct seen seen = {0};
	int fd;

	(void)state;
	fd = write_file(path, 100000);
	assert_int_equal(pwrite(fd, "ab\ncde\n", 7, 0), 7);
	assert_int_equal(pwrite(fd, "\nf\n", 3, 99997), 3);
	assert_int_equal(proc_each_line(AT_FDCWD, path, 1 << 20, see_line, &seen), 0);
	assert_int_equal(seen.lines, 3);
	assert_int_equal(seen.longest, 3);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat),  cmocka_unit_test(test_gone),
		cmocka_unit_test(test_exe),   cmocka_unit_test(test_long_file_is_cut),
		cmocka_unit_test(test_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
