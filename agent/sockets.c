/*
 * What the sockets are that the process had before the agent came, and those that reach it by a way
 * that is not hooked: of a server if their local port listens, else of a client. Hooks know better,
 * and win.
 */
#include <dirent.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "agent.h"

/* In a word; Sockets.java has the same. */
enum {
	SOCKET_SERVER = 1,
	SOCKET_CLIENT = 2,
	SOCKET_OTHER = 3, /* no TCP, or nothing that is connected */
	SOCKET_KIND = 3,
};

uint64_t sockets[SOCKETS_MAX] __attribute__((aligned(64)));

/* Ports that listen, a bit each. */
static _Atomic(uint64_t) listening[65536 / 64];

static bool socket_is_tcp(int fd)
{
	int type = 0, protocol = 0;
	socklen_t size = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_STREAM)
		return false;
	size = sizeof(protocol);
	return !getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) &&
	       protocol == IPPROTO_TCP;
}

static bool socket_listens(int fd)
{
	int accepts = 0;
	socklen_t size = sizeof(accepts);

	return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &size) && accepts;
}

/* 0: it has none. */
static unsigned socket_port(int fd)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);

	memset(&address, 0, sizeof(address));
	if (getsockname(fd, (struct sockaddr *)&address, &size))
		return 0;
	if (address.ss_family == AF_INET)
		return ntohs(((struct sockaddr_in *)&address)->sin_port);
	if (address.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
	return 0;
}

static bool port_listens(unsigned port)
{
	return atomic_load(&listening[port / 64]) >> port % 64 & 1;
}

static void each_fd(void (*visit)(int fd))
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;

	if (!folder)
		return;
	while ((entry = readdir(folder))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && fd != dirfd(folder))
			visit(fd);
	}
	closedir(folder);
}

static void note_listening(int fd)
{
	unsigned port;

	if (!socket_listens(fd) || !socket_is_tcp(fd))
		return;
	port = socket_port(fd);
	atomic_fetch_or(&listening[port / 64], 1ULL << port % 64);
}

static uint64_t judge(int fd)
{
	unsigned port;

	if (!socket_is_tcp(fd) || socket_listens(fd))
		return SOCKET_OTHER;
	port = socket_port(fd);
	if (!port)
		return 0;
	return port_listens(port) ? SOCKET_SERVER : SOCKET_CLIENT;
}

static uint64_t set_unknown(int fd, uint64_t word)
{
	uint64_t known = 0;

	if (__atomic_compare_exchange_n(&sockets[fd], &known, word, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return word;
	return known;
}

static void classify(int fd)
{
	uint64_t word;

	if (fd < 0 || fd >= SOCKETS_MAX)
		return;
	word = judge(fd);
	if (word == SOCKET_SERVER || word == SOCKET_CLIENT)
		set_unknown(fd, word);
}

void sockets_classify_all(void)
{
	each_fd(note_listening);
	each_fd(classify);
}

/*
 * Whether its port listens is known from the time of the attach; a server that came later is found
 * by looking again, once for each socket.
 */
uint64_t sockets_classify(int fd)
{
	uint64_t word;

	if (fd < 0 || fd >= SOCKETS_MAX)
		return SOCKET_OTHER;
	word = judge(fd);
	if (word == SOCKET_CLIENT) {
		each_fd(note_listening);
		word = judge(fd);
	}
	return set_unknown(fd, word);
}
