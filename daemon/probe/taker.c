/* Processes that wait for a thread; see taker.h. */
#include "probe/taker.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>

#include "base/thread.h"

#define WAITING_MAX 16384
/* Those that are met together, in a pass over /proc, say, come within this. */
#define GATHER_NS (20 * NSEC_PER_MSEC)

struct taker {
	taker_fn take;
	void *userdata;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_ending;
	size_t n;
	uint32_t waiting[WAITING_MAX];
	uint32_t taken[WAITING_MAX]; /* the thread's own */
};

static void gather(struct taker *t)
{
	uint64_t end = now_ns(CLOCK_MONOTONIC) + GATHER_NS;

	while (!t->is_ending && condition_wait(&t->changed, &t->lock, end))
		;
}

/* 0: it ends. */
static size_t wait_for_some(struct taker *t)
{
	size_t n = 0;

	pthread_mutex_lock(&t->lock);
	while (!t->n && !t->is_ending)
		pthread_cond_wait(&t->changed, &t->lock);
	gather(t);
	if (!t->is_ending) {
		n = t->n;
		memcpy(t->taken, t->waiting, n * sizeof(*t->taken));
		t->n = 0;
	}
	pthread_mutex_unlock(&t->lock);
	return n;
}

static void *taker_main(void *userdata)
{
	struct taker *t = userdata;
	size_t n;

	/* The usual priority, whatever the reader's is. */
	setpriority(PRIO_PROCESS, 0, 0);
	while ((n = wait_for_some(t)))
		t->take(t->userdata, t->taken, n, &t->is_ending);
	return NULL;
}

static void taker_done(struct taker *t)
{
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

int taker_new(taker_fn take, void *userdata, struct taker **ret)
{
	struct taker *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->take = take;
	t->userdata = userdata;
	pthread_mutex_init(&t->lock, NULL);
	condition_init(&t->changed);
	r = thread_start(&t->thread, "tsunagi-taker", taker_main, t);
	if (r < 0) {
		taker_done(t);
		return r;
	}
	*ret = t;
	return 0;
}

void taker_free(struct taker *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	__atomic_store_n(&t->is_ending, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	taker_done(t);
}

bool taker_add(struct taker *t, uint32_t pid)
{
	bool has_room;

	pthread_mutex_lock(&t->lock);
	has_room = t->n < WAITING_MAX;
	if (has_room)
		t->waiting[t->n++] = pid;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
	return has_room;
}
