/* Names of services; see name.h. */
#include "discover/name.h"

#include <stdio.h>

#include "base/util.h"
#include "discover/text.h"

static bool ends_with(struct str s, struct str end)
{
	return s.n > end.n && memcmp(s.p + s.n - end.n, end.p, end.n) == 0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_in(struct str s, const struct str *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_equal(s, list[i]))
			return true;
	return false;
}

/* The part behind the last 'c'. */
static struct str after_last(struct str s, char c)
{
	const char *at = s.n ? memrchr(s.p, c, s.n) : NULL;

	return at ? str_skip(s, (size_t)(at - s.p) + 1) : s;
}

/* A file name without its extension; a leading dot is none. */
static struct str without_extension(struct str name)
{
	const char *dot = name.n ? memrchr(name.p, '.', name.n) : NULL;

	if (dot && dot != name.p)
		name.n = (size_t)(dot - name.p);
	return name;
}

/* --- systemd units */

/*
 * Units of what runs containers and machines. A program that is met in one of them is named by
 * itself.
 */
static bool is_engine(struct str unit)
{
	static const struct str engines[] = {
		STR("docker"),
		STR("containerd"),
		STR("crio"),
		STR("podman"),
		STR("k3s"),
		STR("k3s-agent"),
		STR("rke2-agent"),
		STR("rke2-server"),
		STR("kubelet"),
		STR("buildkit"),
		STR("snap.docker.dockerd"),
	};

	return is_in(unit, engines, ARRAY_SIZE(engines)) ||
	       str_starts_with(unit, STR("systemd-nspawn@"));
}

/*
 * "shop.service" is "shop", "shop@eu.service" is "shop@eu"; sessions and other scopes name nothing.
 */
static struct str name_from_unit(struct str unit)
{
	if (!ends_with(unit, STR(".service")))
		return STR_NONE;
	unit.n -= strlen(".service");
	return is_engine(unit) ? STR_NONE : unit;
}

/* --- Java */

/* Options of the java launcher whose value is the next argument (JDK 8 to 25, "java --help"). */
static const struct str java_options_with_value[] = {
	STR("-cp"),
	STR("-classpath"),
	STR("--class-path"),
	STR("-p"),
	STR("--module-path"),
	STR("--upgrade-module-path"),
	STR("--add-modules"),
	STR("--enable-native-access"),
	STR("--illegal-native-access"),
	STR("--limit-modules"),
	STR("--add-reads"),
	STR("--add-exports"),
	STR("--add-opens"),
	STR("--patch-module"),
	STR("--source"),
};

/*
 * The length of a name without the version behind it, as build tools append it:
 * "orders-1.2.3-SNAPSHOT", "orders_2.0", "orders-v1.4". A single number counts only before
 * "-SNAPSHOT": "node-2" is the second node.
 */
static size_t length_without_version(struct str name)
{
	for (size_t i = 1; i + 1 < name.n; i++) {
		size_t at = i + 1;

		if (name.p[i] != '-' && name.p[i] != '_')
			continue;
		if (name.p[at] == 'v' && at + 1 < name.n)
			at++;
		if (!is_digit(name.p[at]))
			continue;
		while (at < name.n && is_digit(name.p[at]))
			at++;
		if (at + 1 < name.n && name.p[at] == '.' && is_digit(name.p[at + 1]))
			return i;
		if (str_starts_with(str_skip(name, at), STR("-SNAPSHOT")))
			return i;
	}
	return name.n;
}

static struct str name_from_jar(struct str path)
{
	struct str name = text_base_name(path);

	if (ends_with(name, STR(".jar")) || ends_with(name, STR(".war")))
		name.n -= strlen(".jar");
	name.n = length_without_version(name);
	return name;
}

/* "com.shop.Orders", "Orders$Main", "Server$" (Scala) or a source file "src/Orders.java". */
static struct str name_from_class(struct str class)
{
	if (ends_with(class, STR(".java"))) {
		class = text_base_name(class);
		class.n -= strlen(".java");
		return class;
	}
	while (class.n > 1 && class.p[class.n - 1] == '$')
		class.n--;
	return after_last(after_last(after_last(class, '/'), '.'), '$');
}

/* "shop.orders/com.shop.Main" is Main, "shop.orders" is orders. */
static struct str name_from_module(struct str module)
{
	return name_from_class(after_last(module, '/'));
}

static bool is_module_option(struct str argument)
{
	return str_equal(argument, STR("-m")) || str_equal(argument, STR("--module"));
}

static struct str name_from_java_arguments(struct str arguments)
{
	struct str argument;

	text_next(&arguments);
	while ((argument = text_next(&arguments)).p) {
		if (str_equal(argument, STR("-jar")))
			return name_from_jar(text_next(&arguments));
		if (is_module_option(argument))
			return name_from_module(text_next(&arguments));
		if (str_starts_with(argument, STR("--module=")))
			return name_from_module(str_skip(argument, strlen("--module=")));
		if (is_in(argument, java_options_with_value, ARRAY_SIZE(java_options_with_value))) {
			text_next(&arguments);
			continue;
		}
		/* What an @file holds is not read: it may have changed since. */
		if (argument.n == 0 || argument.p[0] == '-' || argument.p[0] == '@')
			continue;
		return name_from_class(argument);
	}
	return STR_NONE;
}

/* Other launchers (jlink, jpackage, a program that embeds the JVM) are named after themselves. */
static struct str name_from_java(const struct name_source *source)
{
	struct str launcher = text_base_name(source->exe);

	if (!str_equal(launcher, STR("java")) && !str_equal(launcher, STR("javaw")))
		return launcher;
	return name_from_java_arguments(source->arguments);
}

/* --- Go */

/* "v2": the suffix of a module's major version, which is no name. */
static bool is_major_version(struct str element)
{
	if (element.n < 2 || element.p[0] != 'v')
		return false;
	for (size_t i = 1; i < element.n; i++)
		if (!is_digit(element.p[i]))
			return false;
	return true;
}

static struct str name_from_go_module(struct str module)
{
	struct str last = text_base_name(module);

	/* "go build main.go" outside a module. */
	if (str_equal(module, STR("command-line-arguments")))
		return STR_NONE;
	if (is_major_version(last) && last.n < module.n) {
		module.n -= last.n + 1;
		last = text_base_name(module);
	}
	return last;
}

/* --- interpreters */

struct interpreter {
	const char *name;
	const char *language;
	const char *with_value; /* one-letter options whose value is the next argument */
	const char *no_script;  /* one-letter options after which there is no script: inline code */
	const struct str *long_with_value;
	size_t n_long_with_value;
	bool has_modules; /* -m names a module to run */
};

static const struct str node_long[] = {
	STR("--require"),  STR("--import"),     STR("--loader"),
	STR("--env-file"), STR("--conditions"), STR("--experimental-loader"),
	STR("--title"),
};
static const struct str python_long[] = {STR("--check-hash-based-pycs")};

static const struct interpreter interpreters[] = {
	{"python", "python", "WX", "c", python_long, ARRAY_SIZE(python_long), true},
	{"pypy", "python", "WX", "c", python_long, ARRAY_SIZE(python_long), true},
	{"node", "nodejs", "rC", "ep", node_long, ARRAY_SIZE(node_long), false},
	{"nodejs", "nodejs", "rC", "ep", node_long, ARRAY_SIZE(node_long), false},
	{"ruby", "ruby", "CEIr", "e", NULL, 0, false},
	{"perl", "perl", "I", "eE", NULL, 0, false},
	{"php", "php", "cdtS", "r", NULL, 0, false},
};

/* The base name may bear a version: "python3.11", "node18". */
static const struct interpreter *find_interpreter(struct str exe)
{
	struct str base = text_base_name(exe);

	while (base.n > 0 && (is_digit(base.p[base.n - 1]) || base.p[base.n - 1] == '.'))
		base.n--;
	for (size_t i = 0; i < ARRAY_SIZE(interpreters); i++)
		if (str_equal(base, str_from(interpreters[i].name)))
			return &interpreters[i];
	return NULL;
}

const char *name_interpreter(struct str exe)
{
	const struct interpreter *interpreter = find_interpreter(exe);

	return interpreter ? interpreter->language : NULL;
}

static struct str name_from_script(const struct interpreter *interpreter, struct str arguments)
{
	struct str argument;

	text_next(&arguments);
	while ((argument = text_next(&arguments)).p) {
		if (argument.n < 2 || argument.p[0] != '-')
			return argument.n && argument.p[0] != '-'
				       ? without_extension(text_base_name(argument))
				       : STR_NONE;
		if (argument.n == 2 && strchr(interpreter->no_script, argument.p[1]))
			return STR_NONE;
		if (interpreter->has_modules && argument.n == 2 && argument.p[1] == 'm')
			return text_next(&arguments);
		if ((argument.n == 2 && strchr(interpreter->with_value, argument.p[1])) ||
		    is_in(argument, interpreter->long_with_value, interpreter->n_long_with_value))
			text_next(&arguments);
	}
	return STR_NONE;
}

/* --- all of them */

static struct str name_from_language(const struct name_source *source)
{
	const struct interpreter *interpreter;

	switch (source->language) {
	case LANGUAGE_JVM:
		return name_from_java(source);
	case LANGUAGE_GO:
		return name_from_go_module(source->go_module);
	case LANGUAGE_OTHER:
	case _LANGUAGE_MAX:
		break;
	}
	interpreter = find_interpreter(source->exe);
	return interpreter ? name_from_script(interpreter, source->arguments) : STR_NONE;
}

void name_service(const struct name_source *source, char ret_name[SERVICE_NAME_MAX])
{
	struct str name = name_from_unit(source->unit);

	if (name.n == 0)
		name = name_from_language(source);
	if (name.n == 0)
		name = text_base_name(source->exe);
	/* A process without a readable executable has its first argument. */
	if (name.n == 0) {
		struct str arguments = source->arguments;

		name = text_base_name(text_next(&arguments));
	}

	/*
	 * What OpenTelemetry's SDKs say where they know nothing better (resource conventions,
	 * service.name).
	 */
	if (str_equal(name, STR("java")))
		name = STR("unknown_service:java");
	if (name.n == 0)
		name = STR("unknown_service");
	snprintf(ret_name, SERVICE_NAME_MAX, "%.*s", STR_ARG(name));
	text_clean(ret_name, strlen(ret_name));
}
