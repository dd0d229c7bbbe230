/* The collector's answer; see response.h. */
#include "export/response.h"

#include <string.h>

#include "base/util.h"
#include "export/utf8.h"
#include "otlp.pb-c.h"

static void accepted_freep(Otlp__ExportTraceServiceResponse **m)
{
	otlp__export_trace_service_response__free_unpacked(*m, NULL);
}

static void status_freep(Otlp__RpcStatus **m)
{
	otlp__rpc_status__free_unpacked(*m, NULL);
}

/* As much as fits, on one line, nothing that could steer a terminal. */
static void message_set(struct response *r, struct str text)
{
	size_t n = 0;

	while (text.n) {
		uint32_t rune;

		text = str_skip(text, utf8_decode(text, &rune));
		if (rune < 0x20 || (rune >= 0x7F && rune < 0xA0))
			rune = ' ';
		if (n + 4 >= sizeof(r->message))
			break;
		n += utf8_encode(rune, r->message + n);
	}
	r->message[n] = '\0';
}

static void message_set_bytes(struct response *r, const ProtobufCBinaryData *bytes)
{
	message_set(r, (struct str){.p = (const char *)bytes->data, .n = bytes->len});
}

static void accepted_judge(struct str body, uint64_t n_spans, struct response *ret)
{
	_cleanup_(accepted_freep) Otlp__ExportTraceServiceResponse *m =
		otlp__export_trace_service_response__unpack(NULL, body.n, (const uint8_t *)body.p);

	if (!m) {
		ret->verdict = RESPONSE_REFUSED;
		message_set(ret, STR("the body is no OTLP answer: is this a collector's URL?"));
		return;
	}
	ret->verdict = RESPONSE_ACCEPTED;
	if (!m->partial_success)
		return;
	if (m->partial_success->rejected_spans > 0)
		ret->rejected_spans = MIN((uint64_t)m->partial_success->rejected_spans, n_spans);
	message_set_bytes(ret, &m->partial_success->error_message);
}

static void refused_judge(struct str body, struct response *ret)
{
	_cleanup_(status_freep) Otlp__RpcStatus *m =
		otlp__rpc_status__unpack(NULL, body.n, (const uint8_t *)body.p);

	ret->verdict = RESPONSE_REFUSED;
	/*
	 * A proxy's error page is no google.rpc.Status; its beginning often says what is wrong all
	 * the same.
	 */
	if (m && m->message.len)
		message_set_bytes(ret, &m->message);
	else
		message_set(ret, body);
}

void response_judge(long http_status, struct str body, uint64_t n_spans, struct response *ret)
{
	*ret = (struct response){0};
	if (http_status >= 200 && http_status < 300)
		accepted_judge(body, n_spans, ret);
	else
		refused_judge(body, ret);
}
