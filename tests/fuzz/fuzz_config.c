/*
 * Any bytes as a configuration file: refused with one short line that has a place in it, or
 * accepted with every value in its range.
 */
#include <stdint.h>

#include "base/util.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool is_true)
{
	if (!is_true)
		abort();
}

static void check_selectors(const struct selector_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct selector *s = &list->items[i];

		require(s->port_first <= s->port_last);
		require((s->port_first == 0) == (s->port_last == 0));
		require(s->languages < 1U << _LANGUAGE_MAX);
		require(!s->exe || s->exe[0]);
	}
}

static void check_config(const struct config *c)
{
	require(c->ring_bytes >= 65536 && (c->ring_bytes & (c->ring_bytes - 1)) == 0);
	require(c->head_bytes_max && c->head_bytes_max <= 65536);
	require(c->export_batch_spans && c->export_queue_spans && c->export_batch_ms);
	require(c->connections_max && c->processes_max && c->requests_max && c->store_traces);
	require(!c->endpoint || strncasecmp(c->endpoint, "http", 4) == 0);
	check_selectors(&c->include);
	check_selectors(&c->exclude);
	for (size_t i = 0; i < c->n_services; i++)
		require(c->services[i].name && c->services[i].name[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {.p = (const char *)data, .n = size};
	struct config_error error = {0};
	struct config config;
	int r = config_parse(text, "f", &config, &error);

	require(r >= 0);
	if (r == CONFIG_INVALID) {
		require(strncmp(error.text, "f:", 2) == 0);
		require(strlen(error.text) < sizeof(error.text) - 1);
		require(!strpbrk(error.text, "\r\n"));
		return 0;
	}
	check_config(&config);
	config_done(&config);
	return 0;
}
