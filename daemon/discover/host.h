/*
 * The host as resource attributes describe it: read once when discover starts. Used by describe.c.
 */
#pragma once

#include <stdint.h>

struct host {
	char name[256];
	char id[64];              /* /etc/machine-id; empty: none */
	char boot_id[64];         /* differs from boot to boot */
	const char *arch;         /* as host.arch spells it: "amd64", "arm64" */
	char os_name[128];        /* os-release NAME; empty: none */
	char os_version[64];      /* os-release VERSION_ID; empty: none */
	char os_description[256]; /* os-release PRETTY_NAME; empty: none */
};

void host_read(struct host *ret);
