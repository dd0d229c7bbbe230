/* The table of span attributes; see attribute.h. */
#include "model/attribute.h"

#include "base/util.h"

static const struct {
	const char *name;
	enum attribute_type type;
} keys[] = {
	[ATTR_HTTP_REQUEST_METHOD] = {"http.request.method", ATTRIBUTE_STRING},
	[ATTR_HTTP_REQUEST_METHOD_ORIGINAL] = {"http.request.method_original", ATTRIBUTE_STRING},
	[ATTR_HTTP_RESPONSE_STATUS_CODE] = {"http.response.status_code", ATTRIBUTE_INT},
	[ATTR_HTTP_REQUEST_RESEND_COUNT] = {"http.request.resend_count", ATTRIBUTE_INT},
	[ATTR_HTTP_ROUTE] = {"http.route", ATTRIBUTE_STRING},
	[ATTR_URL_SCHEME] = {"url.scheme", ATTRIBUTE_STRING},
	[ATTR_URL_PATH] = {"url.path", ATTRIBUTE_STRING},
	[ATTR_URL_QUERY] = {"url.query", ATTRIBUTE_STRING},
	[ATTR_URL_FULL] = {"url.full", ATTRIBUTE_STRING},
	[ATTR_SERVER_ADDRESS] = {"server.address", ATTRIBUTE_STRING},
	[ATTR_SERVER_PORT] = {"server.port", ATTRIBUTE_INT},
	[ATTR_CLIENT_ADDRESS] = {"client.address", ATTRIBUTE_STRING},
	[ATTR_CLIENT_PORT] = {"client.port", ATTRIBUTE_INT},
	[ATTR_NETWORK_PEER_ADDRESS] = {"network.peer.address", ATTRIBUTE_STRING},
	[ATTR_NETWORK_PEER_PORT] = {"network.peer.port", ATTRIBUTE_INT},
	[ATTR_NETWORK_PROTOCOL_NAME] = {"network.protocol.name", ATTRIBUTE_STRING},
	[ATTR_NETWORK_PROTOCOL_VERSION] = {"network.protocol.version", ATTRIBUTE_STRING},
	[ATTR_USER_AGENT_ORIGINAL] = {"user_agent.original", ATTRIBUTE_STRING},
	[ATTR_ERROR_TYPE] = {"error.type", ATTRIBUTE_STRING},
	[ATTR_THREAD_ID] = {"thread.id", ATTRIBUTE_INT},
	[ATTR_TSUNAGI_TRUNCATED] = {"tsunagi.truncated", ATTRIBUTE_STRING},
	[ATTR_TSUNAGI_PARENT_REASON] = {"tsunagi.parent_reason", ATTRIBUTE_STRING},
	[ATTR_TSUNAGI_GOROUTINE_ID] = {"tsunagi.goroutine.id", ATTRIBUTE_INT},
};
static_assert(ARRAY_SIZE(keys) == _ATTR_MAX, "each attribute has a row");

const char *attribute_key_name(enum attribute_key key)
{
	return keys[key].name;
}

enum attribute_type attribute_key_type(enum attribute_key key)
{
	return keys[key].type;
}
