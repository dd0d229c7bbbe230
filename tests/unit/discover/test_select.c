/* Selectors, and the sentences that explain them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/util.h"
#include "discover/select.h"

#define CONTAINER "4eca0a387d2f150eeec16e96d148c71606eb4bd1e90a3a3f1e23d2c7a5d3f001"

static const uint16_t ports[] = {8080, 9090};

static struct subject subject(void)
{
	return (struct subject){
		.pid = 100,
		.language = LANGUAGE_OTHER,
		.exe = "/srv/shop/bin/orders",
		.command = "orders --port 8080",
		.user = "shop",
		.uid = 1001,
		.unit = "orders@eu.service",
		.container = CONTAINER,
		.ports = ports,
		.n_ports = ARRAY_SIZE(ports),
	};
}

static const struct row {
	struct selector selector;
	bool expected;
} rows[] = {
	{{0}, true},
	{{.exe = "/srv/*"}, true},
	{{.exe = "/srv/shop/bin/orders"}, true},
	{{.exe = "/opt/*"}, false},
	{{.exe = "orders"}, true},
	{{.exe = "ord*"}, true},
	{{.exe = "shop"}, false},
	{{.command = "*--port 80*"}, true},
	{{.command = "--port"}, false},
	{{.user = "shop"}, true},
	{{.user = "1001"}, true},
	{{.user = "root"}, false},
	{{.user = "100"}, false},
	{{.unit = "orders@*.service"}, true},
	{{.unit = "orders@eu"}, true},
	{{.unit = "orders"}, false},
	{{.container = "4eca0a387d2f"}, true},
	{{.container = "4eca0a387d2"}, false},
	{{.container = "4eca0a387d2f1*"}, true},
	{{.container = "aaaa0a387d2f"}, false},
	{{.port_first = 9090}, true},
	{{.port_first = 9090, .port_last = 9090}, true},
	{{.port_first = 8000, .port_last = 8100}, true},
	{{.port_first = 8081, .port_last = 9089}, false},
	{{.port_first = 80}, false},
	{{.languages = 1U << LANGUAGE_OTHER}, true},
	{{.languages = 1U << LANGUAGE_JVM | 1U << LANGUAGE_GO}, false},
	{{.exe = "orders", .user = "shop", .port_first = 8080}, true},
	{{.exe = "orders", .user = "root", .port_first = 8080}, false},
	{{.netns = "/nonexistent"}, false},
};

static void test_selectors(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct subject s = subject();

		if (selector_matches(&rows[i].selector, &s) != rows[i].expected)
			fail_msg("row %zu", i);
	}
}

/* What is not known matches no key that asks for it, and does no harm. */
static void test_unknown_facts(void **state)
{
	static const struct subject nothing = {.pid = 7, .uid = 1001};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct selector *s = &rows[i].selector;
		bool asks = s->exe || s->command || s->unit || s->container || s->port_first ||
			    s->netns;

		if (asks)
			assert_false(selector_matches(s, &nothing));
	}
}

static void test_netns(void **state)
{
	struct selector selector = {.netns = "/proc/self/ns/net"};
	struct subject s = subject();
	struct stat st;

	(void)state;
	assert_int_equal(stat("/proc/self/ns/net", &st), 0);
	s.netns = (struct proc_namespace){.device = st.st_dev, .inode = st.st_ino};
	assert_true(selector_matches(&selector, &s));
	s.netns.inode++;
	assert_false(selector_matches(&selector, &s));
}

static struct selector include_items[2], exclude_items[1];

static struct config config_of(struct selector include, struct selector exclude)
{
	include_items[0] = (struct selector){.languages = 1U << LANGUAGE_JVM | 1U << LANGUAGE_GO};
	include_items[1] = include;
	exclude_items[0] = exclude;
	return (struct config){
		.include = {.items = include_items, .n = 2},
		.exclude = {.items = exclude_items, .n = 1},
	};
}

static void check(const struct config *config, const struct subject *s, bool expected,
		  const char *why)
{
	char *got;
	bool is_selected;

	assert_int_equal(select_decide(config, s, &is_selected, &got), 0);
	assert_string_equal(got, why);
	assert_int_equal(is_selected, expected);
	free(got);
}

static void test_sentences(void **state)
{
	struct config c = config_of((struct selector){.exe = "/none", .line = 3},
				    (struct selector){.exe = "/none", .line = 12});
	struct subject s = subject();

	(void)state;
	check(&c, &s, false,
	      "not selected: no rule matches (add - exe: \"/srv/shop/bin/orders\" to "
	      "discover.include)");
	s.language = LANGUAGE_GO;
	check(&c, &s, true, "selected: language go (built-in rule)");
	s.language = LANGUAGE_OTHER;

	c = config_of(
		(struct selector){.exe = "/srv/*", .port_first = 80, .port_last = 9000, .line = 7},
		(struct selector){.exe = "/none", .line = 12});
	check(&c, &s, true,
	      "selected: exe \"/srv/*\", ports 80 to 9000 (discover.include at line 7)");

	/* Exclusion wins, whatever includes. */
	c = config_of((struct selector){.line = 7}, (struct selector){.user = "shop", .line = 12});
	check(&c, &s, false, "excluded by discover.exclude at line 12");
	c = config_of((struct selector){.line = 7}, (struct selector){.user = "other", .line = 12});
	check(&c, &s, true, "selected: any process (discover.include at line 7)");

	s.exe = NULL;
	c = config_of((struct selector){.exe = "x"}, (struct selector){.exe = "x"});
	check(&c, &s, false, "not selected: no rule matches, and its executable cannot be read");
}

static void test_builtin_excludes(void **state)
{
	static const char *const excluded[] = {
		"/usr/bin/jaeger-all-in-one", "/usr/sbin/tsunagid",
		"/otelcol-contrib",           "/usr/bin/containerd-shim-runc-v2",
		"/usr/bin/kubelet",           "/usr/bin/obi",
		"/usr/local/bin/runsc",
	};
	static const char *const not [] = {"/usr/bin/obiwan", "/jaeger/app", "/usr/bin/vectorize",
					   "/opt/my-jaeger"};
	struct config c = config_of((struct selector){0}, (struct selector){.exe = "/none"});
	struct subject s = subject();
	bool is_selected;
	char *why;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(excluded); i++) {
		s.exe = excluded[i];
		s.language = LANGUAGE_GO;
		assert_int_equal(select_decide(&c, &s, &is_selected, &why), 0);
		assert_false(is_selected);
		assert_memory_equal(why, "excluded by built-in rule '", 27);
		free(why);
	}
	for (size_t i = 0; i < ARRAY_SIZE(not ); i++) {
		s.exe = not [i];
		assert_int_equal(select_decide(&c, &s, &is_selected, &why), 0);
		assert_true(is_selected);
		free(why);
	}

	s.pid = 1;
	s.exe = "/usr/lib/systemd/systemd";
	check(&c, &s, false, "excluded: the init system");
	s.exe = "/app/server"; /* pid 1 of a container whose namespace we share */
	check(&c, &s, true, "selected: language go (built-in rule)");
}

static void test_services(void **state)
{
	struct config_service services[] = {
		{.match = {.exe = "/none"}, .name = "a"},
		{.match = {.port_first = 8080}, .name = "b"},
		{.match = {0}, .name = "c"},
	};
	struct config c = {.services = services, .n_services = 3};
	struct subject s = subject();

	(void)state;
	assert_string_equal(select_service_name(&c, &s), "b");
	s.n_ports = 0;
	assert_string_equal(select_service_name(&c, &s), "c");
	c.n_services = 1;
	assert_null(select_service_name(&c, &s));
	assert_false(select_uses_ports(&c));
	assert_false(select_propagates(&c, &s));
	c.propagate = CONFIG_PROPAGATE_ON;
	assert_true(select_propagates(&c, &s));
	services[1].propagate = CONFIG_PROPAGATE_OFF;
	services[2].propagate = CONFIG_PROPAGATE_ON;
	c.n_services = 3;
	assert_true(select_propagates(&c, &s));
	s.n_ports = 1;
	assert_false(select_propagates(&c, &s));
	services[1].propagate = CONFIG_PROPAGATE_UNSET;
	services[1].name = NULL;
	assert_string_equal(select_service_name(&c, &s), "c");
	services[1].name = "b";
	s.n_ports = 0;
	c.n_services = 2;
	assert_true(select_uses_ports(&c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_selectors),
		cmocka_unit_test(test_unknown_facts),
		cmocka_unit_test(test_netns),
		cmocka_unit_test(test_sentences),
		cmocka_unit_test(test_builtin_excludes),
		cmocka_unit_test(test_services),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
