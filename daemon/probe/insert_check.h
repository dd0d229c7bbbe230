/*
 * What is tried before bpf/insert.bpf.h is used on this kernel, for insert.c: connections of ours to
 * ourselves, in whose map the programs are already in place. Each check takes some milliseconds, and
 * half a second if what it waits for does not come.
 */
#pragma once

#include "probe/insert.h"

/* Whether the socket is in the map. */
typedef bool (*insert_check_fn)(void *userdata, int fd);

/* This process must be traced, and its requests propagated, meanwhile. */
void insert_check_run(insert_check_fn is_in_map, void *userdata,
		      struct insert_result ret[_INSERT_CHECK_MAX]);
