/*
 * A piece of memory with what jvm_flags.c reads in a libjvm.so, and nothing else of it: for its unit test and
 * its fuzzer.
 */
#pragma once

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define IMAGE_BASE  0x7f0000000000ULL
#define IMAGE_FLAGS 9
#define IMAGE_TEXTS 6 /* from here on their values are pointers to text */

/* In HotSpot's order of fields. */
struct image_struct {
	uint64_t type, field, type_text;
	int32_t is_static, padding;
	uint64_t offset, address;
};

struct image_type {
	uint64_t name, super;
	int32_t is_oop, is_integer, is_unsigned, padding;
	uint64_t size;
};

struct image_flag {
	uint64_t address, name;
	uint32_t bits, type;
};

struct image {
	Elf64_Ehdr head;
	Elf64_Phdr segments[2];
	Elf64_Dyn dynamic[5];
	Elf64_Sym symbols[12];
	char names[512];
	uint64_t variables[10];
	struct image_struct structs[6];
	struct image_type types[3];
	uint64_t flags_at, n_flags;
	struct image_flag flags[IMAGE_FLAGS];
	uint64_t pointers[IMAGE_FLAGS];
	uint8_t values[16];
	char texts[768];
};

struct image_memory {
	const uint8_t *bytes;
	size_t size;
	size_t read; /* bytes so far */
};

static inline int image_read(void *userdata, uint64_t address, void *ret, size_t size)
{
	struct image_memory *m = userdata;

	m->read += size;
	if (address < IMAGE_BASE || address - IMAGE_BASE > m->size ||
	    size > m->size - (address - IMAGE_BASE))
		return -EFAULT;
	memcpy(ret, m->bytes + (address - IMAGE_BASE), size);
	return 0;
}

#define IMAGE_AT(member) (IMAGE_BASE + offsetof(struct image, member))

static inline uint64_t image_text(struct image *i, const char *text)
{
	size_t at = 1;

	while (i->texts[at])
		at += strlen(i->texts + at) + 1;
	strcpy(i->texts + at, text);
	return IMAGE_AT(texts) + at;
}

static inline void image_symbol(struct image *i, size_t n, const char *name, uint64_t value)
{
	size_t at = 1;

	while (i->names[at])
		at += strlen(i->names + at) + 1;
	strcpy(i->names + at, name);
	i->variables[n] = value;
	i->symbols[n + 2] =
		(Elf64_Sym){.st_name = (uint32_t)at,
			    .st_shndx = 1,
			    .st_value = offsetof(struct image, variables) + n * sizeof(uint64_t)};
}

/* Of JDK 10 and later; all flags are false or NULL. Their names: those that are wanted, and another one. */
static inline void image_make(struct image *i)
{
	static const char *const names[IMAGE_FLAGS] = {
		"UseSerialGC",           "DisableAttachMechanism",
		"ReduceSignalUsage",     "EnableDynamicAgentLoading",
		"RecordDynamicDumpInfo", "AutoCreateSharedArchive",
		"ArchiveClassesAtExit",  "AOTMode",
		"AOTCacheOutput"};
	uint64_t type;

	*i = (struct image){
		.head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
			 .e_phoff = offsetof(struct image, segments),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 2},
		.segments = {{.p_type = PT_LOAD},
			     {.p_type = PT_DYNAMIC,
			      .p_vaddr = offsetof(struct image, dynamic),
			      .p_memsz = sizeof(i->dynamic)}},
		/* One as the file has it, one as glibc leaves it. */
		.dynamic = {{.d_tag = DT_SYMTAB, .d_un.d_ptr = offsetof(struct image, symbols)},
			    {.d_tag = DT_STRTAB, .d_un.d_ptr = IMAGE_AT(names)},
			    {.d_tag = DT_STRSZ, .d_un.d_val = sizeof(i->names)}},
		.flags_at = IMAGE_AT(flags),
		.n_flags = IMAGE_FLAGS,
	};
	image_symbol(i, 0, "gHotSpotVMStructs", IMAGE_AT(structs));
	image_symbol(i, 1, "gHotSpotVMStructEntryArrayStride", sizeof(struct image_struct));
	image_symbol(i, 2, "gHotSpotVMStructEntryTypeNameOffset", 0);
	image_symbol(i, 3, "gHotSpotVMStructEntryFieldNameOffset",
		     offsetof(struct image_struct, field));
	image_symbol(i, 4, "gHotSpotVMStructEntryOffsetOffset",
		     offsetof(struct image_struct, offset));
	image_symbol(i, 5, "gHotSpotVMStructEntryAddressOffset",
		     offsetof(struct image_struct, address));
	image_symbol(i, 6, "gHotSpotVMTypes", IMAGE_AT(types));
	image_symbol(i, 7, "gHotSpotVMTypeEntryArrayStride", sizeof(struct image_type));
	image_symbol(i, 8, "gHotSpotVMTypeEntryTypeNameOffset", 0);
	image_symbol(i, 9, "gHotSpotVMTypeEntrySizeOffset", offsetof(struct image_type, size));

	type = image_text(i, "JVMFlag");
	i->structs[0] = (struct image_struct){.type = image_text(i, "Thread"),
					      .field = image_text(i, "_name")};
	i->structs[1] = (struct image_struct){
		.type = type, .field = image_text(i, "flags"), .address = IMAGE_AT(flags_at)};
	i->structs[2] = (struct image_struct){
		.type = type, .field = image_text(i, "numFlags"), .address = IMAGE_AT(n_flags)};
	i->structs[3] = (struct image_struct){.type = type,
					      .field = image_text(i, "_name"),
					      .offset = offsetof(struct image_flag, name)};
	i->structs[4] = (struct image_struct){.type = type,
					      .field = image_text(i, "_addr"),
					      .offset = offsetof(struct image_flag, address)};
	i->types[0] = (struct image_type){.name = image_text(i, "Thread"), .size = 4096};
	i->types[1] = (struct image_type){.name = type, .size = sizeof(struct image_flag)};
	for (size_t n = 0; n < IMAGE_FLAGS; n++)
		i->flags[n] = (struct image_flag){
			.name = image_text(i, names[n]),
			.address = n < IMAGE_TEXTS ? IMAGE_AT(values) + n : IMAGE_AT(pointers[n])};
}
