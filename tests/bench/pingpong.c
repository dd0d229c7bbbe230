/*
 * What a send or a receive costs a process that the daemon does not trace: both ends of one TCP
 * connection over loopback in one thread on one CPU, 64 bytes there, 64 bytes back. Started by
 * tests/bench/run with and without the daemon. Time is the thread's CPU time, so that what else
 * runs on the machine counts as little as it can.
 *
 * usage: pingpong SLICES ROUNDS      four calls a round
 * Prints {"median": NS, "min": NS}: ns a call over the slices.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 64, CALLS_A_ROUND = 4, SLICES_MAX = 10000 };

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void connect_pair(int pair[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || pair[0] < 0 ||
	    bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &length) < 0 ||
	    connect(pair[0], (struct sockaddr *)&address, sizeof(address)) < 0)
		die("connect");
	pair[1] = accept(listener, NULL, NULL);
	if (pair[1] < 0)
		die("accept");
	close(listener);
	for (int i = 0; i < 2; i++)
		setsockopt(pair[i], IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

/* A small message is in the peer's queue when send() returns, so recv() never waits. */
static void pass(int from, int to)
{
	char message[MESSAGE_BYTES] = {0};

	if (send(from, message, sizeof(message), 0) != sizeof(message) ||
	    recv(to, message, sizeof(message), MSG_WAITALL) != sizeof(message))
		die("pass");
}

static double slice_ns(const int pair[2], long rounds)
{
	struct timespec begin, end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	for (long i = 0; i < rounds; i++) {
		pass(pair[0], pair[1]);
		pass(pair[1], pair[0]);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
	       (double)(rounds * CALLS_A_ROUND);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The last CPU: interrupts tend to be served by the first. */
static void pin(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

int main(int argc, char **argv)
{
	static double ns[SLICES_MAX];
	long slices = argc == 3 ? atol(argv[1]) : 0;
	long rounds = argc == 3 ? atol(argv[2]) : 0;
	int pair[2];

	if (slices < 1 || slices > SLICES_MAX || rounds < 1)
		return 2;
	pin();
	connect_pair(pair);
	slice_ns(pair, rounds); /* warms up */
	for (long i = 0; i < slices; i++)
		ns[i] = slice_ns(pair, rounds);
	qsort(ns, (size_t)slices, sizeof(*ns), compare);
	printf("{\"median\": %.1f, \"min\": %.1f}\n", ns[slices / 2], ns[0]);
	return 0;
}
