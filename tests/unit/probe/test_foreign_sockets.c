/* Connections of another process: which are copied, and which not. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "probe/foreign_sockets.h"

#define ESTABLISHED (1U << TCP_ESTABLISHED)

struct seen {
	unsigned int n, n_polled;
	uint16_t ports[16]; /* remote */
	int last;
};

static void note(void *userdata, const struct foreign_socket *socket)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	struct seen *seen = userdata;

	seen->n_polled += socket->is_polled;
	assert_int_equal(getpeername(socket->fd, (struct sockaddr *)&address, &length), 0);
	assert_in_range(seen->n, 0, 15);
	seen->last = socket->fd;
	seen->ports[seen->n++] = address.ss_family == AF_INET
					 ? ntohs(((struct sockaddr_in *)&address)->sin_port)
					 : ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
}

static int listen_on(int family, uint16_t *ret_port)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	struct sockaddr_in four = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr *address = family == AF_INET ? (void *)&four : (void *)&six;
	socklen_t length = family == AF_INET ? sizeof(four) : sizeof(six);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, address, length), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, address, &length), 0);
	*ret_port = ntohs(family == AF_INET ? four.sin_port : six.sin6_port);
	return fd;
}

static int connect_to(int family, uint16_t port)
{
	struct sockaddr_in6 six = {
		.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback, .sin6_port = htons(port)};
	struct sockaddr_in four = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				   .sin_port = htons(port)};
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(family == AF_INET ? connect(fd, (struct sockaddr *)&four, sizeof(four))
					   : connect(fd, (struct sockaddr *)&six, sizeof(six)),
			 0);
	return fd;
}

/* Has what 'prepare' makes, until it is killed. */
static pid_t process_with(void (*prepare)(uint16_t four, uint16_t six), uint16_t four, uint16_t six)
{
	int ready[2];
	pid_t pid;
	char any;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prepare(four, six);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &any, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

/* Two that it has made, one of them by two descriptors, and others of many kinds. */
static void prepare_all(uint16_t four, uint16_t six)
{
	int pair[2], listener, made = connect_to(AF_INET, four);
	uint16_t port;

	dup(made);
	connect_to(AF_INET6, six);
	listener = listen_on(AF_INET, &port);
	connect_to(AF_INET, port); /* to itself: */
	accept(listener, NULL, NULL);
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	socket(AF_INET, SOCK_DGRAM, 0);
	socket(AF_INET, SOCK_STREAM, 0);
	socket(AF_NETLINK, SOCK_RAW, 0);
}

static pid_t process_with_all(uint16_t *ret_four, uint16_t *ret_six)
{
	listen_on(AF_INET, ret_four);
	listen_on(AF_INET6, ret_six);
	return process_with(prepare_all, *ret_four, *ret_six);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void prepare_nothing(uint16_t four, uint16_t six)
{
	(void)four;
	(void)six;
}

static void test_kinds(void **state)
{
	uint32_t one;
	struct foreign_sockets wanted = {.pids = &one, .n_pids = 1, .states = ESTABLISHED};
	struct seen made = {0}, all = {0};
	unsigned int to_four = 0, to_six = 0;
	uint16_t four, six;
	pid_t pid;

	(void)state;
	pid = process_with_all(&four, &six);
	one = (uint32_t)pid;
	assert_int_equal(foreign_sockets_reach(one), 0);
	assert_int_equal(foreign_sockets_each(&wanted, note, &made), 0);
	wanted.with_bound = true;
	assert_int_equal(foreign_sockets_each(&wanted, note, &all), 0);
	end(pid);

	for (unsigned int i = 0; i < made.n; i++) {
		to_four += made.ports[i] == four;
		to_six += made.ports[i] == six;
	}
	assert_int_equal(to_four, 2);
	assert_int_equal(to_six, 1);
	assert_int_equal(made.n, 4); /* and the one to itself, but not what it accepted */
	assert_int_equal(all.n, 5);
	/* None is kept. */
	assert_int_equal(fcntl(made.last, F_GETFD), -1);
}

static void test_states(void **state)
{
	uint32_t one;
	struct foreign_sockets wanted = {.pids = &one, .n_pids = 1, .states = 1U << TCP_SYN_SENT};
	struct seen seen = {0};
	uint16_t four, six;
	pid_t pid;

	(void)state;
	pid = process_with_all(&four, &six);
	one = (uint32_t)pid;
	assert_int_equal(foreign_sockets_each(&wanted, note, &seen), 0);
	end(pid);
	assert_int_equal(seen.n, 0);
}

static void test_gone(void **state)
{
	uint32_t one;
	struct foreign_sockets wanted = {.pids = &one, .n_pids = 1, .states = ESTABLISHED};
	struct seen seen = {0};
	pid_t pid;

	(void)state;
	pid = process_with(prepare_nothing, 0, 0);
	one = (uint32_t)pid;
	assert_int_equal(foreign_sockets_each(&wanted, note, &seen), 0);
	end(pid);
	assert_int_equal(foreign_sockets_each(&wanted, note, &seen), 0);
	assert_int_equal(foreign_sockets_reach(one), FOREIGN_SOCKETS_UNREACHABLE);
	assert_int_equal(seen.n, 0);
}

/* With no file descriptor left nobody knows, and nothing is said of what there is. */
static void test_no_descriptors(void **state)
{
	uint32_t one;
	struct foreign_sockets wanted = {.pids = &one, .n_pids = 1, .states = ESTABLISHED};
	struct rlimit limit, none;
	struct seen seen = {0};
	uint16_t four, six;
	int reach, missed;
	pid_t pid;

	(void)state;
	pid = process_with_all(&four, &six);
	one = (uint32_t)pid;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	reach = foreign_sockets_reach(one);
	missed = foreign_sockets_each(&wanted, note, &seen);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	end(pid);
	assert_int_equal(reach, -EMFILE);
	assert_true(missed > 0);
	assert_int_equal(seen.n, 0);
}

/* --- several */

#define CROWD 20

static void prepare_one(uint16_t four, uint16_t six)
{
	(void)six;
	connect_to(AF_INET, four);
}

/* In a network of its own, where both ends are. */
static void prepare_apart(uint16_t four, uint16_t six)
{
	uint16_t port;
	struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP};

	(void)four;
	(void)six;
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	assert_int_equal(ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFFLAGS, &up), 0);
	listen_on(AF_INET, &port);
	connect_to(AF_INET, port);
}

struct crowd {
	uint32_t pids[CROWD + 4];
	unsigned int seen[CROWD + 4];
	bool is_cancelled;
	bool cancels;
};

static void note_pid(void *userdata, const struct foreign_socket *socket)
{
	struct crowd *c = userdata;
	size_t i = 0;

	assert_true(fcntl(socket->fd, F_GETFD) >= 0);
	while (c->pids[i] != socket->pid)
		assert_true(++i < CROWD + 4);
	c->seen[i]++;
	c->is_cancelled = c->cancels;
}

/* Those of one network, two in others, one that has ended, and one that is named twice. */
static void make_crowd(struct crowd *c)
{
	uint16_t port;
	int listener = listen_on(AF_INET, &port);

	for (size_t i = 0; i < CROWD; i++) {
		c->pids[i] = (uint32_t)process_with(prepare_one, port, 0);
		assert_true(accept(listener, NULL, NULL) >= 0);
	}
	c->pids[CROWD] = (uint32_t)process_with(prepare_apart, 0, 0);
	c->pids[CROWD + 1] = (uint32_t)process_with(prepare_apart, 0, 0);
	c->pids[CROWD + 2] = (uint32_t)process_with(prepare_nothing, 0, 0);
	end((pid_t)c->pids[CROWD + 2]);
	c->pids[CROWD + 3] = c->pids[0];
}

static void end_crowd(const struct crowd *c)
{
	for (size_t i = 0; i < CROWD + 2; i++)
		end((pid_t)c->pids[i]);
}

static void test_several(void **state)
{
	struct crowd c = {0};
	struct foreign_sockets wanted = {
		.pids = c.pids, .n_pids = CROWD + 4, .states = ESTABLISHED};

	(void)state;
	if (geteuid())
		skip();
	make_crowd(&c);
	assert_int_equal(foreign_sockets_each(&wanted, note_pid, &c), 0);
	end_crowd(&c);
	for (size_t i = 0; i < CROWD + 2; i++)
		assert_int_equal(c.seen[i], 1);
	assert_int_equal(c.seen[CROWD + 2], 0);
}

static void test_cancelled(void **state)
{
	struct crowd c = {.cancels = true};
	struct foreign_sockets wanted = {.pids = c.pids,
					 .n_pids = CROWD,
					 .states = ESTABLISHED,
					 .is_cancelled = &c.is_cancelled};
	unsigned int n = 0;

	(void)state;
	if (geteuid())
		skip();
	make_crowd(&c);
	assert_int_equal(foreign_sockets_each(&wanted, note_pid, &c), 0);
	end_crowd(&c);
	for (size_t i = 0; i < CROWD; i++)
		n += c.seen[i];
	assert_int_equal(n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),     cmocka_unit_test(test_states),
		cmocka_unit_test(test_gone),      cmocka_unit_test(test_several),
		cmocka_unit_test(test_cancelled), cmocka_unit_test(test_no_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
