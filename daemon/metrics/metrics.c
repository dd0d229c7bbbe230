/* Counters; see metrics.h. */
#include "metrics/metrics.h"

static uint64_t values[_METRIC_MAX];

#define METRICS_NAME(id, name, help) name,
static const char *const names[] = {METRICS(METRICS_NAME)};
#define METRICS_HELP(id, name, help) help,
static const char *const helps[] = {METRICS(METRICS_HELP)};

void metrics_add(enum metric metric, uint64_t n)
{
	__atomic_add_fetch(&values[metric], n, __ATOMIC_RELAXED);
}

uint64_t metrics_get(enum metric metric)
{
	return __atomic_load_n(&values[metric], __ATOMIC_RELAXED);
}

const char *metrics_name(enum metric metric)
{
	return names[metric];
}

const char *metrics_help(enum metric metric)
{
	return helps[metric];
}
