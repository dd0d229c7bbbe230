/*
 * The little of ELF that recognising a program needs: segments, and sections by name. Used by
 * image.c and go.c. Every offset and count in the file is taken for a lie: reads are bounded by the
 * file and by the limits below. Numbers are those of the System V gABI (ELF-64 object file format).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_SEGMENTS_MAX 64   /* PT_LOAD segments kept; real programs have 2 to 10 */
#define ELF_SECTIONS_MAX 1024 /* section headers looked at; real programs have 20 to 60 */
#define ELF_NOTES_MAX    8    /* PT_NOTE segments kept; real programs have 1 to 3 */

struct elf_segment {
	uint64_t offset; /* in the file; offset + size is within the file */
	uint64_t size;
	uint64_t address;
	bool is_writable;
	bool is_executable;
};

struct elf_section {
	uint64_t offset; /* in the file; offset + size is within the file */
	uint64_t size;
};

struct elf_image {
	int fd; /* the caller's */
	uint64_t size;
	bool is_64bit;
	bool has_interpreter;
	uint16_t type;              /* ET_EXEC, ET_DYN */
	uint16_t machine;           /* EM_X86_64, EM_AARCH64 */
	uint64_t entry;             /* address of the first instruction */
	struct elf_section dynamic; /* PT_DYNAMIC; size 0: none */
	size_t n_notes;
	struct elf_section notes[ELF_NOTES_MAX];
	size_t n_segments;
	struct elf_segment segments[ELF_SEGMENTS_MAX];
	uint64_t sections_offset;
	unsigned int n_sections; /* 0: no usable section table */
	unsigned int names_index;
};

/*
 * Returns 0, IMAGE_NOT_REGULAR, IMAGE_NOT_ELF (see image.h) or a negative errno. Of a 32-bit image
 * only that.
 */
int elf_image_open(int fd, struct elf_image *ret);

/*
 * Exactly 'n' bytes at a file offset: 0, ELF_SHORT when the file does not have them, or a negative
 * errno.
 */
enum { ELF_SHORT = 1 };
int elf_image_read(const struct elf_image *image, uint64_t offset, void *buffer, size_t n);

/* The same at a virtual address, as far as a segment of the file backs it. */
int elf_image_read_address(const struct elf_image *image, uint64_t address, void *buffer, size_t n);

/*
 * From the file to memory and back, as far as a segment backs 'n' bytes there: 0 or ELF_SHORT.
 */
int elf_image_address_of(const struct elf_image *image, uint64_t offset, uint64_t *ret_address);
int elf_image_offset_of(const struct elf_image *image, uint64_t address, uint64_t n,
			uint64_t *ret_offset);

/* The segment that backs the byte at an address, or NULL. */
const struct elf_segment *elf_image_segment_at(const struct elf_image *image, uint64_t address);

/*
 * Looks up 'n' names in one pass: 'found[i]' is the section with 'names[i]', size 0 when there is
 * none. Names are at most 31 bytes. Returns 0 or a negative errno; a damaged section table finds
 * nothing.
 */
int elf_image_find_sections(const struct elf_image *image, const char *const names[], size_t n,
			    struct elf_section found[]);
