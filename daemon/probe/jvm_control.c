/* The block of the agent in a JVM; see jvm_control.h. */
#include "probe/jvm_control.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "abi.h"
#include "base/util.h"

#define FILE_NAME     "tsunagi-agent"
#define MAPPING_MAX   (1U << 20) /* of the agent's data; more is not the agent's */
#define MAPPINGS_MAX  8
#define SLOT_FAR      (1 << 20) /* a C library keeps such memory within a few kilobytes */
#define CHUNK_BYTES   4096
#define CONTROL_ALIGN 64

/* Returns 0 or a negative errno; all or nothing. */
static int memory_read(uint32_t pid, uint64_t address, void *ret, size_t size)
{
	struct iovec here = {ret, size}, there = {(void *)(uintptr_t)address, size};
	ssize_t n = process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EFAULT;
}

static bool has_magic(const void *memory)
{
	return !memcmp(memory, JVM_CONTROL_MAGIC, sizeof(JVM_CONTROL_MAGIC));
}

/* Returns as jvm_control_find(). */
static int control_check(uint64_t address, const struct jvm_control *control,
			 struct jvm_control_view *ret)
{
	*ret = (struct jvm_control_view){.address = address};
	if (control->version != JVM_CONTROL_VERSION)
		return JVM_CONTROL_OTHER;
	ret->is_loading = control->state == JVM_AGENT_LOADING;
	ret->is_ready = control->state == JVM_AGENT_READY && control->slot != 0 &&
			control->slot > -SLOT_FAR && control->slot < SLOT_FAR &&
			control->slot % (int)sizeof(uint64_t) == 0;
	ret->is_broken = control->state == JVM_AGENT_BROKEN;
	ret->is_enabled = control->enabled;
	ret->slot = control->slot;
	ret->handovers_lost = control->handovers_lost;
	snprintf(ret->reason, sizeof(ret->reason), "%.*s", (int)sizeof(control->reason),
		 control->reason);
	for (char *c = ret->reason; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
	return 0;
}

/* Returns as jvm_control_find(). */
static int mapping_search(uint32_t pid, uint64_t from, uint64_t to, struct jvm_control_view *ret)
{
	struct jvm_control control;
	uint8_t chunk[CHUNK_BYTES];
	uint64_t at;
	size_t i;
	int r;

	if (to - from > MAPPING_MAX)
		return JVM_CONTROL_NONE;
	for (at = from; at + CHUNK_BYTES <= to; at += CHUNK_BYTES) {
		r = memory_read(pid, at, chunk, sizeof(chunk));
		if (r < 0)
			return r;
		for (i = 0; i < CHUNK_BYTES; i += CONTROL_ALIGN) {
			if (!has_magic(chunk + i) ||
			    memory_read(pid, at + i, &control, sizeof(control)) < 0)
				continue;
			return control_check(at + i, &control, ret);
		}
	}
	return JVM_CONTROL_NONE;
}

/* Whether a line of /proc/PID/maps is of data of the agent's file, which may be deleted (proc_pid_maps(5)). */
static bool mapping_read(const char *line, uint64_t *ret_from, uint64_t *ret_to)
{
	const char *slash = strrchr(line, '/');
	char permissions[5];

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", ret_from, ret_to, permissions) != 3 ||
	    strcmp(permissions, "rw-p") != 0 || !slash)
		return false;
	return !strncmp(slash + 1 + (slash[1] == '.'), FILE_NAME, strlen(FILE_NAME));
}

/* Whether one block is better to have than another: a second that was loaded refuses to work. */
static bool is_better(int one, const struct jvm_control_view *view, int other,
		      const struct jvm_control_view *best)
{
	if (one != 0)
		return one == JVM_CONTROL_OTHER && (other < 0 || other == JVM_CONTROL_NONE);
	return other != 0 || (view->is_ready && !best->is_ready) ||
	       (view->is_loading && !best->is_ready && !best->is_loading);
}

int jvm_control_find(uint32_t pid, struct jvm_control_view *ret)
{
	_cleanup_(fclosep) FILE *maps = NULL;
	struct jvm_control_view view;
	int r = JVM_CONTROL_NONE, one, n = 0;
	char path[32], line[4352];
	uint64_t from, to;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	while (n < MAPPINGS_MAX && fgets(line, sizeof(line), maps)) {
		if (!mapping_read(line, &from, &to))
			continue;
		n++;
		one = mapping_search(pid, from, to, &view);
		if (is_better(one, &view, r, ret)) {
			r = one;
			*ret = view;
		} else if (one < 0 && r == JVM_CONTROL_NONE) {
			r = one; /* another may have it all the same */
		}
	}
	return r;
}

int jvm_control_enable(uint32_t pid, uint64_t address, bool is_enabled)
{
	uint32_t value = is_enabled;
	struct iovec here = {&value, sizeof(value)};
	struct iovec there = {(char *)(uintptr_t)address + offsetof(struct jvm_control, enabled),
			      sizeof(value)};
	char magic[sizeof(JVM_CONTROL_MAGIC)];
	int r = memory_read(pid, address, magic, sizeof(magic));

	/* Another program has that memory now, or the process another one. */
	if (r == -EFAULT || (r == 0 && !has_magic(magic)))
		return JVM_CONTROL_NONE;
	if (r < 0)
		return r;
	return process_vm_writev((pid_t)pid, &here, 1, &there, 1, 0) == sizeof(value) ? 0 : -EFAULT;
}
