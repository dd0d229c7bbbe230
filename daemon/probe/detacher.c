/* Uprobes that are no longer wanted; see detacher.h. */
#include "probe/detacher.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

/* Each holds file descriptors until it is gone. */
#define WAITING_MAX 256

struct detacher {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct uprobe *waiting[WAITING_MAX]; /* a ring */
	size_t first, n;
	bool is_ending;
};

/* The one that has waited longest; NULL: no more will come. */
static struct uprobe *wait_for_one(struct detacher *d)
{
	struct uprobe *u = NULL;

	pthread_mutex_lock(&d->lock);
	while (!d->n && !d->is_ending)
		pthread_cond_wait(&d->changed, &d->lock);
	if (d->n) {
		u = d->waiting[d->first];
		d->first = (d->first + 1) % WAITING_MAX;
		d->n--;
	}
	pthread_mutex_unlock(&d->lock);
	return u;
}

static void *detacher_main(void *userdata)
{
	struct uprobe *u;

	while ((u = wait_for_one(userdata)))
		uprobe_detach(u);
	return NULL;
}

int detacher_new(struct detacher **ret)
{
	struct detacher *d = calloc(1, sizeof(*d));
	sigset_t all, before;
	int r;

	if (!d)
		return -ENOMEM;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->changed, NULL);
	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	r = pthread_create(&d->thread, NULL, detacher_main, d);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r) {
		free(d);
		return -r;
	}
	pthread_setname_np(d->thread, "tsunagi-detach");
	*ret = d;
	return 0;
}

void detacher_free(struct detacher *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->is_ending = true;
	pthread_cond_signal(&d->changed);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

void detacher_take(struct detacher *d, struct uprobe *u)
{
	bool has_room;

	if (!u)
		return;
	pthread_mutex_lock(&d->lock);
	has_room = d->n < WAITING_MAX;
	if (has_room) {
		d->waiting[(d->first + d->n) % WAITING_MAX] = u;
		d->n++;
		pthread_cond_signal(&d->changed);
	}
	pthread_mutex_unlock(&d->lock);
	if (!has_room)
		uprobe_detach(u);
}
