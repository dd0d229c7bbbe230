/*
 * The handful of things every file uses: array sizes, minimum and maximum, ownership that is
 * visible, files below a folder.
 */
#pragma once

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MAX(a, b)     ((a) > (b) ? (a) : (b))

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define NSEC_PER_SEC  1000000000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_USEC 1000ULL

/* A variable that is released when it leaves its scope: `_cleanup_(x_freep) struct x *x = NULL;` */
#define _cleanup_(f) __attribute__((cleanup(f)))

/* Hands a pointer on: the variable it was in becomes NULL, so that its cleanup does nothing. */
#define TAKE_PTR(p)                     \
	({                              \
		typeof(p) _taken = (p); \
		(p) = NULL;             \
		_taken;                 \
	})

/* The same for a file descriptor. */
#define TAKE_FD(fd)                \
	({                         \
		int _taken = (fd); \
		(fd) = -1;         \
		_taken;            \
	})

/* Defines x_freep() for _cleanup_ from x_free(), which must accept NULL. */
#define DEFINE_CLEANUP(type, free_function)          \
	static inline void free_function##p(type *p) \
	{                                            \
		if (*p)                              \
			free_function(*p);           \
	}

static inline void freep(void *p)
{
	free(*(void **)p);
}

DEFINE_CLEANUP(FILE *, fclose)
DEFINE_CLEANUP(DIR *, closedir)

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* As fopen(3) and opendir(3) with openat(2): to be read; NULL with errno. */
static inline FILE *fopen_at(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (!file && fd >= 0)
		close(fd);
	return file;
}

static inline DIR *opendir_at(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;

	if (!folder && fd >= 0)
		close(fd);
	return folder;
}

/* Nanoseconds of a clock, as in clock_gettime(2). */
static inline uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}
