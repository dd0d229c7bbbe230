/*
 * The one line that says what is wrong with a file and where. Used by the parts of config/ that
 * look at what a person wrote; the caller of config_load() prints it.
 */
#pragma once

#include "base/str.h"
#include "config/config.h"

/* Where problems go. 'file' NULL: the text is ours (a default), not a file's. */
struct problem {
	const char *file;
	struct config_error *error;
};

/* A place in the file, both counted from 1; line 0: the file as a whole. */
struct position {
	unsigned int line;
	unsigned int column;
};

/*
 * Writes "FILE:LINE:COLUMN: ..." and returns CONFIG_INVALID. The line has no control character in
 * it.
 */
__attribute__((format(printf, 3, 4))) int problem_report(const struct problem *problem,
							 struct position at, const char *format,
							 ...);

/* What a message quotes of the file: cut at a whole character, with "..." when there was more. */
struct excerpt {
	char text[64];
};
struct excerpt problem_excerpt(struct str s);
