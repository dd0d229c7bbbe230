/*
 * Probes in files, in the kernel (root): they are in the very file that was opened, they are taken
 * away without a wait, and then every byte is what it was. The files are of instructions that do
 * nothing; nobody runs them.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "probe/go_probe.h"
#include "probe/probe.h"

#define FILE_BYTES 8192
#define PROBES     100
#define DETACH_NS  (200 * NSEC_PER_MSEC) /* of them all; the kernel takes some 40 ms for each */
#define GONE_NS    (2 * NSEC_PER_SEC)    /* then they are gone; one after the other it took 4 s */

#if defined(__x86_64__)
static const uint32_t nops = 0x90909090;
#else
static const uint32_t nops = 0xd503201f;
#endif

static struct probe *probe;
static struct go_probe *go;
static char folder[] = "/var/tmp/tsunagi-test-XXXXXX";

struct mapped {
	char path[64];
	int fd;
	uint32_t *text;
};

static struct mapped make_file(const char *name)
{
	uint32_t bytes[FILE_BYTES / sizeof(uint32_t)];
	struct mapped m;

	for (size_t i = 0; i < ARRAY_SIZE(bytes); i++)
		bytes[i] = nops;
	snprintf(m.path, sizeof(m.path), "%s/%s", folder, name);
	m.fd = open(m.path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	assert_true(m.fd >= 0);
	assert_int_equal(write(m.fd, bytes, sizeof(bytes)), sizeof(bytes));
	m.text = mmap(NULL, FILE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, m.fd, 0);
	assert_true(m.text != MAP_FAILED);
	return m;
}

static void drop_file(struct mapped *m)
{
	munmap(m->text, FILE_BYTES);
	close(m->fd);
	unlink(m->path);
}

static size_t changed(const struct mapped *m)
{
	size_t n = 0;

	for (size_t i = 0; i < FILE_BYTES / sizeof(uint32_t); i++)
		n += m->text[i] != nops;
	return n;
}

static int setup(void **state)
{
	struct probe_refusal refusals[_PROBE_TAP_MAX] = {0}, refusal = {0};
	struct probe_options options = {.tap = -1,
					.head_bytes_max = 16384,
					.processes_max = 16,
					.requests_max = 64,
					.connections_max = 64,
					.ring_bytes = 65536};

	(void)state;
	if (!mkdtemp(folder) || probe_new(&options, &probe, refusals) != 0)
		return -1;
	return go_probe_new(probe, &go, &refusal) ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	go_probe_free(go);
	probe_free(probe);
	rmdir(folder);
	return 0;
}

static struct uprobe *attach(int fd, struct file_lease *lease, uint64_t offset)
{
	struct go_probe_place place = {
		.fd = fd,
		.lease = lease,
		.site = GO_PROBE_ROUND_TRIP,
		.offset = offset,
	};
	struct uprobe *uprobe = NULL;

	assert_int_equal(go_probe_attach(go, &place, &uprobe), 0);
	return uprobe;
}

/* As cp(1) does: what was there is gone before anything is written. Returns what was changed then. */
static void *write_anew(void *userdata)
{
	struct mapped *m = userdata;
	int fd = open(m->path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(changed(m), 0);
	close(fd);
	return NULL;
}

/* Who wants to write to a file with probes in it does so when they are gone. */
static void test_file_that_is_written_to(void **state)
{
	struct mapped m = make_file("w");
	struct file_lease *lease;
	struct uprobe *uprobe;
	pthread_t writer;
	int fd;

	(void)state;
	signal(SIGIO, SIG_IGN);
	assert_int_equal(file_lease_new(m.fd, &lease), -EAGAIN);
	munmap(m.text, FILE_BYTES);
	close(m.fd);
	m.fd = open(m.path, O_RDONLY | O_CLOEXEC);
	fd = open(m.path, O_RDONLY | O_CLOEXEC);
	assert_true(m.fd >= 0 && fd >= 0);
	m.text = mmap(NULL, FILE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, m.fd, 0);
	assert_true(m.text != MAP_FAILED);
	assert_int_equal(file_lease_new(fd, &lease), 0);
	close(fd);
	uprobe = attach(m.fd, lease, 4096);
	assert_true(file_lease_is_whole(lease));
	assert_int_equal(pthread_create(&writer, NULL, write_anew, &m), 0);
	while (file_lease_is_whole(lease))
		usleep(1000);
	assert_int_equal(changed(&m), 1);
	file_lease_unref(lease);
	usleep(50000);
	assert_int_equal(changed(&m), 1);
	go_probe_detach(go, uprobe);
	assert_int_equal(pthread_join(writer, NULL), 0);
	drop_file(&m);
}

/* Its name is another file's by now, whose instructions are others. */
static void test_file_that_was_replaced(void **state)
{
	struct mapped a = make_file("a"), b = make_file("b");
	struct uprobe *uprobe;

	(void)state;
	assert_int_equal(rename(b.path, a.path), 0);
	uprobe = attach(a.fd, NULL, 4096);
	assert_int_equal(changed(&a), 1);
	assert_int_equal(changed(&b), 0);
	go_probe_detach(go, uprobe);
	drop_file(&a);
	drop_file(&b);
}

/* Many processes that end at a time do not keep the records waiting, nor the daemon's end. */
static void test_detach_takes_no_time(void **state)
{
	struct mapped m = make_file("m");
	struct uprobe *uprobes[PROBES];
	uint64_t start;

	(void)state;
	for (unsigned int i = 0; i < PROBES; i++)
		uprobes[i] = attach(m.fd, NULL, i * 64);
	assert_int_equal(changed(&m), PROBES);
	start = now_ns(CLOCK_MONOTONIC);
	for (unsigned int i = 0; i < PROBES; i++)
		go_probe_detach(go, uprobes[i]);
	assert_in_range(now_ns(CLOCK_MONOTONIC) - start, 0, DETACH_NS);

	start = now_ns(CLOCK_MONOTONIC);
	go_probe_free(go);
	go = NULL;
	assert_in_range(now_ns(CLOCK_MONOTONIC) - start, 0, GONE_NS);
	assert_int_equal(changed(&m), 0);
	drop_file(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_that_was_replaced),
		cmocka_unit_test(test_file_that_is_written_to),
		cmocka_unit_test(test_detach_takes_no_time),
	};

	if (geteuid() != 0) {
		puts("needs root");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
