/* Agents in JVMs; see jvm_agents.h. */
#include "jvm_agents.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/table.h"
#include "metrics/metrics.h"
#include "probe/jvm_control.h"
#include "probe/jvm_loader.h"

#define SERVES_NS    NSEC_PER_SEC        /* listening for so long is serving */
#define RETRY_NS     NSEC_PER_SEC        /* doubled each time ... */
#define RETRY_MAX_NS (60 * NSEC_PER_SEC) /* ... up to this */
#define FAILURES_MAX 3                   /* then it is left alone: each one signals it */
#define FAILURE_NS   (10 * NSEC_PER_SEC) /* between them */
#define LOADERS_MAX  4                   /* processes at a time */

enum phase {
	WAITS,   /* until it serves, and 'next_ns' */
	LOADS,   /* 'loader' is at it */
	IS_USED, /* 'address' and 'slot' */
	IS_LEFT, /* 'state' says why */
};

struct agent {
	struct table_node node; /* by proc_id */
	uint32_t proc_id, pid;
	uint64_t start_ns;
	bool is_wanted;
	enum phase phase;
	uint64_t listens_ns; /* since when, as far as we looked; 0: it does not */
	uint64_t next_ns;    /* when to try again */
	unsigned int delays, failures;
	struct jvm_loader *loader;
	uint64_t address;
	int64_t slot;
	char state[256];
};

struct jvm_agents {
	struct jvm_agents_options options;
	struct table agents;
	size_t n_loaders;
	struct jvm_loader *orphans[LOADERS_MAX]; /* their JVMs are gone; NULL: free */
	uint64_t now_ns;
};

int jvm_agents_new(const struct jvm_agents_options *options, struct jvm_agents **ret)
{
	struct jvm_agents *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->options = *options;
	*ret = a;
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

static void agent_switch_off(struct agent *agent)
{
	if (agent->phase == IS_USED)
		jvm_control_enable(agent->pid, agent->address, false);
	agent->address = 0;
	agent->slot = 0;
}

static void agent_free(struct jvm_agents *a, struct agent *agent)
{
	for (size_t i = 0; agent->loader && i < LOADERS_MAX; i++)
		if (!a->orphans[i])
			a->orphans[i] = TAKE_PTR(agent->loader);
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
	free(a);
}

/* --- an agent that is there */

static void agent_delay(struct agent *agent, uint64_t now)
{
	uint64_t delay = RETRY_NS << MIN(agent->delays, 6U);

	agent->delays++;
	agent->next_ns = now + MIN(delay, RETRY_MAX_NS);
}

static void agent_use(struct agent *agent, const struct jvm_control_view *view)
{
	if (jvm_control_enable(agent->pid, view->address, agent->is_wanted) != 0) {
		agent_enter(agent, IS_LEFT, "not to be switched on");
	} else if (!agent->is_wanted) {
		agent_enter(agent, IS_LEFT, "switched off (jvm.agent)");
	} else {
		agent->address = view->address;
		agent->slot = view->slot;
		agent_enter(agent, IS_USED, "in use%s%s", view->reason[0] ? ", but: " : "",
			    view->reason);
		metrics_increment(METRIC_JVM_AGENTS_USED);
	}
}

/* Whether there is one; then 'phase' says what came of it. */
static bool agent_look(struct agent *agent, uint64_t now)
{
	struct jvm_control_view view;
	int r = jvm_control_find(agent->pid, &view);

	if (r == JVM_CONTROL_NONE || r == -ENOENT || r == -ESRCH)
		return false;
	if (r == JVM_CONTROL_OTHER) {
		jvm_control_enable(agent->pid, view.address, false);
		agent_enter(agent, IS_LEFT,
			    "of another version, switched off: restart the process to trace its "
			    "tasks");
	} else if (r < 0) {
		agent_enter(agent, IS_LEFT, "not readable: %s", strerror(-r));
	} else if (view.is_loading) {
		agent_enter(agent, WAITS, "being loaded");
		agent_delay(agent, now);
	} else if (!view.is_ready) {
		agent_enter(agent, IS_LEFT, "not ready%s%s", view.reason[0] ? ": " : "",
			    view.reason);
	} else {
		agent_use(agent, &view);
	}
	return true;
}

/* --- an agent that is to be loaded */

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

static void agent_load(struct jvm_agents *a, struct agent *agent)
{
	int r;

	if (a->n_loaders == LOADERS_MAX || !serves(a, agent))
		return;
	if (agent_look(agent, a->now_ns)) { /* somebody else has */
		if (agent->phase == IS_USED)
			a->options.used(a->options.userdata, agent->proc_id);
		return;
	}
	r = jvm_loader_new(agent->pid, agent->start_ns, &agent->loader);
	if (r < 0) {
		agent_enter(agent, WAITS, "not loaded: cannot start a process: %s", strerror(-r));
		agent_delay(agent, a->now_ns);
		return;
	}
	a->n_loaders++;
	agent_enter(agent, LOADS, "being loaded");
}

static void agent_fail(struct agent *agent, const char *reason, uint64_t now)
{
	metrics_increment(METRIC_JVM_AGENTS_FAILED);
	agent->failures++;
	agent_enter(agent, agent->failures < FAILURES_MAX ? WAITS : IS_LEFT, "not loaded: %s",
		    reason);
	agent->next_ns = now + FAILURE_NS * agent->failures;
}

static void agent_loaded(struct jvm_agents *a, struct agent *agent)
{
	metrics_increment(METRIC_JVM_AGENTS_LOADED);
	log_debug("Loaded the agent into the JVM %" PRIu32, agent->pid);
	if (!agent_look(agent, a->now_ns))
		agent_fail(agent, "the JVM says that it is, but it is not there", a->now_ns);
	else if (agent->phase == IS_USED)
		a->options.used(a->options.userdata, agent->proc_id);
}

static void agent_follow(struct jvm_agents *a, struct agent *agent)
{
	struct jvm_attach_result result;

	if (!jvm_loader_has_ended(agent->loader, &result))
		return;
	jvm_loader_free(TAKE_PTR(agent->loader));
	a->n_loaders--;

	switch (result.outcome) {
	case JVM_ATTACH_LOADED:
		agent_loaded(a, agent);
		break;
	case JVM_ATTACH_NOT_YET:
		agent_enter(agent, WAITS, "not loaded yet: %s", result.reason);
		agent_delay(agent, a->now_ns);
		break;
	case JVM_ATTACH_FAILED:
		agent_fail(agent, result.reason, a->now_ns);
		break;
	case JVM_ATTACH_REFUSED:
		metrics_increment(METRIC_JVM_AGENTS_REFUSED);
		agent_enter(agent, IS_LEFT, "not loaded: %s", result.reason);
		log_info("No agent in the JVM %" PRIu32
			 ", tasks that it hands over have no parent: %s",
			 agent->pid, result.reason);
		break;
	case JVM_ATTACH_GONE:
	case _JVM_ATTACH_OUTCOME_MAX:
		agent_enter(agent, IS_LEFT, "not loaded: the process ended");
		break;
	}
}

/* --- the JVMs */

static void agent_begin(struct agent *agent, const struct process *p, uint64_t now)
{
	agent->is_wanted = p->takes_agent;
	if (agent_look(agent, now))
		return;
	if (agent->is_wanted)
		agent_enter(agent, WAITS, "not loaded: it serves no requests yet");
	else
		agent_enter(agent, IS_LEFT, "off (jvm.agent)");
}

int jvm_agents_add(struct jvm_agents *a, const struct process *p, int64_t *ret_slot)
{
	struct agent *agent = agent_get(a, p->proc_id);
	int r;

	if (agent && agent->is_wanted != p->takes_agent && agent->phase != LOADS) {
		/* By the port that it listens on now it is another service's. */
		agent_switch_off(agent);
		agent_begin(agent, p, a->now_ns);
	}
	*ret_slot = agent ? agent->slot : 0;
	if (agent)
		return 0;

	agent = calloc(1, sizeof(*agent));
	if (!agent)
		return -ENOMEM;
	agent->proc_id = p->proc_id;
	agent->pid = p->pid;
	agent->start_ns = p->start_ns;
	r = table_insert(&a->agents, &agent->node, p->proc_id);
	if (r < 0) {
		free(agent);
		return r;
	}
	agent_begin(agent, p, a->now_ns);
	*ret_slot = agent->slot;
	return 0;
}

void jvm_agents_remove(struct jvm_agents *a, uint32_t proc_id)
{
	struct agent *agent = agent_get(a, proc_id);

	if (!agent)
		return;
	agent_switch_off(agent);
	agent_free(a, agent);
}

const char *jvm_agents_state(const struct jvm_agents *a, uint32_t proc_id)
{
	const struct agent *agent = agent_get(a, proc_id);

	return agent ? agent->state : NULL;
}

static int tick_one(struct table_node *node, void *userdata)
{
	struct agent *agent = container_of(node, struct agent, node);
	struct jvm_agents *a = userdata;

	if (agent->phase == LOADS)
		agent_follow(a, agent);
	else if (agent->phase == WAITS && a->now_ns >= agent->next_ns)
		agent_load(a, agent);
	return 0;
}

void jvm_agents_tick(struct jvm_agents *a, uint64_t now_ns)
{
	struct jvm_attach_result result;

	a->now_ns = now_ns;
	for (size_t i = 0; i < LOADERS_MAX; i++) {
		if (!a->orphans[i] || !jvm_loader_has_ended(a->orphans[i], &result))
			continue;
		jvm_loader_free(TAKE_PTR(a->orphans[i]));
		a->n_loaders--;
	}
	table_walk(&a->agents, tick_one, a);
}

static int stop_one(struct table_node *node, void *userdata)
{
	struct agent *agent = container_of(node, struct agent, node);

	(void)userdata;
	agent_switch_off(agent);
	agent_enter(agent, IS_LEFT, "the daemon ends");
	return 0;
}

void jvm_agents_stop(struct jvm_agents *a)
{
	table_walk(&a->agents, stop_one, NULL);
}
