/*
 * Reading a Go executable: bytes by file offset and by address, and pointers as the loader would
 * leave them. Used by the other go_*.c files. Small reads go through a few cached blocks, since
 * names and types lie close together. What one file may cost is bounded: a damaged one leads from
 * one end of itself to the other only until its budget of bytes is spent; from then on every read
 * is ELF_SHORT.
 *
 * Functions return 0, ELF_SHORT (see elf.h) or a negative errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "image/elf.h"

#define GO_FILE_CHUNK_BYTES 65536 /* largest read at a time */

struct go_file;

/* 'image' stays the caller's and must live longer. Also -ENOMEM. */
int go_file_new(const struct elf_image *image, struct go_file **ret_file);
void go_file_free(struct go_file *file);
DEFINE_CLEANUP(struct go_file *, go_file_free);

const struct elf_image *go_file_image(const struct go_file *file);
/* The budget is spent: what was not found may be there all the same. */
bool go_file_is_spent(const struct go_file *file);

/* A few bytes, through the cached blocks. */
int go_file_read(struct go_file *file, uint64_t offset, void *buffer, size_t n);
int go_file_read_address(struct go_file *file, uint64_t address, void *buffer, size_t n);

/* Up to GO_FILE_CHUNK_BYTES, past the cached blocks. */
int go_file_read_chunk(struct go_file *file, uint64_t offset, void *buffer, size_t n);

/*
 * The pointer at an address. Linkers of position independent programs leave the value in place as
 * well as in the RELATIVE relocation (Go's own and GNU ld do), or zero and the relocation alone
 * (lld); 'word' is what the file has there.
 */
int go_file_relocate(struct go_file *file, uint64_t address, uint64_t word, uint64_t *ret_pointer);
int go_file_read_pointer(struct go_file *file, uint64_t address, uint64_t *ret_pointer);

/*
 * The first place after 'after' in the relocation table (0 at first) that is relocated to point at
 * 'target': its address. '*after' moves on.
 */
int go_file_find_relocation(struct go_file *file, uint64_t target, uint64_t *after,
			    uint64_t *ret_address);

static inline uint16_t get_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t get_le32(const uint8_t *p)
{
	return get_le16(p) | (uint32_t)get_le16(p + 2) << 16;
}

static inline uint64_t get_le64(const uint8_t *p)
{
	return get_le32(p) | (uint64_t)get_le32(p + 4) << 32;
}
