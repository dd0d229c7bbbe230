/*
 * Where the kernel has loaded a program that may lie anywhere (ET_DYN): what is to be added to the
 * addresses of its file. For daemon's go_units.c.
 *
 * The program's auxiliary vector has it (/proc/PID/auxv, getauxval(3)): AT_ENTRY is the entry of the
 * file's header as it was loaded (fs/binfmt_elf.c), whatever is mapped where, under whatever file
 * numbers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* 'entry': e_entry of the program's file. False: it cannot be known. */
bool load_bias_find(uint32_t pid, uint64_t entry, uint64_t *ret_bias);
