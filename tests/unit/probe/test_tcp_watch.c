/*
 * The thread that looks at TCP's memory: what it sees comes in time while everybody else is busy, and
 * nothing comes when it has ended.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "probe/tcp_watch.h"

#define BOUND_NS (NSEC_PER_SEC / 2)

static char proc[64];
static struct tcp_memory *memory;

/* In one write, as it is read at any time; of the text before at most a line end is left. */
static void write_file(const char *name, const char *text)
{
	size_t n = strlen(text);
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, text, n, 0), n);
	assert_int_equal(ftruncate(fd, (off_t)n), 0);
	close(fd);
}

static void set_used(unsigned int pages)
{
	char text[128];

	snprintf(text, sizeof(text),
		 "sockets: used 12\nTCP: inuse 5 orphan 0 tw 2 alloc 7 mem %u\n", pages);
	write_file("net/sockstat", text);
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
	write_file("sys/net/ipv4/tcp_mem", "100 200 300\n");
	set_used(50);
	return tcp_memory_new(proc, &memory);
}

static int teardown(void **state)
{
	static const char *const names[] = {
		"net/sockstat", "net", "sys/net/ipv4/tcp_mem", "sys/net/ipv4", "sys/net", "sys", "",
	};
	char path[128];

	(void)state;
	tcp_memory_free(memory);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", proc, names[i]);
		remove(path);
	}
	return 0;
}

struct seen {
	uint64_t short_ns; /* when it was first told so */
	unsigned int looks;
	bool is_short;
};

static void looked(void *userdata, bool is_short, const bool *is_cancelled)
{
	struct seen *seen = userdata;

	(void)is_cancelled;
	if (is_short && !__atomic_load_n(&seen->short_ns, __ATOMIC_SEQ_CST))
		__atomic_store_n(&seen->short_ns, now_ns(CLOCK_MONOTONIC), __ATOMIC_SEQ_CST);
	__atomic_store_n(&seen->is_short, is_short, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&seen->looks, 1, __ATOMIC_SEQ_CST);
}

static struct tcp_watch *watch(struct seen *seen)
{
	struct tcp_watch *w;

	assert_int_equal(tcp_watch_new(&(struct tcp_watch_options){.memory = memory,
								   .looked = looked,
								   .userdata = seen},
				       &w),
			 0);
	return w;
}

/* As the loop is with a long file: it waits for nobody, and gives nobody time. */
static void be_busy(uint64_t ns)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + ns;

	while (now_ns(CLOCK_MONOTONIC) < end)
		;
}

static void test_while_busy(void **state)
{
	struct seen seen = {0};
	struct tcp_watch *w;
	uint64_t begin;

	(void)state;
	set_used(50);
	w = watch(&seen);
	be_busy(BOUND_NS);
	assert_true(__atomic_load_n(&seen.looks, __ATOMIC_SEQ_CST) > 0);
	assert_false(__atomic_load_n(&seen.is_short, __ATOMIC_SEQ_CST));
	begin = now_ns(CLOCK_MONOTONIC);
	set_used(200);
	be_busy(2 * BOUND_NS);
	tcp_watch_free(w);
	assert_true(seen.short_ns > begin);
	assert_true(seen.short_ns - begin < BOUND_NS);
	assert_true(seen.is_short);
}

static void test_unreadable(void **state)
{
	struct seen seen = {0};
	struct tcp_watch *w;

	(void)state;
	write_file("net/sockstat", "");
	w = watch(&seen);
	be_busy(BOUND_NS);
	tcp_watch_free(w);
	assert_true(seen.is_short);
}

static void test_end(void **state)
{
	struct seen seen = {0};
	unsigned int looks;
	uint64_t begin;

	(void)state;
	set_used(50);
	begin = now_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < 20; i++)
		tcp_watch_free(watch(&seen));
	/* Nobody waits until the next look. */
	assert_true(now_ns(CLOCK_MONOTONIC) - begin < NSEC_PER_SEC);
	looks = seen.looks;
	assert_true(looks >= 20);
	be_busy(BOUND_NS);
	assert_int_equal(seen.looks, looks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_while_busy),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_end),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
