/* What the taps ask of the running kernel before they are loaded; see tap.h. */
#include "probe/tap.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/utsname.h>

int tap_arguments(const struct btf *kernel, const char *function)
{
	int id = btf__find_by_name_kind(kernel, function, BTF_KIND_FUNC);

	return id < 0 ? id
		      : btf_vlen(btf__type_by_id(kernel, btf__type_by_id(kernel, (__u32)id)->type));
}

int tap_recvmsg_arguments(const struct btf *kernel, uint32_t *ret_n,
			  struct probe_refusal *ret_refusal)
{
	int n = tap_arguments(kernel, "tcp_recvmsg");

	if (n < 4 || n > 6) {
		snprintf(ret_refusal->reason, sizeof(ret_refusal->reason),
			 "this kernel's tcp_recvmsg() is none that is known (%d)", n);
		return TAP_REFUSED;
	}
	*ret_n = (uint32_t)n;
	return 0;
}

bool tap_has_helper(const struct btf *kernel, const char *name)
{
	/* The enumerators of enum bpf_func_id are the helpers that a kernel has. */
	int id = btf__find_by_name_kind(kernel, "bpf_func_id", BTF_KIND_ENUM);
	const struct btf_type *type = id < 0 ? NULL : btf__type_by_id(kernel, (__u32)id);

	for (int i = 0; type && i < btf_vlen(type); i++)
		if (strcmp(btf__name_by_offset(kernel, btf_enum(type)[i].name_off), name) == 0)
			return true;
	return false;
}

/*
 * The scheduler's own word, where it can be read, else what the kernel was built for: the copies
 * cost little where they are not needed.
 */
bool tap_is_preemptible(void)
{
	_cleanup_(closep) int fd = open("/sys/kernel/debug/sched/preempt", O_RDONLY | O_CLOEXEC);
	char modes[64] = "";
	struct utsname name;

	if (fd >= 0 && read(fd, modes, sizeof(modes) - 1) > 0)
		return !strstr(modes, "(none)") && !strstr(modes, "(voluntary)");
	return uname(&name) < 0 || strstr(name.version, "PREEMPT");
}

/*
 * Tracepoints run with preemption off but where SRCU guards them: that shows by its data for each
 * CPU. (So does it before Linux 6.13, for other reasons; there the tracepoint tap is not.)
 */
bool tap_tracepoints_are_preemptible(const struct btf *kernel)
{
	return tap_is_preemptible() &&
	       btf__find_by_name_kind(kernel, "tracepoint_srcu_srcu_data", BTF_KIND_VAR) >= 0;
}

bool tap_is_copy(const struct bpf_program *program)
{
	const char *name = bpf_program__name(program);
	size_t n = strlen(name);

	return n > 2 && name[n - 2] == '_' && name[n - 1] >= '2' && name[n - 1] <= '9';
}

bool tap_is_nested(const struct bpf_program *program)
{
	const char *name = bpf_program__name(program);

	return strcmp(name, "tp_state_2") == 0 || strcmp(name, "tp_destroy_2") == 0;
}

bool tap_is_for_waiting(const struct bpf_program *program)
{
	return strncmp(bpf_program__name(program), "fe_waited", 9) == 0;
}

void tap_choose_programs(const struct btf *kernel, struct bpf_object *object, bool needs_copies)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, object)
	{
		const char *slash = strchr(bpf_program__section_name(program), '/');
		const char *function = slash ? slash + 1 : "";
		const char *name = bpf_program__name(program);

		if (tap_is_copy(program) && !needs_copies && !tap_is_nested(program))
			bpf_program__set_autoload(program, false);
		if (strstr(name, "_if_") &&
		    btf__find_by_name_kind(kernel, function, BTF_KIND_FUNC) < 0)
			bpf_program__set_autoload(program, false);
	}
}
