/*
 * Log lines: one a decision, on stderr, with sd-daemon priorities when stderr is the journal.
 *
 * A message starts with a capital, has no full stop, puts operands in 'ticks' and the cause last as
 * ": %m" (errno must then be set: log_error_errno() sets it from a negative result). Hot paths use
 * log_ratelimited().
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

/* The least important level that is printed; LOG_LEVEL_INFO at the start. */
void log_set_level(enum log_level level);

__attribute__((format(printf, 2, 3))) void log_write(enum log_level level, const char *format, ...);

/* True at most once in ten seconds for each site ('last_ns' is the site's own static). */
bool log_site_allowed(uint64_t *last_ns);

#define log_error(...)   log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

/*
 * Logs with errno set from the negative result 'r' and yields 'r', for `return log_error_errno(r,
 * "...: %m")`.
 */
#define log_error_errno(r, ...)                          \
	({                                               \
		int _r = (r);                            \
		errno = -_r;                             \
		log_write(LOG_LEVEL_ERROR, __VA_ARGS__); \
		_r;                                      \
	})

#define log_ratelimited(level, ...)                    \
	do {                                           \
		static uint64_t _last_ns;              \
		if (log_site_allowed(&_last_ns))       \
			log_write(level, __VA_ARGS__); \
	} while (0)
