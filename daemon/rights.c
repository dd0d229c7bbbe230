/* What this process may do; see rights.h. */
#include "rights.h"

#include <linux/capability.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

/*
 * The kernel side speaks of processes by the host's numbers, which in a namespace of processes
 * belong to others. The inode is that of the first such namespace since Linux 3.8
 * (include/linux/proc_ns.h, PROC_PID_INIT_INO); a kernel built without has no such file.
 */
static bool sees_host_pids(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == 0xeffffffcU;
}

bool rights_are_enough(void)
{
	if (geteuid() != 0) {
		log_error("Must run as root: BPF programs and other users' /proc entries need it");
		return false;
	}
	if (!sees_host_pids()) {
		log_error("Must run in the host's pid namespace: in this one (a container's?) "
			  "processes have other numbers (docker: --pid=host, Kubernetes: hostPID)");
		return false;
	}
	return true;
}

static unsigned long long effective_rights(void)
{
	unsigned long long effective = ~0ULL;
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "CapEff: %llx", &effective) == 1)
			break;
	if (file)
		fclose(file);
	return effective;
}

bool rights_include_sockets(void)
{
	return effective_rights() & (1ULL << CAP_NET_ADMIN | 1ULL << CAP_SYS_ADMIN);
}

bool rights_include_descriptors(void)
{
	return effective_rights() >> CAP_SYS_PTRACE & 1;
}

/*
 * Root in name is not root in rights: without this one the processes of other users cannot be
 * looked into.
 */
void rights_warn(void)
{
	if (!rights_include_descriptors())
		log_warning("No CAP_SYS_PTRACE: the processes of other users cannot be traced, and "
			    "requests will not carry 'traceparent' to other hosts");
}
