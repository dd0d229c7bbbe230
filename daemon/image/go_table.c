/*
 * The function table; see go_table.h.
 *
 * A header (magic, quantum, pointer size, then words of 8 bytes: numbers of functions and files,
 * since 1.18 the start of the text, then the offsets of names, compilation units, files, pc tables
 * and functions), and the parts. The functions' part is an array of {entry, offset of a record
 * from the part's start}, sorted by entry and closed by the end of the last one; then the records:
 *
 *	1.16, 1.17		entry u64, name i32, args, deferreturn, pcsp u32, ...
 *	since 1.18		entry u32, name i32, args, deferreturn, pcsp u32, ...
 *
 * A pc table is a list of pairs of varints: the change of the value (zigzag), and for how many
 * quanta of instructions the new value holds; a change of 0 that is not the first ends it.
 */
#include "image/go_table.h"

#include <errno.h>

#include "image/go.h"

#define RECORD_BYTES 24
/* Words of the module data (runtime.moduledata) that are looked at, the same from 1.16 to 1.27. */
#define MODULE_WORDS 24

enum module_word {
	MODULE_HEADER = 0,
	MODULE_NAMES = 1,
	MODULE_STACKS = 10,
	MODULE_FUNCTIONS = 13, /* then its length */
	MODULE_ENTRIES = 16,   /* then their number */
	MODULE_MIN_PC = 20,
	MODULE_MAX_PC = 21,
	MODULE_TEXT = 22,
	MODULE_END_TEXT = 23,
};

/* Tables seen that may be another program's, embedded in this one. */
#define CANDIDATES_MAX 64

static uint64_t functions_address(const struct go_table *t)
{
	return t->address + (t->functions - t->offset);
}

static uint64_t word_of(const uint8_t *header, unsigned int i)
{
	return get_le64(header + 8 + 8 * i);
}

/* What the header says; 'text' may be 0. False: another version's, or cut off. */
static bool read_header(const struct elf_image *image, const uint8_t *header, uint64_t offset,
			struct go_table *ret)
{
	struct go_table t = {.offset = offset, .n = word_of(header, 0), .quantum = header[6]};
	unsigned int first; /* word with the offset of the names */

	if (header[7] != 8 || header[0] == 0xfb)
		return false;
	t.is_relative = header[0] != 0xfa;
	first = t.is_relative ? 3 : 2;
	if (t.is_relative)
		t.text = word_of(header, 2);
	/* They increase: go_is_function_table() has seen to that. */
	if (word_of(header, first + 4) >= image->size - offset)
		return false;
	t.names = offset + word_of(header, first);
	t.names_bytes = word_of(header, first + 1) - word_of(header, first);
	t.stacks = offset + word_of(header, first + 3);
	t.functions = offset + word_of(header, first + 4);
	t.stacks_bytes = t.functions - t.stacks;
	if (elf_image_address_of(image, offset, &t.address))
		return false;
	*ret = t;
	return true;
}

/* The first entry of the functions, or the end of the last one. */
static int read_bound(struct go_file *file, const struct go_table *t, uint64_t i, uint64_t *ret)
{
	uint8_t word[4];
	int r;

	if (!t->is_relative)
		return go_file_read_pointer(file, functions_address(t) + i * 16, ret);
	r = go_file_read(file, t->functions + i * 8, word, sizeof(word));
	if (r == 0)
		*ret = t->text + get_le32(word);
	return r;
}

/* Are the words at an address the module data of this table? ELF_SHORT: they are not. */
static int check_module(struct go_file *file, uint64_t address, struct go_table *t)
{
	uint64_t words[MODULE_WORDS], functions, first, last;
	int r;

	for (unsigned int i = 0; i < MODULE_WORDS; i++) {
		r = go_file_read_pointer(file, address + 8 * i, &words[i]);
		if (r)
			return r;
	}
	functions = functions_address(t);
	if (words[MODULE_HEADER] != t->address ||
	    words[MODULE_NAMES] != t->address + (t->names - t->offset) ||
	    words[MODULE_STACKS] != t->address + (t->stacks - t->offset) ||
	    words[MODULE_FUNCTIONS] != functions || words[MODULE_ENTRIES] != functions ||
	    words[MODULE_ENTRIES + 1] != t->n + 1)
		return ELF_SHORT;
	if (words[MODULE_FUNCTIONS + 1] > go_file_image(file)->size - t->functions)
		return ELF_SHORT;
	t->functions_bytes = words[MODULE_FUNCTIONS + 1];
	if (t->n >= t->functions_bytes / (t->is_relative ? 8 : 16))
		return ELF_SHORT;
	/* Zero since 1.26; before, a word that the loader may have to fill in. */
	if (t->text != 0 && t->text != words[MODULE_TEXT])
		return ELF_SHORT;
	t->text = words[MODULE_TEXT];
	t->end_text = words[MODULE_END_TEXT];

	r = read_bound(file, t, 0, &first);
	if (r == 0)
		r = read_bound(file, t, t->n, &last);
	if (r)
		return r;
	return first == words[MODULE_MIN_PC] && last == words[MODULE_MAX_PC] && t->text <= first &&
			       first < last && words[MODULE_TEXT] < words[MODULE_END_TEXT]
		       ? 0
		       : ELF_SHORT;
}

/* A word of the file that points to the table and begins its module data; in one segment. */
static int find_module_in(struct go_file *file, const struct elf_segment *s, struct go_table *t,
			  uint8_t *chunk)
{
	for (uint64_t at = -s->address & 7; at < s->size; at += GO_FILE_CHUNK_BYTES) {
		size_t n = MIN(GO_FILE_CHUNK_BYTES, s->size - at);
		int r = go_file_read_chunk(file, s->offset + at, chunk, n);

		if (r)
			return r;
		for (size_t i = 0; i + 8 <= n; i += 8) {
			if (get_le64(chunk + i) != t->address)
				continue;
			r = check_module(file, s->address + at + i, t);
			if (r != ELF_SHORT)
				return r;
		}
	}
	return ELF_SHORT;
}

/* Completes 't' from its module data; ELF_SHORT: there is none. */
static int find_module(struct go_file *file, struct go_table *t, uint8_t *chunk)
{
	const struct elf_image *image = go_file_image(file);
	uint64_t after = 0, address;
	int r;

	for (size_t i = 0; i < image->n_segments; i++) {
		if (!image->segments[i].is_writable)
			continue;
		r = find_module_in(file, &image->segments[i], t, chunk);
		if (r != ELF_SHORT)
			return r;
	}
	/* Where the linker has left zeros, the relocations have the value. */
	while ((r = go_file_find_relocation(file, t->address, &after, &address)) == 0) {
		r = check_module(file, address, t);
		if (r != ELF_SHORT)
			return r;
	}
	return r;
}

static int try_table(struct go_file *file, uint64_t offset, uint8_t *chunk, struct go_table *ret)
{
	uint8_t header[GO_TABLE_HEADER_BYTES];
	struct go_table t;
	int r;

	r = go_file_read(file, offset, header, sizeof(header));
	if (r)
		return r;
	if (!go_is_function_table(header) || !read_header(go_file_image(file), header, offset, &t))
		return ELF_SHORT;
	r = find_module(file, &t, chunk);
	if (r)
		return r;
	*ret = t;
	return 0;
}

/* Looks for headers in a segment, aligned as the table is. */
static int scan_segment(struct go_file *file, const struct elf_segment *s, uint8_t *chunk,
			unsigned int *candidates, struct go_table *ret)
{
	_cleanup_(freep) uint8_t *module_chunk = malloc(GO_FILE_CHUNK_BYTES);

	if (!module_chunk)
		return -ENOMEM;
	for (uint64_t at = -s->address & 7; at < s->size;
	     at += GO_FILE_CHUNK_BYTES - GO_TABLE_HEADER_BYTES) {
		size_t n = MIN(GO_FILE_CHUNK_BYTES, s->size - at);
		int r = go_file_read_chunk(file, s->offset + at, chunk, n);

		if (r)
			return r;
		for (size_t i = 0; i + GO_TABLE_HEADER_BYTES <= n; i += 8) {
			if (!go_is_function_table(chunk + i))
				continue;
			if ((*candidates)++ == CANDIDATES_MAX)
				return ELF_SHORT;
			r = try_table(file, s->offset + at + i, module_chunk, ret);
			if (r != ELF_SHORT)
				return r;
		}
	}
	return ELF_SHORT;
}

static int find_table(struct go_file *file, struct go_table *ret)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	_cleanup_(freep) uint8_t *chunk = malloc(GO_FILE_CHUNK_BYTES);
	const struct elf_image *image = go_file_image(file);
	struct elf_section sections[ARRAY_SIZE(names)];
	unsigned int candidates = 0;
	int r;

	if (!chunk)
		return -ENOMEM;
	r = elf_image_find_sections(image, names, ARRAY_SIZE(names), sections);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		r = sections[i].size == 0 ? ELF_SHORT
					  : try_table(file, sections[i].offset, chunk, ret);
		if (r != ELF_SHORT)
			return r;
	}
	/* Segments with code come last: the table is there only if there is no read-only one. */
	for (unsigned int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < image->n_segments; i++) {
			if (image->segments[i].is_executable != (pass == 1))
				continue;
			r = scan_segment(file, &image->segments[i], chunk, &candidates, ret);
			if (r != ELF_SHORT)
				return r;
		}
	return ELF_SHORT;
}

int go_table_open(struct go_file *file, struct go_table *ret_table, const char **ret_reason)
{
	int r = find_table(file, ret_table);

	if (r < 0)
		return r;
	*ret_reason = r == 0                   ? NULL
		      : go_file_is_spent(file) ? "the file is damaged: reading it did not end"
					       : "no function table of Go 1.16 to 1.27 in it";
	return 0;
}

/* --- names */

struct wanted {
	const char *const *names;
	size_t n;
	size_t lengths[GO_TABLE_NAMES_MAX];
	uint64_t length_bits;                 /* lengths modulo 64 that occur */
	uint32_t offsets[GO_TABLE_NAMES_MAX]; /* of the names; UINT32_MAX: not there */
	struct go_function_entry *found;
};

static void match_name(struct wanted *w, const uint8_t *name, size_t n, uint64_t offset)
{
	if (!(w->length_bits >> (n & 63) & 1) || offset >= UINT32_MAX)
		return;
	for (size_t i = 0; i < w->n; i++)
		if (w->lengths[i] == n && memcmp(w->names[i], name, n) == 0)
			w->offsets[i] = (uint32_t)offset;
}

/* Notes where in the names' part each wanted name is. */
static int find_names(struct go_file *file, const struct go_table *t, struct wanted *w,
		      uint8_t *chunk)
{
	bool is_inside = false; /* of a name longer than a chunk */
	uint64_t at = 0;

	while (at < t->names_bytes) {
		size_t n = MIN(GO_FILE_CHUNK_BYTES, t->names_bytes - at), from = 0;
		const uint8_t *end;
		int r = go_file_read_chunk(file, t->names + at, chunk, n);

		if (r)
			return r;
		while (from < n && (end = memchr(chunk + from, '\0', n - from))) {
			if (!is_inside)
				match_name(w, chunk + from, (size_t)(end - chunk) - from,
					   at + from);
			is_inside = false;
			from = (size_t)(end - chunk) + 1;
		}
		if (from == 0) {
			is_inside = true;
			from = n;
		} else if (at + n == t->names_bytes) {
			break; /* what is left has no end */
		}
		at += from;
	}
	return 0;
}

/* --- functions */

struct window {
	uint64_t offset;
	size_t n;
	uint8_t bytes[GO_FILE_CHUNK_BYTES];
};

/* 'n' bytes at an offset from the start of the functions' part, in the window. */
static int look(struct go_file *file, const struct go_table *t, struct window *w, uint64_t offset,
		size_t n, const uint8_t **ret)
{
	int r;

	if (offset > t->functions_bytes || n > t->functions_bytes - offset)
		return ELF_SHORT;
	if (offset < w->offset || offset - w->offset > w->n || n > w->n - (offset - w->offset)) {
		size_t size = MIN(GO_FILE_CHUNK_BYTES, t->functions_bytes - offset);

		w->n = 0;
		r = go_file_read_chunk(file, t->functions + offset, w->bytes, size);
		if (r)
			return r;
		w->offset = offset;
		w->n = size;
	}
	*ret = w->bytes + (offset - w->offset);
	return 0;
}

/* The i-th entry: where the function starts, and where its record is. */
static int read_entry(struct go_file *file, const struct go_table *t, struct window *w, uint64_t i,
		      uint64_t *ret_address, uint64_t *ret_record)
{
	size_t half = t->is_relative ? 4 : 8;
	const uint8_t *p;
	/* The last entry is an end without a record. */
	int r = look(file, t, w, i * 2 * half, i == t->n ? half : 2 * half, &p);

	if (r)
		return r;
	if (i < t->n)
		*ret_record = t->is_relative ? get_le32(p + 4) : get_le64(p + 8);
	if (!t->is_relative)
		return go_file_relocate(file, functions_address(t) + i * 2 * half, get_le64(p),
					ret_address);
	*ret_address = t->text + get_le32(p);
	return 0;
}

/* 0, or ELF_SHORT where the record is not of that function. */
static int read_record(struct go_file *file, const struct go_table *t, struct window *w,
		       uint64_t offset, struct go_function_entry *entry, uint32_t *ret_name)
{
	const size_t skip = t->is_relative ? 4 : 8;
	uint64_t address;
	const uint8_t *p;
	int r = look(file, t, w, offset, RECORD_BYTES, &p);

	if (r)
		return r;
	address = t->is_relative ? t->text + get_le32(p) : get_le64(p);
	/* Zero: the loader's to fill in. */
	if (address != entry->address && (t->is_relative || address != 0))
		return ELF_SHORT;
	*ret_name = get_le32(p + skip);
	entry->stack = get_le32(p + skip + 12);
	return 0;
}

int go_table_walk(struct go_file *file, const struct go_table *t, go_table_visit_fn visit,
		  void *userdata)
{
	_cleanup_(freep) struct window *entries = calloc(1, sizeof(*entries));
	_cleanup_(freep) struct window *records = calloc(1, sizeof(*records));
	uint64_t address, record = 0, next_record = 0;
	int r;

	if (!entries || !records)
		return -ENOMEM;
	r = read_entry(file, t, entries, 0, &address, &record);
	for (uint64_t i = 0; i < t->n && r == 0; i++) {
		struct go_function_entry entry = {.n = 1, .address = address};
		uint32_t name;

		r = read_entry(file, t, entries, i + 1, &address, &next_record);
		if (r == 0)
			r = read_record(file, t, records, record, &entry, &name);
		if (r)
			return r;
		if (address < entry.address)
			return ELF_SHORT;
		entry.end = address;
		r = visit(&entry, name, userdata);
		record = next_record;
	}
	return r;
}

static int match_function(const struct go_function_entry *entry, uint32_t name, void *userdata)
{
	struct wanted *w = userdata;

	for (size_t i = 0; i < w->n; i++) {
		if (w->offsets[i] != name)
			continue;
		w->found[i].n++;
		w->found[i].address = entry->address;
		w->found[i].end = entry->end;
		w->found[i].stack = entry->stack;
	}
	return 0;
}

int go_table_find(struct go_file *file, const struct go_table *table, const char *const names[],
		  size_t n, struct go_function_entry found[])
{
	_cleanup_(freep) uint8_t *chunk = malloc(GO_FILE_CHUNK_BYTES);
	struct wanted w = {.names = names, .n = n, .found = found};
	int r;

	assert(n <= GO_TABLE_NAMES_MAX);
	if (!chunk)
		return -ENOMEM;
	memset(found, 0, n * sizeof(found[0]));
	for (size_t i = 0; i < n; i++) {
		w.lengths[i] = strlen(names[i]);
		w.length_bits |= 1ULL << (w.lengths[i] & 63);
		w.offsets[i] = UINT32_MAX;
	}
	r = find_names(file, table, &w, chunk);
	return r ? r : go_table_walk(file, table, match_function, &w);
}

/* --- the depth of the stack */

int go_stack_open(struct go_file *file, const struct go_table *table,
		  const struct go_function_entry *entry, struct go_stack *ret_stack)
{
	if (entry->stack == 0 || entry->stack >= table->stacks_bytes)
		return ELF_SHORT;
	*ret_stack = (struct go_stack){
		.file = file,
		.offset = table->stacks + entry->stack,
		.end_offset = table->stacks +
			      MIN(table->stacks_bytes, entry->stack + (uint64_t)GO_STACK_BYTES_MAX),
		.quantum = table->quantum,
		.address = entry->address,
		.end = entry->end,
		.depth = -1,
		.is_first = true,
	};
	return 0;
}

static int take_byte(struct go_stack *s, uint8_t *ret)
{
	if (s->at == s->n) {
		size_t n = MIN(sizeof(s->bytes), s->end_offset - s->offset);
		int r = n == 0 ? ELF_SHORT : go_file_read(s->file, s->offset, s->bytes, n);

		if (r)
			return r;
		s->offset += n;
		s->n = n;
		s->at = 0;
	}
	*ret = s->bytes[s->at++];
	return 0;
}

static int take_varint(struct go_stack *s, uint32_t *ret)
{
	uint32_t value = 0;

	for (unsigned int shift = 0; shift < 35; shift += 7) {
		uint8_t byte;
		int r = take_byte(s, &byte);

		if (r)
			return r;
		value |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return 0;
		}
	}
	return ELF_SHORT;
}

int go_stack_next(struct go_stack *s, struct go_stack_range *ret)
{
	uint32_t change, quanta;
	int r;

	r = take_varint(s, &change);
	if (r == 0 && change == 0 && !s->is_first)
		return GO_STACK_END; /* before the next function there may be padding */
	if (r == 0)
		r = take_varint(s, &quanta);
	if (r < 0)
		return r;
	if (r || quanta == 0 || (uint64_t)quanta * s->quantum > s->end - s->address)
		return GO_STACK_DAMAGED;
	s->is_first = false;
	/* Unsigned: the sum of two lies may overflow. */
	s->depth = (int32_t)((uint32_t)s->depth + (change & 1 ? ~(change >> 1) : change >> 1));
	*ret = (struct go_stack_range){
		.from = s->address,
		.to = s->address + (uint64_t)quanta * s->quantum,
		.depth = s->depth,
	};
	s->address = ret->to;
	return GO_STACK_RANGE;
}
