/*
 * Prints as JSON what the daemon finds in a Go program, for tests/go/run to compare with what
 * others say of it:
 *
 *	dump_go_program [--without-types] [--without-table] [--all] [--repeat N] FILE
 *
 * With --all, a site and the returns of every function of the program instead ({"name": ...}
 * one a line). With --repeat it is read N times, and only the CPU time of one reading is printed.
 */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>

#include "image/go_program.h"
#include "image/go_site.h"
#include "image/go_table.h"

struct arguments {
	struct go_program_options options;
	bool is_all;
	int repeat;
	const char *path;
};

static int parse_arguments(int argc, char **argv, struct arguments *ret)
{
	static const struct option options[] = {
		{"without-types", no_argument, NULL, 't'},
		{"without-table", no_argument, NULL, 'm'},
		{"all", no_argument, NULL, 'a'},
		{"repeat", required_argument, NULL, 'r'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 't')
			ret->options.without_types = true;
		else if (c == 'm')
			ret->options.without_table = true;
		else if (c == 'a')
			ret->is_all = true;
		else if (c == 'r')
			ret->repeat = atoi(optarg);
		else
			return -1;
	}
	if (optind + 1 != argc)
		return -1;
	ret->path = argv[optind];
	return 0;
}

static void print_site(const struct go_site *site)
{
	printf("{\"class\": \"%s\", \"offset\": %lu", go_site_class_name(site->class),
	       site->offset);
	if (site->reason)
		printf(", \"reason\": \"%s\"", site->reason);
	printf("}");
}

static void print_function(const char *name, const struct go_function_facts *f)
{
	printf("{\"name\": \"%s\", \"found\": %s, \"address\": %lu, \"size\": %lu, "
	       "\"offset\": %lu, \"site\": ",
	       name, f->is_found ? "true" : "false", f->address, f->size, f->offset);
	print_site(&f->site);
	printf(", \"returns\": [");
	for (unsigned int i = 0; i < f->n_returns; i++)
		printf("%s%lu", i ? ", " : "", f->returns[i]);
	printf("], \"no_returns\": \"%s\"}", f->no_returns_reason ? f->no_returns_reason : "");
}

static void print_fields(const struct go_program *p)
{
	static const char *const sources[] = {"none", "types", "table"};

	static_assert(ARRAY_SIZE(sources) == _GO_SOURCE_MAX, "a source without a name");
	for (size_t i = 0; i < _GO_FIELD_MAX; i++)
		printf("%s\n\t{\"of\": \"%s\", \"field\": \"%s\", "
		       "\"source\": \"%s\", \"offset\": %u}",
		       i ? "," : "", go_struct_name(go_field_struct(i)), go_field_name(i),
		       sources[p->offsets[i].source], p->offsets[i].bytes);
}

static void print_program(const struct go_program *p)
{
	printf("{\"build_id\": \"%s\", \"version\": \"%s\", \"arm64\": %s, \"pie\": %s, "
	       "\"text\": %lu, \"reason\": \"%s\",\n\"functions\": [",
	       p->build_id, p->version, p->is_arm64 ? "true" : "false",
	       p->is_pie ? "true" : "false", p->text_address, p->reason ? p->reason : "");
	for (size_t i = 0; i < _GO_FUNCTION_MAX; i++) {
		printf("%s\n\t", i ? "," : "");
		print_function(go_function_name(i), &p->functions[i]);
	}
	printf("],\n\"newproc_runqput\": ");
	print_site(&p->newproc_runqput);
	printf(",\n\"newproc_begun\": ");
	print_site(&p->newproc_begun);
	printf(",\n\"request_read\": ");
	print_site(&p->request_read);
	printf(",\n\"fields\": [");
	print_fields(p);
	printf("],\n\"types\": [");
	for (size_t i = 0; i < _GO_STRUCT_MAX; i++)
		printf("%s{\"name\": \"%s\", \"address\": %lu}", i ? ", " : "", go_struct_name(i),
		       p->types[i]);
	printf("]}\n");
}

/* --- every function of a program */

/* More than one program is worth: sites are looked for with a new budget now and then. */
#define SITES_A_FILE 200

struct walk {
	const struct elf_image *image;
	struct go_file *file; /* for the sites */
	const struct go_table *table;
	unsigned int n;
};

static int renew_file(struct walk *w)
{
	if (w->n++ % SITES_A_FILE != 0)
		return 0;
	go_file_free(w->file);
	w->file = NULL;
	return go_file_new(w->image, &w->file);
}

static int visit(const struct go_function_entry *entry, uint32_t name, void *userdata)
{
	struct walk *w = userdata;
	struct go_function_facts facts;
	char text[2048] = {0};
	int r;

	r = renew_file(w);
	if (r == 0)
		r = go_site_find(w->file, w->table, entry, &facts);
	if (r)
		return r;
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		r = go_file_read(w->file, w->table->names + name + i, text + i, 1);
		if (r || !text[i])
			break;
		if (text[i] == '"' || text[i] == '\\') /* JSON is not to be quoted for */
			text[i] = '\'';
	}
	print_function(text, &facts);
	putchar('\n');
	return 0;
}

static int print_all(int fd)
{
	_cleanup_(go_file_freep) struct go_file *file = NULL;
	struct elf_image image;
	struct go_table table;
	struct walk walk = {.image = &image, .table = &table};
	const char *reason;
	int r;

	r = elf_image_open(fd, &image);
	if (r == 0)
		r = go_file_new(&image, &file);
	if (r == 0)
		r = go_table_open(file, &table, &reason);
	if (r)
		return r;
	if (reason) {
		fprintf(stderr, "%s\n", reason);
		return 1;
	}
	r = go_table_walk(file, &table, visit, &walk);
	go_file_free(walk.file);
	return r;
}

/* --- the cost of one reading */

static int print_cost(int fd, const struct arguments *a)
{
	uint64_t start_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);

	for (int i = 0; i < a->repeat; i++) {
		_cleanup_(go_program_freep) struct go_program *program = NULL;
		int r = go_program_read(fd, &a->options, &program);

		if (r)
			return r;
	}
	printf("%.2f ms\n",
	       (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - start_ns) / a->repeat / NSEC_PER_MSEC);
	return 0;
}

int main(int argc, char **argv)
{
	_cleanup_(go_program_freep) struct go_program *program = NULL;
	_cleanup_(closep) int fd = -1;
	struct arguments a = {0};
	int r;

	if (parse_arguments(argc, argv, &a) < 0) {
		fprintf(stderr,
			"usage: %s [--without-types] [--without-table] [--all] "
			"[--repeat N] FILE\n",
			argv[0]);
		return 2;
	}
	fd = open(a.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		perror(a.path);
		return 1;
	}
	if (a.is_all)
		r = print_all(fd);
	else if (a.repeat > 0)
		r = print_cost(fd, &a);
	else
		r = go_program_read(fd, &a.options, &program);
	if (r)
		fprintf(stderr, "%s: %d\n", a.path, r);
	if (program)
		print_program(program);
	return r != 0;
}
