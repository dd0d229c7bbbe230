/*
 * The TCP connections of other processes, for whoever must set something on them (insert.h).
 *
 * A copy of a process's socket delays what its last close would do. So the kernel's tables tell first
 * which of its descriptors are such connections: nothing else is ever copied, and each for as long as
 * one call of 'fn' takes. The tables are those of a network, and may be long: they are read once for
 * all processes that are in it. May be called by several threads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether this process may copy sockets of that one at all. Returns 0, FOREIGN_SOCKETS_UNREACHABLE, or
 * -EMFILE or -ENFILE: there is no file descriptor left to tell.
 */
enum { FOREIGN_SOCKETS_UNREACHABLE = 1 };
int foreign_sockets_reach(uint32_t pid);

struct foreign_sockets {
	const uint32_t *pids;
	size_t n_pids;
	uint32_t states; /* bits by the kernel's numbers, 1 << TCP_ESTABLISHED for one */
	bool with_bound; /* also those whose port somebody listens on in that network, which were
			      accepted */
	uint32_t
		polled_events; /* whether an epoll instance of the process asks for exactly these of a
				   socket is to be told; 0: no */
	bool is_unbounded;     /* else of a bounded number of the sockets of each */
	const bool *is_cancelled; /* looked at now and then, atomically; NULL: never */
};

struct foreign_socket {
	uint32_t pid;
	int fd;         /* our copy of it, lent: whoever is given it closes nothing */
	bool is_polled; /* as 'polled_events' says */
};
typedef void (*foreign_socket_fn)(void *userdata, const struct foreign_socket *socket);

/*
 * Calls 'fn' for each, and returns how many may have been left out: of a process that has too many or
 * that refuses, for want of a file descriptor of our own, or behind the first million lines of a table; or -ENOMEM. Processes that have ended,
 * or end meanwhile, have none.
 */
int foreign_sockets_each(const struct foreign_sockets *wanted, foreign_socket_fn fn,
			 void *userdata);
