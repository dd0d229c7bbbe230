/*
 * Is the Go runtime in an executable, and which version: by the build info blob, else by the
 * function table. Used by image.c and go_*.c. Neither needs a symbol table, so stripped programs
 * are recognised as well.
 */
#pragma once

#include "image/elf.h"
#include "image/image.h"

/* The fixed part of a function table (.gopclntab), and whether bytes look like one. */
#define GO_TABLE_HEADER_BYTES 72
bool go_is_function_table(const uint8_t header[GO_TABLE_HEADER_BYTES]);

/* Fills in the go_ fields. Returns 0 or a negative errno. */
int go_probe(const struct elf_image *image, struct image_facts *facts);
