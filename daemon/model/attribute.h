/*
 * Span attributes: keys from OpenTelemetry's semantic conventions (HTTP spans 1.27 and newer) as an
 * enum, with their names and types in one table, so that no exporter spells a key itself.
 */
#pragma once

#include <stdint.h>

#include "base/str.h"

enum attribute_key {
	ATTR_HTTP_REQUEST_METHOD,
	ATTR_HTTP_REQUEST_METHOD_ORIGINAL,
	ATTR_HTTP_RESPONSE_STATUS_CODE,
	ATTR_HTTP_REQUEST_RESEND_COUNT,
	ATTR_HTTP_ROUTE,
	ATTR_URL_SCHEME,
	ATTR_URL_PATH,
	ATTR_URL_QUERY,
	ATTR_URL_FULL,
	ATTR_SERVER_ADDRESS,
	ATTR_SERVER_PORT,
	ATTR_CLIENT_ADDRESS,
	ATTR_CLIENT_PORT,
	ATTR_NETWORK_PEER_ADDRESS,
	ATTR_NETWORK_PEER_PORT,
	ATTR_NETWORK_PROTOCOL_NAME,
	ATTR_NETWORK_PROTOCOL_VERSION,
	ATTR_USER_AGENT_ORIGINAL,
	ATTR_ERROR_TYPE,
	ATTR_THREAD_ID,
	ATTR_TSUNAGI_TRUNCATED,     /* "head" when the head was longer than http.head_bytes_max */
	ATTR_TSUNAGI_PARENT_REASON, /* why a client span has no parent, e.g. "no_open_request" */
	ATTR_TSUNAGI_GOROUTINE_ID, /* of the goroutine that serves, or calls; OpenTelemetry names none */
	_ATTR_MAX,
};

enum attribute_type { ATTRIBUTE_STRING, ATTRIBUTE_INT };

/* String attributes use 's', integer ones 'i'; which one it is stands in the key's table row. */
struct attribute {
	enum attribute_key key;
	union {
		struct str s;
		int64_t i;
	};
};

const char *attribute_key_name(enum attribute_key key);
enum attribute_type attribute_key_type(enum attribute_key key);
