/* Messages on a configuration file; see problem.h. */
#include "config/problem.h"

#include <stdarg.h>

/* Of a longer path the end is shown: it tells files apart, and the message must still fit. */
#define FILE_SHOWN_MAX 160

static void replace_control_characters(char *text)
{
	for (unsigned char *c = (unsigned char *)text; *c; c++) {
		if (*c < 0x20 || *c == 0x7f)
			*c = '?';
	}
}

int problem_report(const struct problem *problem, struct position at, const char *format, ...)
{
	struct config_error *error = problem->error;
	const char *file = problem->file ? problem->file : "default";
	size_t n_file = strlen(file);
	const char *dots = "";
	va_list args;
	int n;

	if (n_file > FILE_SHOWN_MAX) {
		file += n_file - FILE_SHOWN_MAX;
		dots = "...";
	}
	if (at.line)
		n = snprintf(error->text, sizeof(error->text), "%s%s:%u:%u: ", dots, file, at.line,
			     at.column);
	else
		n = snprintf(error->text, sizeof(error->text), "%s%s: ", dots, file);

	va_start(args, format);
	vsnprintf(error->text + n, sizeof(error->text) - (size_t)n, format, args);
	va_end(args);
	replace_control_characters(error->text);
	return CONFIG_INVALID;
}

struct excerpt problem_excerpt(struct str s)
{
	struct excerpt e;
	size_t room = sizeof(e.text) - sizeof("...");
	size_t n = MIN(s.n, room);

	/* Not in the middle of a UTF-8 sequence. */
	if (s.n > room) {
		while (n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
			n--;
	}
	for (size_t i = 0; i < n; i++)
		e.text[i] = s.p[i] ? s.p[i] : '?';
	strcpy(e.text + n, s.n > room ? "..." : "");
	return e;
}
