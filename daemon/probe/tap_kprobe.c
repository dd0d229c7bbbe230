/* The tap of kprobes at TCP's own functions, opened by probe.c; see bpf/tap_kprobe.bpf.c. */
#include <unistd.h>

#include "probe/tap.h"
#include "skeleton/tap_kprobe.skel.h"

/* By perf_event_open() only: what is made through tracefs would outlive the daemon. */
#define KPROBE_PMU "/sys/bus/event_source/devices/kprobe/type"

/*
 * Behind a receive the kernel calls one of two functions: which one is left of them, when the
 * compiler has made the outer one part of its callers.
 */
static void choose_receive(const struct btf *kernel, struct tap_kprobe *skeleton)
{
	bool has_inner = tap_arguments(kernel, "__tcp_cleanup_rbuf") >= 0;

	bpf_program__set_autoload(skeleton->progs.kp_recv, !has_inner);
	bpf_program__set_autoload(skeleton->progs.kp_recv_inner, has_inner);
}

int tap_kprobe_open(const struct btf *kernel, struct tap *ret_tap,
		    struct probe_refusal *ret_refusal)
{
	struct tap_kprobe *skeleton;
	uint32_t n;
	int r;

	if (access(KPROBE_PMU, F_OK) < 0) {
		snprintf(ret_refusal->reason, sizeof(ret_refusal->reason),
			 "this kernel has no kprobes (CONFIG_KPROBE_EVENTS; no %s)", KPROBE_PMU);
		return TAP_REFUSED;
	}
	r = tap_recvmsg_arguments(kernel, &n, ret_refusal);
	if (r)
		return r;
	skeleton = tap_kprobe__open();
	if (!skeleton)
		return -errno;
	skeleton->rodata->recvmsg_arguments = n;
	tap_choose_programs(kernel, skeleton->obj, tap_is_preemptible());
	choose_receive(kernel, skeleton);
	*ret_tap = TAP_VIEW(skeleton);
	ret_tap->conns = skeleton->maps.conns;
	ret_tap->receivings = skeleton->maps.receivings;
	return 0;
}

void tap_kprobe_share(struct tap *tap)
{
	struct tap_kprobe *skeleton = tap->skeleton;

	TAP_SHARE(tap, skeleton);
}
