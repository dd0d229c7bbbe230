/* Uprobes that are no longer wanted; see detacher.h. */
#include "probe/detacher.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/thread.h"

/* Each holds file descriptors until it is gone. */
#define WAITING_MAX 1024
#define THREADS_MAX 32

struct detacher {
	pthread_mutex_t lock;
	pthread_cond_t ended;                /* a thread has */
	struct uprobe *waiting[WAITING_MAX]; /* a ring */
	size_t first, n;
	unsigned int n_threads;
};

/* The one that has waited longest; NULL: there is none, and the thread is no longer counted. */
static struct uprobe *take_one(struct detacher *d)
{
	struct uprobe *u = NULL;

	pthread_mutex_lock(&d->lock);
	if (d->n) {
		u = d->waiting[d->first];
		d->first = (d->first + 1) % WAITING_MAX;
		d->n--;
	} else {
		d->n_threads--;
		pthread_cond_signal(&d->ended);
	}
	pthread_mutex_unlock(&d->lock);
	return u;
}

static void *detacher_main(void *userdata)
{
	struct uprobe *u;

	/* The usual priority, whatever the reader's is. */
	setpriority(PRIO_PROCESS, 0, 0);
	while ((u = take_one(userdata)))
		uprobe_detach(u);
	return NULL;
}

int detacher_new(struct detacher **ret)
{
	struct detacher *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->ended, NULL);
	*ret = d;
	return 0;
}

void detacher_free(struct detacher *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	while (d->n_threads)
		pthread_cond_wait(&d->ended, &d->lock);
	pthread_mutex_unlock(&d->lock);
	pthread_cond_destroy(&d->ended);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* With the lock held. */
static void start_thread(struct detacher *d)
{
	pthread_t thread;

	if (d->n_threads == THREADS_MAX ||
	    thread_start(&thread, "tsunagi-detach", detacher_main, d) < 0)
		return;
	pthread_detach(thread);
	d->n_threads++;
}

/* Whether somebody will take it. */
static bool enqueue(struct detacher *d, struct uprobe *u)
{
	bool is_taken = false;

	pthread_mutex_lock(&d->lock);
	if (d->n < WAITING_MAX)
		start_thread(d);
	if (d->n < WAITING_MAX && d->n_threads) {
		d->waiting[(d->first + d->n) % WAITING_MAX] = u;
		d->n++;
		is_taken = true;
	}
	pthread_mutex_unlock(&d->lock);
	return is_taken;
}

void detacher_take(struct detacher *d, struct uprobe *u)
{
	if (u && !enqueue(d, u))
		uprobe_detach(u);
}
