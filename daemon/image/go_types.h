/*
 * Where the fields of Go structs are, from the types that the program carries for reflection and
 * the garbage collector. Used by go_program.c. Formats of Go 1.17 to 1.27 (internal/abi's type.go).
 *
 * A struct type is found by its package and the names of its first fields, and believed only if
 * the offsets it gives are those that the sizes and alignments of its fields give.
 */
#pragma once

#include "image/go_file.h"
#include "image/go_program.h"

/*
 * Sets offsets and types of 'program'; what is not found or contradicts itself stays unknown. 0 or
 * a negative errno. Parts of the file from 'skip' on, 'skip_bytes' long, hold no types.
 */
int go_types_read(struct go_file *file, uint64_t skip, uint64_t skip_bytes,
		  struct go_program *program);

/* Are the types of 'program' at their addresses, and as they were? 1, 0, or a negative errno. */
int go_types_check(struct go_file *file, const struct go_program *program);
