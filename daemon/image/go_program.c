/* What can be probed in a Go program; see go_program.h. */
#include "image/go_program.h"

#include <elf.h>
#include <errno.h>

#include "image/go.h"
#include "image/go_identity.h"
#include "image/go_measured.h"
#include "image/go_read.h"
#include "image/go_site.h"
#include "image/go_types.h"

static const char *const function_names[] = {
#define GO_FUNCTION_NAME(id, name) [GO_FUNCTION_##id] = name,
	GO_FUNCTIONS(GO_FUNCTION_NAME)
#undef GO_FUNCTION_NAME
};
static_assert(ARRAY_SIZE(function_names) == _GO_FUNCTION_MAX, "a function without a name");
static_assert(_GO_FUNCTION_MAX <= GO_TABLE_NAMES_MAX, "more functions than can be looked up");

static const char *const class_names[] = {
	[GO_SITE_NONE] = "none",
	[GO_SITE_PUSH_BP] = "push-bp",
	[GO_SITE_STACK_JCC] = "stack-jcc",
	[GO_SITE_STACK_B_LS] = "stack-b.ls",
	[GO_SITE_CALL] = "call",
	[GO_SITE_BODY] = "body",
	[GO_SITE_AFTER_CALL] = "after-call",
};
static_assert(ARRAY_SIZE(class_names) == _GO_SITE_MAX, "a class without a name");

const char *go_function_name(enum go_function function)
{
	return function_names[function];
}

const char *go_site_class_name(enum go_site_class class)
{
	return class_names[class];
}

void go_program_free(struct go_program *program)
{
	free(program);
}

/* No function can be probed. */
static void give_up(struct go_program *program, const char *reason)
{
	program->reason = reason;
	for (size_t i = 0; i < _GO_FUNCTION_MAX; i++)
		program->functions[i] = (struct go_function_facts){
			.site = {.reason = reason},
			.no_returns_reason = reason,
		};
	program->newproc_runqput = (struct go_site){.reason = reason};
	program->newproc_begun = (struct go_site){.reason = reason};
	program->request_read = (struct go_site){.reason = reason};
	program->gin_next = (struct go_site){.reason = reason};
}

/*
 * Functions take their arguments in registers since 1.17 on amd64, 1.18 on arm64 (release notes).
 * The table's format tells 1.16 and 1.17 from later ones; the goroutine is in R14 at the stack
 * check from 1.17 on, which tells these two apart.
 */
static bool takes_registers(const struct go_program *program, const struct go_table *table)
{
	if (table->is_relative)
		return true;
	if (program->is_arm64)
		return false;
	for (size_t i = 0; i < _GO_FUNCTION_MAX; i++) {
		enum go_site_class class = program->functions[i].site.class;

		if (class == GO_SITE_PUSH_BP || class == GO_SITE_STACK_JCC)
			return true;
	}
	return false;
}

/*
 * A build with a profile (-pgo, Go 1.21) may have the code of serverHandler.ServeHTTP in the one
 * that serves HTTP/1; the function itself may be left for others, and is not met by those requests.
 */
static int check_serve(struct go_file *file, struct go_program *program)
{
	const struct go_function_facts *conn_serve = &program->functions[GO_FUNCTION_CONN_SERVE];
	struct go_site *site = &program->functions[GO_FUNCTION_SERVE_HTTP].site;
	unsigned int n;
	int r;

	if (site->class == GO_SITE_NONE || conn_serve->size == 0)
		return 0;
	r = go_site_count_calls(file, conn_serve, &program->functions[GO_FUNCTION_SERVE_HTTP], &n);
	if (r == 0 && n == 0)
		*site = (struct go_site){.reason = "requests are served without a call of "
						   "serverHandler.ServeHTTP (a build with a "
						   "profile?)"};
	return r;
}

/* Sites within functions, at calls or behind them. */
static int find_calls(struct go_file *file, struct go_program *program)
{
	const struct {
		enum go_function caller, callee;
		enum go_site_class class;
		struct go_site *site;
	} wanted[] = {
		{GO_FUNCTION_NEWPROC_FUNC1, GO_FUNCTION_RUNQPUT, GO_SITE_CALL,
		 &program->newproc_runqput},
		{GO_FUNCTION_NEWPROC_FUNC1, GO_FUNCTION_NEWPROC1, GO_SITE_AFTER_CALL,
		 &program->newproc_begun},
		{GO_FUNCTION_CONN_SERVE, GO_FUNCTION_READ_REQUEST, GO_SITE_AFTER_CALL,
		 &program->request_read},
		{GO_FUNCTION_GIN_HANDLE, GO_FUNCTION_GIN_NEXT, GO_SITE_CALL, &program->gin_next},
	};

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		int r = go_site_find_call(file, &program->functions[wanted[i].caller],
					  &program->functions[wanted[i].callee], wanted[i].class,
					  wanted[i].site);

		if (r)
			return r;
	}
	return check_serve(file, program);
}

static int find_sites(struct go_file *file, const struct go_table *table,
		      struct go_program *program)
{
	struct go_function_entry found[_GO_FUNCTION_MAX];
	int r;

	r = go_table_find(file, table, function_names, _GO_FUNCTION_MAX, found);
	if (r < 0)
		return r;
	if (r) {
		give_up(program, "the program's function table is damaged");
		return 0;
	}
	for (size_t i = 0; i < _GO_FUNCTION_MAX; i++) {
		r = go_site_find(file, table, &found[i], &program->functions[i]);
		if (r)
			return r;
	}
	r = find_calls(file, program);
	if (r)
		return r;
	if (go_file_is_spent(file))
		give_up(program, "the file is damaged: reading it did not end");
	else if (!takes_registers(program, table))
		give_up(program, "built by a Go that passes arguments on the stack (before 1.17; "
				 "arm64: 1.18)");
	return 0;
}

/* Functions and their sites. */
static int read_functions(struct go_file *file, struct go_program *program,
			  struct go_table *ret_table)
{
	const struct elf_image *image = go_file_image(file);
	const char *reason;
	uint64_t offset;
	int r;

	if (image->machine != EM_X86_64 && image->machine != EM_AARCH64) {
		give_up(program, "neither an amd64 nor an arm64 program");
		return 0;
	}
	r = go_table_open(file, ret_table, &reason);
	if (r)
		return r;
	if (reason) {
		give_up(program, reason);
		return 0;
	}
	program->text_address = ret_table->text;
	program->text_bytes = ret_table->end_text - ret_table->text;
	if (ret_table->quantum != (program->is_arm64 ? 4 : 1) ||
	    elf_image_offset_of(image, ret_table->text, 1, &offset)) {
		give_up(program, "the program's function table is another machine's");
		return 0;
	}
	return find_sites(file, ret_table, program);
}

static int read_offsets(struct go_file *file, const struct go_table *table,
			const struct go_program_options *options, struct go_program *program)
{
	uint64_t end = table->functions + table->functions_bytes;
	int r = 0;

	if (!options->without_types)
		r = go_types_read(file, table->offset, end - table->offset, program);
	if (r == 0 && !options->without_table)
		go_measured_fill(program);
	return r;
}

int go_read(struct go_file *file, const struct go_program_options *options,
	    struct go_program **ret_program)
{
	static const struct go_program_options no_options = {0};
	_cleanup_(go_program_freep) struct go_program *program = calloc(1, sizeof(*program));
	const struct elf_image *image = go_file_image(file);
	struct image_facts facts = {0};
	struct go_table table = {0};
	int r;

	if (!program)
		return -ENOMEM;
	if (image->is_64bit) {
		r = go_probe(image, &facts);
		if (r < 0)
			return r;
	}
	r = go_identity_read(file, program->build_id);
	if (r)
		return r;
	program->is_arm64 = image->machine == EM_AARCH64;
	program->is_pie = image->type == ET_DYN;
	program->file_bytes = image->size;
	program->entry = image->entry;
	memcpy(program->version, facts.go_version, sizeof(program->version));
	r = read_functions(file, program, &table);
	if (r)
		return r;
	if (!facts.is_go && table.n == 0)
		return GO_PROGRAM_NOT_GO;

	if (!program->version[0] && table.n > 0)
		r = go_identity_find_version(file, program->version);
	if (r == 0 && table.n > 0)
		r = read_offsets(file, &table, options ? options : &no_options, program);
	if (r)
		return r;
	*ret_program = TAKE_PTR(program);
	return 0;
}

int go_read_check(struct go_file *file, const struct go_program *program)
{
	const struct elf_image *image = go_file_image(file);

	if (program->file_bytes != image->size || program->entry != image->entry ||
	    program->is_arm64 != (image->machine == EM_AARCH64) ||
	    program->is_pie != (image->type == ET_DYN))
		return 0;
	for (size_t i = 0; i < _GO_FUNCTION_MAX; i++) {
		const struct go_function_facts *f = &program->functions[i];
		uint64_t offset, hash;
		int r;

		if (f->size == 0)
			continue;
		/* That the code is executed from the same place is up to the segments. */
		r = elf_image_offset_of(image, f->address, f->size, &offset);
		if (r == 0 && offset == f->offset)
			r = go_site_hash_code(file, f->offset, f->size, &hash);
		if (r < 0)
			return r;
		if (r || offset != f->offset || hash != f->code_hash)
			return 0;
	}
	return go_types_check(file, program);
}

int go_program_read(int fd, const struct go_program_options *options,
		    struct go_program **ret_program)
{
	_cleanup_(go_file_freep) struct go_file *file = NULL;
	struct elf_image image;
	int r;

	r = elf_image_open(fd, &image);
	if (r)
		return r;
	r = go_file_new(&image, &file);
	return r ? r : go_read(file, options, ret_program);
}
