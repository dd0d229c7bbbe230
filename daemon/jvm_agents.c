/* Agents in JVMs; see jvm_agents.h. */
#include "jvm_agents.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/table.h"
#include "metrics/metrics.h"
#include "probe/jvm_loader.h"
#include "probe/quit_handlers.h"

#define SERVES_NS    NSEC_PER_SEC        /* listening for so long is serving */
#define RETRY_NS     NSEC_PER_SEC        /* doubled each time ... */
#define RETRY_MAX_NS (60 * NSEC_PER_SEC) /* ... up to this */
#define FAILURES_MAX 3                   /* then it is left alone: each one signals it */
#define FAILURE_NS   (10 * NSEC_PER_SEC) /* between them */
#define LOADERS_MAX  8                   /* processes at a time */
#define READ_NS      (15 * NSEC_PER_SEC) /* between two looks at what one in use has lost */
#define STOP_MS      1000

enum phase {
	WAITS,   /* until it serves, and 'next_ns' */
	LOADS,   /* 'loader' is at it: 'task', for what 'is_wanted' was */
	IS_USED, /* 'slot' */
	IS_LEFT, /* 'state' says why */
};

struct agent {
	struct table_node node; /* by proc_id */
	uint32_t proc_id, pid;
	uint64_t start_ns;
	bool is_wanted;
	bool was_wanted; /* when 'loader' was started */
	enum phase phase;
	uint64_t listens_ns; /* since when, as far as we looked; 0: it does not */
	uint64_t next_ns;    /* when to try again */
	unsigned int delays, failures;
	enum jvm_loader_task task;
	struct jvm_loader *loader;
	struct jvm_loader *reader; /* looks at one that is in use; NULL: none does */
	uint64_t read_ns;          /* when it is due */
	uint64_t handovers_lost;   /* as last read; JVM_LOADER_UNKNOWN: it was not */
	int64_t slot;
	char state[256];
};

struct jvm_agents {
	struct jvm_agents_options options;
	struct quit_handlers *quit_handlers; /* NULL: the kernel does not tell */
	struct table agents;
	size_t n_loaders;
	struct jvm_loader *orphans[LOADERS_MAX]; /* their JVMs are gone; NULL: free */
	uint64_t
		read_ns; /* when the next one may be looked at: hundreds are so one after the other */
	uint64_t now_ns;
};

int jvm_agents_new(const struct jvm_agents_options *options, struct jvm_agents **ret)
{
	_cleanup_(jvm_agents_freep) struct jvm_agents *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->options = *options;
	if (quit_handlers_new(&a->quit_handlers) == -ENOMEM)
		return -ENOMEM;
	*ret = TAKE_PTR(a);
	return 0;
}

static struct agent *agent_get(const struct jvm_agents *a, uint32_t proc_id)
{
	table_for_each_match(node, &a->agents, proc_id)
	{
		struct agent *agent = container_of(node, struct agent, node);

		if (agent->proc_id == proc_id)
			return agent;
	}
	return NULL;
}

__attribute__((format(printf, 3, 4))) static void agent_enter(struct agent *agent, enum phase phase,
							      const char *state, ...)
{
	va_list args;

	agent->phase = phase;
	va_start(args, state);
	vsnprintf(agent->state, sizeof(agent->state), state, args);
	va_end(args);
}

static void orphan(struct jvm_agents *a, struct jvm_loader *loader)
{
	for (size_t i = 0; loader && i < LOADERS_MAX; i++)
		if (!a->orphans[i])
			a->orphans[i] = TAKE_PTR(loader);
}

static void agent_free(struct jvm_agents *a, struct agent *agent)
{
	orphan(a, agent->loader);
	orphan(a, agent->reader);
	table_remove(&a->agents, &agent->node);
	free(agent);
}

static int free_one(struct table_node *node, void *userdata)
{
	agent_free(userdata, container_of(node, struct agent, node));
	return 0;
}

void jvm_agents_free(struct jvm_agents *a)
{
	if (!a)
		return;
	table_walk(&a->agents, free_one, a);
	table_done(&a->agents);
	for (size_t i = 0; i < LOADERS_MAX; i++)
		jvm_loader_free(a->orphans[i]);
	quit_handlers_free(a->quit_handlers);
	free(a);
}

/* --- what is done about one */

static void agent_delay(struct agent *agent, uint64_t now)
{
	uint64_t delay = RETRY_NS << MIN(agent->delays, 6U);

	agent->delays++;
	agent->next_ns = now + MIN(delay, RETRY_MAX_NS);
}

static bool serves(const struct jvm_agents *a, struct agent *agent)
{
	bool listens = false, had_exchange = false;

	a->options.look(a->options.userdata, agent->proc_id, &listens, &had_exchange);
	if (!listens)
		agent->listens_ns = 0;
	else if (!agent->listens_ns)
		agent->listens_ns = a->now_ns;
	return listens && (had_exchange || a->now_ns - agent->listens_ns >= SERVES_NS);
}

/* As jvm_loader_has_ended(): each one's losses are counted here, and nowhere else. */
static bool loader_has_ended(struct jvm_loader *loader, struct jvm_loader_result *ret)
{
	if (!jvm_loader_has_ended(loader, ret))
		return false;
	metrics_add(METRIC_JVM_HANDOVERS_LOST, ret->newly_lost);
	return true;
}

/*
 * What was lost before an agent was taken over is not ours; and of two processes that look one counts.
 * Returns 0 or a negative errno.
 */
static int start_loader(const struct jvm_agents *a, const struct agent *agent,
			enum jvm_loader_task task, struct jvm_loader **ret)
{
	return jvm_loader_new(
		&(struct jvm_loader_order){.task = task,
					   .pid = agent->pid,
					   .start_ns = agent->start_ns,
					   .quit_handlers = quit_handlers_fd(a->quit_handlers),
					   .lost_before = agent->reader ? JVM_LOADER_UNKNOWN
									: agent->handovers_lost},
		ret);
}

static void agent_start(struct jvm_agents *a, struct agent *agent, enum jvm_loader_task task)
{
	int r;

	agent->task = task;
	agent->was_wanted = agent->is_wanted;
	r = start_loader(a, agent, task, &agent->loader);
	if (r < 0) {
		agent_enter(agent, WAITS, "not loaded: cannot start a process: %s", strerror(-r));
		agent_delay(agent, a->now_ns);
		return;
	}
	a->n_loaders++;
	agent_enter(agent, LOADS, agent->is_wanted ? "being loaded" : "off (jvm.agent)");
}

static void agent_load(struct jvm_agents *a, struct agent *agent)
{
	if (a->n_loaders < LOADERS_MAX && serves(a, agent))
		agent_start(a, agent, agent->is_wanted ? JVM_LOADER_LOAD : JVM_LOADER_OFF);
}

/*
 * The kernel side knows where its slots are before it writes any: a request that it numbered and
 * the kernel side did not would have no calls.
 */
static void agent_loaded(struct jvm_agents *a, struct agent *agent,
			 const struct jvm_loader_result *result)
{
	if (result->is_new)
		metrics_increment(METRIC_JVM_AGENTS_LOADED);
	agent->slot = result->slot;
	if (agent->slot)
		a->options.used(a->options.userdata, agent->proc_id);
	agent_start(a, agent, JVM_LOADER_ON);
}

static void agent_used(struct agent *agent, const struct jvm_loader_result *result)
{
	agent_enter(agent, IS_USED, "in use%s%s", result->reason[0] ? ", but: " : "",
		    result->reason);
	metrics_increment(METRIC_JVM_AGENTS_USED);
}

static void agent_failed(struct agent *agent, const char *reason, uint64_t now)
{
	metrics_increment(METRIC_JVM_AGENTS_FAILED);
	agent->failures++;
	agent_enter(agent, agent->failures < FAILURES_MAX ? WAITS : IS_LEFT, "not loaded: %s",
		    reason);
	agent->next_ns = now + FAILURE_NS * agent->failures;
}

/* Nobody writes its slots any more: what stands in them is not to be read. */
static void slot_drop(struct jvm_agents *a, struct agent *agent)
{
	if (!agent->slot)
		return;
	agent->slot = 0;
	a->options.used(a->options.userdata, agent->proc_id);
}

static void agent_conclude(struct jvm_agents *a, struct agent *agent,
			   const struct jvm_loader_result *result)
{
	switch (result->outcome) {
	case JVM_ATTACH_LOADED:
		if (agent->task == JVM_LOADER_LOAD)
			agent_loaded(a, agent, result);
		else
			agent_used(agent, result);
		break;
	case JVM_ATTACH_NOT_YET:
		agent_enter(agent, WAITS, "not loaded yet: %s", result->reason);
		agent_delay(agent, a->now_ns);
		break;
	case JVM_ATTACH_FAILED:
		agent_failed(agent, result->reason, a->now_ns);
		break;
	case JVM_ATTACH_REFUSED:
		metrics_increment(METRIC_JVM_AGENTS_REFUSED);
		agent_enter(agent, IS_LEFT, "not loaded: %s", result->reason);
		slot_drop(a, agent);
		log_info("No agent in the JVM %" PRIu32
			 ", tasks that it hands over have no parent: %s",
			 agent->pid, result->reason);
		break;
	case JVM_ATTACH_GONE:
	case _JVM_ATTACH_OUTCOME_MAX:
		agent_enter(agent, IS_LEFT, "not loaded: the process ended");
		break;
	}
}

static bool agent_ends(struct jvm_agents *a, struct agent *agent, struct jvm_loader **loader,
		       struct jvm_loader_result *ret)
{
	if (!loader_has_ended(*loader, ret))
		return false;
	jvm_loader_free(TAKE_PTR(*loader));
	a->n_loaders--;
	if (ret->handovers_lost != JVM_LOADER_UNKNOWN)
		agent->handovers_lost = ret->handovers_lost;
	return true;
}

static void agent_broken(struct jvm_agents *a, struct agent *agent, const char *reason)
{
	metrics_increment(METRIC_JVM_AGENTS_BROKEN);
	agent_enter(agent, IS_LEFT, "not in use any more: %s", reason);
	slot_drop(a, agent);
	log_warning("No agent in the JVM %" PRIu32 " any more: %s", agent->pid, reason);
}

/*
 * Its losses stand in its JVM's memory alone, which is gone when that ends. So does that it met a fault
 * of its own.
 */
static void agent_read(struct jvm_agents *a, struct agent *agent)
{
	struct jvm_loader_result result;

	if (agent->reader) {
		if (agent_ends(a, agent, &agent->reader, &result) && agent->phase == IS_USED &&
		    result.outcome == JVM_ATTACH_REFUSED)
			agent_broken(a, agent, result.reason);
		return;
	}
	if (a->now_ns < agent->read_ns || a->now_ns < a->read_ns || a->n_loaders == LOADERS_MAX ||
	    start_loader(a, agent, JVM_LOADER_READ, &agent->reader) != 0)
		return;
	a->n_loaders++;
	a->read_ns = a->now_ns + NSEC_PER_SEC;
	agent->read_ns = a->now_ns + READ_NS;
}

static void agent_follow(struct jvm_agents *a, struct agent *agent)
{
	struct jvm_loader_result result;

	if (!agent_ends(a, agent, &agent->loader, &result))
		return;
	if (agent->was_wanted != agent->is_wanted)
		agent_enter(agent, WAITS, "as configured for its port, in a moment");
	else if (agent->is_wanted)
		agent_conclude(a, agent, &result);
	else
		agent_enter(agent, IS_LEFT, "off (jvm.agent)%s%s",
			    result.reason[0] ? ", but: " : "", result.reason);
}

/* --- the JVMs */

static void agent_begin(struct agent *agent, bool is_wanted)
{
	agent->is_wanted = is_wanted;
	agent->slot = 0;
	agent->next_ns = 0;
	if (agent->phase != LOADS)
		agent_enter(agent, WAITS,
			    is_wanted ? "not loaded: it serves no requests yet"
				      : "off (jvm.agent)");
}

int jvm_agents_add(struct jvm_agents *a, const struct process *p, int64_t *ret_slot)
{
	struct agent *agent = agent_get(a, p->proc_id);
	int r;

	/* By the port that it listens on now it may be another service's. */
	if (agent && agent->is_wanted != p->takes_agent)
		agent_begin(agent, p->takes_agent);
	*ret_slot = agent ? agent->slot : 0;
	if (agent)
		return 0;

	agent = calloc(1, sizeof(*agent));
	if (!agent)
		return -ENOMEM;
	agent->proc_id = p->proc_id;
	agent->pid = p->pid;
	agent->start_ns = p->start_ns;
	agent->handovers_lost = JVM_LOADER_UNKNOWN;
	r = table_insert(&a->agents, &agent->node, p->proc_id);
	if (r < 0) {
		free(agent);
		return r;
	}
	agent_begin(agent, p->takes_agent);
	*ret_slot = 0;
	return 0;
}

void jvm_agents_remove(struct jvm_agents *a, uint32_t proc_id)
{
	struct agent *agent = agent_get(a, proc_id);

	if (!agent)
		return;
	/* Of a process that ended, as most have, there is nothing to switch off. */
	if (agent->phase == IS_USED && a->n_loaders < LOADERS_MAX &&
	    kill((pid_t)agent->pid, 0) == 0 &&
	    start_loader(a, agent, JVM_LOADER_OFF, &agent->loader) == 0)
		a->n_loaders++;
	agent_free(a, agent);
}

const char *jvm_agents_state(const struct jvm_agents *a, uint32_t proc_id)
{
	const struct agent *agent = agent_get(a, proc_id);

	return agent ? agent->state : NULL;
}

bool jvm_agents_lost(const struct jvm_agents *a, uint32_t proc_id, uint64_t *ret)
{
	const struct agent *agent = agent_get(a, proc_id);

	if (!agent || agent->handovers_lost == JVM_LOADER_UNKNOWN)
		return false;
	*ret = agent->handovers_lost;
	return true;
}

static int tick_one(struct table_node *node, void *userdata)
{
	struct agent *agent = container_of(node, struct agent, node);
	struct jvm_agents *a = userdata;

	if (agent->phase == LOADS)
		agent_follow(a, agent);
	else if (agent->phase == WAITS && a->now_ns >= agent->next_ns)
		agent_load(a, agent);
	if (agent->reader || agent->phase == IS_USED)
		agent_read(a, agent);
	return 0;
}

void jvm_agents_tick(struct jvm_agents *a, uint64_t now_ns)
{
	struct jvm_loader_result result;

	a->now_ns = now_ns;
	for (size_t i = 0; i < LOADERS_MAX; i++) {
		if (!a->orphans[i] || !loader_has_ended(a->orphans[i], &result))
			continue;
		jvm_loader_free(TAKE_PTR(a->orphans[i]));
		a->n_loaders--;
	}
	table_walk(&a->agents, tick_one, a);
}

struct stop {
	struct jvm_agents *agents;
	struct jvm_loader **loaders;
	size_t n;
};

/*
 * One that is being switched on is so in some milliseconds, or is not at all. What comes later than that
 * may leave it on: it is switched off none the less.
 */
static void agent_await_on(struct jvm_agents *a, struct agent *agent)
{
	for (unsigned int ms = 0; ms < STOP_MS / LOADERS_MAX && agent->loader; ms += 5) {
		agent_follow(a, agent);
		if (agent->loader)
			usleep(5000);
	}
}

static int stop_one(struct table_node *node, void *userdata)
{
	struct agent *agent = container_of(node, struct agent, node);
	struct stop *stop = userdata;
	bool may_be_on = agent->phase == IS_USED;

	if (agent->phase == LOADS && agent->task == JVM_LOADER_ON) {
		agent_await_on(stop->agents, agent);
		may_be_on = true;
	}
	if (may_be_on &&
	    start_loader(stop->agents, agent, JVM_LOADER_OFF, &stop->loaders[stop->n]) == 0)
		stop->n++;
	agent_enter(agent, IS_LEFT, "the daemon ends");
	return 0;
}

void jvm_agents_stop(struct jvm_agents *a)
{
	struct stop stop = {.agents = a,
			    .loaders = calloc(MAX(a->agents.n, 1U), sizeof(*stop.loaders))};
	struct jvm_loader_result result;

	if (!stop.loaders)
		return;
	table_walk(&a->agents, stop_one, &stop);
	for (unsigned int ms = 0; stop.n && ms < STOP_MS; ms += 5) {
		for (size_t i = stop.n; i-- > 0;) {
			if (!loader_has_ended(stop.loaders[i], &result))
				continue;
			jvm_loader_free(stop.loaders[i]);
			stop.loaders[i] = stop.loaders[--stop.n];
		}
		if (stop.n)
			usleep(5000);
	}
	while (stop.n)
		jvm_loader_free(stop.loaders[--stop.n]);
	free(stop.loaders);
}
