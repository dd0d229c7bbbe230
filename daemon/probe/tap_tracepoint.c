/* The tap of BTF tracepoints, opened by probe.c; see bpf/tap_tracepoint.bpf.c. */
#include "probe/tap.h"
#include "skeleton/tap_tracepoint.skel.h"

int tap_tracepoint_open(const struct btf *kernel, struct tap *ret_tap,
			struct probe_refusal *ret_refusal)
{
	/* The newest of the three, and the reason why most kernels have no such tap. */
	static const char *const names[] = {"sock_recv_length", "tcp_sendmsg_locked"};
	struct tap_tracepoint *skeleton;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char type[64];

		snprintf(type, sizeof(type), "btf_trace_%s", names[i]);
		if (btf__find_by_name_kind(kernel, type, BTF_KIND_TYPEDEF) >= 0)
			continue;
		snprintf(ret_refusal->reason, sizeof(ret_refusal->reason),
			 "this kernel has no tracepoint %s", names[i]);
		return TAP_REFUSED;
	}
	skeleton = tap_tracepoint__open();
	if (!skeleton)
		return -errno;
	tap_choose_programs(kernel, skeleton->obj, tap_tracepoints_are_preemptible(kernel));
	*ret_tap = TAP_VIEW(skeleton);
	return 0;
}

void tap_tracepoint_share(struct tap *tap)
{
	struct tap_tracepoint *skeleton = tap->skeleton;

	TAP_SHARE(tap, skeleton);
}
