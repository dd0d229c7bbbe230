/*
 * The agent's library (agent/), as a part of this program: what is written where a JVM can load it
 * from. Used by jvm_agents.c and main.c.
 */
#pragma once

#include <stddef.h>

/* 'size' 0: this build has none, for want of a JDK. */
const void *agent_library(size_t *ret_size);
