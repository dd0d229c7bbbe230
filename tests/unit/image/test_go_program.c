/*
 * go_program_read() on a program that is made up (made_go.h), whole and damaged in each of its parts,
 * and on what the Go compiler of this machine makes.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "image/go_program.h"
#include "read_go.h"

static const enum go_function function_ids[_MADE_FUNCTION_MAX] = {
	[MADE_RUNQPUT] = GO_FUNCTION_RUNQPUT,       [MADE_NEWPROC] = GO_FUNCTION_NEWPROC_FUNC1,
	[MADE_ROUND_TRIP] = GO_FUNCTION_ROUND_TRIP, [MADE_SERVE_HTTP] = GO_FUNCTION_SERVE_HTTP,
	[MADE_TLS_READ] = GO_FUNCTION_TLS_READ,     [MADE_READ_REQUEST] = GO_FUNCTION_READ_REQUEST,
	[MADE_CONN_SERVE] = GO_FUNCTION_CONN_SERVE, [MADE_LEAF] = _GO_FUNCTION_MAX,
};

static void check_functions(const struct go_program *p, const struct made_go *m)
{
	static const enum go_site_class all_classes[2][MADE_LEAF] = {
		{GO_SITE_PUSH_BP, GO_SITE_PUSH_BP, GO_SITE_PUSH_BP, GO_SITE_STACK_JCC, GO_SITE_BODY,
		 GO_SITE_PUSH_BP, GO_SITE_PUSH_BP},
		{GO_SITE_STACK_B_LS, GO_SITE_STACK_B_LS, GO_SITE_STACK_B_LS, GO_SITE_STACK_B_LS,
		 GO_SITE_BODY, GO_SITE_STACK_B_LS, GO_SITE_STACK_B_LS},
	};
	const enum go_site_class *classes = all_classes[m->options.is_arm64];
	const struct go_function_facts *f;

	assert_null(p->reason);
	assert_int_equal(p->text_address, MADE_ADDRESS + MADE_TEXT);
	for (size_t i = 0; i < MADE_LEAF; i++) {
		f = &p->functions[function_ids[i]];
		assert_true(f->is_found);
		assert_int_equal(f->offset, m->functions[i]);
		assert_int_equal(f->address, MADE_ADDRESS + m->functions[i]);
		assert_int_equal(f->site.class, classes[i]);
		assert_int_equal(f->site.offset, m->sites[i]);
		assert_null(f->site.reason);
	}
	f = &p->functions[GO_FUNCTION_ROUND_TRIP];
	assert_int_equal(f->n_returns, 2);
	assert_int_equal(f->returns[0], m->returns[0]);
	assert_int_equal(f->returns[1], m->returns[1]);
	assert_int_equal(p->newproc_runqput.class, GO_SITE_CALL);
	assert_int_equal(p->newproc_runqput.offset, m->call);
	assert_int_equal(p->request_read.class, GO_SITE_AFTER_CALL);
	assert_int_equal(p->request_read.offset, m->serving);
	assert_int_equal(p->newproc_begun.class, GO_SITE_NONE);

	f = &p->functions[GO_FUNCTION_TLS_WRITE];
	assert_false(f->is_found);
	assert_int_equal(f->site.class, GO_SITE_NONE);
	assert_string_equal(f->site.reason, "not in the program");
}

static void assert_offset(const struct go_program *p, enum go_field field, uint32_t bytes)
{
	assert_int_equal(p->offsets[field].source, GO_SOURCE_TYPES);
	assert_int_equal(p->offsets[field].bytes, bytes);
}

static void assert_unknown(const struct go_program *p, enum go_field field)
{
	assert_int_equal(p->offsets[field].source, GO_SOURCE_NONE);
}

static void check_fields(const struct go_program *p, const struct made_go *m)
{
	assert_offset(p, GO_FIELD_G_M, 40);
	assert_offset(p, GO_FIELD_G_GOID, 48);
	assert_unknown(p, GO_FIELD_G_PARENT_GOID);
	assert_offset(p, GO_FIELD_REQUEST_METHOD, 0);
	assert_offset(p, GO_FIELD_REQUEST_CTX, 56);
	assert_unknown(p, GO_FIELD_REQUEST_PATTERN);
	assert_offset(p, GO_FIELD_URL_PATH, 56);
	assert_unknown(p, GO_FIELD_RESPONSE_REQ);
	assert_int_equal(p->types[GO_STRUCT_G], MADE_ADDRESS + m->g);
	assert_int_equal(p->types[GO_STRUCT_URL], MADE_ADDRESS + m->url);
	assert_int_equal(p->types[GO_STRUCT_RESPONSE], 0);
}

/* Every format, with and without section names, position independent or not, both machines. */
static void test_whole(void **state)
{
	static struct made_go m;

	(void)state;
	for (unsigned int i = 0; i < 48; i++) {
		_cleanup_(go_program_freep) struct go_program *p = NULL;
		struct made_options options = {
			.format = i % 3,
			.is_zeroed = i / 3 & 1,
			.has_old_offsets = i / 6 & 1,
			.has_sections = i / 12 & 1,
			.is_arm64 = i / 24,
		};

		/* On arm64 arguments are in registers since 1.18. */
		if (options.is_arm64 && options.format == MADE_1_16)
			continue;

		made_go_build(&m, &options);
		p = read_made(&m);
		assert_int_equal(p->is_pie, options.is_zeroed);
		assert_string_equal(p->build_id, "go:made/one");
		assert_string_equal(p->version, "");
		check_functions(p, &m);
		check_fields(p, &m);
	}
}

/* One way to damage the program, and what is then said of roundTrip. */
struct damage {
	size_t at;
	uint64_t value;
	size_t n;
	const char *reason; /* of no site; NULL: there is one */
	const char *returns_reason;
};

static void check_damage(const struct made_go *whole, const struct damage *d)
{
	_cleanup_(go_program_freep) struct go_program *p = NULL;
	const struct go_function_facts *f;
	static struct made_go m;

	m = *whole;
	made_put(&m, d->at, d->value, d->n);
	p = read_made(&m);
	f = &p->functions[GO_FUNCTION_ROUND_TRIP];
	if (d->reason)
		assert_string_equal(f->site.reason ? f->site.reason : "none", d->reason);
	assert_int_equal(f->site.class, d->reason ? GO_SITE_NONE : GO_SITE_PUSH_BP);
	if (d->returns_reason)
		assert_string_equal(f->no_returns_reason, d->returns_reason);
	assert_int_equal(f->n_returns, d->returns_reason ? 0 : 2);
}

static void test_damaged_function(void **state)
{
	static const char no_code[] =
		"the function's code is not in an executable part of the file";
	static const char no_stack[] =
		"the function has no stack frame, or its stack table is damaged";
	static struct made_go m;
	size_t code, record, stack, entry;

	(void)state;
	made_go_build(&m, &(struct made_options){.format = MADE_1_26});
	code = m.functions[MADE_ROUND_TRIP];
	entry = m.entries + 8 * MADE_ROUND_TRIP;
	memcpy(&record, m.bytes + entry + 4, 4);
	record = m.entries + (record & 0xffffffff);
	memcpy(&stack, m.bytes + record + 16, 4);
	stack = m.stacks + (stack & 0xffffffff);

	const struct damage damages[] = {
		/* The check jumps out of the function, or backwards. */
		{code + 14, 0x7fffffff, 4, "the function's stack check jumps out of it",
		 "the function ends otherwise than by RET"},
		{code + 14, 0xfffffff0, 4, "the function's stack check jumps out of it",
		 "the function ends otherwise than by RET"},
		/* No RET where the stack is back. */
		{m.returns[0], 0x90, 1, NULL, "the function ends otherwise than by RET"},
		{m.returns[1], 0xcc, 1, NULL, "the function ends otherwise than by RET"},
		/* A stack table that is none, does not end, or lies about the push. */
		{record + 16, 0, 4, no_stack, "the function has no stack table"},
		{record + 16, 0x7fffffff, 4, no_stack, "the function has no stack table"},
		{stack, 0xffffffffffff, 6, no_stack, "the function's stack table is damaged"},
		{stack + 1, 18, 1, "the function's stack table is damaged",
		 "the function ends otherwise than by RET"},
		/* A record that is of another function; entries that are not in order. */
		{record, 1, 4, "the program's function table is damaged",
		 "the program's function table is damaged"},
		{entry + 4, 0xfffffff0, 4, "the program's function table is damaged",
		 "the program's function table is damaged"},
		/* The code beyond its segment. */
		{sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_filesz), code + 8 - MADE_TEXT, 8,
		 no_code, no_code},
		{sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_flags), PF_R, 4, no_code, no_code},
		/* Module data of another table, another text, another machine. */
		{m.module + 8, 0x1234, 8, "no function table of Go 1.16 to 1.27 in it",
		 "no function table of Go 1.16 to 1.27 in it"},
		{m.module + 8 * 22, MADE_ADDRESS + MADE_TEXT + 16, 8,
		 "no function table of Go 1.16 to 1.27 in it",
		 "no function table of Go 1.16 to 1.27 in it"},
		{m.table + 6, 4, 1, "the program's function table is another machine's",
		 "the program's function table is another machine's"},
		{offsetof(Elf64_Ehdr, e_machine), EM_RISCV, 2,
		 "neither an amd64 nor an arm64 program", "neither an amd64 nor an arm64 program"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(damages); i++)
		check_damage(&m, &damages[i]);
}

/* Before arguments were in registers there is nothing to be read at a site. */
static void test_arguments_on_stack(void **state)
{
	static const char reason[] =
		"built by a Go that passes arguments on the stack (before 1.17; arm64: 1.18)";
	_cleanup_(go_program_freep) struct go_program *arm64 = NULL, *amd64 = NULL;
	static struct made_go m;

	(void)state;
	made_go_build(&m, &(struct made_options){.format = MADE_1_16, .is_arm64 = true});
	arm64 = read_made(&m);
	assert_string_equal(arm64->reason, reason);
	assert_string_equal(arm64->functions[GO_FUNCTION_ROUND_TRIP].site.reason, reason);
	assert_string_equal(arm64->newproc_runqput.reason, reason);

	/* The goroutine was not in R14 then: no function checks its stack by it. */
	made_go_build(&m, &(struct made_options){.format = MADE_1_16});
	for (size_t i = MADE_RUNQPUT; i <= MADE_CONN_SERVE; i++)
		made_put(&m, m.functions[i] + (i == MADE_ROUND_TRIP ? 8 : 0), 0x48, 1);
	amd64 = read_made(&m);
	assert_string_equal(amd64->reason, reason);
}

/* A start that is none of the known ones leaves the place behind the frame's allocation. */
static void test_unusual_start(void **state)
{
	_cleanup_(go_program_freep) struct go_program *frame = NULL, *nothing = NULL, *arm64 = NULL;
	const struct go_function_facts *f;
	static struct made_go m;
	size_t code;

	(void)state;
	made_go_build(&m, &(struct made_options){.format = MADE_1_26});
	code = m.functions[MADE_ROUND_TRIP];
	made_put(&m, code + 11, 0x20, 1); /* compares with another word of the goroutine */
	frame = read_made(&m);
	f = &frame->functions[GO_FUNCTION_ROUND_TRIP];
	assert_int_equal(f->site.class, GO_SITE_BODY);
	assert_int_equal(f->site.offset, code + 19);
	/* Where the jump for more stack goes is not known: what is there might be an end. */
	assert_int_equal(f->n_returns, 0);
	assert_string_equal(f->no_returns_reason, "the function ends otherwise than by RET");

	made_put(&m, code + 18, 0x90, 1); /* nor does an allocation end there */
	nothing = read_made(&m);
	f = &nothing->functions[GO_FUNCTION_ROUND_TRIP];
	assert_int_equal(f->site.class, GO_SITE_NONE);
	assert_string_equal(f->site.reason, "the function begins like none of Go 1.17 to 1.27");

	made_go_build(&m, &(struct made_options){.format = MADE_1_26, .is_arm64 = true});
	code = m.functions[MADE_ROUND_TRIP];
	made_put(&m, code + 12, 0x540000e8, 4); /* BHI */
	arm64 = read_made(&m);
	f = &arm64->functions[GO_FUNCTION_ROUND_TRIP];
	assert_int_equal(f->site.class, GO_SITE_BODY);
	assert_int_equal(f->site.offset, code + 20);
}

static void test_two_of_a_name(void **state)
{
	_cleanup_(go_program_freep) struct go_program *p = NULL;
	static struct made_go m;
	size_t record, other;

	(void)state;
	made_go_build(&m, &(struct made_options){.format = MADE_1_26});
	memcpy(&record, m.bytes + m.entries + 8 * MADE_LEAF + 4, 4);
	memcpy(&other, m.bytes + m.entries + 8 * MADE_ROUND_TRIP + 4, 4);
	memcpy(m.bytes + m.entries + (record & 0xffffffff) + 4,
	       m.bytes + m.entries + (other & 0xffffffff) + 4, 4);
	p = read_made(&m);
	assert_string_equal(p->functions[GO_FUNCTION_ROUND_TRIP].site.reason,
			    "several functions have this name");
	assert_int_equal(p->functions[GO_FUNCTION_SERVE_HTTP].site.class, GO_SITE_STACK_JCC);
}

static void test_call(void **state)
{
	_cleanup_(go_program_freep) struct go_program *none = NULL, *two = NULL;
	static struct made_go m;

	(void)state;
	made_go_build(&m, &(struct made_options){.format = MADE_1_26});
	made_put(&m, m.call + 1, 1, 1);
	none = read_made(&m);
	assert_int_equal(none->newproc_runqput.class, GO_SITE_NONE);
	assert_string_equal(none->newproc_runqput.reason,
			    "the call is not in the caller (a build with a profile?)");

	made_go_build(&m, &(struct made_options){.format = MADE_1_26});
	made_put(&m, m.call + 10, 0xe8, 1);
	made_put(&m, m.call + 11, m.functions[MADE_RUNQPUT] - (m.call + 15), 4);
	two = read_made(&m);
	assert_string_equal(two->newproc_runqput.reason,
			    "there are several such calls in the caller");
}

/* As a build with a profile: (*conn).serve has the code of ServeHTTP, which others may still call. */
static void test_inlined(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		_cleanup_(go_program_freep) struct go_program *p = NULL;
		static struct made_go m;
		const struct go_site *site;

		made_go_build(&m, &(struct made_options){.format = MADE_1_26, .is_arm64 = i});
		made_put(&m, m.serving, i ? 0xd503201f : 0x90, i ? 4 : 1);
		p = read_made(&m);
		site = &p->functions[GO_FUNCTION_SERVE_HTTP].site;
		assert_true(p->functions[GO_FUNCTION_SERVE_HTTP].is_found);
		assert_int_equal(site->class, GO_SITE_NONE);
		assert_non_null(strstr(site->reason, "without a call of serverHandler.ServeHTTP"));
		assert_int_equal(p->request_read.class, GO_SITE_AFTER_CALL);
		assert_int_equal(p->request_read.offset, m.serving);
	}
}

/* A field that is not where sizes and alignments put it, or of another kind, is not believed. */
static void test_damaged_types(void **state)
{
	static struct made_go whole, m;
	struct damage damages[] = {
		{.at = 24 * 5 + 16, .value = 56, .n = 8}, /* goid behind a gap */
		{.at = 24 * 4 + 16, .value = 32, .n = 8}, /* m over _panic */
		{.at = 24 * 5 + 8, .value = 0, .n = 8},   /* no type */
		{.at = 24 * 1, .value = 0x41, .n = 8},    /* a name that is nowhere */
	};

	(void)state;
	made_go_build(&whole, &(struct made_options){.format = MADE_1_26});
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
		_cleanup_(go_program_freep) struct go_program *p = NULL;

		m = whole;
		made_put(&m, m.g_fields + damages[i].at, damages[i].value, damages[i].n);
		p = read_made(&m);
		assert_unknown(p, GO_FIELD_G_GOID);
		assert_unknown(p, GO_FIELD_G_M);
		assert_offset(p, GO_FIELD_REQUEST_CTX, 56);
		assert_int_equal(p->functions[GO_FUNCTION_ROUND_TRIP].site.class, GO_SITE_PUSH_BP);
	}
}

/* A field that is found but is not what its reader takes it for. */
static void test_other_kind(void **state)
{
	_cleanup_(go_program_freep) struct go_program *p = NULL;
	static struct made_go m;

	(void)state;
	made_go_build(&m, &(struct made_options){.format = MADE_1_26});
	memcpy(m.bytes + m.g_fields + 24 * 5 + 8, m.bytes + m.g_fields + 24 * 4 + 8, 8);
	p = read_made(&m);
	assert_offset(p, GO_FIELD_G_M, 40);
	assert_unknown(p, GO_FIELD_G_GOID);
}

/* Two structs of one name and package: if they differ nothing is known, else the offsets are. */
static void test_contradicting_types(void **state)
{
	_cleanup_(go_program_freep) struct go_program *same = NULL, *other = NULL;
	static struct made_go m;
	size_t fields, copy = MADE_DATA + 0x200, copy_fields = MADE_DATA + 0x280;

	(void)state;
	made_go_build(&m, &(struct made_options){.format = MADE_1_26});
	memcpy(m.bytes + copy, m.bytes + m.g, 80);
	same = read_made(&m);
	assert_offset(same, GO_FIELD_G_GOID, 48);
	assert_int_equal(same->types[GO_STRUCT_G], 0);

	/* The copy's m and goid change places. */
	fields = m.g_fields;
	memcpy(m.bytes + copy_fields, m.bytes + fields, 24 * 6);
	memcpy(m.bytes + copy_fields + 24 * 4, m.bytes + fields + 24 * 5, 16);
	memcpy(m.bytes + copy_fields + 24 * 5, m.bytes + fields + 24 * 4, 16);
	made_put(&m, copy + 56, MADE_ADDRESS + copy_fields, 8);
	other = read_made(&m);
	assert_unknown(other, GO_FIELD_G_GOID);
	assert_unknown(other, GO_FIELD_G_M);
	assert_offset(other, GO_FIELD_REQUEST_CTX, 56);
}

/* Each prefix, and each byte turned over: an answer; the sanitizers see to the rest. */
static void test_hostile(void **state)
{
	static struct made_go whole, m;

	(void)state;
	made_go_build(&whole, &(struct made_options){.format = MADE_1_18, .has_sections = true});
	for (size_t n = 0; n < whole.n; n += 61) {
		_cleanup_(closep) int fd = file_of(whole.bytes, n);
		struct go_program *p = NULL;
		int r = go_program_read(fd, NULL, &p);

		assert_true(r == 0 || r == GO_PROGRAM_NOT_GO || r == IMAGE_NOT_ELF);
		go_program_free(p);
	}
	for (size_t at = 0; at < whole.n; at += 3) {
		_cleanup_(closep) int fd = -1;
		struct go_program *p = NULL;

		m = whole;
		m.bytes[at] ^= 0xff;
		fd = file_of(m.bytes, m.n);
		if (go_program_read(fd, NULL, &p) == 0)
			for (size_t i = 0; i < _GO_FUNCTION_MAX; i++)
				assert_int_equal(p->functions[i].site.class == GO_SITE_NONE,
						 p->functions[i].site.reason != NULL);
		go_program_free(p);
	}
}

/*
 * Sixty thousand descriptors of a g with 256 fields each: to look at them all would take seconds.
 * The reader stops, and what it has not compared it does not believe.
 */
static void test_endless_types(void **state)
{
	enum { HEADS = 1 << 16, FIELDS = 256 };
	_cleanup_(go_program_freep) struct go_program *p = NULL;
	static uint8_t file[MADE_BYTES + HEADS * 64 + FIELDS * 24 + 80];
	static struct made_go m;
	size_t heads, fields, data;

	(void)state;
	made_go_build(&m, &(struct made_options){.format = MADE_1_26});
	memcpy(file, m.bytes, m.n);
	heads = (m.n + 63) / 64 * 64;
	fields = heads + HEADS * 64;
	for (size_t i = 0; i < HEADS; i++) {
		uint8_t *head = file + heads + i * 64;
		const uint64_t words[8] = {FIELDS, FIELDS, [7] = MADE_ADDRESS + fields};

		memcpy(head, words, sizeof(words));
		memcpy(head + 21, "\x8\x8\x19", 3);
		memcpy(head + 48, m.bytes + m.g + 48, 8); /* the package */
	}
	memcpy(file + fields, m.bytes + m.g_fields, 24 * 6);
	for (size_t i = 6; i < FIELDS; i++)
		memcpy(file + fields + i * 24, m.bytes + m.g_fields + 24 * 5, 16);
	data = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
	memcpy(file + data + offsetof(Elf64_Phdr, p_filesz), &(uint64_t){sizeof(file) - MADE_DATA},
	       8);

	p = read_bytes(file, sizeof(file), NULL);
	assert_int_equal(p->functions[GO_FUNCTION_ROUND_TRIP].site.class, GO_SITE_PUSH_BP);
	for (size_t i = 0; i < _GO_FIELD_MAX; i++)
		assert_unknown(p, i);
}

static void test_not_go(void **state)
{
	static struct made_go m;
	_cleanup_(closep) int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	_cleanup_(closep) int text = file_of("#!/bin/sh\n", 10), other = -1;
	struct go_program *p = NULL;

	(void)state;
	assert_int_equal(go_program_read(self, NULL, &p), GO_PROGRAM_NOT_GO);
	assert_int_equal(go_program_read(text, NULL, &p), IMAGE_NOT_ELF);
	assert_true(go_program_read(-1, NULL, &p) < 0);

	/* A magic number of no version that is known, and nothing else that says Go. */
	made_go_build(&m, &(struct made_options){.format = MADE_1_26});
	made_put(&m, m.table, 0xfffffff2, 4);
	other = file_of(m.bytes, m.n);
	assert_int_equal(go_program_read(other, NULL, &p), GO_PROGRAM_NOT_GO);
	assert_null(p);
}

static void test_identity(void **state)
{
	_cleanup_(go_program_freep) struct go_program *gnu = NULL, *none = NULL, *other = NULL;
	static struct made_go m;

	(void)state;
	made_go_build(&m, &(struct made_options){.format = MADE_1_26});
	memcpy(m.bytes + MADE_TEXT_END, "\4\0\0\0\2\0\0\0\3\0\0\0GNU\0\xab\xcd", 18);
	gnu = read_made(&m);
	assert_string_equal(gnu->build_id, "gnu:abcd");

	/* Notes that end beyond their segment are none; then the headers and the size tell. */
	made_put(&m, MADE_TEXT_END + 4, 60, 4);
	none = read_made(&m);
	assert_memory_equal(none->build_id, "hash:", 5);
	assert_int_equal(strlen(none->build_id), 21);
	m.n += 8;
	other = read_made(&m);
	assert_memory_equal(other->build_id, "hash:", 5);
	assert_string_not_equal(other->build_id, none->build_id);
}

/* Without build info, the one release that is named. */
static void test_version(void **state)
{
	_cleanup_(go_program_freep) struct go_program *one = NULL, *two = NULL;
	static struct made_go m;

	(void)state;
	made_go_build(&m, &(struct made_options){.format = MADE_1_26});
	memcpy(m.bytes + MADE_DATA + 0x300, "see go1.21, built by go1.26.5!", 30);
	one = read_made(&m);
	assert_string_equal(one->version, "go1.26.5");
	/* The table has what the program does not describe, and g is not as in that version. */
	assert_unknown(one, GO_FIELD_RESPONSE_REQ);

	memcpy(m.bytes + MADE_DATA + 0x340, "not go1.25.1", 12);
	two = read_made(&m);
	assert_string_equal(two->version, "");
}

/* --- a real program */

/* It prints what reflection says of types that the reader finds by other means. */
static const char source[] =
	"package main\n"
	"import (\"bufio\"; \"crypto/tls\"; \"fmt\"; \"net\"; \"net/http\"; \"net/url\"; \"os\"; "
	"\"reflect\")\n"
	"func p(v interface{}, names ...string) { t := reflect.TypeOf(v); for _, n := range names "
	"{\n"
	"f, ok := t.FieldByName(n); if !ok { panic(n) }; fmt.Println(f.Offset) } }\n"
	"func main() { if len(os.Args) > 1 { http.Get(os.Args[1]); http.ListenAndServe(os.Args[1], "
	"nil) }\n"
	"p(http.Request{}, \"ctx\", \"RequestURI\", \"URL\"); p(url.URL{}, \"Path\", "
	"\"RawQuery\")\n"
	"p(bufio.Writer{}, \"buf\", \"n\"); p(tls.Conn{}, \"conn\"); p(net.TCPConn{}, \"conn\") "
	"}\n";

static const enum go_field printed[] = {
	GO_FIELD_REQUEST_CTX, GO_FIELD_REQUEST_REQUEST_URI, GO_FIELD_REQUEST_URL,
	GO_FIELD_URL_PATH,    GO_FIELD_URL_RAW_QUERY,       GO_FIELD_WRITER_BUF,
	GO_FIELD_WRITER_N,    GO_FIELD_TLS_CONN_CONN,       GO_FIELD_TCP_CONN_CONN,
};

static struct go_program *read_path(const char *path, const struct go_program_options *options)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct go_program *program = NULL;

	assert_true(fd >= 0);
	assert_int_equal(go_program_read(fd, options, &program), 0);
	return program;
}

static void check_real_code(const char *path, const struct go_program *p)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t byte;

	for (size_t i = 0; i < GO_FUNCTION_FASTHTTP_SERVE_CONN; i++) {
		const struct go_function_facts *f = &p->functions[i];

		assert_true(f->is_found);
		assert_int_not_equal(f->site.class, GO_SITE_NONE);
		assert_int_not_equal(f->n_returns, 0);
		for (unsigned int k = 0; k < f->n_returns && !p->is_arm64; k++) {
			assert_int_equal(pread(fd, &byte, 1, (off_t)f->returns[k]), 1);
			assert_int_equal(byte, 0xc3);
		}
		if (f->site.class == GO_SITE_PUSH_BP) {
			assert_int_equal(pread(fd, &byte, 1, (off_t)f->site.offset), 1);
			assert_int_equal(byte, 0x55);
		}
	}
	assert_int_equal(p->newproc_runqput.class, GO_SITE_CALL);
	assert_int_equal(p->newproc_begun.class, GO_SITE_AFTER_CALL);
	assert_int_equal(p->request_read.class, GO_SITE_AFTER_CALL);
}

static void check_real(const char *path, const char *directory)
{
	_cleanup_(go_program_freep) struct go_program *p = NULL, *blind = NULL;
	char command[256];
	FILE *output;

	p = read_path(path, &(struct go_program_options){.without_table = true});
	assert_null(p->reason);
	assert_memory_equal(p->build_id, "go:", 3);
	check_real_code(path, p);
	snprintf(command, sizeof(command), "%s/program", directory);
	output = popen(command, "r");
	assert_non_null(output);
	for (size_t i = 0; i < ARRAY_SIZE(printed); i++) {
		unsigned int bytes;

		assert_int_equal(fscanf(output, "%u", &bytes), 1);
		assert_offset(p, printed[i], bytes);
	}
	assert_int_equal(pclose(output), 0);
	/* The runtime's, which reflection cannot reach: present, and where no version differs. */
	assert_offset(p, GO_FIELD_G_M, 48);
	assert_offset(p, GO_FIELD_M_G0, 0);
	assert_int_equal(p->offsets[GO_FIELD_G_GOID].source, GO_SOURCE_TYPES);
	assert_offset(p, GO_FIELD_PERSIST_CONN_CONN, 80);

	blind = read_path(
		path, &(struct go_program_options){.without_types = true, .without_table = true});
	for (size_t i = 0; i < _GO_FIELD_MAX; i++)
		assert_unknown(blind, i);
}

static void test_real_go(void **state)
{
	char directory[] = "/tmp/tsunagi-test-XXXXXX", command[256], path[64];
	FILE *file;

	(void)state;
	if (system("command -v go >/dev/null 2>&1") != 0)
		skip();
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/main.go", directory);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(source, file) >= 0);
	assert_int_equal(fclose(file), 0);
	snprintf(command, sizeof(command),
		 "cd %s && GO111MODULE=off CGO_ENABLED=0 go build -ldflags='-s -w' -o program "
		 "main.go 2>&1",
		 directory);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof(path), "%s/program", directory);
	check_real(path, directory);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_damaged_function),
		cmocka_unit_test(test_arguments_on_stack),
		cmocka_unit_test(test_unusual_start),
		cmocka_unit_test(test_two_of_a_name),
		cmocka_unit_test(test_call),
		cmocka_unit_test(test_inlined),
		cmocka_unit_test(test_damaged_types),
		cmocka_unit_test(test_other_kind),
		cmocka_unit_test(test_contradicting_types),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_endless_types),
		cmocka_unit_test(test_not_go),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_real_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
