/*
 * The configuration as a person meets it: defaults, a full file, what is refused and in which
 * words.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/log.h"
#include "config/config.h"

static struct config parse(const char *text)
{
	struct config config = {0};
	struct config_error error = {0};
	int r = config_parse(str_from(text), "t.yaml", &config, &error);

	if (r)
		print_error("%s\n", error.text);
	assert_int_equal(r, 0);
	return config;
}

/*
 * The text is refused with a message that starts with 'place' and has 'words' in it, on one line.
 */
static void refuse(struct str text, const char *place, const char *words)
{
	struct config config = {.tap = 77};
	struct config_error error = {0};

	if (config_parse(text, "t.yaml", &config, &error) != CONFIG_INVALID)
		fail_msg("accepted: %.*s", STR_ARG(text));
	assert_int_equal(config.tap, 77);
	if (!str_starts_with(str_from(error.text), str_from(place)) || !strstr(error.text, words) ||
	    strchr(error.text, '\n'))
		fail_msg("'%s' is not at '%s' with '%s'", error.text, place, words);
}

static void assert_defaults(const struct config *c)
{
	assert_null(c->endpoint);
	assert_int_equal(c->export_timeout_ms, 10000);
	assert_int_equal(c->export_batch_spans, 512);
	assert_int_equal(c->export_batch_ms, 1000);
	assert_int_equal(c->export_queue_spans, 16384);
	assert_int_equal(c->include.n, 2);
	assert_int_equal(c->include.items[0].languages, 1 << LANGUAGE_JVM);
	assert_int_equal(c->include.items[1].languages, 1 << LANGUAGE_GO);
	assert_int_equal(c->exclude.n, 0);
	assert_int_equal(c->n_services, 0);
	assert_int_equal(c->propagate, CONFIG_PROPAGATE_ON);
	assert_int_equal(c->head_bytes_max, 16384);
	assert_int_equal(c->exchange_idle_ms, 600000);
	assert_int_equal(c->connections_max, 131072);
	assert_int_equal(c->processes_max, 4096);
	assert_int_equal(c->requests_max, 65536);
	assert_int_equal(c->open_bytes, 16 << 20);
	assert_int_equal(c->ring_bytes, 2 << 20);
	assert_int_equal(c->store_traces, 1000);
	assert_int_equal(c->store_bytes, 8 << 20);
	assert_int_equal(c->tap, CONFIG_TAP_AUTO);
	assert_int_equal(c->log_level, LOG_LEVEL_INFO);
}

static void test_defaults(void **state)
{
	struct config c;

	(void)state;
	assert_int_equal(config_default(&c), 0);
	assert_defaults(&c);
	assert_int_equal(c.include.items[0].line, 0);
	config_done(&c);
}

static void test_texts_that_say_nothing(void **state)
{
	static const char *const texts[] = {
		"",
		"\xef\xbb\xbf",
		"\n# only a comment\twith a tab\r\n",
		"---\n...\n",
		"discover:\n  # include: []\nexport:\nservices:\n",
		"\xef\xbb\xbf# BOM\r\nexport:\r\n  timeout: 10s\r\nendpoint: ~\r\n",
		"{}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct config c = parse(texts[i]);

		assert_defaults(&c);
		config_done(&c);
	}
}

static void test_reference_is_the_file_and_the_defaults(void **state)
{
	_cleanup_(freep) char *written = NULL, *file = NULL;
	size_t n, n_file;
	FILE *out = open_memstream(&written, &n);
	FILE *in = fopen(SOURCE_DIR "/config/tsunagi.yaml", "re");
	struct config_error error;
	struct config c;

	(void)state;
	assert_int_equal(config_write_reference(out), 0);
	fclose(out);

	assert_non_null(in);
	file = malloc(n + 1);
	n_file = fread(file, 1, n + 1, in);
	fclose(in);
	assert_int_equal(n_file, n);
	assert_memory_equal(file, written, n);

	assert_int_equal(config_load(SOURCE_DIR "/config/tsunagi.yaml", &c, &error), 0);
	assert_defaults(&c);
	/* The values do stand in the file: they were not merely commented out. */
	assert_int_not_equal(c.include.items[0].line, 0);
	config_done(&c);
}

static void test_every_key(void **state)
{
	struct config c =
		parse("endpoint: https://user:secret@[::1]:4318/otlp\n"
		      "export: {timeout: 2s, batch_spans: 7, batch_delay: 500ms, queue_spans: 64}\n"
		      "discover:\n"
		      "  include:\n"
		      "    - exe: \"/srv/*\"\n"
		      "      cmd: '*a: b*'\n"
		      "      user: 1000\n"
		      "      unit: a.service\n"
		      "      container: 4f2a9c0d71be\n"
		      "      netns: /run/netns/a\n"
		      "      port: 8080-8090\n"
		      "      language: [jvm, other]\n"
		      "    - port: 65535\n"
		      "      language: any\n"
		      "    - {language: [any]}\n"
		      "  exclude: [{exe: nginx}]\n"
		      "services:\n"
		      "  - match: {port: 80}\n"
		      "    name: front\n"
		      "  - {name: back, match: {user: www-data}, propagate: off}\n"
		      "  - {match: {language: any}, propagate: on}\n"
		      "propagate: off\n"
		      "http: {head_bytes_max: 4KiB, exchange_idle: 1h}\n"
		      "limits: {connections: 1, processes: 2, open_requests: 3, open_bytes: 1MB,\n"
		      "         ring_bytes: 64KB}\n"
		      "store: {traces: 5, bytes: 65536}\n"
		      "tap: kprobe\n"
		      "log_level: debug\n");
	struct selector *s = c.include.items;

	(void)state;
	assert_string_equal(c.endpoint, "https://user:secret@[::1]:4318/otlp");
	assert_int_equal(c.export_timeout_ms, 2000);
	assert_int_equal(c.export_batch_spans, 7);
	assert_int_equal(c.export_batch_ms, 500);
	assert_int_equal(c.export_queue_spans, 64);
	assert_int_equal(c.include.n, 3);
	assert_string_equal(s[0].exe, "/srv/*");
	assert_string_equal(s[0].command, "*a: b*");
	assert_string_equal(s[0].user, "1000");
	assert_string_equal(s[0].unit, "a.service");
	assert_string_equal(s[0].container, "4f2a9c0d71be");
	assert_string_equal(s[0].netns, "/run/netns/a");
	assert_int_equal(s[0].port_first, 8080);
	assert_int_equal(s[0].port_last, 8090);
	assert_int_equal(s[0].languages, 1 << LANGUAGE_JVM | 1 << LANGUAGE_OTHER);
	assert_int_equal(s[0].line, 5);
	assert_int_equal(s[1].port_first, 65535);
	assert_int_equal(s[1].port_last, 65535);
	assert_int_equal(s[1].languages, 0);
	assert_null(s[2].exe);
	assert_int_equal(c.exclude.n, 1);
	assert_string_equal(c.exclude.items[0].exe, "nginx");
	assert_int_equal(c.n_services, 3);
	assert_int_equal(c.services[0].match.port_first, 80);
	assert_int_equal(c.services[0].propagate, CONFIG_PROPAGATE_UNSET);
	assert_int_equal(c.services[1].propagate, CONFIG_PROPAGATE_OFF);
	assert_int_equal(c.services[2].propagate, CONFIG_PROPAGATE_ON);
	assert_null(c.services[2].name);
	assert_int_equal(c.propagate, CONFIG_PROPAGATE_OFF);
	assert_string_equal(c.services[0].name, "front");
	assert_string_equal(c.services[1].match.user, "www-data");
	assert_string_equal(c.services[1].name, "back");
	assert_int_equal(c.head_bytes_max, 4096);
	assert_int_equal(c.exchange_idle_ms, 3600000);
	assert_int_equal(c.connections_max, 1);
	assert_int_equal(c.processes_max, 2);
	assert_int_equal(c.requests_max, 3);
	assert_int_equal(c.open_bytes, 1 << 20);
	assert_int_equal(c.ring_bytes, 65536);
	assert_int_equal(c.store_traces, 5);
	assert_int_equal(c.store_bytes, 65536);
	assert_int_equal(c.tap, CONFIG_TAP_KPROBE);
	assert_int_equal(c.log_level, LOG_LEVEL_DEBUG);
	config_done(&c);

	c = parse("discover: {include: []}\n");
	assert_int_equal(c.include.n, 0);
	config_done(&c);
}

static void test_refusals(void **state)
{
	static const struct {
		const char *text, *place, *words;
	} cases[] = {
		/* keys */
		{"endpont: x", "t.yaml:1:1: ", "did you mean 'endpoint'?"},
		{"\n\nexport:\n  timeuot: 1s", "t.yaml:4:3: ", "did you mean 'timeout'?"},
		{"batch_spans: 5", "t.yaml:1:1: ", "'batch_spans' stands in 'export'"},
		{"export: {tap: auto}", "t.yaml:1:10: ", "'tap' stands at the top level"},
		{"discover: {exe: a}", "t.yaml:1:12: ", "'exe' is a key of a selector"},
		{"export.timeout: 1s", "t.yaml:1:1: ", "unknown key"},
		{"zzzzzz: 1", "t.yaml:1:1: ", "expected one of endpoint, export, discover,"},
		{"discover: {include: [{prt: 1}]}", "t.yaml:1:23: ", "did you mean 'port'?"},
		{"services: [{match: {port: 1}, nam: x}]", "t.yaml:1:31: ", "did you mean 'name'?"},
		{"tap: auto\ntap: auto", "t.yaml:2:1: ", "duplicate key 'tap'"},
		{"export:\n  timeout: 1s\n  timeout: 1s", "t.yaml:3:3: ", "duplicate key"},
		{"[a, b]: 1", "t.yaml:1:1: ", "expected a key"},
		/* types */
		{"- a", "t.yaml:1:1: ", "expected a mapping"},
		{"hello", "t.yaml:1:1: ", "expected a mapping"},
		{"export: 5", "t.yaml:1:9: ", "expected a mapping"},
		{"endpoint: [a]", "t.yaml:1:11: ", "got a list"},
		{"tap:", "t.yaml:1:5: ", "got nothing"},
		{"discover: {include: jvm}", "t.yaml:1:21: ", "expected a list of selectors"},
		{"discover: {include: [jvm]}", "t.yaml:1:22: ", "got 'jvm'"},
		{"discover:\n  include:\n  -", "t.yaml:3:4: ", "got nothing"},
		{"discover: {include: [{exe: [a]}]}", "t.yaml:1:28: ", "expected a pattern"},
		{"discover: {include: [{exe: ''}]}", "t.yaml:1:28: ", "expected a pattern"},
		{"discover: {include: [{exe: \"a\\nb\"}]}", "t.yaml:1:28: ", "got 'a?b'"},
		{"discover: {include: [{exe: \"a\\0b\"}]}", "t.yaml:1:28: ", "got 'a?b'"},
		{"services: {}", "t.yaml:1:11: ", "expected a list of services"},
		{"services: [{name: a}]",
		 "t.yaml:1:12: ", "expected 'match', and 'name', 'propagate' or 'jvm'"},
		{"services: [{match: {port: 1}}]",
		 "t.yaml:1:12: ", "expected 'match', and 'name', 'propagate' or 'jvm'"},
		{"services: [{propagate: on}]",
		 "t.yaml:1:12: ", "expected 'match', and 'name', 'propagate' or 'jvm'"},
		{"services: [{match: {port: 1}, propagate: yes}]",
		 "t.yaml:1:42: ", "expected off or on"},
		/* selectors that match all, or nothing */
		{"discover: {include: [{}]}",
		 "t.yaml:1:22: ", "expected at least one of exe, cmd,"},
		{"discover:\n  exclude:\n  - {}", "t.yaml:3:5: ", "discover.exclude: expected at"},
		{"services: [{match: {}, name: a}]",
		 "t.yaml:1:20: ", "match: expected at least one"},
		{"discover: {include: [{exe: '[a'}]}", "t.yaml:1:28: ", "its '[' has no ']'"},
		{"discover: {exclude: [{cmd: 'a [!]'}]}", "t.yaml:1:28: ", "got 'a [!]'"},
		{"discover: {include: [{unit: '[[:alpha:]'}]}",
		 "t.yaml:1:29: ", "expected a pattern"},
		{"services: [{match: {container: 'a\\'}, name: b}]",
		 "t.yaml:1:32: ", "it ends in a '\\'"},
		{"propagate: 1", "t.yaml:1:12: ", "expected off or on"},
		{"services: [{match: , name: a}]", "t.yaml:1:20: ", "expected a selector"},
		/* values */
		{"tap: fentri", "t.yaml:1:6: ", "auto, fentry, tracepoint or kprobe, got 'fentri'"},
		{"log_level: Debug", "t.yaml:1:12: ", "error, warning, info or debug"},
		{"export: {timeout: 10}",
		 "t.yaml:1:19: ", "a duration from 100ms to 10m, such as 10s"},
		{"export: {timeout: 1.5s}", "t.yaml:1:19: ", "a duration"},
		{"export: {timeout: 11m}", "t.yaml:1:19: ", "a duration"},
		{"export: {batch_spans: 0}", "t.yaml:1:23: ", "from 1 to 8192"},
		{"export: {batch_spans: -1}", "t.yaml:1:23: ", "got '-1'"},
		{"export: {batch_spans: 010}", "t.yaml:1:23: ", "got '010'"},
		{"export: {batch_spans: 99999999999999999999}", "t.yaml:1:23: ", "from 1 to 8192"},
		{"http: {head_bytes_max: 65537}", "t.yaml:1:24: ", "a size from 256B to 64KB"},
		{"limits: {ring_bytes: 100KB}", "t.yaml:1:22: ", "a power of two"},
		{"limits: {ring_bytes: 32KB}", "t.yaml:1:22: ", "a power of two"},
		{"limits: {ring_bytes: 8XB}", "t.yaml:1:22: ", "got '8XB'"},
		{"discover: {include: [{port: 8080-}]}", "t.yaml:1:29: ", "got '8080-'"},
		{"discover: {include: [{port: 65536}]}", "t.yaml:1:29: ", "a port or a range"},
		{"discover: {include: [{port: 010}]}", "t.yaml:1:29: ", "a port or a range"},
		{"discover: {include: [{language: java}]}",
		 "t.yaml:1:33: ", "any, jvm, go or other, or a list of them, got 'java'"},
		{"discover: {include: [{language: [go, c]}]}", "t.yaml:1:38: ", "got 'c'"},
		{"discover: {include: [{language: []}]}", "t.yaml:1:33: ", "got a list"},
		{"endpoint: localhost:4318", "t.yaml:1:11: ", "does not start with http://"},
		/* YAML */
		{"a: b: c", "t.yaml:1:5: ", "put the value in quotes"},
		{"export:\n\ttimeout: 1s", "t.yaml:2:1: ", "got a tab"},
		{"tap:\tauto", "t.yaml:1:5: ", "got a tab"},
		{"tap: &a auto", "t.yaml:1:6: ", "anchors and aliases"},
		{"tap: *a", "t.yaml:1:6: ", "anchors and aliases"},
		{"discover: {include: [{exe: */java}]}", "t.yaml:1:", "in quotes"},
		{"export: &a {timeout: 1s}", "t.yaml:1:9: ", "anchors and aliases"},
		{"tap: !!str auto", "t.yaml:1:6: ", "tags"},
		{"tap: auto\n---\ntap: auto", "t.yaml:2:1: ", "one document"},
		{"[[[[[[[[[[[[[[[[[[[[", "t.yaml:1:17: ", "levels"},
		{"export: {timeout: 1s", "t.yaml:", "expected ',' or '}'"},
		{"export:\n    timeout: 1s\n  batch_spans: 1", "t.yaml:3:3: ", "indentation"},
		/* bytes */
		{"tap: \xff", "t.yaml:1:6: ", "expected UTF-8, got the byte 0xff"},
		{"# \xc3\xa9\xc0\x80", "t.yaml:1:4: ", "expected UTF-8"},
		{"# \xed\xa0\x80", "t.yaml:1:3: ", "expected UTF-8"},
		{"# \xc3", "t.yaml:1:3: ", "expected UTF-8"},
		{"tap: \x1b[1m", "t.yaml:1:6: ", "control character 0x1b"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		refuse(str_from(cases[i].text), cases[i].place, cases[i].words);
	refuse(STR("tap: a\0uto"), "t.yaml:1:7: ", "control character 0x00");
}

static void test_password_is_never_shown(void **state)
{
	static const char *const endpoints[] = {
		"endpoint: https://me:s3cret@",       "endpoint: ftp://me:s3cret@h",
		"endpoint: http://me:s3cret@h:99999", "endpoint: http://me:s3cret@h/#x",
		"endpoint: http://me:s3cret@h: x",    "endpoint: [\"http://me:s3cret@h\"]",
	};
	struct config_error error;
	struct config c;
	char *shown;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(endpoints); i++) {
		assert_int_equal(config_parse(str_from(endpoints[i]), "t", &c, &error),
				 CONFIG_INVALID);
		assert_null(strstr(error.text, "s3cret"));
	}

	assert_int_equal(config_endpoint_shown("https://me:s3c@ret@h:1/p@q", &shown), 0);
	assert_string_equal(shown, "https://***@h:1/p@q");
	free(shown);
	assert_int_equal(config_endpoint_shown("http://h", &shown), 0);
	assert_string_equal(shown, "http://h");
	free(shown);
	assert_int_equal(config_endpoint_shown(NULL, &shown), 0);
	assert_null(shown);
}

static void test_message_is_bounded(void **state)
{
	struct config_error error;
	char path[4096], text[4096];
	struct config c;

	(void)state;
	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	memset(text, 'k', sizeof(text) - 1);
	memcpy(text, "tap: ", 5);
	/* Two-byte characters that do not end where the quotation does. */
	for (size_t i = 5; i + 1 < sizeof(text) - 1; i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	text[4005] = '\0';
	assert_int_equal(config_parse(str_from(text), path, &c, &error), CONFIG_INVALID);
	assert_true(strlen(error.text) < sizeof(error.text) - 1);
	if (!strstr(error.text, "\xc3\xa9...'"))
		fail_msg("%s", error.text);
	assert_non_null(strstr(error.text, "ppp:1:6: "));
}

static void expect_load_refused(const char *path, const char *words)
{
	struct config_error error;
	struct config c;

	assert_int_equal(config_load(path, &c, &error), CONFIG_INVALID);
	if (!strstr(error.text, words) || !str_starts_with(str_from(error.text), str_from(path)))
		fail_msg("'%s' lacks '%s'", error.text, words);
}

static void test_files(void **state)
{
	char dir[] = "/tmp/test_config.XXXXXX";
	_cleanup_(freep) char *path = NULL;
	struct config_error error;
	struct config c;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	expect_load_refused(dir, "got a directory");
	assert_true(asprintf(&path, "%s/f", dir) > 0);
	expect_load_refused(path, "cannot be opened: No such file or directory");

	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1024 * 1024 + 1), 0);
	expect_load_refused(path, "expected at most 1 MB");
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, "tap: fentry", 11, 0), 11);
	assert_int_equal(config_load(path, &c, &error), 0);
	assert_int_equal(c.tap, CONFIG_TAP_FENTRY);
	config_done(&c);

	/* Root reads everything; for anybody else the mode counts. */
	assert_int_equal(fchmod(fd, 0), 0);
	assert_int_equal(chmod(dir, 0755), 0);
	if (geteuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	expect_load_refused(path, "cannot be opened: Permission denied");
	assert_int_equal(seteuid(getuid()), 0);
	close(fd);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(config_load("/dev/null", &c, &error), 0);
	assert_defaults(&c);
	config_done(&c);
}

/* Nothing of these is waited for, and none passes for an empty file. */
static void test_no_files(void **state)
{
	char dir[] = "/tmp/test_config.XXXXXX";
	_cleanup_(freep) char *fifo = NULL, *name = NULL;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_true(asprintf(&fifo, "%s/fifo", dir) > 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	alarm(3);
	expect_load_refused(fifo, "got a pipe with nothing in it");
	alarm(0);
	assert_int_equal(unlink(fifo), 0);

	assert_true(asprintf(&name, "%s/socket", dir) > 0);
	strcpy(address.sun_path, name);
	assert_int_equal(bind(s, (struct sockaddr *)&address, sizeof(address)), 0);
	expect_load_refused(name, "expected a file, got a socket");
	close(s);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(rmdir(dir), 0);

	alarm(3);
	expect_load_refused("/dev/zero", "expected a file, got a device");
	expect_load_refused("/dev/tty", "expected a file, got a device");
	alarm(0);
}

/* What a shell makes of <(...): a pipe, whose writer may take its time. */
static void test_pipes(void **state)
{
	static const char text[] = "tap: fentry";
	struct config_error error;
	struct config c;
	char path[64];
	int fds[2];
	pid_t child;

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		for (size_t i = 0; i < sizeof(text) - 1; i++) {
			usleep(10000);
			if (write(fds[1], text + i, 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	close(fds[1]);
	assert_int_equal(config_load(path, &c, &error), 0);
	assert_int_equal(c.tap, CONFIG_TAP_FENTRY);
	config_done(&c);
	assert_int_equal(waitpid(child, NULL, 0), child);
	expect_load_refused(path, "got a pipe with nothing in it");
	close(fds[0]);

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
	assert_int_equal(write(fds[1], text, 11), 11);
	expect_load_refused(path, "got a pipe that is not closed within 5 s");
	close(fds[0]);
	close(fds[1]);
}

static struct config_error warnings[4];
static size_t n_warnings;

static void note_warning(const char *line)
{
	assert_true(n_warnings < ARRAY_SIZE(warnings));
	strcpy(warnings[n_warnings++].text, line);
}

static void test_users(void **state)
{
	struct config c = parse("discover:\n"
				"  include: [{user: root}, {user: 4000000000}, {exe: a}]\n"
				"  exclude: [{exe: a, user: nosuch-a}]\n"
				"services: [{name: a, match: {user: nosuch-b}}]\n");

	(void)state;
	config_check_users(&c, "t.yaml", note_warning);
	assert_int_equal(n_warnings, 2);
	assert_non_null(strstr(warnings[0].text, "t.yaml:3:28: user: expected a name in "));
	assert_non_null(strstr(warnings[0].text, "got 'nosuch-a'"));
	assert_non_null(strstr(warnings[1].text, "t.yaml:4:36: user: expected a name in "));
	config_done(&c);
}

static void test_long_lists(void **state)
{
	_cleanup_(freep) char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	(void)state;
	fputs("discover: {exclude: [", out);
	for (int i = 0; i < 1025; i++)
		fputs("{exe: a},", out);
	fputs("]}", out);
	fclose(out);
	refuse(str_from(text), "t.yaml:1:21: ", "at most 1024 items");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_texts_that_say_nothing),
		cmocka_unit_test(test_reference_is_the_file_and_the_defaults),
		cmocka_unit_test(test_every_key),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_password_is_never_shown),
		cmocka_unit_test(test_message_is_bounded),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_no_files),
		cmocka_unit_test(test_pipes),
		cmocka_unit_test(test_users),
		cmocka_unit_test(test_long_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
