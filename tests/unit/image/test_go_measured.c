/* The table of measured versions: when it speaks, and beside what a program says of itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "image/go_program.h"
#include "read_go.h"

static void assert_offset(const struct go_program *p, enum go_field field, uint32_t bytes)
{
	assert_int_equal(p->offsets[field].source, GO_SOURCE_TYPES);
	assert_int_equal(p->offsets[field].bytes, bytes);
}

static void assert_unknown(const struct go_program *p, enum go_field field)
{
	assert_int_equal(p->offsets[field].source, GO_SOURCE_NONE);
}

static void assert_table(const struct go_program *p, enum go_field field, uint32_t bytes)
{
	assert_int_equal(p->offsets[field].source, GO_SOURCE_TABLE);
	assert_int_equal(p->offsets[field].bytes, bytes);
}

/* Gives the i-th field of a struct another name, as long as the old one. */
static void rename_field(struct made_go *m, size_t type, size_t i, const char *name)
{
	uint64_t fields, at;

	memcpy(&fields, m->bytes + type + 56, 8);
	memcpy(&at, m->bytes + fields - MADE_ADDRESS + 24 * i, 8);
	memcpy(m->bytes + at - MADE_ADDRESS + 2, name, strlen(name));
}

/* Of a struct that the program describes, the table adds no field that is not in it. */
static void test_table_beside_types(void **state)
{
	_cleanup_(go_program_freep) struct go_program *p = NULL, *lie = NULL;
	static struct made_go m;

	(void)state;
	made_go_build(&m, &(struct made_options){.format = MADE_1_26});
	strcpy((char *)m.bytes + MADE_DATA + 0x300, "go1.26.5");
	rename_field(&m, m.g, 4, "M");
	rename_field(&m, m.g, 5, "GOID");
	rename_field(&m, m.request, 5, "CTX");
	p = read_made(&m);
	assert_offset(p, GO_FIELD_REQUEST_METHOD, 0);
	assert_unknown(p, GO_FIELD_REQUEST_CTX);
	assert_unknown(p, GO_FIELD_G_GOID);
	assert_table(p, GO_FIELD_RESPONSE_REQ, 8);

	/* What is described is not as in that version: then nothing else will be. */
	rename_field(&m, m.g, 4, "m");
	lie = read_made(&m);
	assert_offset(lie, GO_FIELD_G_M, 40);
	assert_unknown(lie, GO_FIELD_RESPONSE_REQ);
}

/* The table of measured versions: releases only, and only what is the same in all of a minor. */
static void test_table(void **state)
{
	static const struct go_program_options options = {.without_types = true};
	static const char *const unknown[] = {"go1.16.5", "go1.28.1", "go1.99.1", "go1.260.5"};
	_cleanup_(go_program_freep) struct go_program *p26 = NULL, *p22 = NULL;
	static struct made_go m;
	char *version = (char *)m.bytes + MADE_DATA + 0x300;

	(void)state;
	made_go_build(&m, &(struct made_options){.format = MADE_1_26});
	strcpy(version, "go1.26.5");
	p26 = read_bytes(m.bytes, m.n, &options);
	assert_table(p26, GO_FIELD_G_GOID, 152);
	assert_table(p26, GO_FIELD_G_PARENT_GOID, 280);
	assert_unknown(p26, GO_FIELD_RESPONSE_STATUS); /* moved between 1.26.8 and 1.26.11 */
	strcpy(version, "go1.22.12");
	p22 = read_bytes(m.bytes, m.n, &options);
	assert_table(p22, GO_FIELD_REQUEST_CTX, 232);
	assert_table(p22, GO_FIELD_RESPONSE_STATUS, 120);
	assert_unknown(p22, GO_FIELD_REQUEST_PATTERN);

	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		_cleanup_(go_program_freep) struct go_program *p = NULL;

		strcpy(version, unknown[i]);
		p = read_bytes(m.bytes, m.n, &options);
		for (size_t k = 0; k < _GO_FIELD_MAX; k++)
			assert_unknown(p, k);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_table_beside_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
