/*
 * /proc/PID/cgroup: the container a process runs in and the systemd unit it belongs to. Used by
 * look.c; pure.
 *
 * Known shapes, in cgroup v1 and v2: docker (cgroupfs and systemd drivers), containerd and CRI-O
 * under Kubernetes, nested containers (the innermost counts), podman (also rootless, and in the
 * cgroup of its own unit), systemd-nspawn (a machine has a name, not an id, so it is no container
 * here).
 */
#pragma once

#include "base/str.h"

#define CONTAINER_ID_HEX 64
#define UNIT_MAX         256

struct cgroup_facts {
	char container_id[CONTAINER_ID_HEX + 1]; /* empty: none */
	char unit[UNIT_MAX]; /* "shop.service", "session-2.scope"; empty: none */
};

void cgroup_parse(struct str text, struct cgroup_facts *ret);
