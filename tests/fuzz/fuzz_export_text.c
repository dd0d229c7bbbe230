/*
 * Any text of a span: the encoders repair it, the JSON line stays one line, the drawing stays
 * harmless.
 */
#include <stdio.h>
#include <stdlib.h>

#include "export/json.h"
#include "export/otlp.h"
#include "export/tree.h"
#include "export/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void json_check(const struct span *span)
{
	char *text;

	if (json_format_span(span, &text) < 0)
		abort();
	if (utf8_valid_bytes(str_from(text)) != strlen(text) || strchr(text, '\n'))
		abort();
	free(text);
}

static void tree_check(struct span *span)
{
	char *text;
	size_t n, n_lines = 0;
	FILE *out = open_memstream(&text, &n);

	if (tree_draw(out, &span, 1, &(struct tree_options){.width = 60}) < 0)
		abort();
	fclose(out);
	for (size_t i = 0; i < n; i++) {
		n_lines += text[i] == '\n';
		if (text[i] != '\n' && (unsigned char)text[i] < 0x20)
			abort();
	}
	if (n_lines != 2 || utf8_valid_bytes((struct str){.p = text, .n = n}) != n)
		abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct otlp_encoder encoder;
	struct str text = {.p = (const char *)data, .n = size}, body;
	struct span_options o = {
		.kind = SPAN_KIND_CLIENT,
		.trace_id = {.b = {1}},
		.span_id = {.b = {1}},
		.name = text,
		.tracestate = text,
	};
	struct span *span;

	span_add_text(&o, ATTR_URL_FULL, text);
	span_add_text(&o, ATTR_ERROR_TYPE, text);
	if (span_new(&o, &span) < 0)
		abort();
	if (otlp_encode(&encoder, &span, 1, &body) < 0)
		abort();
	json_check(span);
	tree_check(span);
	span_unref(span);
	return 0;
}
