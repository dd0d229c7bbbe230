/* probe/jvm_control.c on the test's own memory: a file named as the agent's, mapped as its data is. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "abi.h"
#include "probe/jvm_control.h"

#define PAGES (3 * 4096)

static char *map_file(const char *name)
{
	char path[64], *memory;
	int fd;

	snprintf(path, sizeof(path), "/tmp/%s.%d", name, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(ftruncate(fd, PAGES), 0);
	memory = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	close(fd);
	return memory;
}

static struct jvm_control *place(char *memory)
{
	struct jvm_control *control = (struct jvm_control *)(memory + 4096 + 3 * 64);

	*control = (struct jvm_control){
		.magic = JVM_CONTROL_MAGIC,
		.version = JVM_CONTROL_VERSION,
		.state = JVM_AGENT_READY,
		.slot = -256,
	};
	memset(control->reason, 'r', sizeof(control->reason)); /* it does not even end */
	control->reason[1] = '\n';
	return control;
}

static int find(struct jvm_control_view *ret)
{
	return jvm_control_find((uint32_t)getpid(), ret);
}

static void test_found(void **state)
{
	char *memory = map_file(".tsunagi-agent-test");
	struct jvm_control *control = place(memory);
	struct jvm_control_view view;

	(void)state;
	assert_int_equal(find(&view), 0);
	assert_int_equal(view.address, (uintptr_t)control);
	assert_true(view.is_ready);
	assert_false(view.is_enabled);
	assert_int_equal(view.slot, -256);
	assert_int_equal(strlen(view.reason), sizeof(control->reason));
	assert_memory_equal(view.reason, "r?r", 3);

	assert_int_equal(jvm_control_enable((uint32_t)getpid(), view.address, true), 0);
	assert_int_equal(control->enabled, 1);
	assert_int_equal(find(&view), 0);
	assert_true(view.is_enabled);
	assert_int_equal(jvm_control_enable((uint32_t)getpid(), view.address, false), 0);
	assert_int_equal(control->enabled, 0);
	munmap(memory, PAGES);
	assert_int_equal(find(&view), JVM_CONTROL_NONE);
	assert_int_equal(jvm_control_enable((uint32_t)getpid(), view.address, true),
			 JVM_CONTROL_NONE);
}

static void test_not_believed(void **state)
{
	static const int64_t slots[] = {0, 4, -257, 1LL << 40, INT64_MIN};
	char *memory = map_file("tsunagi-agent.so");
	struct jvm_control *control = place(memory);
	struct jvm_control_view view;

	(void)state;
	for (size_t i = 0; i < sizeof(slots) / sizeof(*slots); i++) {
		control->slot = slots[i];
		assert_int_equal(find(&view), 0);
		assert_false(view.is_ready);
	}
	control->slot = -256;
	control->state = JVM_AGENT_LOADING;
	assert_int_equal(find(&view), 0);
	assert_false(view.is_ready);
	assert_false(view.is_broken);
	control->state = JVM_AGENT_BROKEN;
	assert_int_equal(find(&view), 0);
	assert_false(view.is_ready);
	assert_true(view.is_broken);
	control->version++;
	assert_int_equal(find(&view), JVM_CONTROL_OTHER);
	assert_int_equal(view.address, (uintptr_t)control);

	/* What is no longer there is not written to. */
	control->magic[3]++;
	assert_int_equal(find(&view), JVM_CONTROL_NONE);
	assert_int_equal(jvm_control_enable((uint32_t)getpid(), (uintptr_t)control, true),
			 JVM_CONTROL_NONE);
	assert_int_equal(control->enabled, 0);
	munmap(memory, PAGES);
}

static void test_another_file(void **state)
{
	char *memory = map_file("not-tsunagi-agent");
	struct jvm_control_view view;

	(void)state;
	place(memory);
	assert_int_equal(find(&view), JVM_CONTROL_NONE);
	munmap(memory, PAGES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_not_believed),
		cmocka_unit_test(test_another_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
