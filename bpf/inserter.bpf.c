/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Header insertion as an object of its own, which probe/insert_load.c loads beside a tap that keeps
 * the state of a socket with the socket, with its maps and variables: the verifier takes as long for
 * it as for the whole tap, whose first span need not wait for that.
 */
#define INSERTS
#include "insert.bpf.h"

char LICENSE[] SEC("license") = LICENSE_TEXT;
