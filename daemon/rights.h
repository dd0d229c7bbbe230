/* What this process may do, and where it runs: without that it would see little, or somebody else's. Used by daemon.c. */
#pragma once

#include <stdbool.h>

/* Whether it can do anything at all; logs why not. */
bool rights_are_enough(void);

/* Whether it may have maps of sockets. */
bool rights_include_sockets(void);

/* Whether it may copy sockets of other users' processes (pidfd_getfd). */
bool rights_include_descriptors(void);

/* Logs what it will not see all the same. */
void rights_warn(void);
