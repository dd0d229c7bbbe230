/*
 * The tap of trampolines at TCP's own functions, opened by probe.c; see bpf/tap_fentry.bpf.c. Two
 * objects of one source: where the kernel lacks what the programs ask for, it is the basic one
 * (bpf/subprogram.h).
 */
#include "probe/tap.h"
#include "skeleton/tap_fentry.skel.h"
#include "skeleton/tap_fentry_basic.skel.h"

/*
 * Behind a receive the kernel calls one of two functions: which one is left of them, when the
 * compiler has made the outer one part of its callers.
 */
static void choose_waited(const struct btf *kernel, struct bpf_program *outer,
			  struct bpf_program *inner)
{
	bool has_inner = tap_arguments(kernel, "__tcp_cleanup_rbuf") >= 0,
	     has_outer = tap_arguments(kernel, "tcp_cleanup_rbuf") >= 0;

	bpf_program__set_autoload(outer, has_outer && !has_inner);
	bpf_program__set_autoload(inner, has_inner);
	bpf_program__set_autoattach(outer, false);
	bpf_program__set_autoattach(inner, false);
}

static int open_basic(const struct btf *kernel, uint32_t recvmsg_arguments, struct tap *ret_tap)
{
	struct tap_fentry_basic *skeleton = tap_fentry_basic__open();

	if (!skeleton)
		return -errno;
	skeleton->rodata->recvmsg_arguments = recvmsg_arguments;
	tap_choose_programs(kernel, skeleton->obj, tap_is_preemptible());
	choose_waited(kernel, skeleton->progs.fe_waited, skeleton->progs.fe_waited_inner);
	*ret_tap = TAP_VIEW(skeleton);
	ret_tap->waiting = skeleton->maps.waiting;
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
	choose_waited(kernel, skeleton->progs.fe_waited, skeleton->progs.fe_waited_inner);
	*ret_tap = TAP_VIEW(skeleton);
	ret_tap->waiting = skeleton->maps.waiting;
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
