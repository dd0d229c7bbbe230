/*
 * How many files this process may have open. Each probe in an executable is one for as long as it is
 * there, so a host with hundreds of Go programs needs many; what is short of them is to be the probes
 * of one more program, never the exporter, the control socket or a look at /proc. Used by daemon.c
 * and go_executable.c.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Raises the limit as far as it may: to the hard one, and that to what 'processes_max' processes may
 * need.
 */
void descriptors_raise(uint32_t processes_max);

/*
 * Whether those below the reserve are used up, so that nothing that lasts may be opened now. 'fd' is
 * any that is open.
 */
bool descriptors_are_short(int fd);

/* Says, once in the life of the daemon, that a program has no probes because files are short. */
void descriptors_warn_short(void);
