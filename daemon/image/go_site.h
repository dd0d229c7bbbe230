/*
 * Where to put a probe in a Go function. Used by go_program.c. See go_program.h for the classes
 * and what is promised of a site.
 */
#pragma once

#include "image/go_program.h"
#include "image/go_table.h"

/*
 * Fills in 'facts' from the entry of the function table; a reason where something is not
 * understood. Returns 0 or a negative errno.
 */
int go_site_find(struct go_file *file, const struct go_table *table,
		 const struct go_function_entry *entry, struct go_function_facts *facts);

/*
 * The one call in 'caller' whose target is 'callee' (GO_SITE_CALL), or what is behind it
 * (GO_SITE_AFTER_CALL). Returns 0 or a negative errno.
 */
int go_site_find_call(struct go_file *file, const struct go_function_facts *caller,
		      const struct go_function_facts *callee, enum go_site_class class,
		      struct go_site *ret_site);

/* How many such calls there are. Returns 0 or a negative errno. */
int go_site_count_calls(struct go_file *file, const struct go_function_facts *caller,
			const struct go_function_facts *callee, unsigned int *ret_n);

/* Of a function's bytes in the file; 0 or ELF_SHORT, or a negative errno. */
int go_site_hash_code(struct go_file *file, uint64_t offset, uint64_t size, uint64_t *ret_hash);
