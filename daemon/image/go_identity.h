/*
 * What a Go program says of itself: a build id, and its version where there is no build info.
 * Used by go_program.c and go_cache.c.
 */
#pragma once

#include "image/go_file.h"
#include "image/go_program.h"

/*
 * "go:" and Go's own build id, else "gnu:" and the linker's in hexadecimal digits, else "hash:" of
 * the file's headers and size. 0 or a negative errno.
 */
int go_identity_read(struct go_file *file, char ret_build_id[GO_BUILD_ID_MAX]);

/*
 * The one release ("go1.26.5") that is named in the program's data; left alone when there is none,
 * or more than one. 0 or a negative errno.
 */
int go_identity_find_version(struct go_file *file, char ret_version[IMAGE_VERSION_MAX]);
