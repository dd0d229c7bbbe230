/* probe/jvm_flags.c: what a JVM's memory says of its flags, and memory that says nothing for sure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "jvm_image.h"
#include "probe/jvm_flags.h"

/* As image_make() has them. */
enum { ATTACH = 1, SIGNALS, LOADING, ON_DEMAND, AUTOMATIC, AT_EXIT, AOT_MODE, AOT_OUTPUT };

static int read_part(const struct image *image, size_t size, struct jvm_flags *ret)
{
	struct image_memory memory = {.bytes = (const uint8_t *)image, .size = size};

	return jvm_flags_read(&(struct jvm_memory){.read = image_read, .userdata = &memory},
			      IMAGE_BASE, ret);
}

static int read_image(const struct image *image, struct jvm_flags *ret)
{
	return read_part(image, sizeof(*image), ret);
}

static void test_values(void **state)
{
	struct jvm_flags flags;
	struct image image;

	(void)state;
	for (unsigned int n = 0; n < 8; n++) {
		image_make(&image);
		image.values[ATTACH] = n & 1;
		image.values[SIGNALS] = n >> 1 & 1;
		image.values[LOADING] = n >> 2 & 1;
		assert_int_equal(read_image(&image, &flags), 0);
		assert_int_equal(flags.attach_off, n & 1);
		assert_int_equal(flags.few_signals, n >> 1 & 1);
		assert_int_equal(flags.dynamic_load_off, !(n >> 2 & 1));
	}
}

static const char *archive_of(const struct image *image)
{
	struct jvm_flags flags;

	assert_int_equal(read_image(image, &flags), 0);
	return flags.archive;
}

/* What has a JVM write its classes to a file, each by itself; of AOTMode two values do. */
static void test_archives(void **state)
{
	static const struct {
		unsigned int flag;
		const char *text, *name;
	} cases[] = {
		{ON_DEMAND, NULL, "RecordDynamicDumpInfo"},
		{AUTOMATIC, NULL, "AutoCreateSharedArchive"},
		{AT_EXIT, "app.jsa", "ArchiveClassesAtExit"},
		{AOT_MODE, "record", "AOTMode"},
		{AOT_MODE, "create", "AOTMode"},
		{AOT_OUTPUT, "app.aot", "AOTCacheOutput"},
		{AOT_MODE, "auto", NULL},
		{AOT_MODE, "on", NULL},
		{AOT_MODE, "recorded", NULL},
	};
	struct image image;

	(void)state;
	image_make(&image);
	assert_null(archive_of(&image));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		image_make(&image);
		if (cases[i].text)
			image.pointers[cases[i].flag] = image_text(&image, cases[i].text);
		else
			image.values[cases[i].flag] = 1;
		if (cases[i].name)
			assert_string_equal(archive_of(&image), cases[i].name);
		else
			assert_null(archive_of(&image));
	}
}

/* JDK 8 has another name for the class, and no flag that forbids to load. */
static void test_jdk_8(void **state)
{
	struct jvm_flags flags;
	struct image image;

	(void)state;
	image_make(&image);
	for (size_t n = 1; n < 5; n++)
		image.structs[n].type += 3; /* "Flag" */
	image.types[1].name += 3;
	image.flags[LOADING].name = 0;
	image.values[ATTACH] = 1;
	assert_int_equal(read_image(&image, &flags), 0);
	assert_true(flags.attach_off);
	assert_false(flags.few_signals);
	assert_false(flags.dynamic_load_off);
}

/* Each of these alone makes it unknown. */
static void test_doubts(void **state)
{
	struct image whole, image;
	struct jvm_flags flags;
	int kind = 0, is_over = 0;

	(void)state;
	image_make(&whole);
	for (; !is_over; kind++) {
		image = whole;
		switch (kind) {
		case 0:
			image.head.e_ident[0] = 0;
			break;
		case 1:
			image.segments[1].p_type = PT_NOTE;
			break;
		case 2:
			image.dynamic[1].d_un.d_ptr = 1;
			break; /* the names before the symbols */
		case 3:
			image.dynamic[2].d_un.d_val = 1 << 30;
			break; /* too many of them */
		case 4:
			image.symbols[2].st_shndx = SHN_UNDEF;
			break;
		case 5:
			image.symbols[2].st_value = 1 << 30;
			break; /* outside */
		case 6:
			image.variables[1] = 1 << 20;
			break; /* long entries */
		case 7:
			image.variables[3] = sizeof(struct image_struct) - 7;
			break;
		case 8:
			image.structs[1].type = image.structs[0].type;
			break; /* no 'flags' */
		case 9:
			image.structs[4].type = image.structs[0].type;
			break; /* no '_addr' */
		case 10:
			image.structs[3].offset = sizeof(struct image_flag) - 7;
			break;
		case 11:
			image.types[1].size = 0;
			break;
		case 12:
			image.types[1].size = 4096;
			break;
		case 13:
			image.n_flags = 0;
			break;
		case 14:
			image.n_flags = 1 << 20;
			break;
		case 15:
			image.n_flags = IMAGE_FLAGS + 1000;
			break; /* more than there is memory */
		case 16:
			image.flags[ATTACH].name = 0;
			break;
		case 17:
			image.flags[SIGNALS].name = 0;
			break;
		case 18:
			image.flags[0].name = image.flags[ATTACH].name;
			break; /* twice */
		case 19:
			image.flags[ATTACH].address = 0;
			break;
		case 20:
			image.values[ATTACH] = 2;
			break;
		case 21:
			image.values[SIGNALS] = 0xff;
			break;
		case 22:
			image.variables[0] = 0;
			break;
		case 23:
			image.values[AUTOMATIC] = 2;
			break;
		case 24:
			image.flags[AT_EXIT].address = 0;
			break;
		default:
			is_over = 1;
			continue;
		}
		if (read_image(&image, &flags) != JVM_FLAGS_UNKNOWN)
			fail_msg("kind %d is believed", kind);
	}
	assert_int_equal(kind, 26);
}

/* However much of it can be read: all or nothing. */
static void test_cut(void **state)
{
	struct jvm_flags flags;
	struct image image;
	size_t needed = offsetof(struct image, texts);

	(void)state;
	image_make(&image);
	for (size_t size = 0; size < needed; size++)
		assert_int_equal(read_part(&image, size, &flags), JVM_FLAGS_UNKNOWN);
	assert_int_equal(read_image(&image, &flags), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values), cmocka_unit_test(test_archives),
		cmocka_unit_test(test_jdk_8),  cmocka_unit_test(test_doubts),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
