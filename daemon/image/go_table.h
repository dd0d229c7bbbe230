/*
 * A Go program's function table (.gopclntab): functions by name, and how deep the stack is at each
 * of their instructions. Used by go_program.c and go_site.c. Formats of Go 1.16 to 1.27 (runtime's
 * symtab.go, cmd/link's pcln.go). The table is believed only if the runtime's own module data
 * points to it and agrees with it, so that the table of a Go program that is embedded in another
 * is not mistaken for its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/go_file.h"

struct go_table {
	uint64_t offset, address;
	uint64_t text, end_text;     /* addresses of runtime.text and runtime.etext */
	uint64_t n;                  /* functions */
	uint64_t names, names_bytes; /* offsets in the file, and sizes */
	uint64_t stacks, stacks_bytes;
	uint64_t functions, functions_bytes;
	uint8_t quantum;  /* of instructions */
	bool is_relative; /* since 1.18: entries are offsets from 'text', of 4 bytes */
};

/*
 * 0: '*ret_reason' is NULL and the table understood, or says why there is none that is. Negative:
 * errno.
 */
int go_table_open(struct go_file *file, struct go_table *ret_table, const char **ret_reason);

struct go_function_entry {
	unsigned int n; /* functions of that name; what follows is the last one's */
	uint64_t address, end;
	uint32_t stack; /* of its stack table; 0: it has none */
};

/*
 * Looks up 'n' names (at most GO_TABLE_NAMES_MAX) in one pass. Returns 0, ELF_SHORT: the table is
 * damaged, or a negative errno.
 */
#define GO_TABLE_NAMES_MAX 64
int go_table_find(struct go_file *file, const struct go_table *table, const char *const names[],
		  size_t n, struct go_function_entry found[]);

/*
 * Calls 'visit' for each function, in the order of their addresses, with the offset of its name
 * from table->names, until it returns non-zero, which is returned; else as go_table_find().
 */
typedef int (*go_table_visit_fn)(const struct go_function_entry *entry, uint32_t name,
				 void *userdata);
int go_table_walk(struct go_file *file, const struct go_table *table, go_table_visit_fn visit,
		  void *userdata);

/* --- the depth of the stack, in ranges of instructions */

#define GO_STACK_BYTES_MAX 65536 /* of one function's table */

struct go_stack {
	struct go_file *file;
	uint64_t offset, end_offset; /* of what has not been read, in the file */
	uint8_t bytes[256];
	size_t n, at;
	uint8_t quantum;
	uint64_t address, end;
	int32_t depth;
	bool is_first;
};

struct go_stack_range {
	uint64_t from, to;
	int32_t depth; /* bytes below the return address (amd64), or the caller's SP (arm64) */
};

/* Returns 0, or ELF_SHORT: there is none. */
int go_stack_open(struct go_file *file, const struct go_table *table,
		  const struct go_function_entry *entry, struct go_stack *ret_stack);

/*
 * GO_STACK_RANGE: the next one; GO_STACK_END: there is no more; GO_STACK_DAMAGED: the rest is not
 * understood; or a negative errno.
 */
enum { GO_STACK_END, GO_STACK_RANGE, GO_STACK_DAMAGED };
int go_stack_next(struct go_stack *stack, struct go_stack_range *ret_range);
