/* Single values of the configuration; see value.h. */
#include "config/value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>

#include "base/util.h"

#define URL_BYTES_MAX 2048

struct unit {
	const char *name;
	uint64_t factor;
};

/* From large to small, so that the first that divides a value makes the shortest text. */
static const struct unit duration_units[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
static const struct unit size_units[] = {
	{"GB", 1ULL << 30},  {"MB", 1ULL << 20},  {"KB", 1ULL << 10},  {"B", 1},
	{"GiB", 1ULL << 30}, {"MiB", 1ULL << 20}, {"KiB", 1ULL << 10}, {"G", 1ULL << 30},
	{"M", 1ULL << 20},   {"K", 1ULL << 10},
};

static size_t count_digits(struct str s)
{
	size_t n = 0;

	while (n < s.n && isdigit((unsigned char)s.p[n]))
		n++;
	return n;
}

int value_parse_count(struct str text, uint64_t *ret)
{
	uint64_t value = 0;

	if (text.n == 0 || text.n > 18 || count_digits(text) != text.n)
		return VALUE_BAD;
	if (text.p[0] == '0' && text.n > 1)
		return VALUE_BAD;
	for (size_t i = 0; i < text.n; i++)
		value = value * 10 + (uint64_t)(text.p[i] - '0');
	*ret = value;
	return 0;
}

static int parse_with_unit(struct str text, const struct unit *units, size_t n_units, uint64_t *ret)
{
	size_t n = count_digits(text);
	struct str unit = str_skip(text, n);
	uint64_t value, product;
	int r = value_parse_count((struct str){.p = text.p, .n = n}, &value);

	if (r)
		return r;
	for (size_t i = 0; i < n_units; i++) {
		if (!str_equal_nocase(unit, str_from(units[i].name)))
			continue;
		if (__builtin_mul_overflow(value, units[i].factor, &product))
			return VALUE_BAD;
		*ret = product;
		return 0;
	}
	return VALUE_BAD;
}

int value_parse_duration_ms(struct str text, uint64_t *ret_ms)
{
	return parse_with_unit(text, duration_units, ARRAY_SIZE(duration_units), ret_ms);
}

int value_parse_size(struct str text, uint64_t *ret_bytes)
{
	if (value_parse_count(text, ret_bytes) == 0)
		return 0;
	return parse_with_unit(text, size_units, ARRAY_SIZE(size_units), ret_bytes);
}

static int parse_port(struct str text, uint16_t *ret)
{
	uint64_t port;

	if (value_parse_count(text, &port) || port == 0 || port > UINT16_MAX)
		return VALUE_BAD;
	*ret = (uint16_t)port;
	return 0;
}

int value_parse_ports(struct str text, uint16_t *ret_first, uint16_t *ret_last)
{
	ptrdiff_t dash = str_find(text, '-');
	uint16_t first, last;

	if (dash < 0) {
		if (parse_port(text, &first))
			return VALUE_BAD;
		last = first;
	} else if (parse_port((struct str){.p = text.p, .n = (size_t)dash}, &first) ||
		   parse_port(str_skip(text, (size_t)dash + 1), &last) || first > last) {
		return VALUE_BAD;
	}
	*ret_first = first;
	*ret_last = last;
	return 0;
}

/* What follows "//" up to the first '/': user, host and port. */
static struct str url_authority(struct str url)
{
	ptrdiff_t colon = str_find(url, ':');
	struct str rest = colon < 0 ? STR_NONE : str_skip(url, (size_t)colon + 1);
	ptrdiff_t slash;

	if (!str_starts_with(rest, STR("//")))
		return STR_NONE;
	rest = str_skip(rest, 2);
	slash = str_find(rest, '/');
	if (slash >= 0)
		rest.n = (size_t)slash;
	return rest;
}

struct str value_url_user(struct str url)
{
	struct str authority = url_authority(url);
	const char *at = authority.n ? memrchr(authority.p, '@', authority.n) : NULL;

	return at ? (struct str){.p = authority.p, .n = (size_t)(at - authority.p)} : STR_NONE;
}

static bool is_address(int family, struct str text)
{
	unsigned char address[sizeof(struct in6_addr)];
	char copy[INET6_ADDRSTRLEN];

	if (text.n >= sizeof(copy))
		return false;
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	return inet_pton(family, copy, address) == 1;
}

static bool is_host_name(struct str host)
{
	bool is_numeric = true;
	char before = '.';

	for (size_t i = 0; i < host.n; i++) {
		char c = host.p[i];

		if (c == '.' && before == '.')
			return false;
		if (!isascii(c) || (!isalnum((unsigned char)c) && !strchr(".-_", c)))
			return false;
		is_numeric = is_numeric && (isdigit((unsigned char)c) || c == '.');
		before = c;
	}
	return host.n && (!is_numeric || is_address(AF_INET, host));
}

/* The end of the host in "host[:port]", brackets included, or -1 when it is no host. */
static ptrdiff_t host_end(struct str s)
{
	ptrdiff_t end;

	if (str_starts_with(s, STR("["))) {
		end = str_find(s, ']');
		if (end < 0 ||
		    !is_address(AF_INET6, (struct str){.p = s.p + 1, .n = (size_t)end - 1}))
			return -1;
		return end + 1;
	}
	end = str_find(s, ':');
	if (end < 0)
		end = (ptrdiff_t)s.n;
	return is_host_name((struct str){.p = s.p, .n = (size_t)end}) ? end : -1;
}

static bool has_scheme(struct str url, struct str scheme)
{
	return url.n >= scheme.n && strncasecmp(url.p, scheme.p, scheme.n) == 0;
}

const char *value_check_url(struct str text)
{
	struct str user = value_url_user(text), host, port;
	ptrdiff_t end;
	uint16_t number;

	if (text.n > URL_BYTES_MAX)
		return "it is longer than 2048 bytes";
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] <= ' ' || text.p[i] >= 0x7f || strchr("?#\"<>\\^`{|}", text.p[i]))
			return "it has a character in it that does not belong there";
	}
	if (!has_scheme(text, STR("http://")) && !has_scheme(text, STR("https://")))
		return "it does not start with http:// or https://";

	host = url_authority(text);
	if (user.p)
		host = str_skip(host, user.n + 1);
	end = host_end(host);
	if (end < 0)
		return host.n ? "its host is no name and no address" : "it has no host";

	port = str_skip(host, (size_t)end);
	if (port.n && (port.p[0] != ':' || parse_port(str_skip(port, 1), &number)))
		return "its port is not a number from 1 to 65535";
	return NULL;
}

/*
 * Where the bracket expression that begins at 'start' ends, or 0: POSIX.1-2017, XCU 2.13.1 and XBD
 * 9.3.5. A ']' that comes first is one of its characters, as are those in [:...:] and its like.
 */
static size_t bracket_end(struct str text, size_t start)
{
	size_t i = start + 1;

	if (i < text.n && (text.p[i] == '!' || text.p[i] == '^'))
		i++;
	for (size_t first = i; i < text.n; i++) {
		char kind = i + 1 < text.n ? text.p[i + 1] : '\0';

		if (text.p[i] == ']' && i > first)
			return i;
		if (text.p[i] == '\\') {
			i++;
		} else if (text.p[i] == '[' && (kind == ':' || kind == '.' || kind == '=')) {
			const char close[] = {kind, ']'};
			const char *end =
				memmem(text.p + i + 2, text.n - i - 2, close, sizeof(close));

			if (end)
				i = (size_t)(end - text.p) + 1;
		}
	}
	return 0;
}

const char *value_check_pattern(struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '\\') {
			if (++i == text.n)
				return "it ends in a '\\'";
			continue;
		}
		if (text.p[i] != '[')
			continue;
		i = bracket_end(text, i);
		if (i == 0)
			return "its '[' has no ']' (write \\[ for the character)";
	}
	return NULL;
}

static struct value_text format_with_unit(uint64_t value, const struct unit *units, size_t n_units)
{
	struct value_text text;
	size_t i = 0;

	while (i < n_units - 1 && value % units[i].factor != 0)
		i++;
	snprintf(text.text, sizeof(text.text), "%llu%s",
		 (unsigned long long)(value / units[i].factor), units[i].name);
	return text;
}

struct value_text value_format_count(uint64_t count)
{
	struct value_text text;

	snprintf(text.text, sizeof(text.text), "%llu", (unsigned long long)count);
	return text;
}

struct value_text value_format_duration(uint64_t ms)
{
	return format_with_unit(ms, duration_units, ARRAY_SIZE(duration_units));
}

struct value_text value_format_size(uint64_t bytes)
{
	return format_with_unit(bytes, size_units, 4);
}
