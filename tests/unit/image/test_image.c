/*
 * image_probe() on made-up images, on hostile files, and on what the Go compiler of this machine
 * makes.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/util.h"
#include "image/image.h"

#define ADDRESS     0x400000
#define DATA_OFFSET 0x200

/* A file with one segment, from DATA_OFFSET to its end, and perhaps a section table behind it. */
struct made {
	uint8_t bytes[8192];
	size_t n;
};

static Elf64_Ehdr *header_of(struct made *m)
{
	return (Elf64_Ehdr *)m->bytes;
}

static void make(struct made *m, bool is_writable, const void *data, size_t n)
{
	Elf64_Phdr *segment = (Elf64_Phdr *)(m->bytes + sizeof(Elf64_Ehdr));

	memset(m, 0, sizeof(*m));
	*header_of(m) = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_EXEC,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	*segment = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = is_writable ? PF_R | PF_W : PF_R,
		.p_offset = DATA_OFFSET,
		.p_vaddr = ADDRESS,
		.p_filesz = n,
	};
	memcpy(m->bytes + DATA_OFFSET, data, n);
	m->n = DATA_OFFSET + n;
}

/* Appends a section table: null, names, and one section with a name over the data. */
static void add_section(struct made *m, const char *name, size_t size)
{
	size_t names = (m->n + 7) & ~7UL, table = names + 64;
	Elf64_Shdr *sections = (Elf64_Shdr *)(m->bytes + table);

	strcpy((char *)m->bytes + names + 1, name);
	sections[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = 64};
	sections[2] = (Elf64_Shdr){
		.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = DATA_OFFSET, .sh_size = size};
	header_of(m)->e_shoff = table;
	header_of(m)->e_shentsize = sizeof(Elf64_Shdr);
	header_of(m)->e_shnum = 3;
	header_of(m)->e_shstrndx = 1;
	m->n = table + 3 * sizeof(Elf64_Shdr);
}

static int probe_bytes(const void *bytes, size_t n, struct image_facts *ret)
{
	_cleanup_(closep) int fd = memfd_create("image", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	return image_probe(fd, ret);
}

static int probe(const struct made *m, struct image_facts *ret)
{
	return probe_bytes(m->bytes, m->n, ret);
}

#define MARK "0123456789abcdef"

/* A blob with inline texts; returns its size. */
static size_t inline_build_info(uint8_t *to, const char *version, const char *module)
{
	size_t n = 32;

	memset(to, 0, 32);
	memcpy(to, "\xff Go buildinf:", 14);
	to[14] = 8;
	to[15] = 2;
	to[n++] = (uint8_t)strlen(version);
	memcpy(to + n, version, strlen(version));
	n += strlen(version);
	to[n++] = (uint8_t)(0x80 | (strlen(module) & 0x7f));
	to[n++] = (uint8_t)(strlen(module) >> 7);
	memcpy(to + n, module, strlen(module));
	return n + strlen(module);
}

static void test_inline_build_info(void **state)
{
	uint8_t blob[1024];
	struct image_facts facts;
	struct made m;
	size_t n;

	(void)state;
	n = inline_build_info(
		blob, "go1.26.8 X:nodwarf5",
		MARK
		"path\texample.com/shop/cmd/front\nmod\texample.com/shop/v2\t(devel)\t\n" MARK);
	make(&m, true, blob, n);
	assert_int_equal(probe(&m, &facts), 0);
	assert_true(facts.is_64bit);
	assert_false(facts.is_dynamic);
	assert_true(facts.is_go);
	assert_string_equal(facts.go_version, "go1.26.8");
	assert_string_equal(facts.go_module, "example.com/shop/v2");

	/* Where the segment cannot be written to, only the section's name leads there. */
	make(&m, false, blob, n);
	assert_int_equal(probe(&m, &facts), 0);
	assert_false(facts.is_go);
	add_section(&m, ".go.buildinfo", n);
	assert_int_equal(probe(&m, &facts), 0);
	assert_true(facts.is_go);
	assert_string_equal(facts.go_version, "go1.26.8");
}

static void test_module_falls_back_to_package(void **state)
{
	uint8_t blob[1024];
	struct image_facts facts;
	struct made m;
	size_t n;

	(void)state;
	n = inline_build_info(blob, "devel go1.27-abc Mon",
			      MARK "path\tcommand-line-arguments\n" MARK);
	make(&m, true, blob, n);
	assert_int_equal(probe(&m, &facts), 0);
	assert_string_equal(facts.go_version, "go1.27-abc");
	assert_string_equal(facts.go_module, "command-line-arguments");

	n = inline_build_info(blob, "go1.21", MARK "path\tbad \x1b[31m name\n" MARK);
	make(&m, true, blob, n);
	assert_int_equal(probe(&m, &facts), 0);
	assert_true(facts.is_go);
	assert_string_equal(facts.go_module, "");
}

static void put_le64(uint8_t *to, uint64_t v)
{
	memcpy(to, &v, sizeof(v));
}

static void test_pointer_build_info(void **state)
{
	static const char module[] = MARK "path\tshop.org/x\nmod\tshop.org/orders\tv1.0.0\t\n" MARK;
	uint8_t data[512] = {0};
	struct image_facts facts;
	struct made m;

	(void)state;
	memcpy(data, "\xff Go buildinf:", 14);
	data[14] = 8;
	put_le64(data + 16, ADDRESS + 64);
	put_le64(data + 24, ADDRESS + 80);
	put_le64(data + 64, ADDRESS + 128);
	put_le64(data + 72, strlen("go1.17.5"));
	put_le64(data + 80, ADDRESS + 160);
	put_le64(data + 88, sizeof(module) - 1);
	memcpy(data + 128, "go1.17.5", 8);
	memcpy(data + 160, module, sizeof(module) - 1);
	make(&m, true, data, sizeof(data));
	assert_int_equal(probe(&m, &facts), 0);
	assert_string_equal(facts.go_version, "go1.17.5");
	assert_string_equal(facts.go_module, "shop.org/orders");

	/* Pointers and lengths that lead nowhere: Go all the same, of an unknown version. */
	put_le64(data + 16, UINT64_MAX - 4);
	make(&m, true, data, sizeof(data));
	assert_int_equal(probe(&m, &facts), 0);
	assert_true(facts.is_go);
	assert_string_equal(facts.go_version, "");
	put_le64(data + 16, ADDRESS + 64);
	put_le64(data + 64, ADDRESS + sizeof(data) - 4);
	make(&m, true, data, sizeof(data));
	assert_int_equal(probe(&m, &facts), 0);
	assert_true(facts.is_go);
	assert_string_equal(facts.go_version, "");
}

static void function_table(uint8_t *to, uint8_t magic)
{
	static const uint64_t words[] = {4393, 300, 0x401000, 72, 1000, 2000, 3000, 4000};

	memset(to, 0, 80);
	memcpy(to, "\xf1\xff\xff\xff\0\0\1\x08", 8);
	to[0] = magic;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		put_le64(to + 8 + 8 * i, words[i]);
	/* Before 1.18 there is no start of the text. */
	if (magic == 0xfa)
		memmove(to + 24, to + 32, 40);
}

static void test_function_table(void **state)
{
	static const uint8_t magics[] = {0xfb, 0xfa, 0xf0, 0xf1};
	struct image_facts facts;
	uint8_t data[256] = {0};
	struct made m;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(magics); i++) {
		function_table(data + 64, magics[i]);
		make(&m, false, data, sizeof(data));
		assert_int_equal(probe(&m, &facts), 0);
		assert_true(facts.is_go);
		assert_string_equal(facts.go_version, "");
	}

	/* The magic number alone, as it stands in every tool that knows about Go, is no table. */
	memset(data + 72, 0, sizeof(data) - 72);
	make(&m, false, data, sizeof(data));
	assert_int_equal(probe(&m, &facts), 0);
	assert_false(facts.is_go);

	/* By name it is found where nothing would be searched: outside all segments. */
	function_table(data, 0xf1);
	make(&m, false, data, sizeof(data));
	add_section(&m, ".data.rel.ro.gopclntab", sizeof(data));
	((Elf64_Phdr *)(m.bytes + sizeof(Elf64_Ehdr)))->p_type = PT_NOTE;
	assert_int_equal(probe(&m, &facts), 0);
	assert_true(facts.is_go);
}

static void test_table_across_chunks(void **state)
{
	static uint8_t file[300000];
	struct image_facts facts;
	struct made m;

	(void)state;
	make(&m, false, "", 1);
	for (size_t at = 65536 - 128; at <= 65536 + 64; at += 8) {
		memset(file, 0, sizeof(file));
		memcpy(file, m.bytes, DATA_OFFSET);
		((Elf64_Phdr *)(file + sizeof(Elf64_Ehdr)))->p_filesz = sizeof(file) - DATA_OFFSET;
		function_table(file + DATA_OFFSET + at, 0xf1);
		assert_int_equal(probe_bytes(file, sizeof(file), &facts), 0);
		assert_true(facts.is_go);
	}
}

static void test_not_elf(void **state)
{
	char path[] = "/tmp/tsunagi-test-XXXXXX", fifo[64];
	struct image_facts facts;
	int fd;

	(void)state;
	assert_int_equal(probe_bytes("", 0, &facts), IMAGE_NOT_ELF);
	assert_int_equal(probe_bytes("\x7f"
				     "ELF",
				     4, &facts),
			 IMAGE_NOT_ELF);
	assert_int_equal(probe_bytes("#!/bin/sh\nexec sleep 1\n", 23, &facts), IMAGE_NOT_ELF);

	/* A FIFO without a writer must not block, neither at the open nor afterwards. */
	assert_non_null(mkdtemp(path));
	snprintf(fifo, sizeof(fifo), "%s/fifo", path);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(image_probe(fd, &facts), IMAGE_NOT_REGULAR);
	close(fd);
	unlink(fifo);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(image_probe(fd, &facts), IMAGE_NOT_REGULAR);
	close(fd);
	rmdir(path);
	assert_int_equal(image_probe(-1, &facts), -EBADF);
}

static void test_32_bit(void **state)
{
	struct image_facts facts = {.is_64bit = true};
	uint8_t blob[512];
	struct made m;

	(void)state;
	make(&m, true, blob, inline_build_info(blob, "go1.20", MARK "path\tx\n" MARK));
	header_of(&m)->e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(probe(&m, &facts), 0);
	assert_false(facts.is_64bit);
	assert_false(facts.is_go);

	header_of(&m)->e_ident[EI_CLASS] = ELFCLASS64;
	header_of(&m)->e_ident[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(probe(&m, &facts), IMAGE_NOT_ELF);
}

/*
 * Each prefix of an image, and each lie in its header, has an answer; the sanitizers see to the
 * rest.
 */
static void test_hostile(void **state)
{
	static const size_t fields[] = {
		offsetof(Elf64_Ehdr, e_phoff),
		offsetof(Elf64_Ehdr, e_shoff),
		offsetof(Elf64_Ehdr, e_phentsize),
		offsetof(Elf64_Ehdr, e_phnum),
		offsetof(Elf64_Ehdr, e_shentsize),
		offsetof(Elf64_Ehdr, e_shnum),
		offsetof(Elf64_Ehdr, e_shstrndx),
		sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_offset),
		sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_filesz),
		sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_vaddr),
	};
	struct image_facts facts;
	struct made whole, m;
	uint8_t blob[512];
	size_t n;

	(void)state;
	n = inline_build_info(blob, "go1.20", MARK "path\tx\nmod\ty\t\t\n" MARK);
	make(&whole, true, blob, n);
	add_section(&whole, ".go.buildinfo", n);
	for (size_t size = 0; size <= whole.n; size++)
		assert_in_range(probe_bytes(whole.bytes, size, &facts), 0, IMAGE_NOT_ELF);

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		for (unsigned int k = 0; k < 4; k++) {
			m = whole;
			memset(m.bytes + fields[i], k == 0 ? 0 : 0xff, 1 + k % 3);
			assert_int_equal(probe(&m, &facts), 0);
		}
	}

	/* A section table beyond the end is no table; the blob is still found in its segment. */
	m = whole;
	header_of(&m)->e_shoff = UINT64_MAX - 8;
	assert_int_equal(probe(&m, &facts), 0);
	assert_true(facts.is_go);
}

static void test_sparse_file_is_bounded(void **state)
{
	_cleanup_(closep) int fd = memfd_create("image", MFD_CLOEXEC);
	struct image_facts facts;
	uint64_t start_ns;
	struct made m;

	(void)state;
	make(&m, true, "", 1);
	((Elf64_Phdr *)(m.bytes + sizeof(Elf64_Ehdr)))->p_filesz = UINT64_MAX;
	assert_int_equal(write(fd, m.bytes, m.n), m.n);
	if (ftruncate(fd, 4LL << 30) < 0)
		skip();
	start_ns = now_ns(CLOCK_MONOTONIC);
	assert_int_equal(image_probe(fd, &facts), 0);
	assert_false(facts.is_go);
	assert_true(now_ns(CLOCK_MONOTONIC) - start_ns < 5 * NSEC_PER_SEC);
}

static int probe_path(const char *path, struct image_facts *ret)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd < 0 ? -errno : image_probe(fd, ret);
}

/* What the compiler here makes of a small module: as it is, stripped, and position independent. */
static void test_real_go(void **state)
{
	static const char *const flags[] = {"", "-ldflags='-s -w'", "-buildmode=pie"};
	char dir[] = "/tmp/tsunagi-test-XXXXXX", command[1024];
	struct image_facts facts;

	(void)state;
	if (system("command -v go >/dev/null 2>&1") != 0)
		skip();
	assert_non_null(mkdtemp(dir));
	snprintf(command, sizeof(command),
		 "cd %s && printf 'module example.com/shop/checkout/v3\\n' >go.mod && "
		 "printf 'package main\\nfunc main() { println(1) }\\n' >main.go",
		 dir);
	assert_int_equal(system(command), 0);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		char path[64];

		snprintf(command, sizeof(command),
			 "cd %s && CGO_ENABLED=0 go build %s -o program . 2>&1", dir, flags[i]);
		assert_int_equal(system(command), 0);
		snprintf(path, sizeof(path), "%s/program", dir);
		assert_int_equal(probe_path(path, &facts), 0);
		assert_true(facts.is_go);
		assert_memory_equal(facts.go_version, "go1.", 4);
		assert_string_equal(facts.go_module, "example.com/shop/checkout/v3");
	}
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static void test_real_c(void **state)
{
	struct image_facts facts;

	(void)state;
	assert_int_equal(probe_path("/bin/sh", &facts), 0);
	assert_true(facts.is_64bit);
	assert_true(facts.is_dynamic);
	assert_false(facts.is_go);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inline_build_info),
		cmocka_unit_test(test_module_falls_back_to_package),
		cmocka_unit_test(test_pointer_build_info),
		cmocka_unit_test(test_function_table),
		cmocka_unit_test(test_table_across_chunks),
		cmocka_unit_test(test_not_elf),
		cmocka_unit_test(test_32_bit),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_sparse_file_is_bounded),
		cmocka_unit_test(test_real_go),
		cmocka_unit_test(test_real_c),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
