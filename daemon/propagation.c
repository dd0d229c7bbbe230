/*
 * Carrying 'traceparent' to other hosts: whether it is wanted, whether it can be had, for which
 * processes, and when not: while TCP is short of memory. Part of daemon.c and report.c; see
 * daemon_private.h.
 *
 * Its programs are loaded when the first process is met that they are for, in a thread, and tested by
 * a child: the loop waits for neither.
 */
#include <errno.h>

#include "base/log.h"
#include "daemon_private.h"
#include "metrics/metrics.h"
#include "probe/foreign_sockets.h"
#include "rights.h"

/* A send that began before its connection was taken out may begin to wait a moment later. */
#define WAKES 5

/* As the loop's: there is little to do, and it must not come late on a busy machine. */
#define WATCH_NICE -10

#define LIMITS_NS (5 * NSEC_PER_SEC)
#define LATER_NS  (10 * NSEC_PER_SEC) /* to try again what failed for want of something */

#define ENOUGH "TCP has enough memory: requests carry 'traceparent' to other hosts"

bool propagation_is_wanted(const struct config *config)
{
	bool is_wanted = config->propagate == CONFIG_PROPAGATE_ON;

	for (size_t i = 0; i < config->n_services; i++)
		is_wanted |= config->services[i].propagate == CONFIG_PROPAGATE_ON;
	return is_wanted;
}

/* Go alone: what others ask of their sockets is answered in another way where they are in the map. */
static bool is_for(const struct process *p)
{
	return p->propagates && p->language == LANGUAGE_GO;
}

static bool is_short_now(const struct daemon *d)
{
	struct tcp_memory_use use;

	/* What cannot be looked at may be short. */
	return tcp_memory_read(d->tcp_memory, &use) < 0 || use.used >= use.pressure;
}

static unsigned int count_shortages(const struct daemon *d)
{
	return __atomic_load_n(&d->insert_shortages, __ATOMIC_SEQ_CST);
}

static unsigned int count_resumes(const struct daemon *d)
{
	return __atomic_load_n(&d->insert_resumes, __ATOMIC_SEQ_CST);
}

/* Also until the loop has noticed that it is over. */
static bool is_suspended(const struct daemon *d)
{
	return d->insert &&
	       (insert_is_suspended(d->insert) || count_shortages(d) != count_resumes(d));
}

static void suspend(struct daemon *d)
{
	bool is_first = !insert_is_suspended(d->insert);

	/* Each time: some may have come in meanwhile. */
	insert_suspend(d->insert);
	if (!is_first)
		return;
	metrics_increment(METRIC_PROPAGATION_SUSPENDED);
	d->insert_wakes = WAKES;
	/* Behind that: the loop takes a shortage that is not suspended for one that is over. */
	__atomic_add_fetch(&d->insert_shortages, 1, __ATOMIC_SEQ_CST);
	log_warning("TCP is short of memory: requests carry no 'traceparent' to other hosts until "
		    "there is enough");
}

/*
 * In the watch's thread: what must not wait until the loop has time. That lets connections in again,
 * and takes in those that are there.
 */
static void memory_looked_at(void *userdata, bool is_short, const bool *is_cancelled)
{
	struct daemon *d = userdata;

	if (is_short)
		suspend(d);
	else if (insert_is_suspended(d->insert))
		insert_resume(d->insert);
	/* Not while there are none, but for those of a self-test that is made again. */
	if (!is_suspended(d))
		insert_drop_leaving(d->insert);
	if (!is_short || !d->insert_wakes)
		return;
	d->insert_wakes--;
	insert_wake_all(d->insert, is_cancelled);
}

/* --- from the daemon's start to the first process, the load, and the self-test */

/* Why it is not done, for good. */
static const char *why_never(const struct daemon *d)
{
	if (d->insert_refusal.reason[0])
		return d->insert_refusal.reason;
	return d->insert ? insert_why_not(d->insert) : "not configured (propagate)";
}

static void drop(struct daemon *d)
{
	tcp_watch_free(TAKE_PTR(d->tcp_watch));
	insert_load_free(TAKE_PTR(d->insert_load));
	insert_free(TAKE_PTR(d->insert));
}

/*
 * Whatever goes wrong costs the header, and nothing else. 'r': INSERT_REFUSED, 0 if it was the
 * self-test, or a negative errno, which may be another one later.
 */
static void give_up(struct daemon *d, int r)
{
	/* The self-test's outcome is kept. */
	if (r)
		drop(d);
	if (r < 0) {
		errno = -r;
		log_ratelimited(LOG_LEVEL_WARNING, "Cannot set up what gives requests "
						   "'traceparent', trying later: %m");
		d->propagation = PROPAGATION_UNUSED;
		d->insert_later_ns = now_ns(CLOCK_MONOTONIC) + LATER_NS;
		return;
	}
	d->propagation = PROPAGATION_NEVER;
	tcp_watch_free(TAKE_PTR(d->tcp_watch));
	/* Of a missing right the daemon's start has told. */
	if (rights_include_descriptors())
		log_info("Requests will not carry 'traceparent' to other hosts: %s", why_never(d));
}

/* What can be told before anything is loaded. Returns 0 or INSERT_REFUSED. */
static int look_at_host(struct daemon *d)
{
	const char *refusal = insert_load_refusal(d->probe);
	int r;

	if (!rights_include_sockets())
		refusal = "no CAP_NET_ADMIN";
	else if (!rights_include_descriptors())
		refusal = "no CAP_SYS_PTRACE, by which a connection is taken out when it must be";
	if (refusal) {
		snprintf(d->insert_refusal.reason, sizeof(d->insert_refusal.reason), "%s", refusal);
		return INSERT_REFUSED;
	}
	r = tcp_memory_new("/proc", &d->tcp_memory);
	if (r < 0) {
		snprintf(d->insert_refusal.reason, sizeof(d->insert_refusal.reason),
			 "the memory of TCP cannot be watched from here: %s", strerror(-r));
		return INSERT_REFUSED;
	}
	r = tcp_memory_groups_find("/proc", &d->tcp_groups);
	if (r < 0) {
		snprintf(d->insert_refusal.reason, sizeof(d->insert_refusal.reason),
			 "the limits of groups cannot be looked at: %s", strerror(-r));
		return INSERT_REFUSED;
	}
	return 0;
}

void propagation_start(struct daemon *d)
{
	int r;

	if (!propagation_is_wanted(d->config))
		return;
	r = look_at_host(d);
	if (r)
		give_up(d, r);
	else
		d->propagation = PROPAGATION_UNUSED;
}

static int start_watch(struct daemon *d)
{
	if (d->tcp_watch)
		return 0;
	return tcp_watch_new(&(struct tcp_watch_options){.memory = d->tcp_memory,
							 .is_short = insert_is_suspended(d->insert),
							 .nice = WATCH_NICE,
							 .looked = memory_looked_at,
							 .userdata = d},
			     &d->tcp_watch);
}

static void await(struct daemon *d, int fd, sd_event_io_handler_t handler, enum propagation next)
{
	int r = sd_event_add_io(d->event, &d->insert_source, fd, EPOLLIN, handler, d);

	if (r < 0)
		give_up(d, r);
	else
		d->propagation = next;
}

static int select_again(const struct process *p, void *userdata)
{
	struct daemon *d = userdata;

	if (p->state == PROCESS_SELECTED && is_for(p))
		daemon_select(d, p);
	return 0;
}

/* The self-test has found nothing against it. */
static void begin(struct daemon *d)
{
	int r = start_watch(d);

	if (r < 0) {
		give_up(d, r);
		return;
	}
	d->propagation = PROPAGATION_READY;
	if (d->insert_tested != count_resumes(d))
		log_info(ENOUGH);
	__atomic_store_n(&d->insert_resumes, d->insert_tested, __ATOMIC_SEQ_CST);
	discover_walk(d->discover, select_again, d);
}

static void wait_for_memory(struct daemon *d)
{
	int r;

	if (!d->tcp_watch)
		suspend(d);
	r = start_watch(d);
	if (r < 0)
		give_up(d, r);
	else
		d->propagation = PROPAGATION_WAITING;
}

static int on_tested(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct daemon *d = userdata;
	int r;

	(void)source;
	(void)fd;
	(void)revents;
	d->insert_source = sd_event_source_disable_unref(d->insert_source);
	r = insert_check_end(d->insert);
	if (r < 0) {
		give_up(d, r);
	} else if (!insert_why_not(d->insert)) {
		begin(d);
	} else if (d->insert_tested != count_shortages(d) || is_short_now(d)) {
		/* One that fails while memory is short says nothing of the kernel. */
		insert_check_again(d->insert);
		wait_for_memory(d);
	} else {
		give_up(d, 0);
	}
	return 0;
}

static void test(struct daemon *d, unsigned int shortages)
{
	int r = insert_check_begin(d->insert, &d->insert_refusal);

	d->insert_tested = shortages;
	if (r)
		give_up(d, r);
	else
		await(d, insert_check_fd(d->insert), on_tested, PROPAGATION_TESTING);
}

static int on_loaded(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct daemon *d = userdata;
	int r;

	(void)source;
	(void)fd;
	(void)revents;
	d->insert_source = sd_event_source_disable_unref(d->insert_source);
	r = insert_new(d->probe, d->insert_load, &d->insert, &d->insert_refusal);
	insert_load_free(TAKE_PTR(d->insert_load));
	/* Of the kernel's type information, several megabytes, malloc keeps what it does not use. */
	d->memory.next_ns = 0;
	if (r)
		give_up(d, r);
	else if (is_short_now(d))
		wait_for_memory(d);
	else
		test(d, count_shortages(d));
	return 0;
}

static void load(struct daemon *d)
{
	struct insert_options options = {
		.head_bytes_max = d->config->head_bytes_max,
		.connections_max = d->config->connections_max,
	};
	int r = insert_load_new(d->probe, &options, &d->insert_load);

	if (r < 0)
		give_up(d, r);
	else
		await(d, insert_load_fd(d->insert_load), on_loaded, PROPAGATION_LOADING);
}

/* --- what is told of it */

const char *propagation_why_not(const struct daemon *d)
{
	switch (d->propagation) {
	case PROPAGATION_NEVER:
		return why_never(d);
	case PROPAGATION_UNUSED:
		return d->insert_later_ns ? "it could not be set up: trying again"
					  : "not loaded: no Go process is traced that it is for";
	case PROPAGATION_LOADING:
		return "loading";
	case PROPAGATION_WAITING:
	case PROPAGATION_TESTING:
	case PROPAGATION_READY:
		break;
	}
	if (is_suspended(d))
		return "suspended while TCP is short of memory (net.ipv4.tcp_mem)";
	return d->propagation == PROPAGATION_TESTING ? "loading: being tested" : NULL;
}

const char *propagation_why_not_everywhere(const struct daemon *d)
{
	const char *why_not = propagation_why_not(d);

	if (why_not)
		return why_not;
	return insert_has_all_groups(d->insert) ? NULL
						: "the daemon sees its own container's cgroups "
						  "only (docker: --cgroupns=host)";
}

static bool is_limited(const struct daemon *d, const struct process *p)
{
	return tcp_memory_is_limited(&d->tcp_groups, "/proc", p->pid);
}

bool propagation_applies(struct daemon *d, const struct process *p)
{
	int r;

	if (!is_for(p))
		return false;
	if (d->propagation == PROPAGATION_UNUSED && !d->insert_later_ns)
		load(d);
	if (d->propagation != PROPAGATION_READY)
		return false;
	/* What is taken in must be such that it can be taken out. */
	r = foreign_sockets_reach(p->pid);
	if (r < 0) {
		metrics_increment(METRIC_PROPAGATION_NO_DESCRIPTORS);
		d->has_unreached = true;
		return false;
	}
	if (r) {
		metrics_increment(METRIC_PROPAGATION_UNREACHABLE);
		return false;
	}
	if (!is_limited(d, p))
		return true;
	metrics_increment(METRIC_PROPAGATION_LIMITED);
	return false;
}

void propagation_take_connections(struct daemon *d, const struct process *p)
{
	if (!is_suspended(d))
		insert_take_connections(d->insert, p->pid);
}

/* What it executes now may have connections of it, and ask how many bytes are waiting. */
void propagation_drop_connections(struct daemon *d, const struct process *p)
{
	if (is_for(p) && d->propagation == PROPAGATION_READY)
		insert_drop_connections(d->insert, p->pid);
}

/* --- while TCP is short of memory */

static int take(const struct process *p, void *userdata)
{
	struct daemon *d = userdata;

	if (p->state == PROCESS_SELECTED && is_for(p) && !is_limited(d, p))
		insert_take_connections(d->insert, p->pid);
	return 0;
}

static void resume(struct daemon *d, unsigned int shortages)
{
	if (d->propagation == PROPAGATION_WAITING) {
		test(d, shortages);
		return;
	}
	__atomic_store_n(&d->insert_resumes, shortages, __ATOMIC_SEQ_CST);
	log_info(ENOUGH);
	discover_walk(d->discover, take, d);
}

/* A limit was set, or lifted, or there was no file descriptor to look with. */
static int look_at_limit(const struct process *p, void *userdata)
{
	struct daemon *d = userdata;
	struct probe_seen seen;
	bool applies;
	int r;

	if (p->state != PROCESS_SELECTED || !is_for(p))
		return 0;
	probe_process_seen(d->probe, p->pid, &seen);
	r = foreign_sockets_reach(p->pid);
	applies = !is_limited(d, p) && !r;
	d->has_unreached |= r < 0;
	if (applies == seen.propagates || r < 0)
		return 0;
	daemon_select(d, p);
	if (applies)
		return 0;
	insert_drop_connections(d->insert, p->pid);
	insert_wake_connections(d->insert, p->pid);
	return 0;
}

static void look_at_limits(struct daemon *d, uint64_t now)
{
	if ((!d->tcp_groups.root[0] && !d->has_unreached) || now < d->tcp_groups_ns)
		return;
	d->tcp_groups_ns = now + LIMITS_NS;
	d->has_unreached = false;
	discover_walk(d->discover, look_at_limit, d);
}

void propagation_tick(struct daemon *d, uint64_t now)
{
	unsigned int shortages = count_shortages(d);

	if (d->propagation == PROPAGATION_UNUSED && d->insert_later_ns &&
	    now >= d->insert_later_ns) {
		d->insert_later_ns = 0;
		load(d);
	}
	if (d->propagation != PROPAGATION_WAITING && d->propagation != PROPAGATION_READY)
		return;
	/* Counted before it is looked at: what comes in between is another one. */
	if (shortages != count_resumes(d) && !insert_is_suspended(d->insert))
		resume(d, shortages);
	if (d->propagation == PROPAGATION_READY)
		look_at_limits(d, now);
}

/* Nobody looks at TCP's memory any more, and whoever would come to wait for some is told now. */
void propagation_stop(struct daemon *d)
{
	tcp_watch_free(TAKE_PTR(d->tcp_watch));
	d->insert_source = sd_event_source_disable_unref(d->insert_source);
	if (d->propagation != PROPAGATION_READY)
		return;
	insert_suspend(d->insert);
	insert_wake_all(d->insert, NULL);
}

void propagation_free(struct daemon *d)
{
	d->insert_source = sd_event_source_disable_unref(d->insert_source);
	drop(d);
	tcp_memory_free(d->tcp_memory);
}
