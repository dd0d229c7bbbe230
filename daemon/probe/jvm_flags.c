/* A JVM's flags; see jvm_flags.h. */
#include "probe/jvm_flags.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define SEGMENTS_MAX 64
#define DYNAMIC_MAX  128          /* entries; libjvm.so has some 35 */
#define NAMES_MAX    (256U << 10) /* bytes of its symbols' names; 11 to 25 KiB */
#define SYMBOLS_MAX  (256U << 10) /* bytes of its symbols; 11 to 20 KiB */
#define ENTRIES_MAX  16384        /* of each of the JVM's own tables; 1,000 to 3,500 */
#define ENTRY_MAX    256          /* bytes of one of these, and of a flag: 24 to 48 */
#define FLAGS_MAX    8192         /* 1,000 to 1,600 */

/* The symbols that are needed. Each is a variable of 64 bits. */
enum symbol {
	STRUCTS,
	STRUCT_STRIDE,
	STRUCT_TYPE,
	STRUCT_FIELD,
	STRUCT_OFFSET,
	STRUCT_ADDRESS,
	TYPES,
	TYPE_STRIDE,
	TYPE_NAME,
	TYPE_SIZE,
	_SYMBOL_MAX,
};

static const char *const symbol_names[] = {
	[STRUCTS] = "gHotSpotVMStructs",
	[STRUCT_STRIDE] = "gHotSpotVMStructEntryArrayStride",
	[STRUCT_TYPE] = "gHotSpotVMStructEntryTypeNameOffset",
	[STRUCT_FIELD] = "gHotSpotVMStructEntryFieldNameOffset",
	[STRUCT_OFFSET] = "gHotSpotVMStructEntryOffsetOffset",
	[STRUCT_ADDRESS] = "gHotSpotVMStructEntryAddressOffset",
	[TYPES] = "gHotSpotVMTypes",
	[TYPE_STRIDE] = "gHotSpotVMTypeEntryArrayStride",
	[TYPE_NAME] = "gHotSpotVMTypeEntryTypeNameOffset",
	[TYPE_SIZE] = "gHotSpotVMTypeEntrySizeOffset",
};
static_assert(ARRAY_SIZE(symbol_names) == _SYMBOL_MAX, "each symbol has a name");

struct reading {
	const struct jvm_memory *memory;
	uint64_t base;
	uint64_t symbols[_SYMBOL_MAX]; /* what the variables hold */
	/* Of class JVMFlag (Flag before JDK 10): the two static fields' places, and where the others lie. */
	uint64_t flags_at, number_at, size, name_offset, address_offset;
};

static bool read_bytes(const struct reading *r, uint64_t address, void *ret, size_t size)
{
	return r->memory->read(r->memory->userdata, address, ret, size) == 0;
}

/* 'p': 'size' bytes. */
static bool word_in(const uint8_t *p, size_t size, uint64_t offset, uint64_t *ret)
{
	if (offset > size || size - offset < sizeof(*ret))
		return false;
	memcpy(ret, p + offset, sizeof(*ret));
	return true;
}

/* Whether that text is at an address, with its NUL. */
static bool text_is(const struct reading *r, uint64_t address, const char *text)
{
	size_t size = strlen(text) + 1;
	char found[64];

	return address && size <= sizeof(found) && read_bytes(r, address, found, size) &&
	       memcmp(found, text, size) == 0;
}

/* --- exported symbols (System V gABI) */

/* The loader may have made addresses of the numbers in the file: glibc does, musl does not. */
static uint64_t absolute(const struct reading *r, uint64_t address)
{
	return address < r->base ? r->base + address : address;
}

struct dynamic {
	uint64_t symbols, names, names_size;
};

static bool dynamic_read(const struct reading *r, uint64_t address, uint64_t size,
			 struct dynamic *ret)
{
	size_t n = size / sizeof(Elf64_Dyn);
	Elf64_Dyn entries[DYNAMIC_MAX];

	*ret = (struct dynamic){0};
	if (n > DYNAMIC_MAX || !read_bytes(r, address, entries, n * sizeof(*entries)))
		return false;
	for (size_t i = 0; i < n && entries[i].d_tag != DT_NULL; i++) {
		if (entries[i].d_tag == DT_SYMTAB)
			ret->symbols = absolute(r, entries[i].d_un.d_ptr);
		else if (entries[i].d_tag == DT_STRTAB)
			ret->names = absolute(r, entries[i].d_un.d_ptr);
		else if (entries[i].d_tag == DT_STRSZ)
			ret->names_size = entries[i].d_un.d_val;
	}
	/* How many symbols there are is not written; linkers put their names behind them. */
	return ret->symbols && ret->names > ret->symbols &&
	       ret->names - ret->symbols <= SYMBOLS_MAX && ret->names_size > 0 &&
	       ret->names_size <= NAMES_MAX;
}

static bool dynamic_find(const struct reading *r, struct dynamic *ret)
{
	Elf64_Phdr segments[SEGMENTS_MAX];
	Elf64_Ehdr head;

	if (!read_bytes(r, r->base, &head, sizeof(head)) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_phentsize != sizeof(*segments) || head.e_phnum > SEGMENTS_MAX ||
	    !read_bytes(r, r->base + head.e_phoff, segments, head.e_phnum * sizeof(*segments)))
		return false;
	for (size_t i = 0; i < head.e_phnum; i++)
		if (segments[i].p_type == PT_DYNAMIC)
			return dynamic_read(r, r->base + segments[i].p_vaddr, segments[i].p_memsz,
					    ret);
	return false;
}

static bool symbol_read(struct reading *r, const Elf64_Sym *symbol, const char *name)
{
	for (size_t i = 0; i < _SYMBOL_MAX; i++)
		if (!strcmp(name, symbol_names[i]))
			return read_bytes(r, r->base + symbol->st_value, &r->symbols[i],
					  sizeof(r->symbols[i]));
	return true;
}

/* What lies between the symbols and their names is looked at as if it were symbols: it has no such names. */
static bool symbols_read(struct reading *r)
{
	_cleanup_(freep) char *names = NULL;
	_cleanup_(freep) Elf64_Sym *symbols = NULL;
	struct dynamic dynamic;
	size_t n;

	if (!dynamic_find(r, &dynamic))
		return false;
	n = (dynamic.names - dynamic.symbols) / sizeof(*symbols);
	symbols = calloc(n + 1, sizeof(*symbols));
	names = calloc(1, dynamic.names_size + 1);
	if (!symbols || !names || !read_bytes(r, dynamic.symbols, symbols, n * sizeof(*symbols)) ||
	    !read_bytes(r, dynamic.names, names, dynamic.names_size))
		return false;
	for (size_t i = 0; i < n; i++)
		if (symbols[i].st_shndx != SHN_UNDEF && symbols[i].st_name < dynamic.names_size &&
		    !symbol_read(r, &symbols[i], names + symbols[i].st_name))
			return false;
	for (size_t i = 0; i < _SYMBOL_MAX; i++)
		if (!r->symbols[i] && i != STRUCT_TYPE &&
		    i != TYPE_NAME) /* which are at offset 0 */
			return false;
	return true;
}

/* --- the JVM's tables of its own types */

static bool is_flag_type(const struct reading *r, uint64_t name)
{
	return text_is(r, name, "JVMFlag") || text_is(r, name, "Flag");
}

/* An entry whose type is that of flags. */
static bool field_read(struct reading *r, const uint8_t *entry, size_t size)
{
	uint64_t field, offset, address;

	if (!word_in(entry, size, r->symbols[STRUCT_FIELD], &field) ||
	    !word_in(entry, size, r->symbols[STRUCT_OFFSET], &offset) ||
	    !word_in(entry, size, r->symbols[STRUCT_ADDRESS], &address))
		return false;
	if (text_is(r, field, "flags"))
		r->flags_at = address;
	else if (text_is(r, field, "numFlags"))
		r->number_at = address;
	else if (text_is(r, field, "_name"))
		r->name_offset = offset;
	else if (text_is(r, field, "_addr"))
		r->address_offset = offset;
	return true;
}

static bool type_read(struct reading *r, const uint8_t *entry, size_t size)
{
	return word_in(entry, size, r->symbols[TYPE_SIZE], &r->size);
}

struct table {
	uint64_t at, stride, name; /* 'name': where the pointer to a type's is in an entry */
	bool (*take)(struct reading *r, const uint8_t *entry, size_t size);
};

/* Both tables end with an entry that has no name. */
static bool table_read(struct reading *r, const struct table *t)
{
	uint8_t entry[ENTRY_MAX];
	uint64_t name;

	if (t->stride > sizeof(entry))
		return false;
	for (uint64_t i = 0; i < ENTRIES_MAX; i++) {
		if (!read_bytes(r, t->at + i * t->stride, entry, t->stride) ||
		    !word_in(entry, t->stride, t->name, &name))
			return false;
		if (!name)
			return true;
		if (is_flag_type(r, name) && !t->take(r, entry, t->stride))
			return false;
	}
	return false;
}

static bool types_read(struct reading *r)
{
	const struct table structs = {r->symbols[STRUCTS], r->symbols[STRUCT_STRIDE],
				      r->symbols[STRUCT_TYPE], field_read};
	const struct table types = {r->symbols[TYPES], r->symbols[TYPE_STRIDE],
				    r->symbols[TYPE_NAME], type_read};

	r->name_offset = r->address_offset = UINT64_MAX;
	return table_read(r, &structs) && table_read(r, &types) && r->flags_at && r->number_at &&
	       r->size > 0 && r->size <= ENTRY_MAX;
}

/* --- its flags */

/*
 * DETAILS is there since JDK 14 (JDK-8227717), as is that a JVM opens its socket anew where the file is
 * gone (JDK-8225690); builds of 8 and 11 that do so too cannot be told from those that do not, and
 * some of them may come to a stop over it (JDK-8235211).
 * Those from ARCHIVES on have a JVM write its classes to a file, as a rule at its end: JDK 13 and later
 * (-XX:ArchiveClassesAtExit, its "dynamic archive"), 24 and later (AOTMode, JEP 483), 25 (AOTCacheOutput).
 */
enum flag {
	ATTACH,
	SIGNALS,
	LOADING,
	DETAILS,
	ARCHIVES,
	AT_EXIT = ARCHIVES,
	ON_DEMAND,
	AUTOMATIC,
	AOT_MODE,
	AOT_OUTPUT,
	_FLAG_MAX,
};

static const struct {
	const char *name;
	bool is_text; /* a pointer, NULL as a rule; else one byte, false or true */
} wanted[] = {
	[ATTACH] = {"DisableAttachMechanism", false},
	[SIGNALS] = {"ReduceSignalUsage", false},
	[LOADING] = {"EnableDynamicAgentLoading", false},
	[DETAILS] = {"ShowCodeDetailsInExceptionMessages", false},
	[AT_EXIT] = {"ArchiveClassesAtExit", true},
	[ON_DEMAND] = {"RecordDynamicDumpInfo", false},
	[AUTOMATIC] = {"AutoCreateSharedArchive", false},
	[AOT_MODE] = {"AOTMode", true},
	[AOT_OUTPUT] = {"AOTCacheOutput", true},
};
static_assert(ARRAY_SIZE(wanted) == _FLAG_MAX, "each flag has a name");

#define PREFIX  8 /* bytes: none of these names is shorter, with its NUL */
#define UNKNOWN UINT64_MAX

static bool value_read(const struct reading *r, enum flag flag, uint64_t address, uint64_t *ret)
{
	uint8_t truth;

	if (wanted[flag].is_text)
		return read_bytes(r, address, ret, sizeof(*ret)) && *ret != UNKNOWN;
	if (!read_bytes(r, address, &truth, sizeof(truth)) || truth > 1)
		return false;
	*ret = truth;
	return true;
}

/* Twice, or neither false nor true: then it is something else. */
static bool flag_read(const struct reading *r, const uint8_t *flag, uint64_t values[_FLAG_MAX])
{
	uint64_t name, address;
	char prefix[PREFIX];

	if (!word_in(flag, r->size, r->name_offset, &name) ||
	    !word_in(flag, r->size, r->address_offset, &address))
		return false;
	if (!name || !read_bytes(r, name, prefix, sizeof(prefix)))
		return true;
	for (enum flag i = 0; i < _FLAG_MAX; i++) {
		if (memcmp(prefix, wanted[i].name, sizeof(prefix)) != 0 ||
		    !text_is(r, name, wanted[i].name))
			continue;
		return values[i] == UNKNOWN && value_read(r, i, address, &values[i]);
	}
	return true;
}

static bool flags_read(const struct reading *r, uint64_t values[_FLAG_MAX])
{
	_cleanup_(freep) uint8_t *flags = NULL;
	uint64_t at, n;

	if (!read_bytes(r, r->flags_at, &at, sizeof(at)) ||
	    !read_bytes(r, r->number_at, &n, sizeof(n)) || !n || n > FLAGS_MAX)
		return false;
	flags = malloc(n * r->size);
	if (!flags || !read_bytes(r, at, flags, n * r->size))
		return false;
	for (size_t i = 0; i < _FLAG_MAX; i++)
		values[i] = UNKNOWN;
	for (uint64_t i = 0; i < n; i++)
		if (!flag_read(r, flags + i * r->size, values))
			return false;
	return values[ATTACH] != UNKNOWN && values[SIGNALS] != UNKNOWN;
}

/* Of AOTMode's values two write; whatever else there may be some day is not known to. */
static bool is_writing(const struct reading *r, enum flag flag, uint64_t value)
{
	if (value == UNKNOWN || !value)
		return false;
	return flag != AOT_MODE || text_is(r, value, "record") || text_is(r, value, "create");
}

static const char *archive_find(const struct reading *r, const uint64_t values[_FLAG_MAX])
{
	for (enum flag i = ARCHIVES; i < _FLAG_MAX; i++)
		if (is_writing(r, i, values[i]))
			return wanted[i].name;
	return NULL;
}

int jvm_flags_read(const struct jvm_memory *memory, uint64_t base, struct jvm_flags *ret)
{
	struct reading r = {.memory = memory, .base = base};
	uint64_t values[_FLAG_MAX];

	if (!symbols_read(&r) || !types_read(&r) || !flags_read(&r, values))
		return JVM_FLAGS_UNKNOWN;
	*ret = (struct jvm_flags){
		.attach_off = values[ATTACH] != 0,
		.few_signals = values[SIGNALS] != 0,
		.dynamic_load_off = values[LOADING] == 0,
		.reopens_socket = values[DETAILS] != UNKNOWN,
		.archive = archive_find(&r, values),
	};
	return 0;
}
