/*
 * The lock on a runtime directory, as a second daemon, a dead one's heir and a plain error meet it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "service/lock.h"

struct fixture {
	char parent[32];
	char dir[64];
};

static int setup(void **state)
{
	static struct fixture f;

	strcpy(f.parent, "/tmp/test_lock.XXXXXX");
	if (!mkdtemp(f.parent))
		return -1;
	snprintf(f.dir, sizeof(f.dir), "%s/run", f.parent);
	*state = &f;
	return 0;
}

/* Fails when a test left anything behind. */
static int teardown(void **state)
{
	struct fixture *f = *state;

	return rmdir(f->parent);
}

static char *path_in(const struct fixture *f, const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	return path;
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static void make_stale_socket(const struct fixture *f)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path_in(f, LOCK_SOCKET));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

/* Runs lock_new() in a child and returns what it returned; the pid it found goes to 'ret_pid'. */
static int lock_in_child(const struct fixture *f, pid_t *ret_pid)
{
	int fds[2], result[2] = {-1, -1};
	pid_t child;

	assert_int_equal(pipe(fds), 0);
	child = fork();
	if (child == 0) {
		struct lock *lock;
		pid_t pid = -1;
		int r = lock_new(f->dir, &lock, &pid);
		int both[2] = {r, pid};

		_exit(write(fds[1], both, sizeof(both)) == sizeof(both) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(read(fds[0], result, sizeof(result)), sizeof(result));
	close(fds[0]);
	close(fds[1]);
	*ret_pid = result[1];
	return result[0];
}

static void test_takes_and_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct lock *lock;
	char text[32] = {0};
	mode_t mask = umask(077);
	struct stat st;
	pid_t pid;
	int fd;

	assert_int_equal(lock_new(f->dir, &lock, &pid), 0);
	umask(mask);
	assert_int_equal(stat(f->dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_false(lock_has_removed_socket(lock));

	fd = open(path_in(f, LOCK_FILE), O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	assert_int_equal(atoi(text), getpid());

	lock_free(lock);
	assert_false(exists(f->dir));
}

static void test_second_daemon_learns_the_pid(void **state)
{
	struct fixture *f = *state;
	struct lock *lock;
	pid_t pid = 0;

	assert_int_equal(lock_new(f->dir, &lock, &pid), 0);
	assert_int_equal(lock_in_child(f, &pid), LOCK_HELD);
	assert_int_equal(pid, getpid());
	/* The second one has taken nothing away from the first. */
	assert_true(exists(path_in(f, LOCK_FILE)));
	assert_int_equal(lock_in_child(f, &pid), LOCK_HELD);
	lock_free(lock);
}

/* One that was killed has left a child, which holds the lock until it ends as well. */
static void test_child_of_a_dead_daemon(void **state)
{
	struct fixture *f = *state;
	struct lock *lock;
	pid_t child = fork(), pid = 0;

	if (child == 0) {
		if (lock_new(f->dir, &lock, &pid) != 0)
			_exit(1);
		if (fork() == 0)
			usleep(300 * 1000);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(lock_new(f->dir, &lock, &pid), 0);
	lock_free(lock);
}

static void test_pid_that_is_no_pid(void **state)
{
	struct fixture *f = *state;
	struct lock *lock;
	pid_t pid = 1;
	int fd;

	assert_int_equal(lock_new(f->dir, &lock, &pid), 0);
	fd = open(path_in(f, LOCK_FILE), O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, "-1 x\n", 5), 5);
	close(fd);
	assert_int_equal(lock_in_child(f, &pid), LOCK_HELD);
	assert_int_equal(pid, 0);
	lock_free(lock);
}

static void test_dead_daemon_leaves_no_lock(void **state)
{
	struct fixture *f = *state;
	struct lock *lock;
	pid_t pid;

	/* The child exits without lock_free(): its lock file and socket stay. */
	assert_int_equal(lock_in_child(f, &pid), 0);
	assert_true(exists(path_in(f, LOCK_FILE)));
	make_stale_socket(f);

	assert_int_equal(lock_new(f->dir, &lock, &pid), 0);
	assert_true(lock_has_removed_socket(lock));
	assert_false(exists(path_in(f, LOCK_SOCKET)));
	lock_free(lock);
	/* The child had made the directory, and nobody else will take it away. */
	assert_false(exists(f->dir));
}

static void test_directory_of_somebody_else_stays(void **state)
{
	struct fixture *f = *state;
	struct lock *lock;
	pid_t pid;

	assert_int_equal(mkdir(f->dir, 0755), 0);
	assert_int_equal(lock_in_child(f, &pid), 0);
	assert_int_equal(lock_new(f->dir, &lock, &pid), 0);
	lock_free(lock);
	assert_int_equal(rmdir(f->dir), 0);
}

static void test_what_is_not_ours_stays(void **state)
{
	struct fixture *f = *state;
	struct lock *lock = NULL;
	char victim[64];
	pid_t pid;
	int fd;

	assert_int_equal(lock_new(path_in(f, "below"), &lock, &pid), -ENOENT);

	assert_int_equal(mkdir(f->dir, 0755), 0);
	fd = open(path_in(f, LOCK_SOCKET), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	assert_int_equal(lock_new(f->dir, &lock, &pid), -EEXIST);
	assert_true(exists(path_in(f, LOCK_SOCKET)));
	assert_int_equal(unlink(path_in(f, LOCK_SOCKET)), 0);

	/* A symbolic link in the place of the lock must not make us truncate what it points to. */
	snprintf(victim, sizeof(victim), "%s/victim", f->parent);
	fd = open(victim, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "precious", 8), 8);
	assert_int_equal(symlink(victim, path_in(f, LOCK_FILE)), 0);
	assert_int_equal(lock_new(f->dir, &lock, &pid), -ELOOP);
	assert_int_equal(lseek(fd, 0, SEEK_END), 8);
	close(fd);
	unlink(path_in(f, LOCK_FILE));
	rmdir(f->dir);

	assert_int_equal(lock_new(victim, &lock, &pid), -ENOTDIR);
	unlink(victim);
	assert_null(lock);
}

/* Many at once, again and again: never two holders, and nobody fails for any other reason. */
static void test_race(void **state)
{
	struct fixture *f = *state;
	pid_t children[8];
	char token[64];

	snprintf(token, sizeof(token), "%s/token", f->parent);
	for (size_t i = 0; i < ARRAY_SIZE(children); i++) {
		children[i] = fork();
		if (children[i])
			continue;
		for (int round = 0; round < 200; round++) {
			struct lock *lock;
			pid_t pid;
			int r = lock_new(f->dir, &lock, &pid), fd;

			if (r < 0)
				_exit(1);
			if (r == LOCK_HELD)
				continue;
			fd = open(token, O_CREAT | O_EXCL | O_CLOEXEC, 0600);
			if (fd < 0)
				_exit(2);
			close(fd);
			unlink(token);
			lock_free(lock);
		}
		_exit(0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(children); i++) {
		int status;

		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	rmdir(f->dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_takes_and_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_second_daemon_learns_the_pid, setup, teardown),
		cmocka_unit_test_setup_teardown(test_child_of_a_dead_daemon, setup, teardown),
		cmocka_unit_test_setup_teardown(test_pid_that_is_no_pid, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dead_daemon_leaves_no_lock, setup, teardown),
		cmocka_unit_test_setup_teardown(test_directory_of_somebody_else_stays, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_what_is_not_ours_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(test_race, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
