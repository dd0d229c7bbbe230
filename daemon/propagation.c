/*
 * Carrying 'traceparent' to other hosts: whether it is wanted, whether it can be had, for which
 * processes, and when not: while TCP is short of memory. Part of daemon.c and report.c; see
 * daemon_private.h.
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

bool propagation_is_wanted(const struct config *config)
{
	bool is_wanted = config->propagate == CONFIG_PROPAGATE_ON;

	for (size_t i = 0; i < config->n_services; i++)
		is_wanted |= config->services[i].propagate == CONFIG_PROPAGATE_ON;
	return is_wanted;
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

/*
 * The self-test. One that fails while memory is short says nothing of the kernel. Returns 0 also if
 * it failed, INSERT_REFUSED, or a negative errno.
 */
static int check(struct daemon *d, bool has_reader)
{
	unsigned int shortages = count_shortages(d);
	int r = insert_check(d->insert, d->probe, has_reader, &d->insert_refusal);

	if (r || !insert_why_not(d->insert))
		return r;
	if (shortages != count_shortages(d) || is_short_now(d))
		insert_check_again(d->insert);
	return 0;
}

static int start(struct daemon *d)
{
	int r;

	if (!rights_include_sockets()) {
		snprintf(d->insert_refusal.reason, sizeof(d->insert_refusal.reason),
			 "no CAP_NET_ADMIN");
		return INSERT_REFUSED;
	}
	if (!rights_include_descriptors()) {
		snprintf(d->insert_refusal.reason, sizeof(d->insert_refusal.reason),
			 "no CAP_SYS_PTRACE, by which a connection is taken out when it must be");
		return INSERT_REFUSED;
	}
	r = tcp_memory_new("/proc", &d->tcp_memory);
	if (r < 0) {
		snprintf(d->insert_refusal.reason, sizeof(d->insert_refusal.reason),
			 "the memory of TCP cannot be watched from here: %s", strerror(-r));
		return INSERT_REFUSED;
	}
	r = tcp_memory_groups_find("/proc", &d->tcp_groups);
	if (r < 0)
		return r;
	r = insert_new(d->probe, &d->insert, &d->insert_refusal);
	if (r)
		return r;
	if (!is_short_now(d)) {
		r = check(d, false);
		if (r || insert_is_checked(d->insert))
			return r;
	}
	suspend(d);
	return 0;
}

/* Why it is not done, for good. */
static const char *why_never(const struct daemon *d)
{
	if (d->insert && !d->insert_refusal.reason[0])
		return insert_why_not(d->insert);
	return d->insert_refusal.reason[0] ? d->insert_refusal.reason
					   : "not configured (propagate)";
}

static int start_watch(struct daemon *d)
{
	return tcp_watch_new(&(struct tcp_watch_options){.memory = d->tcp_memory,
							 .is_short = insert_is_suspended(d->insert),
							 .nice = WATCH_NICE,
							 .looked = memory_looked_at,
							 .userdata = d},
			     &d->tcp_watch);
}

/* Whatever goes wrong costs the header, and nothing else. */
void propagation_start(struct daemon *d)
{
	const char *why_not;
	int r;

	if (!propagation_is_wanted(d->config))
		return;
	r = start(d);
	if (r == 0 && !why_never(d))
		r = start_watch(d);
	if (r < 0) {
		snprintf(d->insert_refusal.reason, sizeof(d->insert_refusal.reason),
			 "it could not be set up: %s", strerror(-r));
		insert_free(TAKE_PTR(d->insert));
	}
	why_not = why_never(d);
	/* Of a missing right the daemon's start has told. */
	if (why_not && rights_include_descriptors())
		log_info("Requests will not carry 'traceparent' to other hosts: %s", why_not);
}

const char *propagation_why_not(const struct daemon *d)
{
	if (!why_never(d) && is_suspended(d))
		return "suspended while TCP is short of memory (net.ipv4.tcp_mem)";
	return why_never(d);
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

static bool would_apply(const struct daemon *d, const struct process *p)
{
	return p->propagates && p->language == LANGUAGE_GO && !why_never(d);
}

static bool is_limited(const struct daemon *d, const struct process *p)
{
	return tcp_memory_is_limited(&d->tcp_groups, "/proc", p->pid);
}

bool propagation_applies(struct daemon *d, const struct process *p)
{
	int r;

	if (!would_apply(d, p))
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
	if (would_apply(d, p))
		insert_drop_connections(d->insert, p->pid);
}

/* --- while TCP is short of memory */

static int take(const struct process *p, void *userdata)
{
	struct daemon *d = userdata;

	if (p->state == PROCESS_SELECTED && would_apply(d, p) && !is_limited(d, p))
		insert_take_connections(d->insert, p->pid);
	return 0;
}

/* The first time, if there was no memory for the self-test at the start. */
static void begin_late(struct daemon *d)
{
	const char *why_not;
	int r = check(d, true);

	if (r < 0) {
		errno = -r;
		log_ratelimited(LOG_LEVEL_WARNING,
				"Cannot test the insertion of headers, trying later: %m");
		return;
	}
	why_not = why_never(d);
	if (why_not) {
		log_warning("Requests will not carry 'traceparent' to other hosts: %s", why_not);
	}
}

static void resume(struct daemon *d, unsigned int shortages)
{
	if (!insert_is_checked(d->insert))
		begin_late(d);
	if (!insert_is_checked(d->insert))
		return;
	__atomic_store_n(&d->insert_resumes, shortages, __ATOMIC_SEQ_CST);
	if (why_never(d)) {
		tcp_watch_free(TAKE_PTR(d->tcp_watch));
		return;
	}
	log_info("TCP has enough memory: requests carry 'traceparent' to other hosts");
	discover_walk(d->discover, take, d);
}

/* A limit was set, or lifted, or there was no file descriptor to look with. */
static int look_at_limit(const struct process *p, void *userdata)
{
	struct daemon *d = userdata;
	struct probe_seen seen;
	bool applies;
	int r;

	if (p->state != PROCESS_SELECTED || !would_apply(d, p))
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

	if (why_never(d))
		return;
	/* Counted before it is looked at: what comes in between is another one. */
	if (shortages != count_resumes(d) && !insert_is_suspended(d->insert))
		resume(d, shortages);
	look_at_limits(d, now);
}

/* Nobody looks at TCP's memory any more, and whoever would come to wait for some is told now. */
void propagation_stop(struct daemon *d)
{
	tcp_watch_free(TAKE_PTR(d->tcp_watch));
	if (why_never(d))
		return;
	insert_suspend(d->insert);
	insert_wake_all(d->insert, NULL);
}
