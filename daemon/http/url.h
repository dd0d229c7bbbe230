/*
 * Request targets and Host headers taken apart, and what must not be exported taken out of them:
 * views into the caller's bytes, no allocation. Used by stitch for url.* and server.* attributes.
 *
 * Sources: RFC 9112, section 3.2 (the four forms of a target), RFC 3986 (authority),
 * OpenTelemetry's semantic conventions for url.* (credentials and known secret parameters).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum url_form {
	URL_FORM_ORIGIN,    /* "/a?b" */
	URL_FORM_ABSOLUTE,  /* "http://h:1/a?b" */
	URL_FORM_AUTHORITY, /* "h:443", of CONNECT alone */
	URL_FORM_ASTERISK,  /* "*" */
};

struct url {
	enum url_form form;
	struct str scheme; /* ABSOLUTE, as sent */
	struct str host;   /* ABSOLUTE, AUTHORITY: no brackets, no user, no password; empty: bad */
	uint16_t port;     /* 0: not given */
	bool has_user;     /* a user, with a password or without, stands before the host */
	struct str path;   /* "/" where an absolute target has none; empty for AUTHORITY */
	struct str query;  /* without '?' */
};

/* Returns 0, or URL_BAD for a target of no known form. */
enum { URL_BAD = 1 };
int url_parse_target(struct str target, bool is_connect, struct url *ret);

/* "host", "host:port", "[v6]", "[v6]:port": the value of Host. Returns 0 or URL_BAD. */
int url_parse_authority(struct str authority, struct str *ret_host, uint16_t *ret_port);

/*
 * Room that url_redact_query() needs at most: a parameter to redact and its '&' take 6 bytes or
 * more ("key=a&") and grow by 7 at most.
 */
#define URL_REDACTED_BYTES_MAX(n) ((n) + (n) / 6 * 7 + 8)

/*
 * Writes 'query' with the values of parameters that hold secrets (sig, token, password, ...; see
 * url.c) replaced by REDACTED. Returns how many bytes were written, at most 'size': what does not
 * fit is cut off, never a secret let in.
 */
size_t url_redact_query(struct str query, char *buffer, size_t size);

/*
 * Writes 's' with each byte above 0x7f as %XX; 'buffer' has room for 3 * s.n bytes. Returns how
 * many were written.
 */
size_t url_escape(struct str s, char *buffer);
