/*
 * tsunagictl as a person runs it, against a control server that gives fixed answers. The program is
 * looked for beside this one; exit 77 when it was not built.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "service/control.h"

static char program[4096];
static char dir[] = "/tmp/test_tsunagictl.XXXXXX";
static pid_t server;

static const struct {
	const char *command, *argument, *answer;
} answers[] = {
	{"status", "",
	 "{\"version\":\"9.9\",\"pid\":42,\"uptime_s\":3725,\"tap\":{\"name\":\"tracepoint\","
	 "\"reason\":\"first "
	 "that works\",\"refused\":[{\"tap\":\"fentry\",\"reason\":\"Operation not permitted\"}]},"
	 "\"features\":[{\"name\":\"join\",\"available\":true,\"reason\":null},{\"name\":"
	 "\"uprobes\","
	 "\"available\":false,\"reason\":\"no "
	 "kprobes\"}],\"endpoint\":null,\"spans\":{\"server\":10,"
	 "\"client\":5,\"exported\":15,\"lost\":0},\"processes\":{\"traced\":2,\"seen\":120},"
	 "\"connections\":12,\"memory\":{\"rss_bytes\":12582912,\"map_bytes\":524288}}"},
	{"processes", "",
	 "{\"processes\":[{\"pid\":7,\"name\":\"shop\",\"language\":\"jvm\",\"version\":\"17\","
	 "\"state\":"
	 "\"traced\",\"why\":\"language: "
	 "jvm\",\"port\":8080,\"spans\":1234},{\"pid\":12345,\"name\":"
	 "\"h\xc3\xa9\\u001b[31m\\u009b\",\"language\":\"other\",\"version\":null,\"state\":\"left "
	 "alone\","
	 "\"why\":\"no item\",\"port\":null,\"spans\":0}]}"},
	{"processes", "7",
	 "{\"processes\":[{\"pid\":7,\"name\":\"shop\",\"language\":\"jvm\",\"version\":\"17\","
	 "\"state\":"
	 "\"traced\",\"why\":\"language: "
	 "jvm\",\"container\":null,\"unit\":\"shop.service\",\"port\":8080,"
	 "\"exe\":\"/usr/bin/java\",\"command\":\"java -jar shop.jar\",\"spans\":1234}]}"},
	{"traces", "",
	 "{\"traces\":[{\"trace_id\":\"0af7651916cd43dd8448eb211c80319c\",\"root\":\"GET "
	 "/a\",\"service\":"
	 "\"shop\",\"start_unix_nano\":1700000000123456789,\"duration_ns\":12345678,\"spans\":3,"
	 "\"errors\":1}]}"},
	{"trace", "abcd",
	 "{\"trace_id\":\"abcd\",\"text\":\"GET /a\\n  GET /b\\u001b[0m\\n\",\"spans\":[]}"},
	{"doctor", "",
	 "{\"version\":\"0.1\",\"kernel\":\"6.18.0\",\"tap\":{\"name\":\"kprobe\",\"reason\":\"\","
	 "\"refused\":[]},\"features\":[{\"name\":\"join\",\"available\":true}],"
	 "\"checks\":[{\"name\":\"splice\",\"passed\":true,\"failure\":null,\"matters\":true},"
	 "{\"name\":\"sendfile\",\"passed\":false,\"failure\":\"no bytes\",\"matters\":true},"
	 "{\"name\":\"FIONREAD\",\"passed\":false,\"failure\":\"0\",\"matters\":false}]}"},
	{"counters", "",
	 "{\"counters\":[{\"name\":\"queue_full\",\"value\":3,\"help\":\"spans "
	 "dropped\",\"side\":\"daemon\"},"
	 "{\"name\":\"ring_full\",\"value\":0,\"help\":\"records dropped\",\"side\":\"kernel\"}]}"},
};

static int answer(void *userdata, struct str command, struct str argument, cJSON **ret_answer)
{
	bool is_known = false;

	(void)userdata;
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		if (!str_equal(command, str_from(answers[i].command)))
			continue;
		is_known = true;
		if (!str_equal(argument, str_from(answers[i].argument)))
			continue;
		*ret_answer = cJSON_CreateRaw(answers[i].answer);
		return 0;
	}
	return is_known ? CONTROL_NOT_FOUND : CONTROL_UNKNOWN_COMMAND;
}

static void serve(const char *path, int ready_fd)
{
	struct control *control;
	sd_event *event;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (sd_event_new(&event) < 0 || control_new(event, path, answer, NULL, &control) < 0)
		_exit(1);
	if (write(ready_fd, "r", 1) != 1)
		_exit(1);
	sd_event_loop(event);
	_exit(1);
}

static int setup(void **state)
{
	char path[64], byte;
	int fds[2];

	(void)state;
	if (!mkdtemp(dir) || pipe(fds) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/control.sock", dir);
	server = fork();
	if (server == 0)
		serve(path, fds[1]);
	return read(fds[0], &byte, 1) == 1 ? 0 : -1;
}

static void stop_server(void)
{
	if (!server)
		return;
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	server = 0;
}

static int teardown(void **state)
{
	char path[64];

	(void)state;
	stop_server();
	snprintf(path, sizeof(path), "%s/control.sock", dir);
	unlink(path);
	return rmdir(dir);
}

/* What `tsunagictl ARGUMENTS` writes to stdout and stderr, and then its exit status in brackets. */
static void expect(const char *arguments, const char *expected)
{
	char command[5000], output[8192];
	FILE *pipe;
	size_t n;

	snprintf(command, sizeof(command),
		 "{ TZ=UTC '%s' --runtime-dir %s %s; echo \"[$?]\"; } 2>&1", program, dir,
		 arguments);
	pipe = popen(command, "r");
	n = fread(output, 1, sizeof(output) - 1, pipe);
	output[n] = '\0';
	pclose(pipe);
	assert_string_equal(output, expected);
}

static void test_tables(void **state)
{
	(void)state;
	expect("status", "tsunagid     9.9, pid 42, up 1h 02m\n"
			 "Tap          tracepoint: first that works\n"
			 "             not fentry: Operation not permitted\n"
			 "Features     join: yes\n"
			 "             uprobes: no, no kprobes\n"
			 "Endpoint     none: traces are kept in memory\n"
			 "Processes    2 traced, 120 seen\n"
			 "Connections  12\n"
			 "Spans        10 server, 5 client, 15 exported, 0 lost\n"
			 "Memory       12.0 MB resident, 512 KB in maps\n"
			 "[0]\n");
	expect("processes", "  PID  PORT  SPANS  NAME       LANGUAGE  STATE       WHY\n"
			    "    7  8080   1234  shop       jvm 17    traced      language: jvm\n"
			    "12345     -      0  h\xc3\xa9?[31m??  other     left alone  no item\n"
			    "[0]\n");
	expect("processes 7", "PID         7\n"
			      "Name        shop\n"
			      "Language    jvm\n"
			      "Version     17\n"
			      "State       traced\n"
			      "Why         language: jvm\n"
			      "Agent       -\n"
			      "Seen        -\n"
			      "No parents  -\n"
			      "Unit        shop.service\n"
			      "Container   -\n"
			      "Executable  /usr/bin/java\n"
			      "Command     java -jar shop.jar\n"
			      "Port        8080\n"
			      "Spans       1234\n"
			      "[0]\n");
	expect("traces", "STARTED                  DURATION  SPANS  ERRORS  TRACE                  "
			 "           SERVICE  "
			 "ROOT\n"
			 "2023-11-14 22:13:20.123   12.3 ms      3       1  "
			 "0af7651916cd43dd8448eb211c80319c  shop     "
			 "GET /a\n"
			 "[0]\n");
	expect("trace ABCD", "GET /a\n  GET /b?[0m\n[0]\n");
	expect("doctor", "tsunagid   0.1\n"
			 "Kernel     6.18.0\n"
			 "Tap        kprobe\n"
			 "Features   join: yes\n"
			 "Self-test  splice: passed\n"
			 "           sendfile: FAILED, no bytes\n"
			 "           FIONREAD: FAILED, 0 (Go never asks)\n"
			 "[0]\n");
	expect("counters", "3  queue_full  daemon  spans dropped\n[0]\n");
	expect("counters --all", "3  queue_full  daemon  spans dropped\n"
				 "0  ring_full   kernel  records dropped\n"
				 "[0]\n");
}

/* Digits that a double would lose are still there. */
static void test_json_is_as_it_came(void **state)
{
	(void)state;
	expect("traces --json", "{\n"
				"  \"traces\": [\n"
				"    {\n"
				"      \"trace_id\": \"0af7651916cd43dd8448eb211c80319c\",\n"
				"      \"root\": \"GET /a\",\n"
				"      \"service\": \"shop\",\n"
				"      \"start_unix_nano\": 1700000000123456789,\n"
				"      \"duration_ns\": 12345678,\n"
				"      \"spans\": 3,\n"
				"      \"errors\": 1\n"
				"    }\n"
				"  ]\n"
				"}\n"
				"[0]\n");
	expect("--json trace abcd", "{\n"
				    "  \"trace_id\": \"abcd\",\n"
				    "  \"text\": \"GET /a\\n  GET /b\\u001b[0m\\n\",\n"
				    "  \"spans\": []\n"
				    "}\n"
				    "[0]\n");
}

static void test_refusals(void **state)
{
	(void)state;
	expect("statsu", "tsunagictl: unknown command 'statsu'; did you mean 'status'?\n[2]\n");
	expect("qqqqqq", "tsunagictl: unknown command 'qqqqqq'; --help lists them\n[2]\n");
	expect("trace", "tsunagictl: 'trace' needs an ID; 'tsunagictl traces' lists them\n[2]\n");
	expect("trace xyz", "tsunagictl: expected a trace ID of 32 hex digits, got 'xyz'\n[2]\n");
	expect("processes -- -1", "tsunagictl: expected a PID, got '-1'\n[2]\n");
	expect("status now", "tsunagictl: 'status' takes no argument, got 'now'\n[2]\n");
	expect("processes 1 2",
	       "tsunagictl: 'processes' takes one argument at most, got '2' too\n[2]\n");
	expect("trace 0123",
	       "tsunagictl: unknown trace '0123'; 'tsunagictl traces' lists those kept\n[1]\n");
	expect("processes 99",
	       "tsunagictl: unknown process 99; 'tsunagictl processes' lists those known\n[1]\n");
	expect("--version", "tsunagictl " TSUNAGI_VERSION "\n[0]\n");
	expect("status >/dev/full", "tsunagictl: cannot write: No space left on device\n[1]\n");
}

static void test_no_daemon(void **state)
{
	char arguments[128], expected[256];

	(void)state;
	snprintf(arguments, sizeof(arguments), "--runtime-dir %s/none status", dir);
	snprintf(expected, sizeof(expected),
		 "tsunagictl: tsunagid is not running: no socket in '%s/none'\n[1]\n", dir);
	expect(arguments, expected);

	/* A daemon that was killed leaves its socket. */
	stop_server();
	snprintf(expected, sizeof(expected),
		 "tsunagictl: tsunagid is not running: nobody listens on the socket in '%s'\n[1]\n",
		 dir);
	expect("status", expected);
}

/* A daemon that loads has the lock, and no socket yet. */
static void test_starting(void **state)
{
	char path[96], arguments[128], expected[256];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/starting", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(arguments, sizeof(arguments), "--runtime-dir %s status", path);
	strcat(path, "/lock");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_true(dprintf(fd, "%d\n", (int)getpid()) > 0);

	/* As one that was killed leaves it. */
	snprintf(expected, sizeof(expected),
		 "tsunagictl: tsunagid is not running: no socket in '%s/starting'\n[1]\n", dir);
	expect(arguments, expected);

	assert_int_equal(flock(fd, LOCK_EX), 0);
	snprintf(expected, sizeof(expected),
		 "tsunagictl: tsunagid is starting or ending: process %d has the lock on "
		 "'%s/starting', but no socket there yet\n[1]\n",
		 (int)getpid(), dir);
	expect(arguments, expected);
	close(fd);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),    cmocka_unit_test(test_json_is_as_it_came),
		cmocka_unit_test(test_refusals),  cmocka_unit_test(test_starting),
		cmocka_unit_test(test_no_daemon),
	};
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 16);
	char *slash;

	if (n < 0)
		return 1;
	program[n] = '\0';
	slash = strrchr(program, '/');
	strcpy(slash + 1, "tsunagictl");
	if (access(program, X_OK) < 0) {
		printf("Skipped: %s was not built\n", program);
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
