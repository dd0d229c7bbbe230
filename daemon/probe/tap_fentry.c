/*
 * The tap of trampolines at TCP's own functions, opened by probe.c; see bpf/tap_fentry.bpf.c. Two
 * objects of one source: where the kernel lacks what the programs ask for, it is the basic one
 * (bpf/subprogram.h).
 */
#include "probe/tap.h"
#include "skeleton/tap_fentry.skel.h"
#include "skeleton/tap_fentry_basic.skel.h"

static int open_basic(const struct btf *kernel, uint32_t recvmsg_arguments, struct tap *ret_tap)
{
	struct tap_fentry_basic *skeleton = tap_fentry_basic__open();

	if (!skeleton)
		return -errno;
	skeleton->rodata->recvmsg_arguments = recvmsg_arguments;
	tap_choose_programs(kernel, skeleton->obj, tap_is_preemptible());
	*ret_tap = TAP_VIEW(skeleton);
	ret_tap->conns = skeleton->maps.conns;
	bpf_map__set_max_entries(skeleton->maps.receivings, 1); /* the kprobe tap's */
	return 0;
}

int tap_fentry_open(const struct btf *kernel, struct tap *ret_tap,
		    struct probe_refusal *ret_refusal)
{
	struct tap_fentry *skeleton;
	uint32_t n;
	int r;

	r = tap_recvmsg_arguments(kernel, &n, ret_refusal);
	if (r)
		return r;
	/* Of what the other object needs this came last, in Linux 5.17. */
	if (!tap_has_helper(kernel, "BPF_FUNC_loop"))
		return open_basic(kernel, n, ret_tap);
	skeleton = tap_fentry__open();
	if (!skeleton)
		return -errno;
	skeleton->rodata->recvmsg_arguments = n;
	tap_choose_programs(kernel, skeleton->obj, tap_is_preemptible());
	*ret_tap = TAP_VIEW(skeleton);
	return 0;
}

void tap_fentry_share(struct tap *tap)
{
	if (tap->conns) {
		struct tap_fentry_basic *skeleton = tap->skeleton;

		TAP_SHARE(tap, skeleton);
	} else {
		struct tap_fentry *skeleton = tap->skeleton;

		TAP_SHARE(tap, skeleton);
	}
}
