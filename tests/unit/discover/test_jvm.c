/* JVMs: a library of that name, mapped for execution; see fixture.h. */
#include "unit/discover/fixture.h"

struct fake_jvm {
	char home[64];
	bool is_deleted;
};

static void map_jvm(void *userdata)
{
	const struct fake_jvm *jvm = userdata;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/lib/server/libjvm.so", jvm->home);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		_exit(1);
	close(fd);
	if (jvm->is_deleted && unlink(path) < 0)
		_exit(1);
}

static void make_jvm(struct fake_jvm *jvm)
{
	char command[512];

	strcpy(jvm->home, "/tmp/tsunagi-test-XXXXXX");
	assert_non_null(mkdtemp(jvm->home));
	snprintf(command, sizeof(command),
		 "mkdir -p %s/lib/server && head -c 4096 /dev/zero >%s/lib/server/libjvm.so && "
		 "printf 'IMPLEMENTOR=\"x\"\\nJAVA_VERSION=\"21.0.3\"\\n' >%s/release",
		 jvm->home, jvm->home, jvm->home);
	assert_int_equal(system(command), 0);
}

static void remove_jvm(const struct fake_jvm *jvm)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", jvm->home);
	assert_int_equal(system(command), 0);
}

static void test_jvm(void **state)
{
	struct fake_jvm jvm = {0};
	struct fixture f;
	uint64_t at = now();
	pid_t pid;

	(void)state;
	make_jvm(&jvm);
	pid = fork_child(map_jvm, &jvm);
	start(&f, nothing, nothing);
	SEND(&f, EXEC, pid, .time_ns = at);
	turn(&f, at, 30);
	assert_int_equal(find(&f, pid)->state, PROCESS_SELECTED);
	assert_int_equal(find(&f, pid)->language, LANGUAGE_JVM);
	assert_string_equal(find(&f, pid)->version, "21.0.3");
	assert_string_equal(find(&f, pid)->why, "selected: language jvm (built-in rule)");
	assert_string_equal(attribute(find(&f, pid), "process.runtime.version"), "21.0.3");
	assert_string_equal(attribute(find(&f, pid), "telemetry.sdk.language"), "java");
	assert_int_equal(discover_next_ns(f.d), UINT64_MAX);
	reap(pid);
	stop(&f);

	/*
	 * The package was upgraded since: what lies beside the library's old place is another
	 * version.
	 */
	jvm.is_deleted = true;
	pid = fork_child(map_jvm, &jvm);
	start(&f, nothing, nothing);
	SEND(&f, EXEC, pid, .time_ns = at);
	turn(&f, at, 30);
	assert_int_equal(find(&f, pid)->language, LANGUAGE_JVM);
	assert_null(find(&f, pid)->version);
	reap(pid);
	stop(&f);
	remove_jvm(&jvm);
}

static void test_jvm_comes_later(void **state)
{
	struct fake_jvm jvm = {0};
	struct fixture f;
	uint64_t at = now();
	int gate[2], done[2];
	pid_t pid;
	char byte;

	(void)state;
	make_jvm(&jvm);
	assert_int_equal(pipe(gate), 0);
	assert_int_equal(pipe(done), 0);
	pid = fork();
	if (pid == 0) {
		if (read(gate[0], &byte, 1) != 1)
			_exit(1);
		map_jvm(&jvm);
		if (write(done[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}

	start(&f, nothing, nothing);
	SEND(&f, EXEC, pid, .time_ns = at);
	turn(&f, at, 30);
	assert_int_equal(find(&f, pid)->state, PROCESS_LEFT);
	assert_int_equal(discover_next_ns(f.d), at + 200 * NSEC_PER_MSEC);
	turn(&f, at, 200);
	assert_int_equal(find(&f, pid)->state, PROCESS_LEFT);
	assert_int_equal(discover_next_ns(f.d), at + NSEC_PER_SEC);
	assert_int_equal(write(gate[1], "x", 1), 1);
	assert_int_equal(read(done[0], &byte, 1), 1);

	/* It need not wait for the next look when it listens. */
	SEND(&f, LISTEN, pid, .time_ns = at + 300 * NSEC_PER_MSEC, .process.port = 8080);
	assert_int_equal(find(&f, pid)->state, PROCESS_SELECTED);
	assert_int_equal(find(&f, pid)->language, LANGUAGE_JVM);
	assert_int_equal(find(&f, pid)->listening_port, 8080);
	reap(pid);
	stop(&f);
	remove_jvm(&jvm);
	for (unsigned int i = 0; i < 2; i++) {
		close(gate[i]);
		close(done[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jvm),
		cmocka_unit_test(test_jvm_comes_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
