/*
 * Carrying 'traceparent' to other hosts: whether it is wanted, whether it can be had, and for which
 * processes. Part of daemon.c and report.c; see daemon_private.h.
 */
#include "base/log.h"
#include "daemon_private.h"

bool propagation_is_wanted(const struct config *config)
{
	bool is_wanted = config->propagate == CONFIG_PROPAGATE_ON;

	for (size_t i = 0; i < config->n_services; i++)
		is_wanted |= config->services[i].propagate == CONFIG_PROPAGATE_ON;
	return is_wanted;
}

int propagation_start(struct daemon *d)
{
	const char *why_not;
	int r;

	if (!propagation_is_wanted(d->config))
		return 0;
	r = insert_new(d->probe, &d->insert, &d->insert_refusal);
	if (r < 0)
		return log_error_errno(r, "Cannot set up the insertion of headers: %m");
	why_not = propagation_why_not(d);
	if (why_not)
		log_warning("Requests will not carry 'traceparent' to other hosts: %s", why_not);
	return 0;
}

const char *propagation_why_not(const struct daemon *d)
{
	if (d->insert)
		return insert_why_not(d->insert);
	return d->insert_refusal.reason[0] ? d->insert_refusal.reason
					   : "not configured (propagate)";
}

bool propagation_applies(const struct daemon *d, const struct process *p)
{
	return p->propagates && p->language == LANGUAGE_GO && !propagation_why_not(d);
}
