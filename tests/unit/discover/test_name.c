/* Names of services. Arguments are written with blanks between them; no argument here holds one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/util.h"
#include "discover/name.h"

struct row {
	const char *expected, *exe, *arguments, *unit, *module;
};

static void check(const struct row *row, enum language language)
{
	char arguments[1024], name[SERVICE_NAME_MAX];
	size_t n = strlen(row->arguments);

	memcpy(arguments, row->arguments, n + 1);
	for (size_t i = 0; i < n; i++)
		if (arguments[i] == ' ')
			arguments[i] = '\0';
	name_service(
		&(struct name_source){
			.language = language,
			.exe = str_from(row->exe),
			.arguments = {.p = arguments, .n = n + 1},
			.unit = str_from(row->unit),
			.go_module = str_from(row->module),
		},
		name);
	if (strcmp(name, row->expected) != 0)
		fail_msg("'%s' (%s) is '%s', not '%s'", row->arguments, row->exe ? row->exe : "-",
			 name, row->expected);
}

#define JAVA "/usr/lib/jvm/java-17/bin/java"

#define ROW(expected, exe, arguments)                \
	{                                            \
		expected, exe, arguments, NULL, NULL \
	}

static const struct row java_rows[] = {
	ROW("orders", JAVA, "java -jar orders.jar"),
	ROW("orders", JAVA, "java -Xmx1g -jar /opt/shop/orders-1.2.3.jar --port 80"),
	ROW("orders-service", JAVA, "java -jar orders-service-1.2.3-SNAPSHOT.jar"),
	ROW("orders", JAVA, "java -jar orders-2-SNAPSHOT.jar"),
	ROW("orders", JAVA, "java -jar orders-v1.4.jar"),
	ROW("orders", JAVA, "java -jar orders_2.0.war"),
	ROW("orders", JAVA, "java -jar orders-1.0-all.jar"),
	ROW("log4j-test", JAVA, "java -jar log4j-test-2.17.1.jar"),
	ROW("node-2", JAVA, "java -jar node-2.jar"),
	ROW("app", JAVA, "java -javaagent:/x/agent.jar=a=b -Dx=y -jar app.jar -jar other.jar"),
	ROW("Orders", JAVA, "java com.shop.Orders"),
	ROW("Orders", JAVA, "java -cp lib/a.jar:lib/b.jar com.shop.Orders -jar x.jar"),
	ROW("Orders", JAVA, "java -classpath a.jar com.shop.Orders"),
	ROW("Orders", JAVA, "java --class-path a.jar -ea com.shop.Orders"),
	ROW("Orders", JAVA, "java --class-path=a.jar com.shop.Orders"),
	ROW("Main", JAVA, "java --module-path mods -m com.shop/com.shop.Main"),
	ROW("Main", JAVA, "java -p mods --module com.shop/com.shop.Main"),
	ROW("Main", JAVA, "java -p mods --module=com.shop/com.shop.Main"),
	ROW("orders", JAVA, "java -p mods -m com.shop.orders"),
	{"Main", JAVA,
	 "java --add-opens java.base/java.lang=ALL-UNNAMED --add-modules a.b -cp x Main", NULL,
	 NULL},
	ROW("Main", JAVA, "java --add-opens=java.base/java.lang=ALL-UNNAMED -cp x Main"),
	ROW("Main", JAVA, "java @options.txt Main"),
	ROW("Inner", JAVA, "java com.shop.Outer$Inner"),
	ROW("Server", JAVA, "java com.shop.Server$"),
	ROW("Hello", JAVA, "java src/Hello.java"),
	ROW("unknown_service:java", JAVA, "java @all.txt"),
	ROW("unknown_service:java", JAVA, "java"),
	ROW("unknown_service:java", JAVA, "java -jar"),
	ROW("unknown_service:java", JAVA, "java -cp"),
	ROW("unknown_service:java", JAVA, "java -jar java.jar"),
	/* other launchers are named after themselves, whatever they are called with */
	ROW("myapp", "/opt/myapp/bin/myapp", "bin/myapp -jar x.jar"),
	/* the unit comes first, where it is one */
	{"shop", JAVA, "java -jar orders.jar", "shop.service", NULL},
	{"shop@eu", JAVA, "java -jar orders.jar", "shop@eu.service", NULL},
	{"orders", JAVA, "java -jar orders.jar", "session-3.scope", NULL},
	{"orders", JAVA, "java -jar orders.jar", "init.scope", NULL},
	{"orders", JAVA, "java -jar orders.jar", ".service", NULL},
	/* but not the unit of what runs containers and machines */
	{"orders", JAVA, "java -jar orders.jar", "docker.service", NULL},
	{"orders", JAVA, "java -jar orders.jar", "containerd.service", NULL},
	{"orders", JAVA, "java -jar orders.jar", "k3s.service", NULL},
	{"orders", JAVA, "java -jar orders.jar", "systemd-nspawn@web.service", NULL},
	{"orders", JAVA, "java -jar orders.jar", "machine-web.scope", NULL},
	{"docker-registry", JAVA, "java -jar orders.jar", "docker-registry.service", NULL},
};

static const struct row go_rows[] = {
	{"checkout", "/srv/a", "./a", NULL, "example.com/shop/checkout"},
	{"checkout", "/srv/a", "./a", NULL, "example.com/shop/checkout/v2"},
	{"checkout", "/srv/a", "./a", NULL, "checkout"},
	{"v2", "/srv/a", "./a", NULL, "v2"},
	{"vault", "/srv/a", "./a", NULL, "github.com/x/vault"},
	{"a", "/srv/a", "./a", NULL, "command-line-arguments"},
	{"a", "/srv/a", "./a", NULL, NULL},
	{"shop", "/srv/a", "./a", "shop.service", "example.com/checkout"},
};

static const struct row other_rows[] = {
	ROW("front", "/usr/bin/python3.11", "python3 /srv/front.py"),
	ROW("front", "/usr/bin/python3.11", "python3 -u -X dev -W ignore front.py --port 1"),
	ROW("http.server", "/usr/bin/python3.11", "python3 -m http.server 80"),
	ROW("gunicorn", "/usr/bin/python3", "/usr/bin/python3 /usr/local/bin/gunicorn app:app"),
	ROW("python3.11", "/usr/bin/python3.11", "python3 -c import"),
	ROW("python3.11", "/usr/bin/python3.11", "python3"),
	ROW("python3.11", "/usr/bin/python3.11", "python3 -"),
	ROW("server", "/usr/bin/node", "node --inspect -r dotenv/config server.js"),
	ROW("server", "/usr/bin/node", "node --require ./tracing.js dist/server.mjs"),
	ROW("node18", "/usr/bin/node18", "node -e 1"),
	ROW("puma", "/usr/bin/ruby3.1", "ruby -I lib /usr/bin/puma"),
	ROW("nginx", "/usr/sbin/nginx", "nginx: worker process"),
	ROW("server", NULL, "/opt/server --x"),
	ROW("unknown_service", NULL, ""),
	{"a?b",
	 "/srv/a\x1b"
	 "b",
	 "", NULL, NULL},
};

static void test_java(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(java_rows); i++)
		check(&java_rows[i], LANGUAGE_JVM);
}

static void test_go(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(go_rows); i++)
		check(&go_rows[i], LANGUAGE_GO);
}

static void test_other(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(other_rows); i++)
		check(&other_rows[i], LANGUAGE_OTHER);
}

static void test_long_names_are_cut(void **state)
{
	char exe[1024], name[SERVICE_NAME_MAX];

	(void)state;
	memset(exe, 'x', sizeof(exe));
	name_service(&(struct name_source){.exe = {.p = exe, .n = sizeof(exe)}}, name);
	assert_int_equal(strlen(name), SERVICE_NAME_MAX - 1);
}

static void test_interpreters(void **state)
{
	(void)state;
	assert_string_equal(name_interpreter(STR("/usr/bin/python3.11")), "python");
	assert_string_equal(name_interpreter(STR("/usr/bin/node")), "nodejs");
	assert_null(name_interpreter(STR("/usr/sbin/nginx")));
	assert_null(name_interpreter(STR("")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_java),         cmocka_unit_test(test_go),
		cmocka_unit_test(test_other),        cmocka_unit_test(test_long_names_are_cut),
		cmocka_unit_test(test_interpreters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
