/* TCP's memory, looked at by a thread; see tcp_watch.h. */
#include "probe/tcp_watch.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>

#include "base/thread.h"

#define LOOK_NS (200 * NSEC_PER_MSEC)

struct tcp_watch {
	struct tcp_watch_options options;
	struct tcp_memory_watch memory;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t end;
	bool is_ending;
};

static void look(struct tcp_watch *w)
{
	struct tcp_memory_use use;
	bool is_short = true;

	if (tcp_memory_read(w->options.memory, &use) == 0) {
		tcp_memory_judge(&w->memory, &use, now_ns(CLOCK_MONOTONIC));
		is_short = w->memory.is_short;
	}
	w->options.looked(w->options.userdata, is_short, &w->is_ending);
}

/* Whether it goes on. */
static bool wait_for_next(struct tcp_watch *w)
{
	uint64_t next = now_ns(CLOCK_MONOTONIC) + LOOK_NS;
	bool goes_on;

	pthread_mutex_lock(&w->lock);
	while (!w->is_ending && condition_wait(&w->end, &w->lock, next))
		;
	goes_on = !w->is_ending;
	pthread_mutex_unlock(&w->lock);
	return goes_on;
}

static void *watch_main(void *userdata)
{
	struct tcp_watch *w = userdata;

	setpriority(PRIO_PROCESS, 0, w->options.nice);
	do
		look(w);
	while (wait_for_next(w));
	return NULL;
}

static void watch_done(struct tcp_watch *w)
{
	pthread_cond_destroy(&w->end);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

int tcp_watch_new(const struct tcp_watch_options *options, struct tcp_watch **ret)
{
	struct tcp_watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->options = *options;
	w->memory.is_short = options->is_short;
	pthread_mutex_init(&w->lock, NULL);
	condition_init(&w->end);
	r = thread_start(&w->thread, "tsunagi-memory", watch_main, w);
	if (r < 0) {
		watch_done(w);
		return r;
	}
	*ret = w;
	return 0;
}

void tcp_watch_free(struct tcp_watch *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	__atomic_store_n(&w->is_ending, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&w->end);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	watch_done(w);
}
