/* The control socket; see control.h. */
#include "service/control.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/log.h"
#include "metrics/metrics.h"

/*
 * After accept(2) failed for want of descriptors or memory, so that the loop does not spin on it.
 */
#define ACCEPT_PAUSE_US (1000 * 1000)

/* So much is written in one go before the loop has its turn again. */
#define WRITE_BYTES_MAX (256 * 1024)

struct client {
	struct control *control;
	int fd;
	sd_event_source *io;
	sd_event_source *timer;
	size_t n_request;
	char request[CONTROL_REQUEST_BYTES_MAX];
	char *answer; /* NULL: the request is not complete */
	size_t n_answer;
	size_t n_written;
};

struct control {
	sd_event *event;
	char *path; /* NULL: not bound yet */
	int fd;
	sd_event_source *io;
	sd_event_source *pause;
	control_handler_fn handler;
	void *userdata;
	struct client *clients[CONTROL_CLIENTS_MAX];
};

static void client_free(struct client *client)
{
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		if (client->control->clients[i] == client)
			client->control->clients[i] = NULL;
	}
	sd_event_source_disable_unref(client->io);
	sd_event_source_disable_unref(client->timer);
	if (client->fd >= 0)
		close(client->fd);
	free(client->answer);
	free(client);
}
DEFINE_CLEANUP(struct client *, client_free)

void control_free(struct control *control)
{
	if (!control)
		return;
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		if (control->clients[i])
			client_free(control->clients[i]);
	}
	sd_event_source_disable_unref(control->io);
	sd_event_source_disable_unref(control->pause);
	if (control->fd >= 0)
		close(control->fd);
	if (control->path)
		unlink(control->path);
	free(control->path);
	sd_event_unref(control->event);
	free(control);
}

/* {"error": text, "code": code}; the code is for programs. */
static int make_error(const char *code, const char *text, cJSON **ret)
{
	cJSON *answer = cJSON_CreateObject();

	if (!cJSON_AddStringToObject(answer, "error", text) ||
	    !cJSON_AddStringToObject(answer, "code", code)) {
		cJSON_Delete(answer);
		return -ENOMEM;
	}
	*ret = answer;
	return 0;
}

static bool is_printable(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < ' ' || s.p[i] > '~')
			return false;
	}
	return true;
}

static struct str trim_blanks(struct str s)
{
	while (s.n && s.p[0] == ' ')
		s = str_skip(s, 1);
	while (s.n && s.p[s.n - 1] == ' ')
		s.n--;
	return s;
}

static int ask_handler(struct control *control, struct str line, cJSON **ret)
{
	char text[CONTROL_REQUEST_BYTES_MAX + 64];
	struct str command, argument = STR_NONE;
	ptrdiff_t blank;
	int r;

	if (!is_printable(line))
		return make_error("bad_request", "The request is not printable ASCII", ret);
	command = trim_blanks(line);
	blank = str_find(command, ' ');
	if (blank >= 0) {
		argument = trim_blanks(str_skip(command, (size_t)blank));
		command.n = (size_t)blank;
	}

	r = control->handler(control->userdata, command, argument, ret);
	if (r == 0)
		return 0;
	if (r == CONTROL_UNKNOWN_COMMAND) {
		snprintf(text, sizeof(text), "Unknown command '%.*s'", STR_ARG(command));
		return make_error("unknown_command", text, ret);
	}
	if (r == CONTROL_NOT_FOUND) {
		snprintf(text, sizeof(text), "Nothing found by '%.*s'", STR_ARG(line));
		return make_error("not_found", text, ret);
	}
	snprintf(text, sizeof(text), "The command failed: %s", strerror(-r));
	return make_error("failed", text, ret);
}

/* Turns the answer into text and starts to write it. */
static int client_start_answer(struct client *client, cJSON *answer)
{
	client->answer = cJSON_PrintUnformatted(answer);
	if (!client->answer)
		return -ENOMEM;
	client->n_answer = strlen(client->answer);
	/* In the place of the terminator: the answer is a line. */
	client->answer[client->n_answer++] = '\n';
	return sd_event_source_set_io_events(client->io, EPOLLOUT);
}

static int client_answer_line(struct client *client, struct str line)
{
	cJSON *answer = NULL;
	int r = ask_handler(client->control, line, &answer);

	metrics_increment(METRIC_CONTROL_REQUESTS);
	if (r == 0)
		r = client_start_answer(client, answer);
	cJSON_Delete(answer);
	return r;
}

/* Returns 0, or a negative errno when the client is of no more use. */
static int client_read(struct client *client)
{
	size_t room = sizeof(client->request) - client->n_request;
	ssize_t n = read(client->fd, client->request + client->n_request, room);
	struct str request;
	cJSON *error = NULL;
	ptrdiff_t end;
	int r;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPIPE;

	client->n_request += (size_t)n;
	request = (struct str){.p = client->request, .n = client->n_request};
	end = str_find(request, '\n');
	if (end >= 0)
		return client_answer_line(client, (struct str){.p = request.p, .n = (size_t)end});
	if (request.n < sizeof(client->request))
		return 0;

	r = make_error("bad_request", "The request is longer than 255 bytes", &error);
	if (r == 0)
		r = client_start_answer(client, error);
	cJSON_Delete(error);
	return r;
}

/* Returns 0, 1 when all is written, or a negative errno. */
static int client_write(struct client *client)
{
	size_t left = client->n_answer - client->n_written;
	ssize_t n = send(client->fd, client->answer + client->n_written,
			 MIN(left, (size_t)WRITE_BYTES_MAX), MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	client->n_written += (size_t)n;
	return client->n_written == client->n_answer;
}

/*
 * What a client sent beyond its line would make close(2) a reset, and the answer's last bytes with
 * it.
 */
static void discard_input(int fd)
{
	char bytes[1024];

	for (int i = 0; i < 16; i++) {
		if (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) <= 0)
			return;
	}
}

static int on_client_io(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct client *client = userdata;
	int r;

	(void)source;
	(void)events;
	r = client->answer ? client_write(client) : client_read(client);
	if (r == 0)
		return 0;
	if (r == 1)
		discard_input(fd);
	client_free(client);
	return 0;
}

static int on_client_timeout(sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source;
	(void)usec;
	metrics_increment(METRIC_CONTROL_REFUSED);
	client_free(userdata);
	return 0;
}

static int client_new(struct control *control, int *fd, struct client **slot)
{
	_cleanup_(client_freep) struct client *client = calloc(1, sizeof(*client));
	int r;

	if (!client)
		return -ENOMEM;
	client->control = control;
	client->fd = TAKE_FD(*fd);
	r = sd_event_add_io(control->event, &client->io, client->fd, EPOLLIN, on_client_io, client);
	if (r < 0)
		return r;
	r = sd_event_add_time_relative(control->event, &client->timer, CLOCK_MONOTONIC,
				       CONTROL_TIMEOUT_S * 1000000ULL, 0, on_client_timeout,
				       client);
	if (r < 0)
		return r;
	*slot = TAKE_PTR(client);
	return 0;
}

/* The text goes into an empty socket buffer: it fits, or the client has gone. */
static void turn_away(int fd, const char *answer)
{
	metrics_increment(METRIC_CONTROL_REFUSED);
	(void)!send(fd, answer, strlen(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
	discard_input(fd);
}

static bool may_ask(int fd)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0)
		return false;
	return peer.uid == 0 || peer.uid == geteuid();
}

static struct client **free_slot(struct control *control)
{
	for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		if (!control->clients[i])
			return &control->clients[i];
	}
	return NULL;
}

static int on_accept_pause_end(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct control *control = userdata;

	(void)source;
	(void)usec;
	return sd_event_source_set_enabled(control->io, SD_EVENT_ON);
}

static int pause_accept(struct control *control)
{
	int r = sd_event_source_set_enabled(control->io, SD_EVENT_OFF);

	if (r < 0)
		return r;
	r = sd_event_source_set_time_relative(control->pause, ACCEPT_PAUSE_US);
	if (r < 0)
		return r;
	return sd_event_source_set_enabled(control->pause, SD_EVENT_ONESHOT);
}

static int on_connection(sd_event_source *source, int listen_fd, uint32_t events, void *userdata)
{
	struct control *control = userdata;
	_cleanup_(closep) int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct client **slot;
	int r;

	(void)source;
	(void)events;
	if (fd < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return 0;
		log_ratelimited(LOG_LEVEL_WARNING,
				"Cannot accept on the control socket, pausing: %m");
		return pause_accept(control);
	}
	if (!may_ask(fd)) {
		turn_away(fd, "{\"error\":\"Only root may ask\",\"code\":\"not_root\"}\n");
		return 0;
	}
	slot = free_slot(control);
	if (!slot) {
		turn_away(fd, "{\"error\":\"Too many clients at once\",\"code\":\"busy\"}\n");
		return 0;
	}
	r = client_new(control, &fd, slot);
	if (r < 0)
		metrics_increment(METRIC_CONTROL_REFUSED);
	return 0;
}

static int control_listen(struct control *control, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);

	control->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (control->fd < 0)
		return -errno;
	/* bind(2) gives the file the mode of the socket: at no moment is it open to others. */
	if (fchmod(control->fd, 0600) < 0 ||
	    bind(control->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	control->path = strdup(path);
	if (!control->path) {
		unlink(path);
		return -ENOMEM;
	}
	if (listen(control->fd, CONTROL_CLIENTS_MAX) < 0)
		return -errno;
	return 0;
}

int control_new(sd_event *event, const char *path, control_handler_fn handler, void *userdata,
		struct control **ret)
{
	_cleanup_(control_freep) struct control *control = calloc(1, sizeof(*control));
	int r;

	if (!control)
		return -ENOMEM;
	control->event = sd_event_ref(event);
	control->fd = -1;
	control->handler = handler;
	control->userdata = userdata;

	r = control_listen(control, path);
	if (r < 0)
		return r;
	r = sd_event_add_io(event, &control->io, control->fd, EPOLLIN, on_connection, control);
	if (r < 0)
		return r;
	r = sd_event_add_time_relative(event, &control->pause, CLOCK_MONOTONIC, ACCEPT_PAUSE_US, 0,
				       on_accept_pause_end, control);
	if (r < 0)
		return r;
	r = sd_event_source_set_enabled(control->pause, SD_EVENT_OFF);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(control);
	return 0;
}
