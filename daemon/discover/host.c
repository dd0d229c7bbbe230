/* The host; see host.h. */
#include "discover/host.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "base/str.h"
#include "base/util.h"
#include "discover/proc.h"
#include "discover/text.h"

/* The first line of a file; empty when there is none. */
static void read_line(const char *path, char *line, size_t size)
{
	size_t n;

	line[0] = '\0';
	if (proc_read(AT_FDCWD, path, line, size, &n))
		return;
	line[strcspn(line, "\n")] = '\0';
	text_clean(line, strlen(line));
}

/* The value of 'key' in os-release(5), which is shell-like: quotes around, no expansions. */
static void os_release_value(struct str text, struct str key, char *value, size_t size)
{
	while (text.n > 0) {
		ptrdiff_t end = str_find(text, '\n');
		struct str line = {.p = text.p, .n = end < 0 ? text.n : (size_t)end};

		text = str_skip(text, line.n + 1);
		if (!str_starts_with(line, key))
			continue;
		line = str_skip(line, key.n);
		if (line.n >= 2 && (line.p[0] == '"' || line.p[0] == '\'') &&
		    line.p[line.n - 1] == line.p[0])
			line = (struct str){.p = line.p + 1, .n = line.n - 2};
		snprintf(value, size, "%.*s", STR_ARG(line));
		text_clean(value, strlen(value));
		return;
	}
}

static void read_os(struct host *host)
{
	char text[4096];
	struct str all;
	size_t n;

	if (proc_read(AT_FDCWD, "/etc/os-release", text, sizeof(text), &n) &&
	    proc_read(AT_FDCWD, "/usr/lib/os-release", text, sizeof(text), &n))
		return;
	all = (struct str){.p = text, .n = n};
	os_release_value(all, STR("NAME="), host->os_name, sizeof(host->os_name));
	os_release_value(all, STR("VERSION_ID="), host->os_version, sizeof(host->os_version));
	os_release_value(all, STR("PRETTY_NAME="), host->os_description,
			 sizeof(host->os_description));
}

/* The values of host.arch in OpenTelemetry's host conventions. */
static const char *host_arch(const char *machine)
{
	if (strcmp(machine, "x86_64") == 0)
		return "amd64";
	if (strcmp(machine, "aarch64") == 0)
		return "arm64";
	return "";
}

void host_read(struct host *ret)
{
	struct host host = {0};
	struct utsname name;

	if (uname(&name) == 0) {
		snprintf(host.name, sizeof(host.name), "%s", name.nodename);
		text_clean(host.name, strlen(host.name));
		host.arch = host_arch(name.machine);
	} else {
		host.arch = "";
	}
	read_line("/etc/machine-id", host.id, sizeof(host.id));
	read_line("/proc/sys/kernel/random/boot_id", host.boot_id, sizeof(host.boot_id));
	read_os(&host);
	*ret = host;
}
