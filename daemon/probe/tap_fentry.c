/* The tap of trampolines at TCP's own functions, opened by probe.c; see bpf/tap_fentry.bpf.c. */
#include <fcntl.h>
#include <sys/utsname.h>

#include "probe/tap.h"
#include "skeleton/tap_fentry.skel.h"

static int arguments(const struct btf *kernel, const char *function)
{
	int id = btf__find_by_name_kind(kernel, function, BTF_KIND_FUNC);

	return id < 0 ? id
		      : btf_vlen(btf__type_by_id(kernel, btf__type_by_id(kernel, (__u32)id)->type));
}

/*
 * Whether a task may be preempted inside of a program. The scheduler's own word, where it can be
 * read, else what the kernel was built for: the copies cost little where they are not needed.
 */
static bool is_preemptible(void)
{
	_cleanup_(closep) int fd = open("/sys/kernel/debug/sched/preempt", O_RDONLY | O_CLOEXEC);
	char modes[64] = "";
	struct utsname name;

	if (fd >= 0 && read(fd, modes, sizeof(modes) - 1) > 0)
		return !strstr(modes, "(none)") && !strstr(modes, "(voluntary)");
	return uname(&name) < 0 || strstr(name.version, "PREEMPT");
}

/* Leaves out programs for functions that this kernel has not, and copies that it does not need. */
static void choose_programs(const struct btf *kernel, struct bpf_object *object)
{
	bool needs_copies = is_preemptible();
	struct bpf_program *program;

	bpf_object__for_each_program(program, object)
	{
		const char *function = strchr(bpf_program__section_name(program), '/') + 1;
		const char *name = bpf_program__name(program);

		if (tap_is_copy(program) && !needs_copies && !tap_is_nested(program))
			bpf_program__set_autoload(program, false);
		if (strstr(name, "_if_") &&
		    btf__find_by_name_kind(kernel, function, BTF_KIND_FUNC) < 0)
			bpf_program__set_autoload(program, false);
	}
}

int tap_fentry_open(const struct btf *kernel, struct tap *ret_tap,
		    struct probe_refusal *ret_refusal)
{
	int n = arguments(kernel, "tcp_recvmsg");
	struct tap_fentry *skeleton;

	if (n < 4 || n > 6) {
		snprintf(ret_refusal->reason, sizeof(ret_refusal->reason),
			 "this kernel's tcp_recvmsg() is none that is known (%d)", n);
		return TAP_REFUSED;
	}
	skeleton = tap_fentry__open();
	if (!skeleton)
		return -errno;
	skeleton->rodata->recvmsg_arguments = (__u32)n;
	choose_programs(kernel, skeleton->obj);
	*ret_tap = TAP_VIEW(skeleton);
	return 0;
}

void tap_fentry_share(struct tap *tap)
{
	struct tap_fentry *skeleton = tap->skeleton;

	TAP_SHARE(tap, skeleton);
}
