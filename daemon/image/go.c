/*
 * Go programs; see go.h.
 *
 * Build info (Go's debug/buildinfo): "\xff Go buildinf:", pointer size, flags, padded to 32 bytes,
 * aligned to 16. Flag 2 (since 1.18): the version and the module text follow, each a varint length
 * and its bytes. Without it two pointers to Go string headers {address, length} follow at 16. The
 * module text lies between two 16-byte marks.
 *
 * The function table (.gopclntab, internal/abi and debug/gosym) starts with a magic number that
 * tells the range of versions, two zero bytes, the instruction quantum and the pointer size.
 */
#include "image/go.h"

#include "base/str.h"
#include "base/util.h"
#include "image/go_file.h"

#define BUILDINFO_MAGIC  "\xff Go buildinf:"
#define BUILDINFO_HEADER 32
#define BUILDINFO_ALIGN  16
#define MARK_BYTES       16

#define MODINFO_READ_BYTES 4096 /* the lines wanted are the first two */
#define VERSION_READ_BYTES 128

/*
 * The blob is the first thing of the data segment, unless a foreign linker put something before it.
 */
#define BUILDINFO_SCAN_BYTES (1 << 20)
/* Bounds the time for a program that is not Go: 2 ms for each 8 MiB once they are in memory. */
#define TABLE_SCAN_BYTES (16 << 20)
#define CHUNK_BYTES      65536

#define FUNCTIONS_MAX (1 << 24)

/* --- the texts of the build info */

/* "go1.26.8 X:nodwarf5", "devel go1.27-abc Mon ...": the word that starts with "go". */
static void take_version(struct str text, struct image_facts *facts)
{
	size_t from = 0, to;

	while (from + 2 < text.n && memcmp(text.p + from, "go", 2) != 0)
		from++;
	if (from + 2 >= text.n)
		return;
	for (to = from; to < text.n && text.p[to] > ' ' && text.p[to] <= '~';)
		to++;
	if (to - from >= sizeof(facts->go_version))
		return;
	memcpy(facts->go_version, text.p + from, to - from);
	facts->go_version[to - from] = '\0';
}

/*
 * The first field after 'key' (which ends in a tab) in the line that starts with it; empty: no such
 * line.
 */
static struct str modinfo_field(struct str text, struct str key)
{
	while (text.n > 0) {
		ptrdiff_t end = str_find(text, '\n');
		struct str line = {.p = text.p, .n = end < 0 ? text.n : (size_t)end};

		/* A line that was cut off at the end of what was read is no answer. */
		if (end < 0)
			return STR_NONE;
		if (str_starts_with(line, key)) {
			ptrdiff_t tab;

			line = str_skip(line, key.n);
			tab = str_find(line, '\t');
			return (struct str){.p = line.p, .n = tab < 0 ? line.n : (size_t)tab};
		}
		text = str_skip(text, (size_t)end + 1);
	}
	return STR_NONE;
}

static void take_module(struct str text, struct image_facts *facts)
{
	struct str module;

	if (!str_starts_with(text, STR("path\t")) && !str_starts_with(text, STR("mod\t")))
		text = str_skip(text, MARK_BYTES);
	/*
	 * The module names the product; the main package's path is often just "cmd/server" of it.
	 */
	module = modinfo_field(text, STR("mod\t"));
	if (module.n == 0)
		module = modinfo_field(text, STR("path\t"));
	if (module.n == 0 || module.n >= sizeof(facts->go_module))
		return;
	for (size_t i = 0; i < module.n; i++)
		if (module.p[i] <= ' ' || module.p[i] > '~')
			return;
	memcpy(facts->go_module, module.p, module.n);
	facts->go_module[module.n] = '\0';
}

/* --- the build info blob */

/* A varint at 'offset': its value and how many bytes it took; ELF_SHORT when it is none. */
static int read_varint(const struct elf_image *image, uint64_t offset, uint64_t *ret,
		       unsigned int *ret_n)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < 9; i++) {
		uint8_t byte;
		int r = elf_image_read(image, offset + i, &byte, 1);

		if (r)
			return r;
		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (!(byte & 0x80)) {
			*ret = value;
			*ret_n = i + 1;
			return 0;
		}
	}
	return ELF_SHORT;
}

/*
 * The text with a varint length at '*offset', at most 'max' bytes of it; '*offset' moves behind it.
 */
static int read_inline_text(const struct elf_image *image, uint64_t *offset, char *buffer,
			    size_t max, struct str *ret)
{
	uint64_t length;
	unsigned int n;
	int r;

	r = read_varint(image, *offset, &length, &n);
	if (r)
		return r;
	if (length > image->size)
		return ELF_SHORT;
	r = elf_image_read(image, *offset + n, buffer, MIN(length, max));
	if (r)
		return r;
	*ret = (struct str){.p = buffer, .n = MIN(length, max)};
	*offset += n + length;
	return 0;
}

/* The text of the Go string whose header lies at the address that is stored at 'offset'. */
static int read_pointed_text(const struct elf_image *image, uint64_t offset, char *buffer,
			     size_t max, struct str *ret)
{
	uint8_t pointer[8], string[16];
	uint64_t length;
	int r;

	r = elf_image_read(image, offset, pointer, sizeof(pointer));
	if (r == 0)
		r = elf_image_read_address(image, get_le64(pointer), string, sizeof(string));
	if (r)
		return r;
	length = MIN(get_le64(string + 8), max);
	r = elf_image_read_address(image, get_le64(string), buffer, length);
	if (r)
		return r;
	*ret = (struct str){.p = buffer, .n = length};
	return 0;
}

static int read_build_info(const struct elf_image *image, uint64_t blob, struct image_facts *facts)
{
	char version_bytes[VERSION_READ_BYTES], module_bytes[MODINFO_READ_BYTES];
	struct str version, module;
	uint8_t header[BUILDINFO_HEADER];
	uint64_t offset = blob + BUILDINFO_HEADER;
	bool is_inline;
	int r;

	r = elf_image_read(image, blob, header, sizeof(header));
	if (r)
		return r;
	if (memcmp(header, BUILDINFO_MAGIC, sizeof(BUILDINFO_MAGIC) - 1) != 0)
		return ELF_SHORT;
	facts->is_go = true;

	is_inline = header[15] & 2;
	if (!is_inline && (header[14] != 8 || (header[15] & 1)))
		return 0;
	r = is_inline ? read_inline_text(image, &offset, version_bytes, sizeof(version_bytes),
					 &version)
		      : read_pointed_text(image, blob + 16, version_bytes, sizeof(version_bytes),
					  &version);
	if (r)
		return r;
	take_version(version, facts);
	r = is_inline
		    ? read_inline_text(image, &offset, module_bytes, sizeof(module_bytes), &module)
		    : read_pointed_text(image, blob + 24, module_bytes, sizeof(module_bytes),
					&module);
	if (r)
		return r;
	take_module(module, facts);
	return 0;
}

/* --- the function table */

/*
 * The offsets of the table's parts follow each other; that and the counts make an accident
 * unlikely.
 */
static bool words_increase(const uint8_t *words, unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++)
		if (get_le64(words + 8 * i) >= get_le64(words + 8 * (i + 1)))
			return false;
	return get_le64(words + 8 * from) > 0;
}

bool go_is_function_table(const uint8_t p[GO_TABLE_HEADER_BYTES])
{
	const uint8_t *words = p + 8;
	uint64_t functions = get_le64(words);

	/*
	 * All bytes of the first word that are the same in each version: this is asked millions of
	 * times.
	 */
	if ((get_le64(p) & 0xff00ffffffffff00) != 0x08000000ffffff00)
		return false;
	if (p[6] != 1 && p[6] != 2 && p[6] != 4)
		return false;
	if (functions == 0 || functions > FUNCTIONS_MAX)
		return false;

	switch (p[0]) {
	case 0xfb: /* 1.2 to 1.15 */
		return true;
	case 0xfa: /* 1.16, 1.17: functions, files, then five offsets */
		return words_increase(words, 2, 6);
	case 0xf0: /* 1.18, 1.19 */
	case 0xf1: /* 1.20 and newer: functions, files, start of the text, then five offsets */
		return words_increase(words, 3, 7);
	}
	return false;
}

/* --- searching */

enum scan { SCAN_BUILD_INFO, SCAN_TABLE };

/* Looks for 'what' in one chunk; the offset in it, or -1. */
static ptrdiff_t scan_chunk(enum scan what, const uint8_t *chunk, size_t n)
{
	const size_t step = what == SCAN_TABLE ? 8 : BUILDINFO_ALIGN;
	const size_t need = what == SCAN_TABLE ? GO_TABLE_HEADER_BYTES : BUILDINFO_HEADER;

	for (size_t i = 0; i + need <= n; i += step) {
		if (what == SCAN_TABLE
			    ? go_is_function_table(chunk + i)
			    : memcmp(chunk + i, BUILDINFO_MAGIC, sizeof(BUILDINFO_MAGIC) - 1) == 0)
			return (ptrdiff_t)i;
	}
	return -1;
}

/*
 * At most '*budget' bytes of a segment are read, and taken off the budget. 1: found at
 * '*ret_offset'.
 */
static int scan_segment(const struct elf_image *image, const struct elf_segment *s, enum scan what,
			uint64_t *budget, uint64_t *ret_offset)
{
	uint8_t chunk[CHUNK_BYTES];
	uint64_t end = MIN(s->size, *budget);

	*budget -= end;
	/*
	 * Both are aligned in memory, which a segment's first byte need not be. Chunks overlap, so
	 * that nothing is missed for lying across their border.
	 */
	for (uint64_t at = -s->address & (BUILDINFO_ALIGN - 1); at < end;
	     at += sizeof(chunk) - 128) {
		size_t n = MIN(sizeof(chunk), end - at);
		ptrdiff_t found;
		int r;

		r = elf_image_read(image, s->offset + at, chunk, n);
		if (r)
			return r < 0 ? r : 0;
		found = scan_chunk(what, chunk, n);
		if (found >= 0) {
			*ret_offset = s->offset + at + (uint64_t)found;
			return 1;
		}
	}
	return 0;
}

static int find_build_info(const struct elf_image *image, uint64_t *ret_offset)
{
	uint64_t budget = BUILDINFO_SCAN_BYTES;

	for (size_t i = 0; i < image->n_segments; i++) {
		int r = 0;

		if (image->segments[i].is_writable)
			r = scan_segment(image, &image->segments[i], SCAN_BUILD_INFO, &budget,
					 ret_offset);
		if (r)
			return r;
	}
	return 0;
}

/*
 * Segments that hold code come last: there the table is only if the linker made no read-only
 * segment.
 */
static int find_table(const struct elf_image *image, uint64_t *ret_offset)
{
	uint64_t budget = TABLE_SCAN_BYTES;

	for (unsigned int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < image->n_segments; i++) {
			int r = 0;

			if (image->segments[i].is_executable == (pass == 1))
				r = scan_segment(image, &image->segments[i], SCAN_TABLE, &budget,
						 ret_offset);
			if (r)
				return r;
		}
	}
	return 0;
}

static int probe_table_section(const struct elf_image *image, const struct elf_section *section,
			       struct image_facts *facts)
{
	uint8_t header[GO_TABLE_HEADER_BYTES];
	int r;

	if (section->size < sizeof(header))
		return 0;
	r = elf_image_read(image, section->offset, header, sizeof(header));
	if (r == 0 && go_is_function_table(header))
		facts->is_go = true;
	return r < 0 ? r : 0;
}

int go_probe(const struct elf_image *image, struct image_facts *facts)
{
	static const char *const names[] = {".go.buildinfo", ".gopclntab",
					    ".data.rel.ro.gopclntab"};
	struct elf_section sections[ARRAY_SIZE(names)];
	uint64_t offset = 0;
	int r;

	r = elf_image_find_sections(image, names, ARRAY_SIZE(names), sections);
	if (r < 0)
		return r;

	if (sections[0].size > 0) {
		offset = sections[0].offset;
		r = 1;
	} else {
		r = find_build_info(image, &offset);
	}
	if (r > 0)
		r = read_build_info(image, offset, facts);
	if (r < 0 || facts->is_go)
		return MIN(r, 0);

	for (size_t i = 1; i < ARRAY_SIZE(names) && !facts->is_go; i++) {
		r = probe_table_section(image, &sections[i], facts);
		if (r < 0)
			return r;
	}
	if (facts->is_go)
		return 0;

	r = find_table(image, &offset);
	if (r > 0)
		facts->is_go = true;
	return MIN(r, 0);
}
