/* The cache of Go programs: what is the same is not read again, what only says so is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "image/go_program.h"
#include "read_go.h"

static void assert_site(const struct go_program *p, enum go_site_class class)
{
	assert_int_equal(p->functions[GO_FUNCTION_ROUND_TRIP].site.class, class);
}

static const struct go_program *get(struct go_cache *cache, const struct made_go *m)
{
	_cleanup_(closep) int fd = file_of(m->bytes, m->n);
	const struct go_program *program = NULL;

	assert_int_equal(go_cache_get(cache, fd, &program), 0);
	return program;
}

static void test_cache(void **state)
{
	_cleanup_(go_cache_freep) struct go_cache *cache = NULL;
	const struct go_cache_stats *stats;
	static struct made_go one, two;

	(void)state;
	assert_int_equal(go_cache_new(2, &cache), 0);
	stats = go_cache_stats(cache);
	made_go_build(&one, &(struct made_options){.format = MADE_1_26});
	assert_site(get(cache, &one), GO_SITE_PUSH_BP);
	assert_site(get(cache, &one), GO_SITE_PUSH_BP); /* another inode */
	assert_int_equal(stats->reads, 1);
	assert_int_equal(stats->hits, 1);

	/* The same build id on other code, then on other types: never the answer for the first. */
	two = one;
	two.bytes[two.sites[MADE_ROUND_TRIP]] = 0x90;
	assert_site(get(cache, &two), GO_SITE_STACK_JCC);
	assert_int_equal(stats->mismatches, 1);
	assert_site(get(cache, &one), GO_SITE_PUSH_BP);
	assert_int_equal(stats->mismatches, 2);
	two = one;
	made_put(&two, two.g_fields + 24 * 5 + 16, 56, 8);
	assert_int_equal(get(cache, &two)->offsets[GO_FIELD_G_GOID].source, GO_SOURCE_NONE);
	assert_int_equal(stats->mismatches, 3);
	assert_int_equal(stats->reads, 4);
	assert_int_equal(stats->evictions, 0);
}

static void test_cache_is_bounded(void **state)
{
	_cleanup_(go_cache_freep) struct go_cache *cache = NULL;
	static struct made_go m[3];

	(void)state;
	assert_int_equal(go_cache_new(2, &cache), 0);
	for (size_t i = 0; i < 3; i++) {
		made_go_build(&m[i], &(struct made_options){.format = MADE_1_26});
		made_put(&m[i], MADE_TEXT_END + 21, '1' + i, 1); /* within the build id */
	}
	get(cache, &m[0]);
	get(cache, &m[1]);
	get(cache, &m[0]);
	get(cache, &m[2]); /* in place of the second, asked for the longest ago */
	assert_int_equal(go_cache_stats(cache)->evictions, 1);
	get(cache, &m[0]);
	assert_int_equal(go_cache_stats(cache)->reads, 3);
	get(cache, &m[1]);
	assert_int_equal(go_cache_stats(cache)->reads, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_cache_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
