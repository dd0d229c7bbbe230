/* What go_program.c and go_cache.c share: reading the program of a file that is open already. */
#pragma once

#include "image/go_file.h"
#include "image/go_program.h"

/* As go_program_read(). */
int go_read(struct go_file *file, const struct go_program_options *options,
	    struct go_program **ret_program);

/* Is this the file of 'program', or one with the same code and types? 1, 0 or a negative errno. */
int go_read_check(struct go_file *file, const struct go_program *program);
