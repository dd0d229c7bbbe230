/*
 * What may be taken for a HotSpot JVM and is none, for the end-to-end tests: an HTTP/1 server with
 * the parts that its command line and its build name, and no use for SIGQUIT.
 *
 * jvmlike PORT QUIT [-p FOLDER FILE] [LIBRARY...]: loads the libraries; with -p maps a copy of the
 * file as FOLDER/hsperfdata_like/PID, as a JVM has its performance data. QUIT is "catch": each
 * SIGQUIT is a line "quit" on standard output, or "default": the first one would end it. Prints
 * "ready" when it listens, and answers one connection after the other until it is killed. Compiled
 * with NATIVE_IMAGE it exports what GraalVM's native images do.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES_MAX = 4096, PERFDATA_BYTES_MAX = 1 << 20 };

#ifdef NATIVE_IMAGE
int graal_create_isolate(void);
int graal_create_isolate(void)
{
	return 0;
}
#endif

static void on_quit(int number)
{
	(void)number;
	if (write(STDOUT_FILENO, "quit\n", 5) != 5)
		_exit(1);
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void map_perfdata(const char *folder, const char *from)
{
	static char bytes[PERFDATA_BYTES_MAX], name[4096];
	int in = open(from, O_RDONLY | O_CLOEXEC), out;
	ssize_t n = read(in, bytes, sizeof(bytes));

	snprintf(name, sizeof(name), "%s/hsperfdata_like", folder);
	if (n <= 0 || (mkdir(name, 0755) < 0 && access(name, F_OK) < 0))
		die(name);
	snprintf(name, sizeof(name), "%s/hsperfdata_like/%d", folder, (int)getpid());
	out = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (out < 0 || write(out, bytes, (size_t)n) != n)
		die(name);
	if (mmap(NULL, (size_t)n, PROT_READ | PROT_WRITE, MAP_SHARED, out, 0) == MAP_FAILED)
		die("mmap");
	close(in);
	close(out);
}

static int listen_at(const char *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)atoi(port)),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 128) < 0)
		die("listen");
	return listener;
}

/* Its clients send one head after the other, without bodies. */
static void serve(int fd)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nlike\n";
	char head[HEAD_BYTES_MAX];
	size_t used = 0;
	ssize_t n;

	while ((n = recv(fd, head + used, sizeof(head) - used, 0)) > 0) {
		used += (size_t)n;
		if (!memmem(head, used, "\r\n\r\n", 4))
			continue;
		used = 0;
		if (send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL) < 0)
			break;
	}
}

int main(int argc, char **argv)
{
	int listener, i = 3;

	if (argc < 3)
		return 2;
	if (!strcmp(argv[2], "catch"))
		signal(SIGQUIT, on_quit); /* restarts what it interrupts */
	if (argc > i + 2 && !strcmp(argv[i], "-p")) {
		map_perfdata(argv[i + 1], argv[i + 2]);
		i += 3;
	}
	for (; i < argc; i++) {
		if (dlopen(argv[i], RTLD_NOW))
			continue;
		fprintf(stderr, "jvmlike: %s\n", dlerror());
		return 1;
	}
	listener = listen_at(argv[1]);
	puts("ready");
	fflush(stdout);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			continue;
		serve(fd);
		close(fd);
	}
}
