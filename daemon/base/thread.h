/*
 * Threads beside the event loop's, and conditions that they wait for by CLOCK_MONOTONIC.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Signals are the event loop's: blocked in this one, they reach no thread but its own. 'name': 15
 * characters at most. Returns 0 or a negative errno.
 */
int thread_start(pthread_t *ret, const char *name, void *(*run)(void *), void *userdata);

/* For condition_wait(); free with pthread_cond_destroy(). */
void condition_init(pthread_cond_t *c);

/* With the lock held. False: it is that late (nanoseconds of CLOCK_MONOTONIC). */
bool condition_wait(pthread_cond_t *c, pthread_mutex_t *lock, uint64_t until_ns);
