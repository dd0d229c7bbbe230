/*
 * Span attributes: keys from OpenTelemetry's semantic conventions (HTTP spans 1.27 and newer) as an
 * enum, with their names and types in one table, so that no exporter spells a key itself.
 */
#pragma once

#include <assert.h>
#include <stdint.h>

#include "base/str.h"

/*
 * X(key, its name, its type). tsunagi.truncated: "head" when the head was longer than
 * http.head_bytes_max; tsunagi.parent_reason: why a client span has no parent, e.g.
 * "no_open_request"; tsunagi.goroutine.id: of the goroutine that serves, or calls, for which
 * OpenTelemetry has no name.
 */
#define ATTRIBUTES(X)                                                                          \
	X(ATTR_HTTP_REQUEST_METHOD, "http.request.method", ATTRIBUTE_STRING)                   \
	X(ATTR_HTTP_REQUEST_METHOD_ORIGINAL, "http.request.method_original", ATTRIBUTE_STRING) \
	X(ATTR_HTTP_RESPONSE_STATUS_CODE, "http.response.status_code", ATTRIBUTE_INT)          \
	X(ATTR_HTTP_REQUEST_RESEND_COUNT, "http.request.resend_count", ATTRIBUTE_INT)          \
	X(ATTR_HTTP_ROUTE, "http.route", ATTRIBUTE_STRING)                                     \
	X(ATTR_URL_SCHEME, "url.scheme", ATTRIBUTE_STRING)                                     \
	X(ATTR_URL_PATH, "url.path", ATTRIBUTE_STRING)                                         \
	X(ATTR_URL_QUERY, "url.query", ATTRIBUTE_STRING)                                       \
	X(ATTR_URL_FULL, "url.full", ATTRIBUTE_STRING)                                         \
	X(ATTR_SERVER_ADDRESS, "server.address", ATTRIBUTE_STRING)                             \
	X(ATTR_SERVER_PORT, "server.port", ATTRIBUTE_INT)                                      \
	X(ATTR_CLIENT_ADDRESS, "client.address", ATTRIBUTE_STRING)                             \
	X(ATTR_CLIENT_PORT, "client.port", ATTRIBUTE_INT)                                      \
	X(ATTR_NETWORK_PEER_ADDRESS, "network.peer.address", ATTRIBUTE_STRING)                 \
	X(ATTR_NETWORK_PEER_PORT, "network.peer.port", ATTRIBUTE_INT)                          \
	X(ATTR_NETWORK_PROTOCOL_NAME, "network.protocol.name", ATTRIBUTE_STRING)               \
	X(ATTR_NETWORK_PROTOCOL_VERSION, "network.protocol.version", ATTRIBUTE_STRING)         \
	X(ATTR_USER_AGENT_ORIGINAL, "user_agent.original", ATTRIBUTE_STRING)                   \
	X(ATTR_ERROR_TYPE, "error.type", ATTRIBUTE_STRING)                                     \
	X(ATTR_THREAD_ID, "thread.id", ATTRIBUTE_INT)                                          \
	X(ATTR_TSUNAGI_TRUNCATED, "tsunagi.truncated", ATTRIBUTE_STRING)                       \
	X(ATTR_TSUNAGI_PARENT_REASON, "tsunagi.parent_reason", ATTRIBUTE_STRING)               \
	X(ATTR_TSUNAGI_GOROUTINE_ID, "tsunagi.goroutine.id", ATTRIBUTE_INT)

#define ATTRIBUTE_ENUM(key, name, type) key,
enum attribute_key { ATTRIBUTES(ATTRIBUTE_ENUM) _ATTR_MAX };

enum attribute_type { ATTRIBUTE_STRING, ATTRIBUTE_INT };

/* String attributes use 's', integer ones 'i'; which one it is stands in the key's row. */
struct attribute {
	enum attribute_key key;
	union {
		struct str s;
		int64_t i;
	};
};

const char *attribute_key_name(enum attribute_key key);

/* A constant mask: it is asked for each attribute of each span, several times. */
#define ATTRIBUTE_INTEGER_BIT(key, name, type) | ((uint64_t)((type) == ATTRIBUTE_INT) << (key))
static inline enum attribute_type attribute_key_type(enum attribute_key key)
{
	static_assert(_ATTR_MAX <= 64, "a bit each");
	return (0ULL ATTRIBUTES(ATTRIBUTE_INTEGER_BIT)) >> key & 1 ? ATTRIBUTE_INT
								   : ATTRIBUTE_STRING;
}
