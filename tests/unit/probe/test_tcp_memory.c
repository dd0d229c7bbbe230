/* What is read of TCP's memory, and from when to when it is short. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "probe/tcp_memory.h"

static char proc[64];

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int setup(void **state)
{
	static const char *const folders[] = {"net", "sys", "sys/net", "sys/net/ipv4"};
	char path[128];

	(void)state;
	snprintf(proc, sizeof(proc), "/tmp/tsunagi-test-XXXXXX");
	if (!mkdtemp(proc))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		snprintf(path, sizeof(path), "%s/%s", proc, folders[i]);
		mkdir(path, 0700);
	}
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = {
		"net/a/memory.kmem.tcp.limit_in_bytes",
		"net/memory.kmem.tcp.limit_in_bytes",
		"net/a",
		"7/cgroup",
		"7",
		"mounts",
		"net/sockstat",
		"net",
		"sys/net/ipv4/tcp_mem",
		"sys/net/ipv4",
		"sys/net",
		"sys",
		"",
	};
	char path[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", proc, names[i]);
		remove(path);
	}
	return 0;
}

static void test_read(void **state)
{
	_cleanup_(tcp_memory_freep) struct tcp_memory *m = NULL;
	struct tcp_memory_use use;

	(void)state;
	/* In a network of one's own. */
	assert_int_equal(tcp_memory_new(proc, &m), -ENOENT);
	write_file("sys/net/ipv4/tcp_mem", "287901\t383868\t575802\n");
	assert_int_equal(tcp_memory_new(proc, &m), -ENOENT);
	write_file("net/sockstat", "sockets: used 12\nUDP: inuse 0 mem 9\n");
	assert_int_equal(tcp_memory_new(proc, &m), -EBADMSG);
	write_file("net/sockstat", "sockets: used 12\n"
				   "TCP: inuse 5 orphan 0 tw 2 alloc 7 mem 4711\n"
				   "UDP: inuse 0 mem 9\n");
	assert_int_equal(tcp_memory_new(proc, &m), 0);
	assert_int_equal(tcp_memory_read(m, &use), 0);
	assert_int_equal(use.used, 4711);
	assert_int_equal(use.low, 287901);
	assert_int_equal(use.pressure, 383868);

	write_file("net/sockstat", "sockets: used 12\nUDP: inuse 0 mem 9\n");
	assert_int_equal(tcp_memory_read(m, &use), -EBADMSG);
	write_file("sys/net/ipv4/tcp_mem", "287901\n");
	assert_int_equal(tcp_memory_read(m, &use), -EBADMSG);
	assert_int_equal(use.used, 4711);
}

/* Who has no file descriptor left sees as much as before. */
static void test_no_descriptors(void **state)
{
	_cleanup_(tcp_memory_freep) struct tcp_memory *m = NULL;
	struct rlimit limit, none = {0};
	struct tcp_memory_use use = {0};
	int r;

	(void)state;
	write_file("sys/net/ipv4/tcp_mem", "100 200 300\n");
	write_file("net/sockstat", "\nTCP: inuse 5 orphan 0 tw 2 alloc 7 mem 50\n");
	assert_int_equal(tcp_memory_new(proc, &m), 0);
	write_file("net/sockstat", "\nTCP: inuse 5 orphan 0 tw 2 alloc 7 mem 60\n");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none.rlim_max = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	r = tcp_memory_read(m, &use);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(r, 0);
	assert_int_equal(use.used, 60);
}

static bool short_at(struct tcp_memory_watch *w, uint64_t used, uint64_t second)
{
	struct tcp_memory_use m = {.used = used, .low = 100, .pressure = 200};

	tcp_memory_judge(w, &m, second * NSEC_PER_SEC);
	return w->is_short;
}

static void test_judge(void **state)
{
	struct tcp_memory_watch w = {0};

	(void)state;
	assert_false(short_at(&w, 50, 1));
	assert_false(short_at(&w, 199, 2));
	assert_true(short_at(&w, 200, 3));
	assert_true(short_at(&w, 150, 4));
	assert_true(short_at(&w, 99, 5));
	assert_true(short_at(&w, 99, 14));
	/* Not all of ten seconds. */
	assert_true(short_at(&w, 100, 14));
	assert_true(short_at(&w, 99, 15));
	assert_true(short_at(&w, 99, 24));
	assert_false(short_at(&w, 99, 25));
	assert_false(short_at(&w, 150, 26));
	assert_true(short_at(&w, 1000, 27));
}

/* Limits that are in no order: above any of them there is not enough. */
static void test_judge_odd(void **state)
{
	struct tcp_memory_use m = {.used = 150, .low = 200, .pressure = 100};
	struct tcp_memory_watch w = {0};

	(void)state;
	for (uint64_t second = 1; second < 30; second++) {
		tcp_memory_judge(&w, &m, second * NSEC_PER_SEC);
		assert_true(w.is_short);
	}
}

static void test_groups(void **state)
{
	struct tcp_memory_groups g;
	char text[256];

	(void)state;
	assert_int_equal(tcp_memory_groups_find(proc, &g), -ENOENT);
	write_file("mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
	assert_int_equal(tcp_memory_groups_find(proc, &g), 0);
	assert_string_equal(g.root, "");
	/* Only the second version: it has no such limit. */
	assert_false(tcp_memory_is_limited(&g, proc, 7));
	snprintf(text, sizeof(text),
		 "cgroup /x cgroup rw,cpu 0 0\ncgroup %s/net cgroup rw,relatime,memory 0 0\n",
		 proc);
	write_file("mounts", text);
	assert_int_equal(tcp_memory_groups_find(proc, &g), 0);
	assert_string_equal(g.root + strlen(proc), "/net");
}

static void set_limit(const char *group, const char *limit)
{
	char name[128];

	snprintf(name, sizeof(name), "net%s/memory.kmem.tcp.limit_in_bytes", group);
	write_file(name, limit);
}

static void test_is_limited(void **state)
{
	struct tcp_memory_groups g;
	char path[128];

	(void)state;
	snprintf(g.root, sizeof(g.root), "%s/net", proc);
	snprintf(path, sizeof(path), "%s/net/a", proc);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/7", proc);
	mkdir(path, 0700);
	/* It has ended, or is in no group that we find. */
	assert_true(tcp_memory_is_limited(&g, proc, 7));
	write_file("7/cgroup", "9:cpu,cpuacct:/b\n4:memorylike:/b\n0::/c\n");
	assert_true(tcp_memory_is_limited(&g, proc, 7));
	write_file("7/cgroup", "9:cpu,cpuacct:/b\n4:hugetlb,memory:/a\n0::/c\n");
	assert_false(tcp_memory_is_limited(&g, proc, 7));
	set_limit("", "9223372036854771712\n");
	set_limit("/a", "9223372036854771712\n");
	assert_false(tcp_memory_is_limited(&g, proc, 7));
	set_limit("/a", "2097152\n");
	assert_true(tcp_memory_is_limited(&g, proc, 7));
	set_limit("/a", "9223372036854771712\n");
	set_limit("", "2097152\n");
	assert_true(tcp_memory_is_limited(&g, proc, 7));
	write_file("7/cgroup", "4:memory:/\n");
	assert_true(tcp_memory_is_limited(&g, proc, 7));
	set_limit("", "9223372036854771712\n");
	assert_false(tcp_memory_is_limited(&g, proc, 7));
	write_file("7/cgroup", "4:memory:/not/there\n");
	assert_true(tcp_memory_is_limited(&g, proc, 7));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),   cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_judge),  cmocka_unit_test(test_judge_odd),
		cmocka_unit_test(test_groups), cmocka_unit_test(test_is_limited),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
