/* Reading a Go executable; see go_file.h. */
#include "image/go_file.h"

#include <elf.h>
#include <errno.h>

#define BLOCK_BYTES 4096
#define BLOCKS_MAX  64 /* a power of two */

/*
 * What reading a program takes is its function table, its read-only data and its relocations once,
 * and some thousand reads of names and types. A read from a block costs no less than this, for its
 * time: else a file could have the same few bytes looked at for ever.
 */
#define READ_COST_BYTES 64
#define BUDGET_FACTOR   2
#define BUDGET_BYTES    (16 << 20)
#define FILE_BYTES_MAX  (1ULL << 28) /* what the budget of the largest files is reckoned from */

#define RELOCATIONS_MAX     (1 << 24)
#define RELOCATIONS_A_CHUNK 1024
#define DYNAMIC_MAX         256 /* entries looked at */

struct relocations {
	uint64_t offset;   /* in the file */
	uint64_t n;        /* all */
	uint64_t n_sorted; /* RELATIVE ones at the front, in the order of their addresses */
	uint64_t first;    /* those in 'chunk': first, first + n_chunk - 1 */
	size_t n_chunk;
	Elf64_Rela chunk[RELOCATIONS_A_CHUNK];
};

struct block {
	uint64_t number; /* UINT64_MAX: empty */
	size_t n;
	uint8_t bytes[BLOCK_BYTES];
};

struct go_file {
	const struct elf_image *image;
	uint64_t budget_bytes;
	bool is_spent;
	struct relocations relocations;
	struct block blocks[BLOCKS_MAX];
};

const struct elf_image *go_file_image(const struct go_file *file)
{
	return file->image;
}

bool go_file_is_spent(const struct go_file *file)
{
	return file->is_spent;
}

/* False: there is not that much left. */
static bool spend(struct go_file *file, size_t n)
{
	if (n > file->budget_bytes) {
		file->budget_bytes = 0;
		file->is_spent = true;
		return false;
	}
	file->budget_bytes -= n;
	return true;
}

int go_file_read_chunk(struct go_file *file, uint64_t offset, void *buffer, size_t n)
{
	if (!spend(file, n))
		return ELF_SHORT;
	return elf_image_read(file->image, offset, buffer, n);
}

/* Part of what is wanted, as much as its first block has. */
static int read_block(struct go_file *file, uint64_t offset, const uint8_t **ret_bytes,
		      size_t *ret_n)
{
	uint64_t number = offset / BLOCK_BYTES;
	size_t skip = offset % BLOCK_BYTES;
	struct block *b = &file->blocks[number % BLOCKS_MAX];
	int r;

	if (offset >= file->image->size)
		return ELF_SHORT;
	if (b->number != number) {
		b->number = UINT64_MAX;
		b->n = MIN(BLOCK_BYTES, file->image->size - number * BLOCK_BYTES);
		r = go_file_read_chunk(file, number * BLOCK_BYTES, b->bytes, b->n);
		if (r)
			return r;
		b->number = number;
	}
	*ret_bytes = b->bytes + skip;
	*ret_n = b->n - skip;
	return 0;
}

int go_file_read(struct go_file *file, uint64_t offset, void *buffer, size_t n)
{
	uint8_t *to = buffer;

	if (!spend(file, MAX(n, READ_COST_BYTES)))
		return ELF_SHORT;
	while (n > 0) {
		const uint8_t *bytes;
		size_t there;
		int r;

		r = read_block(file, offset, &bytes, &there);
		if (r)
			return r;
		there = MIN(there, n);
		memcpy(to, bytes, there);
		to += there;
		offset += there;
		n -= there;
	}
	return 0;
}

int go_file_read_address(struct go_file *file, uint64_t address, void *buffer, size_t n)
{
	uint64_t offset;

	if (elf_image_offset_of(file->image, address, n, &offset))
		return ELF_SHORT;
	return go_file_read(file, offset, buffer, n);
}

/* --- relocations */

static bool is_relative(const struct go_file *file, const Elf64_Rela *rela)
{
	return ELF64_R_TYPE(rela->r_info) ==
	       (file->image->machine == EM_AARCH64 ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE);
}

/* Makes 'chunk' begin at the relocation with number 'first'. */
static int load_relocations(struct go_file *file, uint64_t first)
{
	struct relocations *rs = &file->relocations;
	size_t n = MIN(rs->n - first, RELOCATIONS_A_CHUNK);
	int r;

	rs->n_chunk = 0;
	r = go_file_read_chunk(file, rs->offset + first * sizeof(Elf64_Rela), rs->chunk,
			       n * sizeof(Elf64_Rela));
	if (r)
		return r;
	rs->first = first;
	rs->n_chunk = n;
	return 0;
}

static int find_dynamic(struct go_file *file)
{
	uint64_t n = file->image->dynamic.size / sizeof(Elf64_Dyn);
	uint64_t address = 0, size = 0, entry = 0, count = 0;
	struct relocations *rs = &file->relocations;

	for (uint64_t i = 0; i < MIN(n, DYNAMIC_MAX); i++) {
		Elf64_Dyn d;
		int r = go_file_read(file, file->image->dynamic.offset + i * sizeof(d), &d,
				     sizeof(d));

		if (r)
			return r;
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_RELA)
			address = d.d_un.d_ptr;
		if (d.d_tag == DT_RELASZ)
			size = d.d_un.d_val;
		if (d.d_tag == DT_RELAENT)
			entry = d.d_un.d_val;
		if (d.d_tag == DT_RELACOUNT)
			count = d.d_un.d_val;
	}
	if (entry != sizeof(Elf64_Rela) || size / sizeof(Elf64_Rela) > RELOCATIONS_MAX ||
	    elf_image_offset_of(file->image, address, size, &rs->offset))
		return 0;
	rs->n = size / sizeof(Elf64_Rela);
	rs->n_sorted = MIN(count, rs->n);
	return 0;
}

static bool chunk_covers(const struct relocations *rs, uint64_t address)
{
	return rs->n_chunk > 0 && rs->first + rs->n_chunk <= rs->n_sorted &&
	       rs->chunk[0].r_offset <= address && address <= rs->chunk[rs->n_chunk - 1].r_offset;
}

/* Makes 'chunk' the part of the sorted relocations that 'address' would be in. */
static int seek_relocation(struct go_file *file, uint64_t address)
{
	struct relocations *rs = &file->relocations;
	uint64_t from = 0, to = rs->n_sorted;
	int r;

	/* Asked for in order of addresses, mostly: the chunk that follows is tried first. */
	if (rs->n_chunk > 0 && rs->first + rs->n_chunk < rs->n_sorted &&
	    address > rs->chunk[rs->n_chunk - 1].r_offset) {
		r = load_relocations(file, rs->first + rs->n_chunk);
		if (r || chunk_covers(rs, address))
			return r;
	}
	while (to - from > RELOCATIONS_A_CHUNK) {
		uint64_t middle = from + (to - from) / 2;
		Elf64_Rela rela;

		r = go_file_read(file, rs->offset + middle * sizeof(rela), &rela, sizeof(rela));
		if (r)
			return r;
		if (rela.r_offset <= address)
			from = middle;
		else
			to = middle;
	}
	return load_relocations(file, from);
}

int go_file_relocate(struct go_file *file, uint64_t address, uint64_t word, uint64_t *ret_pointer)
{
	struct relocations *rs = &file->relocations;
	size_t from = 0, to;
	int r;

	if (word != 0 || rs->n_sorted == 0) {
		*ret_pointer = word;
		return 0;
	}
	if (!chunk_covers(rs, address)) {
		r = seek_relocation(file, address);
		if (r)
			return r;
	}
	for (to = rs->n_chunk; from < to;) {
		size_t middle = from + (to - from) / 2;

		if (rs->chunk[middle].r_offset < address)
			from = middle + 1;
		else
			to = middle;
	}
	*ret_pointer = 0;
	if (from < rs->n_chunk && rs->chunk[from].r_offset == address &&
	    is_relative(file, &rs->chunk[from]))
		*ret_pointer = (uint64_t)rs->chunk[from].r_addend;
	return 0;
}

int go_file_read_pointer(struct go_file *file, uint64_t address, uint64_t *ret_pointer)
{
	uint8_t word[8];
	int r;

	r = go_file_read_address(file, address, word, sizeof(word));
	return r ? r : go_file_relocate(file, address, get_le64(word), ret_pointer);
}

int go_file_find_relocation(struct go_file *file, uint64_t target, uint64_t *after,
			    uint64_t *ret_address)
{
	struct relocations *rs = &file->relocations;

	while (*after < rs->n) {
		if (rs->n_chunk == 0 || *after < rs->first || *after - rs->first >= rs->n_chunk) {
			int r = load_relocations(file, *after);

			if (r)
				return r;
		}
		for (size_t i = *after - rs->first; i < rs->n_chunk; i++) {
			++*after;
			if ((uint64_t)rs->chunk[i].r_addend == target &&
			    is_relative(file, &rs->chunk[i])) {
				*ret_address = rs->chunk[i].r_offset;
				return 0;
			}
		}
	}
	return ELF_SHORT;
}

/* --- the handle */

int go_file_new(const struct elf_image *image, struct go_file **ret_file)
{
	_cleanup_(go_file_freep) struct go_file *file = calloc(1, sizeof(*file));
	int r;

	if (!file)
		return -ENOMEM;
	file->image = image;
	file->budget_bytes = BUDGET_FACTOR * MIN(image->size, FILE_BYTES_MAX) + BUDGET_BYTES;
	for (size_t i = 0; i < BLOCKS_MAX; i++)
		file->blocks[i].number = UINT64_MAX;
	r = find_dynamic(file);
	if (r < 0)
		return r;
	*ret_file = TAKE_PTR(file);
	return 0;
}

void go_file_free(struct go_file *file)
{
	free(file);
}
