/*
 * Offsets of fields as measured (DWARF of programs built by the named compilers): for programs
 * whose own types are not found. Used by go_program.c.
 */
#pragma once

#include "image/go_program.h"

/*
 * Sets the offsets of 'program' that are unknown and were measured in its version. None, when the
 * version is not a release that was measured, or when what the program's types say is otherwise.
 */
void go_measured_fill(struct go_program *program);
