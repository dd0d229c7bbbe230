/* Log lines on stderr; see log.h. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"

#define SITE_INTERVAL_NS (10 * NSEC_PER_SEC)

static enum log_level max_level = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
	max_level = level;
}

void log_write(enum log_level level, const char *format, ...)
{
	int saved_errno = errno;
	char line[1024];
	va_list args;

	if (level > max_level)
		return;

	va_start(args, format);
	errno = saved_errno;
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);

	/* systemd sets JOURNAL_STREAM; there the priority stands in front (sd-daemon(3)). */
	if (getenv("JOURNAL_STREAM"))
		fprintf(stderr, "<%d>%s\n", level, line);
	else
		fprintf(stderr, "tsunagid: %s\n", line);
	errno = saved_errno;
}

bool log_site_allowed(uint64_t *last_ns)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);

	if (*last_ns && now - *last_ns < SITE_INTERVAL_NS)
		return false;
	*last_ns = now;
	return true;
}
