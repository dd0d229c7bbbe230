/*
 * Fuzzer of http/head.c: any bytes, whole and as the beginning of a head. Views stay inside the
 * input, and what the parser says of the whole it does not say of its beginnings.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/util.h"
#include "http/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_view(struct str view, struct str bytes)
{
	assert(!view.n || (view.p >= bytes.p && view.p + view.n <= bytes.p + bytes.n));
}

static void check_head(const struct http_head *h, struct str bytes)
{
	check_view(h->method_text, bytes);
	check_view(h->target, bytes);
	check_view(h->reason, bytes);
	check_view(h->host, bytes);
	check_view(h->user_agent, bytes);
	check_view(h->traceparent, bytes);
	for (unsigned int i = 0; i < MIN(h->n_tracestates, (unsigned int)HTTP_TRACESTATES_MAX); i++)
		check_view(h->tracestates[i], bytes);
	assert(h->head_bytes <= bytes.n);
	assert(h->is_request ? h->target.n > 0 : h->status >= 100 && h->status <= 999);
	assert(h->content_length >= -1 && (!h->has_bad_framing || h->content_length == -1));
	(void)http_framing(HTTP_METHOD_GET, h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1);
	struct str bytes = {.p = copy, .n = size};
	struct http_head h, again;

	if (!copy)
		return 0;
	if (size)
		memcpy(copy, data, size);

	if (http_head_parse_truncated(bytes, &h) == HTTP_HEAD_DONE)
		check_head(&h, bytes);
	if (http_head_parse(bytes, &h) == HTTP_HEAD_DONE) {
		check_head(&h, bytes);
		bytes.n = h.head_bytes;
		assert(http_head_parse(bytes, &again) == HTTP_HEAD_DONE);
		assert(again.head_bytes == h.head_bytes && again.status == h.status);
		bytes.n--;
		assert(http_head_parse(bytes, &again) == HTTP_HEAD_MORE);
	}
	free(copy);
	return 0;
}
