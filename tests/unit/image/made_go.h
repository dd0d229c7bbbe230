/*
 * A small Go program that no compiler made: an ELF file of some kilobytes with a function table,
 * module data, types and a few functions, each part where a test can damage it. For the unit tests
 * of go_program.c and the seeds of its fuzzer. Memory is the file moved up by MADE_ADDRESS.
 */
#pragma once

#include <elf.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"

#define MADE_ADDRESS  0x400000
#define MADE_BYTES    16384
#define MADE_TEXT     0x400
#define MADE_TEXT_END 0x800
#define MADE_DATA     0x3000 /* writable from here to MADE_DATA_END */
#define MADE_DATA_END 0x3400
#define MADE_POINTERS 256

enum made_format { MADE_1_16, MADE_1_18, MADE_1_26 };

struct made_options {
	enum made_format format;
	bool is_zeroed;       /* position independent, pointers only in the relocations */
	bool has_old_offsets; /* of fields: doubled, as 1.17 and 1.18 have them */
	bool has_sections;
	bool is_arm64;
};

enum made_function {
	MADE_RUNQPUT,    /* PUSHQ BP past the check */
	MADE_NEWPROC,    /* the same, calls MADE_RUNQPUT */
	MADE_ROUND_TRIP, /* a large frame, two RETs, NOPs before one of them */
	MADE_SERVE_HTTP, /* no PUSHQ BP */
	MADE_TLS_READ,   /* no check */
	MADE_READ_REQUEST,
	MADE_CONN_SERVE, /* calls MADE_READ_REQUEST, then MADE_SERVE_HTTP */
	MADE_LEAF,       /* no frame */
	_MADE_FUNCTION_MAX,
};

struct made_go {
	uint8_t bytes[MADE_BYTES];
	size_t n; /* used so far */
	struct made_options options;
	size_t functions[_MADE_FUNCTION_MAX + 1]; /* offsets in the file, and the end */
	size_t sites[_MADE_FUNCTION_MAX];         /* where probes belong */
	size_t call;                              /* of MADE_RUNQPUT */
	size_t reading, serving;                  /* the calls in MADE_CONN_SERVE */
	size_t returns[2];                        /* of MADE_ROUND_TRIP */
	size_t table, names, stacks, entries;     /* of the function table */
	size_t module;
	size_t g, request, url; /* descriptors */
	size_t g_fields;
	size_t n_pointers;
	Elf64_Rela pointers[MADE_POINTERS];
};

static inline void made_put(struct made_go *m, size_t at, uint64_t value, size_t n)
{
	assert(at + n <= MADE_BYTES);
	for (size_t i = 0; i < n; i++)
		m->bytes[at + i] = (uint8_t)(value >> (8 * i));
}

static inline void made_point(struct made_go *m, size_t at, size_t to)
{
	assert(m->n_pointers < MADE_POINTERS);
	made_put(m, at, m->options.is_zeroed ? 0 : MADE_ADDRESS + to, 8);
	m->pointers[m->n_pointers++] = (Elf64_Rela){
		.r_offset = MADE_ADDRESS + at,
		.r_info = ELF64_R_INFO(0, m->options.is_arm64 ? R_AARCH64_RELATIVE
							      : R_X86_64_RELATIVE),
		.r_addend = (int64_t)(MADE_ADDRESS + to),
	};
}

static inline size_t made_add(struct made_go *m, const void *data, size_t n)
{
	size_t at = m->n;

	assert(at + n <= MADE_BYTES);
	for (size_t i = 0; i < n; i++)
		m->bytes[at + i] = ((const uint8_t *)data)[i];
	m->n += n;
	return at;
}

static inline void made_align(struct made_go *m, size_t to)
{
	m->n = (m->n + to - 1) / to * to;
}

/* --- code */

#define MADE_CODE(m, literal) made_add(m, literal, sizeof(literal) - 1)

/* Where a function's stack is how deep; pairs end with a count of 0. */
struct made_depth {
	int depth;
	unsigned int bytes;
};

static inline void made_stack(struct made_go *m, const struct made_depth *d)
{
	int last = -1;

	for (; d->bytes; d++) {
		int change = d->depth - last;
		uint8_t pair[3] = {(uint8_t)(change >= 0 ? change << 1 : (~change << 1) | 1),
				   (uint8_t)(d->bytes & 0x7f), (uint8_t)(d->bytes >> 7)};

		assert(change > -64 && change < 64);
		if (pair[2]) {
			pair[1] |= 0x80;
			made_add(m, pair, 3);
		} else {
			made_add(m, pair, 2);
		}
		last = d->depth;
	}
	made_add(m, "", 1);
}

static inline void made_code(struct made_go *m)
{
	m->n = MADE_TEXT;
	m->functions[MADE_RUNQPUT] = MADE_CODE(m, "\x49\x3b\x66\x10" /* CMPQ SP, 16(R14) */
						  "\x76\x09"         /* JLS */
						  "\x55"             /* PUSHQ BP */
						  "\x48\x89\xe5"     /* MOVQ SP, BP */
						  "\x90\x90\x90"     /* NOPs */
						  "\x5d\xc3"         /* POPQ BP, RET */
						  "\xeb\xef");       /* JMP */
	m->sites[MADE_RUNQPUT] = m->functions[MADE_RUNQPUT] + 6;
	made_align(m, 32);

	m->functions[MADE_NEWPROC] = MADE_CODE(
		m, "\x49\x3b\x66\x10\x76\x0b\x55\x48\x89\xe5\xe8\0\0\0\0\x5d\xc3\xeb\xed");
	m->sites[MADE_NEWPROC] = m->functions[MADE_NEWPROC] + 6;
	m->call = m->functions[MADE_NEWPROC] + 10;
	made_put(m, m->call + 1, m->functions[MADE_RUNQPUT] - (m->call + 5), 4);
	made_align(m, 32);

	m->functions[MADE_ROUND_TRIP] = MADE_CODE(
		m,
		"\x4c\x8d\xa4\x24\x80\xff\xff\xff" /* LEAQ -128(SP), R12 */
		"\x4d\x3b\x66\x10"                 /* CMPQ R12, 16(R14) */
		"\x0f\x86\x17\0\0\0"               /* JLS */
		"\x55\x48\x89\xe5"                 /* PUSHQ BP, MOVQ SP, BP */
		"\x48\x83\xec\x20"                 /* SUBQ $32, SP */
		"\x48\x83\xc4\x20\x5d\xc3"         /* ADDQ, POPQ BP, RET */
		"\x5d\x66\x0f\x1f\x44\0\0\xc3\x90" /* POPQ, NOP, RET, and a call that panics, say */
		"\xeb\xd0");
	m->sites[MADE_ROUND_TRIP] = m->functions[MADE_ROUND_TRIP] + 18;
	m->returns[0] = m->functions[MADE_ROUND_TRIP] + 31;
	m->returns[1] = m->functions[MADE_ROUND_TRIP] + 39;
	made_align(m, 32);

	m->functions[MADE_SERVE_HTTP] = MADE_CODE(m, "\x49\x3b\x66\x18\x76\x09"
						     "\x48\x83\xec\x10\x48\x83\xc4\x10\xc3"
						     "\xeb\xef");
	m->sites[MADE_SERVE_HTTP] = m->functions[MADE_SERVE_HTTP] + 4;
	made_align(m, 32);

	m->functions[MADE_TLS_READ] = MADE_CODE(m, "\x48\x83\xec\x10\x48\x83\xc4\x10\xc3");
	m->sites[MADE_TLS_READ] = m->functions[MADE_TLS_READ] + 4;
	made_align(m, 32);

	m->functions[MADE_READ_REQUEST] = MADE_CODE(
		m, "\x49\x3b\x66\x10\x76\x09\x55\x48\x89\xe5\x90\x90\x90\x5d\xc3\xeb\xef");
	m->sites[MADE_READ_REQUEST] = m->functions[MADE_READ_REQUEST] + 6;
	made_align(m, 32);

	m->functions[MADE_CONN_SERVE] = MADE_CODE(m, "\x49\x3b\x66\x10\x76\x10\x55\x48\x89\xe5"
						     "\xe8\0\0\0\0\xe8\0\0\0\0\x5d\xc3\xeb\xe8");
	m->sites[MADE_CONN_SERVE] = m->functions[MADE_CONN_SERVE] + 6;
	m->reading = m->functions[MADE_CONN_SERVE] + 10;
	m->serving = m->reading + 5;
	made_put(m, m->reading + 1, m->functions[MADE_READ_REQUEST] - (m->reading + 5), 4);
	made_put(m, m->serving + 1, m->functions[MADE_SERVE_HTTP] - (m->serving + 5), 4);
	made_align(m, 32);

	m->functions[MADE_LEAF] = MADE_CODE(m, "\x31\xc0\xc3");
	made_align(m, 32);
	m->functions[_MADE_FUNCTION_MAX] = m->n;
	assert(m->n <= MADE_TEXT_END);
}

static const struct made_depth made_depths[_MADE_FUNCTION_MAX][10] = {
	[MADE_RUNQPUT] = {{0, 7}, {8, 7}, {0, 3}},
	[MADE_NEWPROC] = {{0, 7}, {8, 9}, {0, 3}},
	[MADE_ROUND_TRIP] =
		{{0, 19}, {8, 7}, {40, 4}, {8, 1}, {0, 1}, {8, 1}, {0, 7}, {8, 1}, {0, 2}},
	[MADE_SERVE_HTTP] = {{0, 10}, {16, 4}, {0, 3}},
	[MADE_TLS_READ] = {{0, 4}, {16, 4}, {0, 1}},
	[MADE_READ_REQUEST] = {{0, 7}, {8, 7}, {0, 3}},
	[MADE_CONN_SERVE] = {{0, 7}, {8, 14}, {0, 3}},
	[MADE_LEAF] = {{0, 3}},
};

/* --- the same on arm64 */

#define MADE_LOAD_GUARD 0xf9400b90 /* MOVD 16(g), R16 */
#define MADE_PUSH       0xf81f0ffe /* MOVD.W R30, -16(RSP) */
#define MADE_POP        0xf84107fe /* MOVD.P 16(RSP), R30 */
#define MADE_RET        0xd65f03c0

static inline void made_words(struct made_go *m, enum made_function f, const uint32_t *words,
			      size_t n, unsigned int site)
{
	m->functions[f] = m->n;
	m->sites[f] = m->n + 4 * site;
	for (size_t i = 0; i < n; i++)
		made_put(m, m->n + 4 * i, words[i], 4);
	m->n += 4 * n;
	made_align(m, 16);
}

#define MADE_WORDS(m, f, site, ...)                       \
	made_words(m, f, (const uint32_t[]){__VA_ARGS__}, \
		   sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), site)

/* BL */
static inline void made_branch(struct made_go *m, size_t at, size_t to)
{
	made_put(m, at, 0x94000000 | (((to - at) / 4) & 0x3ffffff), 4);
}

static inline void made_code_arm64(struct made_go *m)
{
	m->n = MADE_TEXT;
	MADE_WORDS(m, MADE_RUNQPUT, 2, MADE_LOAD_GUARD, 0xeb3063ff /* CMP R16, RSP */,
		   0x54000089 /* BLS 4 words on */, MADE_PUSH, MADE_POP, MADE_RET,
		   0x17fffffa /* B */);
	MADE_WORDS(m, MADE_NEWPROC, 2, MADE_LOAD_GUARD, 0xeb3063ff, 0x540000a9, MADE_PUSH,
		   0x94000000 /* BL */, MADE_POP, MADE_RET, 0x17fffff9);
	m->call = m->functions[MADE_NEWPROC] + 16;
	made_branch(m, m->call, m->functions[MADE_RUNQPUT]);
	MADE_WORDS(m, MADE_ROUND_TRIP, 3, MADE_LOAD_GUARD, 0xd10203f1 /* SUB $128, RSP, R17 */,
		   0xeb10023f /* CMP R16, R17 */, 0x540000e9, MADE_PUSH, MADE_POP, MADE_RET,
		   MADE_POP, MADE_RET, 0xd503201f /* NOP */, 0x17fffff6);
	m->returns[0] = m->functions[MADE_ROUND_TRIP] + 24;
	m->returns[1] = m->functions[MADE_ROUND_TRIP] + 32;
	MADE_WORDS(m, MADE_SERVE_HTTP, 3, 0xf9400f90 /* MOVD 24(g), R16 */,
		   0x910003f1 /* MOVD RSP, R17 */, 0xeb10023f, 0x54000089, MADE_PUSH, MADE_POP,
		   MADE_RET, 0x17fffff9);
	MADE_WORDS(m, MADE_TLS_READ, 1, MADE_PUSH, MADE_POP, MADE_RET);
	MADE_WORDS(m, MADE_READ_REQUEST, 2, MADE_LOAD_GUARD, 0xeb3063ff, 0x54000089, MADE_PUSH,
		   MADE_POP, MADE_RET, 0x17fffffa);
	MADE_WORDS(m, MADE_CONN_SERVE, 2, MADE_LOAD_GUARD, 0xeb3063ff, 0x540000c9, MADE_PUSH,
		   0x94000000 /* BL */, 0x94000000, MADE_POP, MADE_RET, 0x17fffff8);
	m->reading = m->functions[MADE_CONN_SERVE] + 16;
	m->serving = m->reading + 4;
	made_branch(m, m->reading, m->functions[MADE_READ_REQUEST]);
	made_branch(m, m->serving, m->functions[MADE_SERVE_HTTP]);
	MADE_WORDS(m, MADE_LEAF, 0, MADE_RET);
	m->functions[_MADE_FUNCTION_MAX] = m->n;
	assert(m->n <= MADE_TEXT_END);
}

/* In instructions. */
static const struct made_depth made_depths_arm64[_MADE_FUNCTION_MAX][10] = {
	[MADE_RUNQPUT] = {{0, 4}, {16, 1}, {0, 2}},
	[MADE_NEWPROC] = {{0, 4}, {16, 2}, {0, 2}},
	[MADE_ROUND_TRIP] = {{0, 5}, {16, 1}, {0, 1}, {16, 1}, {0, 1}, {16, 1}, {0, 1}},
	[MADE_SERVE_HTTP] = {{0, 5}, {16, 1}, {0, 2}},
	[MADE_TLS_READ] = {{0, 1}, {16, 1}, {0, 1}},
	[MADE_READ_REQUEST] = {{0, 4}, {16, 1}, {0, 2}},
	[MADE_CONN_SERVE] = {{0, 4}, {16, 3}, {0, 2}},
	[MADE_LEAF] = {{0, 1}},
};

/* --- the function table */

static inline void made_table(struct made_go *m)
{
	static const char *const names[_MADE_FUNCTION_MAX] = {
		"runtime.runqput",
		"runtime.newproc.func1",
		"net/http.(*persistConn).roundTrip",
		"net/http.serverHandler.ServeHTTP",
		"crypto/tls.(*Conn).Read",
		"net/http.(*conn).readRequest",
		"net/http.(*conn).serve",
		"main.leaf",
	};
	bool is_old = m->options.format == MADE_1_16;
	size_t name[_MADE_FUNCTION_MAX], stack[_MADE_FUNCTION_MAX], word, record;

	made_align(m, 32);
	m->table = m->n;
	made_put(m, m->table,
		 is_old                           ? 0xfffffffa
		 : m->options.format == MADE_1_18 ? 0xfffffff0
						  : 0xfffffff1,
		 4);
	made_put(m, m->table + 6, m->options.is_arm64 ? 0x0804 : 0x0801, 2);
	made_put(m, m->table + 8, _MADE_FUNCTION_MAX, 8);
	made_put(m, m->table + 16, 1, 8);
	if (m->options.format == MADE_1_18)
		made_point(m, m->table + 24, MADE_TEXT);
	word = m->table + (is_old ? 24 : 32);
	m->n = m->table + 72;

	m->names = m->n;
	made_put(m, word, m->names - m->table, 8);
	for (size_t i = 0; i < _MADE_FUNCTION_MAX; i++)
		name[i] = made_add(m, names[i], strlen(names[i]) + 1) - m->names;
	made_put(m, word + 8, m->n - m->table, 8); /* compilation units */
	m->n += 8;
	made_put(m, word + 16, m->n - m->table, 8); /* files */
	m->n += 8;
	m->stacks = m->n;
	made_put(m, word + 24, m->stacks - m->table, 8);
	m->n += 1; /* 0 is no offset of a table */
	for (size_t i = 0; i < _MADE_FUNCTION_MAX; i++) {
		stack[i] = m->n - m->stacks;
		made_stack(m, m->options.is_arm64 ? made_depths_arm64[i] : made_depths[i]);
	}
	made_align(m, 32);
	m->entries = m->n;
	made_put(m, word + 32, m->entries - m->table, 8);

	record = m->entries + (is_old ? 16 * _MADE_FUNCTION_MAX + 8 : 8 * _MADE_FUNCTION_MAX + 4);
	record = (record + 7) / 8 * 8;
	for (size_t i = 0; i <= _MADE_FUNCTION_MAX; i++) {
		size_t at = m->entries + (is_old ? 16 : 8) * i, skip = is_old ? 8 : 4;

		if (is_old)
			made_point(m, at, m->functions[i]);
		else
			made_put(m, at, m->functions[i] - MADE_TEXT, 4);
		if (i == _MADE_FUNCTION_MAX)
			break;
		made_put(m, at + skip, record - m->entries, skip);
		if (is_old)
			made_point(m, record, m->functions[i]);
		else
			made_put(m, record, m->functions[i] - MADE_TEXT, 4);
		made_put(m, record + skip, name[i], 4);
		made_put(m, record + skip + 12, stack[i], 4);
		record += 48;
	}
	m->n = record;
}

static inline void made_module(struct made_go *m)
{
	size_t first[] = {m->names, 0, 0, m->stacks, m->entries, m->entries};

	m->module = MADE_DATA + 0x40;
	made_point(m, m->module, m->table);
	for (size_t i = 0; i < ARRAY_SIZE(first); i++)
		if (first[i])
			made_point(m, m->module + 8 + 24 * i, first[i]);
	made_put(m, m->module + 8 * 14, m->n - m->entries, 8);
	made_put(m, m->module + 8 * 17, _MADE_FUNCTION_MAX + 1, 8);
	made_point(m, m->module + 8 * 20, m->functions[0]);
	made_point(m, m->module + 8 * 21, m->functions[_MADE_FUNCTION_MAX]);
	made_point(m, m->module + 8 * 22, MADE_TEXT);
	made_point(m, m->module + 8 * 23, MADE_TEXT_END);
}

/* --- types */

struct made_field {
	const char *name;
	size_t type;
	unsigned int offset;
};

static inline size_t made_name(struct made_go *m, const char *text)
{
	uint8_t head[2] = {0, (uint8_t)strlen(text)};
	size_t at = made_add(m, head, 2);

	made_add(m, text, strlen(text));
	return at;
}

static inline size_t made_type(struct made_go *m, unsigned int kind, size_t bytes)
{
	size_t at;

	made_align(m, 8);
	at = m->n;
	made_put(m, at, bytes, 8);
	made_put(m, at + 21, 8, 1);
	made_put(m, at + 22, 8, 1);
	made_put(m, at + 23, kind, 1);
	m->n += 80;
	return at;
}

static inline size_t made_struct(struct made_go *m, size_t bytes, const char *package,
				 const struct made_field *fields, size_t n, size_t *ret_fields)
{
	size_t at = made_type(m, 25, bytes), list = m->n;

	m->n += 24 * n;
	if (package)
		made_point(m, at + 48, made_name(m, package));
	made_point(m, at + 56, list);
	made_put(m, at + 64, n, 8);
	made_put(m, at + 72, n, 8);
	for (size_t i = 0; i < n; i++) {
		made_point(m, list + 24 * i, made_name(m, fields[i].name));
		made_point(m, list + 24 * i + 8, fields[i].type);
		made_put(m, list + 24 * i + 16,
			 fields[i].offset << (m->options.has_old_offsets ? 1 : 0), 8);
	}
	if (ret_fields)
		*ret_fields = list;
	return at;
}

static inline void made_types(struct made_go *m)
{
	size_t word = made_type(m, 12, 8), pointer = made_type(m, 22, 8);
	size_t string = made_type(m, 24, 16), context = made_type(m, 20, 16);
	size_t stack = made_struct(
		m, 16, "runtime", (struct made_field[]){{"lo", word, 0}, {"hi", word, 8}}, 2, NULL);
	size_t url = made_type(m, 22, 8);

	m->g = made_struct(m, 56, "runtime",
			   (struct made_field[]){{"stack", stack, 0},
						 {"stackguard0", word, 16},
						 {"stackguard1", word, 24},
						 {"_panic", pointer, 32},
						 {"m", pointer, 40},
						 {"goid", word, 48}},
			   6, &m->g_fields);
	m->url = made_struct(m, 80, NULL,
			     (struct made_field[]){{"Scheme", string, 0},
						   {"Opaque", string, 16},
						   {"User", pointer, 32},
						   {"Host", string, 40},
						   {"Path", string, 56}},
			     5, NULL);
	made_point(m, url + 48, m->url);
	m->request = made_struct(m, 72, "net/http",
				 (struct made_field[]){{"Method", string, 0},
						       {"URL", url, 16},
						       {"Proto", string, 24},
						       {"ProtoMajor", word, 40},
						       {"ProtoMinor", word, 48},
						       {"ctx", context, 56}},
				 6, NULL);
}

/* --- the file */

static inline int made_compare(const void *a, const void *b)
{
	const Elf64_Rela *x = a, *y = b;

	return x->r_offset < y->r_offset ? -1 : x->r_offset > y->r_offset;
}

static inline void made_segment(struct made_go *m, uint32_t type, uint32_t flags, size_t from,
				size_t to)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)m->bytes;
	Elf64_Phdr *p = (Elf64_Phdr *)(m->bytes + sizeof(*header)) + header->e_phnum++;

	*p = (Elf64_Phdr){.p_type = type,
			  .p_flags = flags,
			  .p_offset = from,
			  .p_vaddr = MADE_ADDRESS + from,
			  .p_filesz = to - from,
			  .p_memsz = to - from};
}

/* Relocations and the dynamic section, behind the data. */
static inline void made_dynamic(struct made_go *m)
{
	size_t rela = MADE_DATA_END, dynamic;
	const Elf64_Dyn entries[] = {
		{DT_RELA, {MADE_ADDRESS + rela}},
		{DT_RELASZ, {m->n_pointers * sizeof(Elf64_Rela)}},
		{DT_RELAENT, {sizeof(Elf64_Rela)}},
		{DT_RELACOUNT, {m->n_pointers}},
		{DT_NULL, {0}},
	};

	qsort(m->pointers, m->n_pointers, sizeof(m->pointers[0]), made_compare);
	m->n = rela;
	made_add(m, m->pointers, m->n_pointers * sizeof(Elf64_Rela));
	dynamic = made_add(m, entries, sizeof(entries));
	made_segment(m, PT_DYNAMIC, PF_R, dynamic, m->n);
}

static inline void made_sections(struct made_go *m)
{
	static const char names[] = "\0.gopclntab\0.shstrtab";
	Elf64_Ehdr *header = (Elf64_Ehdr *)m->bytes;
	size_t text = made_add(m, names, sizeof(names));
	Elf64_Shdr sections[] = {
		{0},
		{.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = m->table, .sh_size = 4096},
		{.sh_name = 12, .sh_type = SHT_STRTAB, .sh_offset = text, .sh_size = sizeof(names)},
	};

	made_align(m, 8);
	header->e_shoff = made_add(m, sections, sizeof(sections));
	header->e_shentsize = sizeof(Elf64_Shdr);
	header->e_shnum = ARRAY_SIZE(sections);
	header->e_shstrndx = 2;
}

static inline void made_go_build(struct made_go *m, const struct made_options *options)
{
	size_t note, types_end;

	memset(m, 0, sizeof(*m));
	m->options = *options;
	*(Elf64_Ehdr *)m->bytes = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = options->is_zeroed ? ET_DYN : ET_EXEC,
		.e_machine = options->is_arm64 ? EM_AARCH64 : EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
	};
	if (options->is_arm64)
		made_code_arm64(m);
	else
		made_code(m);
	m->n = MADE_TEXT_END;
	note = made_add(m, "\4\0\0\0\x8\0\0\0\4\0\0\0Go\0\0made/one", 24);
	made_table(m);
	made_module(m);
	made_types(m);
	types_end = m->n;
	assert(types_end <= MADE_DATA);
	made_segment(m, PT_LOAD, PF_R | PF_X, MADE_TEXT, MADE_TEXT_END);
	made_segment(m, PT_LOAD, PF_R, MADE_TEXT_END, types_end);
	made_segment(m, PT_NOTE, PF_R, note, note + 24);
	m->n = MADE_DATA_END;
	if (options->is_zeroed)
		made_dynamic(m);
	if (options->has_sections)
		made_sections(m);
	made_segment(m, PT_LOAD, PF_R | PF_W, MADE_DATA, m->n);
}
