/* Threads; see thread.h. */
#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/util.h"

int thread_start(pthread_t *ret, const char *name, void *(*run)(void *), void *userdata)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	r = pthread_create(ret, NULL, run, userdata);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r)
		return -r;
	pthread_setname_np(*ret, name);
	return 0;
}

void condition_init(pthread_cond_t *c)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(c, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

bool condition_wait(pthread_cond_t *c, pthread_mutex_t *lock, uint64_t until_ns)
{
	struct timespec until = {.tv_sec = (time_t)(until_ns / NSEC_PER_SEC),
				 .tv_nsec = (long)(until_ns % NSEC_PER_SEC)};

	return pthread_cond_timedwait(c, lock, &until) != ETIMEDOUT;
}
