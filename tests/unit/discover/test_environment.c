/* OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/util.h"
#include "discover/environment.h"
#include "metrics/metrics.h"

#define PARSE(block, ret) assert_int_equal(environment_parse(STR(block), ret), 0)

static const char *get(const struct environment *e, const char *key)
{
	for (size_t i = 0; i < e->n_attributes; i++)
		if (strcmp(e->attributes[i].key, key) == 0)
			return e->attributes[i].value;
	return NULL;
}

static void test_service_name(void **state)
{
	struct environment e;

	(void)state;
	PARSE("PATH=/bin\0OTEL_SERVICE_NAME=orders\0X=1\0", &e);
	assert_string_equal(e.service_name, "orders");
	assert_int_equal(e.n_attributes, 0);
	environment_done(&e);

	/* The variable comes before the attribute, wherever it stands. */
	PARSE("OTEL_SERVICE_NAME=a\0OTEL_RESOURCE_ATTRIBUTES=service.name=b,x=y\0", &e);
	assert_string_equal(e.service_name, "a");
	assert_string_equal(get(&e, "x"), "y");
	assert_null(get(&e, "service.name"));
	environment_done(&e);
	PARSE("OTEL_RESOURCE_ATTRIBUTES=service.name=b,x=y\0OTEL_SERVICE_NAME=a\0", &e);
	assert_string_equal(e.service_name, "a");
	environment_done(&e);

	/* An empty one is none. */
	PARSE("OTEL_SERVICE_NAME=\0OTEL_RESOURCE_ATTRIBUTES=service.name=b\0", &e);
	assert_string_equal(e.service_name, "b");
	environment_done(&e);
	PARSE("OTEL_SERVICE_NAME=  \0MY_OTEL_SERVICE_NAME=x\0", &e);
	assert_null(e.service_name);
	environment_done(&e);
}

static void test_attributes(void **state)
{
	struct environment e;

	(void)state;
	PARSE("OTEL_RESOURCE_ATTRIBUTES= deployment.environment.name = prod%2C eu ,a=b=c,empty=,\0",
	      &e);
	assert_string_equal(get(&e, "deployment.environment.name"), "prod, eu");
	assert_string_equal(get(&e, "a"), "b=c");
	assert_string_equal(get(&e, "empty"), "");
	assert_int_equal(e.n_attributes, 3);
	environment_done(&e);

	PARSE("OTEL_RESOURCE_ATTRIBUTES=service.name=caf%C3%A9,bad=%FF%1b\0", &e);
	assert_string_equal(e.service_name, "caf\xc3\xa9");
	assert_string_equal(get(&e, "bad"), "??");
	environment_done(&e);
}

static void test_malformed_is_dropped_whole(void **state)
{
	static const char *const values[] = {"a=b,c", "a=b,=c", "a=b,c=%4", "a=b,c=%zz", "a=b,c=%"};
	char block[256];
	struct environment e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		snprintf(block, sizeof(block), "OTEL_RESOURCE_ATTRIBUTES=service.name=x,%s",
			 values[i]);
		assert_int_equal(environment_parse(str_from(block), &e), 0);
		assert_int_equal(e.n_attributes, 0);
		assert_null(e.service_name);
		environment_done(&e);
	}
}

static void test_bounded(void **state)
{
	uint64_t before = metrics_get(METRIC_RESOURCE_ATTRIBUTES_FULL);
	char block[2048] = "OTEL_RESOURCE_ATTRIBUTES=";
	struct environment e;

	(void)state;
	for (unsigned int i = 0; i < ENVIRONMENT_ATTRIBUTES_MAX + 3; i++)
		snprintf(block + strlen(block), 32, "k%u=%u,", i, i);
	assert_int_equal(environment_parse(str_from(block), &e), 0);
	assert_int_equal(e.n_attributes, ENVIRONMENT_ATTRIBUTES_MAX);
	assert_int_equal(metrics_get(METRIC_RESOURCE_ATTRIBUTES_FULL) - before, 3);
	environment_done(&e);
	assert_int_equal(environment_parse(STR_NONE, &e), 0);
	environment_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_service_name),
		cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_malformed_is_dropped_whole),
		cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
