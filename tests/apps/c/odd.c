/*
 * The odd program of the end-to-end tests: a client and a server process, each with one blocking
 * thread, that go through one table of exchanges which ordinary services make only now and then:
 * each of the twelve calls, heads cut at every byte, 1,024 vectors, MSG_PEEK, sendfile, splice,
 * zerocopy, 3 MB in one write, pipelining, bodyless answers, interim answers, chunks, bodies that
 * look like heads, close-delimited bodies, resets.
 *
 * odd PORT LOG [GROUP]: writes LOG.client and LOG.server, JSON lines of what really happened (id,
 * role, method, path, status (0: reset), start, end in nanoseconds of the wall clock). Prints
 * "ready CLIENT_PID SERVER_PID", then waits for a line on standard input (so that a daemon may
 * start first), then runs; exit status 0 when all went as planned.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "odd_io.h"

enum { STEPS_MAX = 1024, MESSAGE_BYTES_MAX = 7 << 20, HEAD_BYTES_MAX = 4096 };

enum framing { FRAMING_LENGTH, FRAMING_CHUNKED, FRAMING_CLOSE };

struct step {
	char group[24], name[40];
	const char *method, *version;
	int status;     /* 0: the server resets the connection instead of answering */
	bool fresh;     /* on a new connection */
	bool pipelined; /* its request leaves in one write with that of the next step */
	struct sending request, response;
	struct receiving at_server, at_client;
	enum framing framing;
	size_t request_body, response_body;
	bool body_like_head;
	unsigned interim; /* this many interim answers before the final one */
	bool interim_joined;
};

static struct step steps[STEPS_MAX];
static unsigned n_steps;
static char message[MESSAGE_BYTES_MAX];

static const char *const call_names[_CALL_MAX] = {
	[CALL_WRITE] = "write",   [CALL_WRITEV] = "writev",   [CALL_SEND] = "send",
	[CALL_SENDTO] = "sendto", [CALL_SENDMSG] = "sendmsg", [CALL_SENDMMSG] = "sendmmsg",
};

static void die(const char *what)
{
	fprintf(stderr, "odd: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A new step of a group; the first of a group is on a new connection. */
static struct step *step_add(const char *group, const char *name, int number)
{
	struct step *step = &steps[n_steps];

	if (n_steps == STEPS_MAX)
		die("too many steps");
	*step = (struct step){
		.method = "GET", .version = "1.1", .status = 200, .response_body = 32};
	snprintf(step->group, sizeof(step->group), "%s", group);
	snprintf(step->name, sizeof(step->name), "%s-%d", name, number);
	step->fresh = n_steps == 0 || strcmp(steps[n_steps - 1].group, group) != 0;
	n_steps++;
	return step;
}

/* Each sending call with each receiving call, in both directions. */
static void plan_calls(void)
{
	for (int out = 0; out < _CALL_MAX; out++) {
		for (int in = 0; in < _CALL_MAX; in++) {
			struct step *step = step_add("call", call_names[out], in);

			step->request.call = step->response.call = (enum call)out;
			step->at_server.call = step->at_client.call = (enum call)in;
			/*
			 * with two messages a call, the second may or may not get the second part:
			 * a race
			 */
			step->at_server.alone = step->at_client.alone = out == CALL_SENDMMSG;
			step->method = "POST";
			step->request_body = 100;
		}
	}
}

static size_t request_write(const struct step *step, char *bytes);
static size_t response_write(const struct step *step, char *bytes);

/* Heads cut in two at every byte, in a call for each byte, and read in small pieces. */
static void plan_cuts(void)
{
	static const size_t chunks[] = {1, 9, 64};
	size_t request = request_write(step_add("cut", "whole", 0), message);
	size_t response = response_write(&steps[n_steps - 1], message);

	for (size_t cut = 1; cut < request; cut++)
		step_add("cut", "request", (int)cut)->request.cut = (int)cut;
	for (size_t cut = 1; cut < response; cut++)
		step_add("cut", "response", (int)cut)->response.cut = (int)cut;
	for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		struct step *step = step_add("cut", "bytewise", (int)chunks[i]);

		step->request.cut = step->response.cut = -1;
		step->at_server.chunk = step->at_client.chunk = chunks[i];
	}
}

static void plan_vectors(void)
{
	static const unsigned counts[] = {1, 2, 43, 257, 1024};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		for (int empty = 0; empty < 2; empty++) {
			struct step *step = step_add("vectors", empty ? "empty-first" : "plain",
						     (int)counts[i]);

			step->method = "POST";
			step->request_body = step->response_body = 3000;
			step->request.call = empty ? CALL_SENDMSG : CALL_WRITEV;
			step->request.vectors = counts[i];
			step->request.empty_vector_first = empty && counts[i] > 1;
			step->response = step->request;
		}
	}
}

/* Bytes that a look at user memory does not show, or shows twice. */
static void plan_ways(void)
{
	static const enum body_way ways[] = {BODY_SENDFILE, BODY_SPLICE, BODY_ZEROCOPY};
	struct step *step;

	for (int i = 0; i < 3; i++) {
		step = step_add("peek", "peek", i);
		step->at_server.peek = step->at_client.peek = true;
		step->at_server.chunk = (size_t)i * 16;
	}
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		for (int again = 0; again < 2; again++) {
			step = step_add("file", "body", (int)ways[i] * 10 + again);
			step->response.way = ways[i];
			step->response.call = CALL_SEND;
			step->response_body = 1 << 20;
		}
	}
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		step = step_add("file", "request-body", (int)ways[i]);
		step->method = "POST";
		step->request.way = ways[i];
		step->request.call = CALL_SEND;
		step->request_body = 1 << 20;
	}
	for (int i = 0; i < 4; i++) {
		step = step_add("more", "pieces", i);
		step->method = "POST";
		step->request.way = step->response.way = BODY_MORE;
		step->request_body = step->response_body = i < 2 ? 5 : 100000;
	}
	step = step_add("unseen-server", "head-in-file", 0);
	step->response.way = BODY_HEAD_IN_FILE;
	step->response_body = 1 << 20;
	step = step_add("unseen-client", "splice-receive", 0);
	step->at_client.splice = true;
	step = step_add("unseen-request", "request-in-file", 0);
	step->request.way = BODY_HEAD_IN_FILE;
	step_add("unseen-request", "after", 0);
}

static void plan_sizes(void)
{
	for (int i = 0; i < 2; i++) {
		struct step *step = step_add("big", "three-megabytes", i);

		step->method = "POST";
		step->request_body = step->response_body = 3 << 20;
	}
	for (int i = 0; i < 8; i++)
		step_add("pipelined", "one-write", i)->pipelined = i % 4 != 3;
}

static void plan_framing(void)
{
	static const struct {
		const char *name, *method;
		int status;
		enum framing framing;
		unsigned interim;
		bool joined;
	} rows[] = {
		{"head", "HEAD", 200, FRAMING_LENGTH, 0, false},
		{"no-content", "GET", 204, FRAMING_LENGTH, 0, false},
		{"not-modified", "GET", 304, FRAMING_LENGTH, 0, false},
		{"continue", "POST", 201, FRAMING_LENGTH, 1, false},
		{"early-hints", "POST", 201, FRAMING_LENGTH, 3, false},
		{"early-hints-joined", "POST", 201, FRAMING_LENGTH, 3, true},
		{"chunked", "GET", 200, FRAMING_CHUNKED, 0, false},
		{"chunked-error", "POST", 503, FRAMING_CHUNKED, 0, false},
		{"not-found", "GET", 404, FRAMING_LENGTH, 0, false},
		{"after", "GET", 200, FRAMING_LENGTH, 0, false},
	};

	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct step *step = step_add("framing", rows[i].name, round);

			step->method = rows[i].method;
			step->status = rows[i].status;
			step->framing = rows[i].framing;
			step->interim = rows[i].interim;
			step->interim_joined = rows[i].joined;
			step->request_body = strcmp(step->method, "POST") == 0 ? 400 : 0;
			step->body_like_head = round == 1;
		}
	}
	for (int i = 0; i < 3; i++) {
		struct step *step = step_add("close", "delimited", i);

		step->version = i == 0 ? "1.0" : "1.1";
		step->framing = FRAMING_CLOSE;
		step->response_body = 5000;
		step->fresh = true;
	}
	for (int i = 0; i < 3; i++) {
		struct step *step = step_add("reset", "reset", i);

		step->status = 0;
		step->fresh = true;
	}
}

static void plan(void)
{
	plan_calls();
	plan_cuts();
	plan_vectors();
	plan_ways();
	plan_sizes();
	plan_framing();
}

static size_t body_write(const struct step *step, char *bytes, size_t length)
{
	static const char like_head[] =
		"GET /false HTTP/1.1\r\nHost: a\r\n\r\nHTTP/1.1 500 No\r\n\r\n";

	for (size_t i = 0; i < length; i++)
		bytes[i] = step->body_like_head ? like_head[i % (sizeof(like_head) - 1)] : 'b';
	return length;
}

static size_t request_write(const struct step *step, char *bytes)
{
	size_t head = (size_t)snprintf(
		bytes, HEAD_BYTES_MAX,
		"%s /odd/%s/%s-%s?q=1 HTTP/%s\r\nHost: odd\r\nUser-Agent: odd/1\r\n", step->method,
		step->group, step->group, step->name, step->version);

	if (step->request_body)
		head += (size_t)snprintf(bytes + head, HEAD_BYTES_MAX - head,
					 "Content-Length: %zu\r\n", step->request_body);
	head += (size_t)snprintf(bytes + head, HEAD_BYTES_MAX - head, "\r\n");
	return head + body_write(step, bytes + head, step->request_body);
}

static bool bodyless(const struct step *step)
{
	return step->status == 204 || step->status == 304 || strcmp(step->method, "HEAD") == 0;
}

static size_t head_length(const char *bytes, size_t length)
{
	const char *end = memmem(bytes, length, "\r\n\r\n", 4);

	return end ? (size_t)(end - bytes) + 4 : length;
}

static size_t response_write(const struct step *step, char *bytes)
{
	size_t used =
		(size_t)snprintf(bytes, HEAD_BYTES_MAX, "HTTP/%s %d Any reason\r\nServer: odd\r\n",
				 step->version, step->status);

	if (step->framing == FRAMING_LENGTH && step->status != 204)
		used += (size_t)snprintf(bytes + used, HEAD_BYTES_MAX - used,
					 "Content-Length: %zu\r\n", step->response_body);
	if (step->framing == FRAMING_CHUNKED)
		used += (size_t)snprintf(bytes + used, HEAD_BYTES_MAX - used,
					 "Transfer-Encoding: chunked\r\n");
	used += (size_t)snprintf(bytes + used, HEAD_BYTES_MAX - used, "\r\n");
	if (bodyless(step))
		return used;
	if (step->framing != FRAMING_CHUNKED)
		return used + body_write(step, bytes + used, step->response_body);

	for (int i = 0; i < 3; i++) {
		used += (size_t)sprintf(bytes + used, "%zx;ext=1\r\n", step->response_body);
		used += body_write(step, bytes + used, step->response_body);
		used += (size_t)sprintf(bytes + used, "\r\n");
	}
	return used + (size_t)sprintf(bytes + used, "0\r\n\r\n");
}

static void log_line(FILE *log, const char *role, const struct step *step, const char *path,
		     int status, uint64_t start_ns)
{
	fprintf(log,
		"{\"id\":\"%s-%s\",\"role\":\"%s\",\"group\":\"%s\",\"method\":\"%s\",\"path\":\"%."
		"*s\","
		"\"status\":%d,\"start\":%llu,\"end\":%llu}\n",
		step->group, step->name, role, step->group, step->method, (int)strcspn(path, "?"),
		path, status, (unsigned long long)start_ns, (unsigned long long)wall_ns());
}

static void send_interim(struct connection *connection, const struct step *step)
{
	static const char early[] = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
	static const char wait[] = "HTTP/1.1 100 Continue\r\n\r\n";

	for (unsigned i = 0; i < step->interim; i++) {
		const char *bytes = i == 0 ? wait : early;

		connection_send(connection, &step->response, bytes, strlen(bytes), strlen(bytes));
	}
}

static void serve_step(struct connection *connection, const struct step *step, FILE *log)
{
	struct message request;
	size_t length, before = 0;
	uint64_t start_ns;

	connection_read(connection, &step->at_server, NULL, &request);
	start_ns = wall_ns();
	if (step->status == 0) {
		log_line(log, "server", step, request.path, 0, start_ns);
		return;
	}
	if (step->interim && !step->interim_joined)
		send_interim(connection, step);
	if (step->interim_joined)
		before = (size_t)sprintf(
			message, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n");
	length = response_write(step, message + before);
	log_line(log, "server", step, request.path, step->status, start_ns);
	connection_send(connection, &step->response, message,
			before + head_length(message + before, length), before + length);
}

/*
 * The plan says when a connection ends and when one begins; client and server follow the same plan.
 */
static bool connection_ends(unsigned i)
{
	return i + 1 == n_steps || steps[i + 1].fresh;
}

static void serve(int listener, const char *log_name)
{
	FILE *log = fopen(log_name, "we");
	struct connection connection = {};

	if (!log)
		die(log_name);
	for (unsigned i = 0; i < n_steps; i++) {
		if (steps[i].fresh) {
			int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

			if (fd < 0)
				die("accept");
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
			setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &(int){1}, sizeof(int));
			connection_init(&connection, fd);
		}
		serve_step(&connection, &steps[i], log);
		if (connection_ends(i)) {
			if (steps[i].framing != FRAMING_CLOSE && steps[i].status != 0)
				while (recv(connection.fd, message, sizeof(message), 0) > 0)
					; /* the client closes first */
			connection_close(&connection, steps[i].status == 0);
		}
	}
	if (fclose(log) != 0)
		die(log_name);
	exit(0);
}

static int connect_to(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &(int){1}, sizeof(int));
	return fd;
}

/* Sends the requests of steps 'first' to 'last' in one go; reads their answers. */
static void call_steps(struct connection *connection, unsigned first, unsigned last, FILE *log)
{
	size_t length = 0;
	uint64_t start_ns;

	for (unsigned i = first; i <= last; i++)
		length += request_write(&steps[i], message + length);
	start_ns = wall_ns();
	connection_send(connection, &steps[first].request, message, head_length(message, length),
			length);
	for (unsigned i = first; i <= last; i++) {
		struct message response;
		char path[256];

		connection_read(connection, &steps[i].at_client, steps[i].method, &response);
		if (response.status != steps[i].status)
			die("unexpected status");
		snprintf(path, sizeof(path), "/odd/%s/%s-%s", steps[i].group, steps[i].group,
			 steps[i].name);
		log_line(log, "client", &steps[i], path, response.status, start_ns);
	}
}

static void call(const struct sockaddr_in *address, const char *log_name)
{
	FILE *log = fopen(log_name, "we");
	struct connection connection = {};

	if (!log)
		die(log_name);
	for (unsigned first = 0, last; first < n_steps; first = last + 1) {
		for (last = first; steps[last].pipelined; last++)
			;
		if (steps[first].fresh)
			connection_init(&connection, connect_to(address));
		call_steps(&connection, first, last, log);
		if (connection_ends(last))
			connection_close(&connection, false);
	}
	if (fclose(log) != 0)
		die(log_name);
}

/* Keeps only the steps of one group. */
static void plan_restrict(const char *group)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n_steps; i++)
		if (strcmp(steps[i].group, group) == 0)
			steps[kept++] = steps[i];
	n_steps = kept;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	char log_name[4096], line[16];
	int listener, status;
	pid_t server;

	if (argc < 3)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	plan();
	if (argc > 3)
		plan_restrict(argv[3]);
	address.sin_port = htons((uint16_t)atoi(argv[1]));
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 16) < 0)
		die("listen");

	server = fork();
	if (server < 0)
		die("fork");
	snprintf(log_name, sizeof(log_name), "%s.%s", argv[2], server ? "client" : "server");
	if (server == 0)
		serve(listener, log_name);
	close(listener);
	printf("ready %d %d\n", getpid(), server);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin)) {
		kill(server, SIGTERM);
		return 1;
	}
	call(&address, log_name);
	if (waitpid(server, &status, 0) != server)
		die("waitpid");
	return status != 0;
}
