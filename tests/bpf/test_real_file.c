/*
 * Files behind files, in the kernel (root): overlays of one layer have one file there, which is the
 * file that a probe made through any of them is in; a copy in an upper layer is another. All of it
 * in a namespace of mounts of its own.
 */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "probe/go_probe.h"
#include "probe/probe.h"
#include "probe/real_file.h"

#define FILE_BYTES 8192
#define LOOKUPS    200
#define LOOKUP_NS  (2 * NSEC_PER_MSEC) /* on average: a new file must not keep the records waiting */

#if defined(__x86_64__)
static const uint32_t nops = 0x90909090;
#else
static const uint32_t nops = 0xd503201f;
#endif

static struct real_file_finder *finder;
static char folder[] = "/var/tmp/tsunagi-test-XXXXXX";

static int open_file(const char *place, const char *name, int flags)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s/%s", folder, place, name);
	fd = open(path, flags | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	return fd;
}

static void make_file(const char *place, const char *name)
{
	_cleanup_(closep) int fd = open_file(place, name, O_WRONLY | O_CREAT);

	for (size_t i = 0; i < FILE_BYTES / sizeof(nops); i++)
		assert_int_equal(write(fd, &nops, sizeof(nops)), sizeof(nops));
}

static void make_folder(const char *place)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, place);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void make_overlay(const char *place)
{
	char path[128], upper[32], work[32], options[512];

	snprintf(upper, sizeof(upper), "%s-upper", place);
	snprintf(work, sizeof(work), "%s-work", place);
	make_folder(place);
	make_folder(upper);
	make_folder(work);
	snprintf(path, sizeof(path), "%s/%s", folder, place);
	snprintf(options, sizeof(options), "lowerdir=%s/layer,upperdir=%s/%s,workdir=%s/%s", folder,
		 folder, upper, folder, work);
	assert_int_equal(mount("overlay", path, "overlay", 0, options), 0);
}

static struct real_file find(const char *place, const char *name, struct stat *ret_shown)
{
	_cleanup_(closep) int fd = open_file(place, name, O_RDONLY);
	struct real_file real = {0};

	assert_int_equal(fstat(fd, ret_shown), 0);
	assert_int_equal(real_file_find(finder, fd, &real), 0);
	return real;
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(folder) || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", folder, "tmpfs", 0, NULL) < 0)
		return -1;
	make_folder("layer");
	make_file("layer", "one");
	make_file("layer", "two");
	make_overlay("a");
	make_overlay("b");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	umount2(folder, MNT_DETACH);
	rmdir(folder);
	real_file_finder_free(finder);
	return 0;
}

static void test_file_of_its_own(void **state)
{
	struct stat one_shown, two_shown;
	struct real_file one = find("layer", "one", &one_shown),
			 two = find("layer", "two", &two_shown);

	(void)state;
	assert_int_equal(one.number, one_shown.st_ino);
	assert_int_equal(two.number, two_shown.st_ino);
	assert_false(real_file_equal(&one, &two));
}

static void test_overlays(void **state)
{
	struct stat shown, a_shown, b_shown;
	struct real_file layer = find("layer", "one", &shown), a = find("a", "one", &a_shown),
			 b = find("b", "one", &b_shown), other = find("b", "two", &shown);

	(void)state;
	assert_true(a_shown.st_dev != b_shown.st_dev);
	assert_true(real_file_equal(&a, &layer));
	assert_true(real_file_equal(&b, &layer));
	assert_false(real_file_equal(&b, &other));
}

/* What was a layer's until it was changed is a file of its own then. */
static void test_copy(void **state)
{
	_cleanup_(closep) int fd = open_file("a", "two", O_RDONLY);
	struct stat before_shown, after_shown, shown;
	struct real_file before = find("a", "two", &before_shown), after, other;

	(void)state;
	assert_int_equal(fchmod(fd, 0711), 0);
	after = find("a", "two", &after_shown);
	other = find("b", "two", &shown);
	assert_false(real_file_equal(&before, &after));
	assert_true(real_file_equal(&before, &other));
	/* By which go_units.c knows that it has to look again. */
	assert_int_equal(before_shown.st_dev, after_shown.st_dev);
	assert_int_equal(before_shown.st_ino, after_shown.st_ino);
	assert_memory_not_equal(&before_shown.st_ctim, &after_shown.st_ctim,
				sizeof(before_shown.st_ctim));
}

static int start_probes(struct probe **ret, struct go_probe **ret_go)
{
	struct probe_refusal refusals[_PROBE_TAP_MAX] = {0}, refusal = {0};
	struct probe_options options = {.tap = -1,
					.head_bytes_max = 16384,
					.processes_max = 16,
					.requests_max = 64,
					.connections_max = 64,
					.ring_bytes = 65536};

	if (probe_new(&options, ret, refusals) != 0)
		return -1;
	return go_probe_new(*ret, ret_go, &refusal) ? -1 : 0;
}

/* A probe made through one overlay is in what another one shows, as the finder says. */
static void test_probe_is_there(void **state)
{
	_cleanup_(closep) int a = open_file("a", "one", O_RDONLY);
	_cleanup_(closep) int b = open_file("b", "one", O_RDONLY);
	struct uprobe *uprobe;
	struct go_probe *go;
	struct probe *probe;
	uint32_t *text;

	(void)state;
	text = mmap(NULL, FILE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, b, 0);
	assert_true(text != MAP_FAILED);
	assert_int_equal(start_probes(&probe, &go), 0);
	assert_int_equal(text[1024], nops);
	assert_int_equal(go_probe_attach(go,
					 &(struct go_probe_place){.fd = a,
								  .site = GO_PROBE_ROUND_TRIP,
								  .offset = 4096},
					 &uprobe),
			 0);
	assert_true(text[1024] != nops);
	go_probe_detach(go, uprobe);
	go_probe_free(go);
	probe_free(probe);
	assert_int_equal(text[1024], nops);
	munmap(text, FILE_BYTES);
}

static void test_takes_no_time(void **state)
{
	_cleanup_(closep) int fd = open_file("a", "one", O_RDONLY);
	uint64_t start = now_ns(CLOCK_MONOTONIC);
	struct real_file real;

	(void)state;
	for (int i = 0; i < LOOKUPS; i++)
		assert_int_equal(real_file_find(finder, fd, &real), 0);
	assert_in_range((now_ns(CLOCK_MONOTONIC) - start) / LOOKUPS, 0, LOOKUP_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file_of_its_own),
		cmocka_unit_test(test_overlays),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_probe_is_there),
		cmocka_unit_test(test_takes_no_time),
	};
	struct probe_refusal refusal;
	int r;

	if (geteuid() != 0) {
		puts("needs root");
		return 77;
	}
	r = real_file_finder_new(&finder, &refusal);
	if (r == REAL_FILE_REFUSED) {
		printf("refused: %s\n", refusal.reason);
		return 77;
	}
	return r ? 1 : cmocka_run_group_tests(tests, setup, teardown);
}
