/*
 * "Why do I see nothing?": a line for each listening process, printed when `--print` has had no
 * span for a while, and the words for what the kernel side saw of a process.
 */
#include <inttypes.h>

#include "daemon_private.h"

#define HINTS_MAX 50

const char *hints_seen(struct daemon *d, const struct process *p)
{
	struct probe_seen seen;

	probe_process_seen(d->probe, p->pid, &seen);
	if (seen.io_uring)
		return seen.http1 ? "HTTP/1; its io_uring receives cannot be read by this tap"
				  : "io_uring: its receives cannot be read by this tap";
	if (seen.unix_http)
		return seen.http1 ? "HTTP/1; HTTP over Unix sockets is not followed"
				  : "HTTP over Unix sockets is not followed";
	if (seen.http1)
		return "HTTP/1";
	if (seen.tls)
		return "TLS: its bytes cannot be read";
	if (seen.http2)
		return "HTTP/2: not followed yet";
	if (seen.other)
		return "another protocol than HTTP/1";
	return "no request yet";
}

struct hint_walk {
	struct daemon *d;
	FILE *out;
	unsigned int lines;
};

static int print_process(const struct process *p, void *userdata)
{
	struct hint_walk *walk = userdata;
	const char *name = p->resource ? p->resource->service_name : p->exe;

	if (!p->has_listening_port)
		return 0;
	if (++walk->lines > HINTS_MAX)
		return 0;
	if (p->state == PROCESS_SELECTED)
		fprintf(walk->out, "  port %-5u %s (pid %" PRIu32 "): traced, %s\n",
			p->listening_port, name, p->pid, hints_seen(walk->d, p));
	else
		fprintf(walk->out, "  port %-5u %s (pid %" PRIu32 "): %s\n", p->listening_port,
			name ? name : "?", p->pid, p->why ? p->why : process_state_name(p->state));
	return 0;
}

void hints_print(struct daemon *d, FILE *out)
{
	struct hint_walk walk = {.d = d, .out = out};

	fputs("tsunagid: No span for 10 s. Who listens on this host:\n", out);
	discover_walk(d->discover, print_process, &walk);
	if (!walk.lines)
		fputs("  nobody\n", out);
	if (walk.lines > HINTS_MAX)
		fprintf(out, "  and %u more (tsunagictl processes)\n", walk.lines - HINTS_MAX);
	fflush(out);
}
