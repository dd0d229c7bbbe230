/* The shapes of /proc/PID/cgroup. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "discover/container.h"

#define ID   "4eca0a387d2f150eeec16e96d148c71606eb4bd1e90a3a3f1e23d2c7a5d3f001"
#define ID_2 "aaaa0a387d2f150eeec16e96d148c71606eb4bd1e90a3a3f1e23d2c7a5d3f002"

static const struct row {
	const char *text, *container, *unit;
} rows[] = {
	/* no container, v2 */
	{"0::/\n", "", ""},
	{"0::/system.slice/shop.service\n", "", "shop.service"},
	{"0::/system.slice/shop.service", "", "shop.service"},
	{"0::/system.slice/system-shop.slice/shop@eu.service\n", "", "shop@eu.service"},
	{"0::/system.slice/shop.service/workers/1\n", "", "shop.service"},
	{"0::/init.scope\n", "", "init.scope"},
	{"0::/user.slice/user-1000.slice/session-2.scope\n", "", "session-2.scope"},
	{"0::/user.slice/user-1000.slice/user@1000.service/init.scope\n", "", "init.scope"},
	{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/shop.service\n", "",
	 "shop.service"},
	{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-x-12.scope\n", "",
	 "app-gnome-x-12.scope"},
	/* v1: the unit is in systemd's own hierarchy alone */
	{"9:name=systemd:/system.slice/shop.service\n4:memory:/system.slice/other.service\n0::/\n",
	 "", "shop.service"},
	{"4:memory:/system.slice/other.service\n", "", ""},
	/* docker */
	{"0::/docker/" ID "\n", ID, ""},
	{"0::/system.slice/docker-" ID ".scope\n", ID, ""},
	/* hybrid hierarchies: the engine uses v1, and v2 shows where it was started from */
	{"12:cpu,cpuacct:/docker/" ID "\n1:name=systemd:/docker/" ID
	 "\n0::/system.slice/containerd.service\n",
	 ID, ""},
	{"12:cpu,cpuacct:/docker/" ID "\n1:name=systemd:/system.slice/docker.service\n0::/\n", ID,
	 ""},
	{"0::/system.slice/docker.service\n4:memory:/docker/" ID "\n", ID, ""},
	{"4:memory:/docker/" ID "\n1:name=systemd:/docker/" ID "/system.slice/shop.service\n0::/\n",
	 ID, "shop.service"},
	{"9:name=systemd:/system.slice/docker-" ID ".scope\n4:memory:/system.slice/docker-" ID
	 ".scope\n0::/system.slice/docker-" ID ".scope\n",
	 ID, ""},
	/* as a daemon in a cgroup namespace of its own sees others: relative to its own cgroup */
	{"0::/../docker-" ID ".scope\n", ID, ""},
	{"0::/../../kubepods-burstable-pod12.slice/cri-containerd-" ID ".scope\n", ID, ""},
	{"0::/../../../system.slice/shop.service\n", "", "shop.service"},
	/* rootless */
	{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/docker.service/docker-" ID
	 ".scope\n",
	 ID, ""},
	{"0::/user.slice/user-1000.slice/user@1000.service/user.slice/nerdctl-" ID ".scope\n", ID,
	 ""},
	{"0::/../" ID "\n", ID, ""},
	{"0::/docker/" ID "/docker/" ID_2 "\n", ID_2, ""},
	{"0::/docker/" ID "/system.slice/shop.service\n", ID, "shop.service"},
	{"0::/docker/buildkit/abcdef\n", "", ""},
	/* Kubernetes */
	{"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12.slice/"
	 "cri-containerd-" ID ".scope\n",
	 ID, ""},
	{"0::/kubepods/besteffort/pod1b2c/" ID "\n", ID, ""},
	{"0::/kubepods.slice/kubepods-pod12.slice/crio-" ID ".scope\n", ID, ""},
	{"0::/kubepods.slice/kubepods-pod12.slice/docker-" ID ".scope\n", ID, ""},
	{"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod12.slice/cri-containerd-" ID
	 ".scope\n",
	 ID, ""},
	{"11:pids:/kubepods/pod1b2c/" ID "\n1:name=systemd:/kubepods/pod1b2c/" ID
	 "\n0::/system.slice/k3s.service\n",
	 ID, ""},
	{"11:pids:/default/" ID "\n0::/system.slice/containerd.service\n", ID, ""},
	{"0::/kubepods.slice/kubepods-pod12.slice/crio-" ID ".scope/container\n", ID, ""},
	{"0::/kubepods.slice/kubepods-pod12.slice/crio-conmon-" ID ".scope\n", "",
	 "crio-conmon-" ID ".scope"},
	{"0::/system.slice/containerd.service/kubepods-burstable-pod12.slice:cri-containerd:" ID
	 "\n",
	 ID, ""},
	/* podman */
	{"0::/machine.slice/libpod-" ID ".scope/container\n", ID, ""},
	{"0::/machine.slice/libpod-conmon-" ID ".scope\n", "", "libpod-conmon-" ID ".scope"},
	{"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope\n", ID,
	 ""},
	{"0::/system.slice/shop.service/libpod-payload-" ID "\n", ID, "shop.service"},
	{"1:name=systemd:/system.slice/shop.service/libpod-payload-" ID "\n4:memory:/\n", ID,
	 "shop.service"},
	{"4:memory:/libpod_parent/libpod-" ID "\n1:name=systemd:/libpod_parent/libpod-" ID "\n", ID,
	 ""},
	/* a machine has a name */
	{"0::/machine.slice/systemd-nspawn@web.service/payload\n", "",
	 "systemd-nspawn@web.service"},
	{"1:name=systemd:/machine.slice/machine-web.scope\n0::/\n", "", "machine-web.scope"},
	{"0::/machine.slice/systemd-nspawn@web.service/payload/system.slice/shop.service\n", "",
	 "shop.service"},
	{"0::/machine.slice/machine-web.scope/payload\n", "", "machine-web.scope"},
	/* no ids: wrong length, wrong digits */
	{"0::/docker/4eca0a387d2f150eeec16e96d148c716\n", "", ""},
	{"0::/docker/" ID "0\n", "", ""},
	{"0::/docker/zzca0a387d2f150eeec16e96d148c71606eb4bd1e90a3a3f1e23d2c7a5d3f001\n", "", ""},
	/* damaged */
	{"", "", ""},
	{"\n\n", "", ""},
	{"garbage\n0:\n:::\n", "", ""},
};

static void test_shapes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cgroup_facts facts;

		cgroup_parse(str_from(rows[i].text), &facts);
		if (strcmp(facts.container_id, rows[i].container) != 0 ||
		    strcmp(facts.unit, rows[i].unit) != 0)
			fail_msg("'%s' gave container '%s' and unit '%s'", rows[i].text,
				 facts.container_id, facts.unit);
	}
}

static void test_overlong_unit_is_none(void **state)
{
	char text[1024] = "0::/";
	struct cgroup_facts facts;

	(void)state;
	memset(text + 4, 'x', 600);
	strcpy(text + 604, ".service");
	cgroup_parse(str_from(text), &facts);
	assert_string_equal(facts.unit, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_overlong_unit_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
