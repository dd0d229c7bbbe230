/* The control socket, asked as tsunagictl asks it, and as nobody should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "metrics/metrics.h"
#include "service/control.h"

#define BIG_BYTES (8 * 1024 * 1024)

struct fixture {
	sd_event *event;
	struct control *control;
	char path[64];
	char dir[32];
	char command[300], argument[300]; /* as the handler got them */
	int handled;
};

static int answer(void *userdata, struct str command, struct str argument, cJSON **ret_answer)
{
	struct fixture *f = userdata;

	f->handled++;
	snprintf(f->command, sizeof(f->command), "%.*s", STR_ARG(command));
	snprintf(f->argument, sizeof(f->argument), "%.*s", STR_ARG(argument));
	if (str_equal(command, STR("fail")))
		return -ENOMEM;
	if (str_equal(command, STR("trace")))
		return CONTROL_NOT_FOUND;
	if (str_equal(command, STR("big"))) {
		char *text = malloc(BIG_BYTES + 1);

		memset(text, 'x', BIG_BYTES);
		text[BIG_BYTES] = '\0';
		*ret_answer = cJSON_CreateString(text);
		free(text);
		return 0;
	}
	if (!str_equal(command, STR("status")))
		return CONTROL_UNKNOWN_COMMAND;
	*ret_answer = cJSON_CreateObject();
	cJSON_AddNumberToObject(*ret_answer, "pid", 7);
	return 0;
}

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){.dir = "/tmp/test_control.XXXXXX"};
	if (!mkdtemp(f.dir) || sd_event_new(&f.event) < 0)
		return -1;
	snprintf(f.path, sizeof(f.path), "%s/control.sock", f.dir);
	if (control_new(f.event, f.path, answer, &f, &f.control) < 0)
		return -1;
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	control_free(f->control);
	sd_event_unref(f->event);
	/* Fails when the socket is still there. */
	return rmdir(f->dir);
}

static int connect_to(const struct fixture *f)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	strcpy(address.sun_path, f->path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void send_text(int fd, const char *text, size_t n)
{
	assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
}

static void turn_loop(struct fixture *f)
{
	int r;

	while ((r = sd_event_run(f->event, 0)) > 0)
		;
	assert_int_equal(r, 0);
}

/* Everything up to the end of the stream, the loop turning meanwhile; to be freed. */
static char *read_all(struct fixture *f, int fd)
{
	size_t n = 0, allocated = 1 << 16;
	char *text = malloc(allocated + 1);

	for (;;) {
		ssize_t got = read(fd, text + n, allocated - n);

		if (got == 0)
			break;
		if (got < 0) {
			assert_int_equal(errno, EAGAIN);
			assert_true(sd_event_run(f->event, 6000000) > 0);
			continue;
		}
		n += (size_t)got;
		if (n == allocated) {
			allocated *= 2;
			text = realloc(text, allocated + 1);
		}
	}
	text[n] = '\0';
	return text;
}

static void expect_answer(struct fixture *f, const char *request, size_t n, const char *expected)
{
	_cleanup_(closep) int fd = connect_to(f);
	_cleanup_(freep) char *text = NULL;

	send_text(fd, request, n);
	text = read_all(f, fd);
	assert_string_equal(text, expected);
}

static void test_answers(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);

	expect_answer(f, "status\n", 7, "{\"pid\":7}\n");
	assert_string_equal(f->argument, "");
	expect_answer(f, "  status   a b  \n", 17, "{\"pid\":7}\n");
	assert_string_equal(f->command, "status");
	assert_string_equal(f->argument, "a b");
	expect_answer(f, "what\n", 5,
		      "{\"error\":\"Unknown command 'what'\",\"code\":\"unknown_command\"}\n");
	expect_answer(f, "trace abc\n", 10,
		      "{\"error\":\"Nothing found by 'trace abc'\",\"code\":\"not_found\"}\n");
	expect_answer(
		f, "fail\n", 5,
		"{\"error\":\"The command failed: Cannot allocate memory\",\"code\":\"failed\"}\n");
	expect_answer(f, "\n", 1,
		      "{\"error\":\"Unknown command ''\",\"code\":\"unknown_command\"}\n");
	/* What follows the line must not cost the answer. */
	expect_answer(f, "status\nmore\nand more\n", 21, "{\"pid\":7}\n");
}

static void test_bad_requests(void **state)
{
	struct fixture *f = *state;
	char longest[CONTROL_REQUEST_BYTES_MAX + 200];

	expect_answer(
		f, "sta\033tus\n", 8,
		"{\"error\":\"The request is not printable ASCII\",\"code\":\"bad_request\"}\n");
	expect_answer(
		f, "st\0tus\n", 7,
		"{\"error\":\"The request is not printable ASCII\",\"code\":\"bad_request\"}\n");
	assert_int_equal(f->handled, 0);

	memset(longest, ' ', sizeof(longest));
	memcpy(longest, "status", 6);
	longest[CONTROL_REQUEST_BYTES_MAX - 1] = '\n';
	expect_answer(f, longest, CONTROL_REQUEST_BYTES_MAX, "{\"pid\":7}\n");
	longest[CONTROL_REQUEST_BYTES_MAX - 1] = ' ';
	longest[sizeof(longest) - 1] = '\n';
	expect_answer(
		f, longest, sizeof(longest),
		"{\"error\":\"The request is longer than 255 bytes\",\"code\":\"bad_request\"}\n");
	assert_int_equal(f->handled, 1);
}

static void test_request_in_pieces(void **state)
{
	struct fixture *f = *state;
	_cleanup_(closep) int fd = connect_to(f);
	_cleanup_(freep) char *text = NULL;

	for (const char *c = "status x"; *c; c++) {
		send_text(fd, c, 1);
		turn_loop(f);
	}
	assert_int_equal(f->handled, 0);
	send_text(fd, "\n", 1);
	text = read_all(f, fd);
	assert_string_equal(text, "{\"pid\":7}\n");
	assert_string_equal(f->argument, "x");
}

/* A long answer goes out in pieces, and others are answered in between. */
static void test_long_answer_does_not_block(void **state)
{
	struct fixture *f = *state;
	_cleanup_(closep) int slow = connect_to(f);
	_cleanup_(freep) char *text = NULL;

	send_text(slow, "big\n", 4);
	turn_loop(f);
	expect_answer(f, "status\n", 7, "{\"pid\":7}\n");

	text = read_all(f, slow);
	assert_int_equal(strlen(text), BIG_BYTES + 3);
	assert_int_equal(strspn(text + 1, "x"), BIG_BYTES);
}

static void test_clients_that_leave(void **state)
{
	struct fixture *f = *state;

	/* More of them than there are places: each place is given back. */
	for (int i = 0; i < 3 * CONTROL_CLIENTS_MAX; i++) {
		int fd = connect_to(f);

		if (i % 3)
			send_text(fd, "big\n", i % 3 == 1 ? 2 : 4);
		turn_loop(f);
		close(fd);
		turn_loop(f);
	}
	expect_answer(f, "status\n", 7, "{\"pid\":7}\n");
}

static void test_too_many_and_too_slow(void **state)
{
	struct fixture *f = *state;
	uint64_t refused = metrics_get(METRIC_CONTROL_REFUSED);
	int idle[CONTROL_CLIENTS_MAX];
	uint64_t before, took_ms;

	for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
		idle[i] = connect_to(f);
	turn_loop(f);
	expect_answer(f, "status\n", 7,
		      "{\"error\":\"Too many clients at once\",\"code\":\"busy\"}\n");
	assert_int_equal(f->handled, 0);
	assert_int_equal(metrics_get(METRIC_CONTROL_REFUSED), refused + 1);

	/*
	 * The idle ones are dropped, without an answer, when their time is up; then there is room
	 * again.
	 */
	before = now_ns(CLOCK_MONOTONIC);
	for (size_t i = 0; i < ARRAY_SIZE(idle); i++) {
		_cleanup_(freep) char *text = read_all(f, idle[i]);

		assert_string_equal(text, "");
		close(idle[i]);
	}
	took_ms = (now_ns(CLOCK_MONOTONIC) - before) / NSEC_PER_MSEC;
	assert_in_range(took_ms, CONTROL_TIMEOUT_S * 1000 - 500, CONTROL_TIMEOUT_S * 1000 + 2000);
	assert_int_equal(metrics_get(METRIC_CONTROL_REFUSED), refused + 1 + CONTROL_CLIENTS_MAX);
	expect_answer(f, "status\n", 7, "{\"pid\":7}\n");
}

static void test_only_root_is_answered(void **state)
{
	struct fixture *f = *state;
	int fds[2], status;
	pid_t child;

	if (geteuid() != 0)
		skip();
	/* The file's mode keeps others out already; opened wide, the peer's user still counts. */
	assert_int_equal(chmod(f->dir, 0755), 0);
	assert_int_equal(chmod(f->path, 0666), 0);
	assert_int_equal(pipe(fds), 0);
	child = fork();
	if (child == 0) {
		char byte;
		int fd;

		if (setuid(65534) < 0)
			_exit(1);
		fd = connect_to(f);
		if (send(fd, "status\n", 7, MSG_NOSIGNAL) != 7 || write(fds[1], "c", 1) != 1)
			_exit(2);
		while (read(fd, &byte, 1) < 0 && errno == EAGAIN)
			usleep(1000);
		_exit(byte == '{' && f->handled == 0 ? 0 : 3);
	}
	assert_int_equal(read(fds[0], &(char){0}, 1), 1);
	turn_loop(f);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(f->handled, 0);
	close(fds[0]);
	close(fds[1]);
}

static void test_paths_that_do_not_work(void **state)
{
	struct fixture *f = *state;
	struct control *control = NULL;
	char path[200];

	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(control_new(f->event, path, answer, f, &control), -ENAMETOOLONG);
	assert_int_equal(control_new(f->event, f->path, answer, f, &control), -EADDRINUSE);
	assert_int_equal(control_new(f->event, "/nonexistent/s", answer, f, &control), -ENOENT);
	assert_null(control);
	/* The socket that was there works on. */
	expect_answer(f, "status\n", 7, "{\"pid\":7}\n");
}

static void test_freed_with_clients(void **state)
{
	struct fixture *f = *state;
	_cleanup_(closep) int idle = connect_to(f);
	_cleanup_(closep) int reading = connect_to(f);

	send_text(reading, "big\n", 4);
	turn_loop(f);
	control_free(f->control);
	f->control = NULL;
	turn_loop(f);
	assert_int_equal(read(idle, &(char){0}, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(test_request_in_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_answer_does_not_block, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clients_that_leave, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many_and_too_slow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_only_root_is_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_paths_that_do_not_work, setup, teardown),
		cmocka_unit_test_setup_teardown(test_freed_with_clients, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
