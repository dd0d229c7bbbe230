/* Spans as JSON; see json.h. Written directly, as cJSON's numbers are doubles. */
#include "export/json.h"

#include <errno.h>
#include <inttypes.h>

#include "export/utf8.h"

static const char *const kind_names[] = {
	[SPAN_KIND_INTERNAL] = "internal",
	[SPAN_KIND_SERVER] = "server",
	[SPAN_KIND_CLIENT] = "client",
};
static_assert(ARRAY_SIZE(kind_names) == SPAN_KIND_CLIENT + 1, "each kind has a name");

static const char *const status_names[] = {
	[SPAN_STATUS_UNSET] = "unset",
	[SPAN_STATUS_OK] = "ok",
	[SPAN_STATUS_ERROR] = "error",
};
static_assert(ARRAY_SIZE(status_names) == SPAN_STATUS_ERROR + 1, "each status has a name");

/* Bytes of 's' that may stand in a JSON string as they are. */
static size_t plain_bytes(struct str s)
{
	size_t n = utf8_valid_bytes(s), i = 0;

	while (i < n && (unsigned char)s.p[i] >= 0x20 && s.p[i] != '"' && s.p[i] != '\\')
		i++;
	return i;
}

static void escape_write(FILE *out, struct str s)
{
	char bytes[4];
	uint32_t rune;

	utf8_decode(s, &rune);
	if (rune == '"' || rune == '\\')
		fprintf(out, "\\%c", (char)rune);
	else if (rune < 0x20)
		fprintf(out, "\\u%04" PRIx32, rune);
	else
		fwrite_unlocked(bytes, 1, utf8_encode(rune, bytes), out);
}

static void string_write(FILE *out, struct str s)
{
	putc_unlocked('"', out);
	while (s.n) {
		size_t n = plain_bytes(s);

		fwrite_unlocked(s.p, 1, n, out);
		s = str_skip(s, n);
		if (!s.n)
			break;
		/* One byte of ASCII, or an invalid one: either way one byte of the input. */
		escape_write(out, s);
		s = str_skip(s, 1);
	}
	putc_unlocked('"', out);
}

static void attributes_write(FILE *out, const struct span *span)
{
	putc_unlocked('{', out);
	for (size_t i = 0; i < span->n_attributes; i++) {
		const struct attribute *a = &span->attributes[i];

		fprintf(out, "%s\"%s\":", i ? "," : "", attribute_key_name(a->key));
		if (attribute_key_type(a->key) == ATTRIBUTE_INT)
			fprintf(out, "%" PRId64, a->i);
		else
			string_write(out, a->s);
	}
	putc_unlocked('}', out);
}

static void span_write(FILE *out, const struct span *span)
{
	const struct resource *resource = span->resource;
	char trace_id[TRACE_ID_HEX + 1], span_id[SPAN_ID_HEX + 1], parent_id[SPAN_ID_HEX + 1] = "";

	ids_to_hex(span->trace_id.b, sizeof(span->trace_id.b), trace_id);
	ids_to_hex(span->span_id.b, sizeof(span->span_id.b), span_id);
	if (span_id_is_valid(&span->parent_span_id))
		ids_to_hex(span->parent_span_id.b, sizeof(span->parent_span_id.b), parent_id);

	fprintf(out,
		"{\"trace_id\":\"%s\",\"span_id\":\"%s\",\"parent_span_id\":\"%s\",\"kind\":\"%s\","
		"\"name\":",
		trace_id, span_id, parent_id, kind_names[span->kind]);
	string_write(out, span->name);
	fprintf(out,
		",\"start_unix_nano\":%" PRIu64 ",\"end_unix_nano\":%" PRIu64
		",\"status\":\"%s\",\"service\":",
		span->start_unix_ns, span->end_unix_ns, status_names[span->status]);
	string_write(out, str_from(resource ? resource->service_name : ""));
	fprintf(out, ",\"pid\":%" PRIu32 ",\"attributes\":", resource ? resource->pid : 0);
	attributes_write(out, span);
	fputs(",\"links\":[]}", out);
}

int json_write_span(FILE *out, const struct span *span)
{
	span_write(out, span);
	putc_unlocked('\n', out);
	return ferror_unlocked(out) ? -EIO : 0;
}

int json_format_span(const struct span *span, char **ret)
{
	_cleanup_(freep) char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	bool failed;

	if (!out)
		return -ENOMEM;
	span_write(out, span);
	failed = ferror(out);
	if (fclose(out) || failed)
		return -ENOMEM;
	*ret = TAKE_PTR(text);
	return 0;
}
