/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The tap of trampolines once more, for kernels that lack what its programs ask for: Linux 5.10 to
 * 5.16 (subprogram.h).
 */
#define BASIC
#include "tap_fentry.bpf.c"
