/* Reading a program that a test has made (made_go.h), for the tests of go_program.h. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "image/go_program.h"
#include "made_go.h"

static inline int file_of(const void *bytes, size_t n)
{
	int fd = memfd_create("program", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	return fd;
}

static inline struct go_program *read_bytes(const void *bytes, size_t n,
					    const struct go_program_options *options)
{
	_cleanup_(closep) int fd = file_of(bytes, n);
	struct go_program *program = NULL;

	assert_int_equal(go_program_read(fd, options, &program), 0);
	return program;
}

static inline struct go_program *read_made(const struct made_go *m)
{
	return read_bytes(m->bytes, m->n, NULL);
}
