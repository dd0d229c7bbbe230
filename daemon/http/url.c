/* Request targets, authorities, redaction; see url.h. */
#include "http/url.h"

#include "base/util.h"

/* Names are compared without case and after percent-decoding. */
static const struct str secret_names[] = {
	STR("sig"),
	STR("signature"),
	STR("x-goog-signature"),
	STR("x-amz-signature"),
	STR("x-amz-credential"),
	STR("x-amz-security-token"),
	STR("awsaccesskeyid"),
	STR("token"),
	STR("access_token"),
	STR("api_key"),
	STR("key"),
	STR("password"),
	STR("secret"),
};
#define SECRET_NAME_BYTES_MAX 20
#define REDACTED              STR("REDACTED")

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* reg-name of RFC 3986 with the percent sign, and '_', which real names have. */
static bool is_host_name(struct str host)
{
	for (size_t i = 0; i < host.n; i++)
		if (!is_alnum(host.p[i]) && (!host.p[i] || !strchr("-._~%!$&'()*+,;=", host.p[i])))
			return false;
	return host.n > 0;
}

/* An address with an optional zone ("fe80::1%25eth0"). */
static bool is_ipv6(struct str host)
{
	bool is_in_zone = false;

	for (size_t i = 0; i < host.n; i++) {
		char c = host.p[i];

		if (c == '%')
			is_in_zone = true;
		else if (is_in_zone ? !is_alnum(c) && c != '-' && c != '_' && c != '.'
				    : hex_value(c) < 0 && c != ':' && c != '.')
			return false;
	}
	return host.n > 0;
}

static int parse_port(struct str text, uint16_t *ret)
{
	unsigned int port = 0;

	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return URL_BAD;
		port = port * 10 + (unsigned int)(text.p[i] - '0');
		if (port > UINT16_MAX)
			return URL_BAD;
	}
	*ret = (uint16_t)port;
	return 0;
}

int url_parse_authority(struct str authority, struct str *ret_host, uint16_t *ret_port)
{
	struct str host = authority, rest = STR_NONE;
	uint16_t port = 0;
	ptrdiff_t at;

	if (authority.n && authority.p[0] == '[') {
		at = str_find(authority, ']');
		if (at < 0)
			return URL_BAD;
		host = (struct str){.p = authority.p + 1, .n = (size_t)at - 1};
		rest = str_skip(authority, (size_t)at + 1);
		if (!is_ipv6(host))
			return URL_BAD;
	} else {
		at = str_find(authority, ':');
		if (at >= 0) {
			host.n = (size_t)at;
			rest = str_skip(authority, (size_t)at);
		}
		if (!is_host_name(host))
			return URL_BAD;
	}

	if (rest.n && (rest.p[0] != ':' || parse_port(str_skip(rest, 1), &port) != 0))
		return URL_BAD;
	*ret_host = host;
	*ret_port = port;
	return 0;
}

/* Index of the first of three characters, or the length. */
static size_t find_any(struct str s, const char stops[3])
{
	size_t n = 0;

	while (n < s.n && s.p[n] != stops[0] && s.p[n] != stops[1] && s.p[n] != stops[2])
		n++;
	return n;
}

static size_t find_char(struct str s, char c)
{
	ptrdiff_t at = str_find(s, c);

	return at < 0 ? s.n : (size_t)at;
}

static void split_path(struct str s, struct url *url)
{
	size_t n;

	s.n = find_char(s, '#');
	n = find_char(s, '?');
	url->path = (struct str){.p = s.p, .n = n};
	url->query = str_skip(s, n + 1);
}

static void split_absolute(struct str target, size_t scheme_n, struct url *url)
{
	struct str rest = str_skip(target, scheme_n + 3);
	struct str authority = {.p = rest.p, .n = find_any(rest, "/?#")};
	const char *at = authority.n ? memrchr(authority.p, '@', authority.n) : NULL;

	url->form = URL_FORM_ABSOLUTE;
	url->scheme = (struct str){.p = target.p, .n = scheme_n};
	split_path(str_skip(rest, authority.n), url);
	if (!url->path.n)
		url->path = STR("/");

	url->has_user = at;
	if (at)
		authority = str_skip(authority, (size_t)(at - authority.p) + 1);
	if (url_parse_authority(authority, &url->host, &url->port) != 0)
		url->host = STR_NONE;
}

/* Length of the scheme of "scheme://...", or 0. */
static size_t scheme_length(struct str target)
{
	size_t n = 0;

	while (n < target.n && (is_alnum(target.p[n]) || (n && strchr("+-.", target.p[n]))))
		n++;
	return str_starts_with(str_skip(target, n), STR("://")) ? n : 0;
}

int url_parse_target(struct str target, bool is_connect, struct url *ret)
{
	struct url url = {0};
	size_t n;

	if (is_connect) {
		url.form = URL_FORM_AUTHORITY;
		if (url_parse_authority(target, &url.host, &url.port) != 0)
			return URL_BAD;
	} else if (str_equal(target, STR("*"))) {
		url.form = URL_FORM_ASTERISK;
		url.path = target;
	} else if (target.n && target.p[0] == '/') {
		url.form = URL_FORM_ORIGIN;
		split_path(target, &url);
	} else {
		n = scheme_length(target);
		if (!n)
			return URL_BAD;
		split_absolute(target, n, &url);
	}
	*ret = url;
	return 0;
}

static bool is_secret_name(struct str name)
{
	char decoded[SECRET_NAME_BYTES_MAX];
	struct str plain = {.p = decoded};

	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if (c == '%' && i + 2 < name.n && hex_value(name.p[i + 1]) >= 0 &&
		    hex_value(name.p[i + 2]) >= 0) {
			c = (char)(hex_value(name.p[i + 1]) << 4 | hex_value(name.p[i + 2]));
			i += 2;
		}
		if (plain.n == sizeof(decoded))
			return false;
		decoded[plain.n++] = c;
	}
	for (size_t i = 0; i < ARRAY_SIZE(secret_names); i++)
		if (str_equal_nocase(plain, secret_names[i]))
			return true;
	return false;
}

struct writer {
	char *p;
	size_t n, size;
};

static void write_str(struct writer *w, struct str s)
{
	size_t n = MIN(s.n, w->size - w->n);

	if (n)
		memcpy(w->p + w->n, s.p, n);
	w->n += n;
}

/*
 * A name may begin after ';' too, which some servers take for '&'; a secret's value ends at '&'
 * alone, for others take the ';' for a part of it.
 */
size_t url_redact_query(struct str query, char *buffer, size_t size)
{
	struct writer w = {.p = buffer, .size = size};

	while (query.n) {
		size_t n = find_any(query, "=&;");
		struct str name = {.p = query.p, .n = n};

		if (n == query.n || query.p[n] != '=') {
			name.n += n < query.n;
			write_str(&w, name);
			query = str_skip(query, name.n);
			continue;
		}

		name.n++;
		write_str(&w, name);
		query = str_skip(query, name.n);
		name.n--;
		if (is_secret_name(name)) {
			n = find_char(query, '&');
			if (n)
				write_str(&w, REDACTED);
		} else {
			n = find_any(query, "&;;");
			write_str(&w, (struct str){.p = query.p, .n = n});
		}
		query = str_skip(query, n);
	}
	return w.n;
}

size_t url_escape(struct str s, char *buffer)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c < 0x80) {
			buffer[n++] = (char)c;
			continue;
		}
		buffer[n++] = '%';
		buffer[n++] = digits[c >> 4];
		buffer[n++] = digits[c & 15];
	}
	return n;
}
