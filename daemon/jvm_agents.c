/* Agents in JVMs; see jvm_agents.h. */
#include "jvm_agents.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/table.h"
#include "metrics/metrics.h"
#include "probe/jvm_control.h"

struct agent {
	struct table_node node; /* by proc_id */
	uint32_t proc_id, pid;
	uint64_t address; /* 0: not in use */
	int64_t slot;
	char state[192];
};

struct jvm_agents {
	struct table agents;
};

int jvm_agents_new(struct jvm_agents **ret)
{
	struct jvm_agents *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
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

static void agent_switch_off(struct agent *agent)
{
	if (agent->address)
		jvm_control_enable(agent->pid, agent->address, false);
	agent->address = 0;
	agent->slot = 0;
}

static int agent_free(struct table_node *node, void *userdata)
{
	struct agent *agent = container_of(node, struct agent, node);

	table_remove(userdata, node);
	free(agent);
	return 0;
}

void jvm_agents_free(struct jvm_agents *a)
{
	if (!a)
		return;
	table_walk(&a->agents, agent_free, &a->agents);
	table_done(&a->agents);
	free(a);
}

/* Whether there is an agent to be told of. */
static bool agent_look(struct agent *agent)
{
	struct jvm_control_view view;
	int r = jvm_control_find(agent->pid, &view);

	if (r == JVM_CONTROL_NONE || r == -ENOENT || r == -ESRCH)
		return false;
	if (r == JVM_CONTROL_OTHER) {
		jvm_control_enable(agent->pid, view.address, false);
		snprintf(
			agent->state, sizeof(agent->state),
			"of another version, switched off: restart the process to trace its tasks");
	} else if (r < 0) {
		snprintf(agent->state, sizeof(agent->state), "not readable: %s", strerror(-r));
	} else if (!view.is_ready) {
		snprintf(agent->state, sizeof(agent->state), "not ready%s%s",
			 view.reason[0] ? ": " : "", view.reason);
	} else if (jvm_control_enable(agent->pid, view.address, true) != 0) {
		snprintf(agent->state, sizeof(agent->state), "not to be switched on");
	} else {
		agent->address = view.address;
		agent->slot = view.slot;
		snprintf(agent->state, sizeof(agent->state), "in use%s%s",
			 view.reason[0] ? ", but: " : "", view.reason);
		metrics_add(METRIC_JVM_AGENTS_USED, 1);
	}
	return true;
}

int jvm_agents_add(struct jvm_agents *a, const struct process *p, int64_t *ret_slot)
{
	struct agent *agent = agent_get(a, p->proc_id), found = {.pid = p->pid};
	int r;

	if (agent && !agent->address)
		agent_look(agent); /* it was being loaded, or could not be read */
	*ret_slot = agent ? agent->slot : 0;
	if (agent || !agent_look(&found))
		return 0;
	agent = calloc(1, sizeof(*agent));
	if (!agent)
		return -ENOMEM;
	*agent = found;
	agent->proc_id = p->proc_id;
	r = table_insert(&a->agents, &agent->node, p->proc_id);
	if (r < 0) {
		free(agent);
		return r;
	}
	*ret_slot = agent->slot;
	return 0;
}

void jvm_agents_remove(struct jvm_agents *a, uint32_t proc_id)
{
	struct agent *agent = agent_get(a, proc_id);

	if (!agent)
		return;
	agent_switch_off(agent);
	agent_free(&agent->node, &a->agents);
}

const char *jvm_agents_state(const struct jvm_agents *a, uint32_t proc_id)
{
	const struct agent *agent = agent_get(a, proc_id);

	return agent ? agent->state : NULL;
}

static int stop_one(struct table_node *node, void *userdata)
{
	(void)userdata;
	agent_switch_off(container_of(node, struct agent, node));
	return 0;
}

void jvm_agents_stop(struct jvm_agents *a)
{
	table_walk(&a->agents, stop_one, NULL);
}
