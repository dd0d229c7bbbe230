/*
 * Fuzzer of http/url.c and http/trace_context.c: views stay inside the input, hosts bear nothing
 * that ends one, and redaction fits where it says it does.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/util.h"
#include "http/trace_context.h"
#include "http/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_host(struct str host)
{
	for (size_t i = 0; i < host.n; i++)
		assert(host.p[i] > ' ' && host.p[i] != '@' && host.p[i] != '/' && host.p[i] != '?');
}

static void check_target(struct str target, bool is_connect)
{
	struct url url;

	if (url_parse_target(target, is_connect, &url) != 0)
		return;
	check_host(url.host);
	assert(url.scheme.n + url.host.n + url.query.n <= target.n);
	assert(url.path.n <= MAX(target.n, 1U));
	assert(str_find(url.path, '?') < 0 && str_find(url.path, '#') < 0);
}

static void check_redaction(struct str query)
{
	size_t size = URL_REDACTED_BYTES_MAX(query.n), n;
	char *buffer = malloc(size), *again = malloc(size);

	assert(buffer && again);
	n = url_redact_query(query, buffer, size);
	assert(n < size);

	/* Redacted twice is redacted once; a shorter buffer holds the beginning of the same. */
	assert(url_redact_query((struct str){.p = buffer, .n = n}, again, size) == n);
	assert(memcmp(buffer, again, n) == 0);
	assert(url_redact_query(query, again, n / 2) == n / 2);
	assert(memcmp(buffer, again, n / 2) == 0);
	free(buffer);
	free(again);
}

static void check_escape(struct str s)
{
	char *buffer = malloc(3 * s.n + 1);
	size_t n;

	assert(buffer);
	n = url_escape(s, buffer);
	assert(n >= s.n && n <= 3 * s.n);
	for (size_t i = 0; i < n; i++)
		assert((unsigned char)buffer[i] < 0x80);
	free(buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1);
	struct str bytes = {.p = copy, .n = size}, host;
	struct trace_context context;
	uint16_t port;

	if (!copy)
		return 0;
	if (size)
		memcpy(copy, data, size);

	check_target(bytes, false);
	check_target(bytes, true);
	if (url_parse_authority(bytes, &host, &port) == 0)
		check_host(host);
	check_redaction(bytes);
	check_escape(bytes);
	if (trace_context_parse(bytes, &context) == 0)
		assert(trace_id_is_valid(&context.trace_id) && span_id_is_valid(&context.span_id));
	free(copy);
	return 0;
}
