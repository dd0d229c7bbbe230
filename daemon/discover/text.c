/* Text of strangers; see text.h. */
#include "discover/text.h"

#include "base/util.h"

#define REDACTED "REDACTED"

/* The length of the well-formed UTF-8 character at 's' (RFC 3629, section 4), or 0. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
	size_t length;
	unsigned char low = 0x80, high = 0xbf;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (length > n)
		return 0;

	/* Overlong forms, surrogates, and what is above U+10FFFF differ in the second byte. */
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return length;
}

/* C0, DEL, and the C1 controls U+0080 to U+009F. */
static bool is_control(const unsigned char *s, size_t length)
{
	return (length == 1 && (s[0] < 0x20 || s[0] == 0x7f)) ||
	       (length == 2 && s[0] == 0xc2 && s[1] < 0xa0);
}

void text_clean(char *text, size_t n)
{
	unsigned char *s = (unsigned char *)text;

	for (size_t i = 0; i < n;) {
		size_t length = utf8_length(s + i, n - i);

		if (length > 0 && !is_control(s + i, length)) {
			i += length;
			continue;
		}
		length = MAX(length, 1);
		memset(s + i, '?', length);
		i += length;
	}
}

struct str text_next(struct str *block)
{
	struct str s = *block;
	ptrdiff_t end = str_find(s, '\0');

	if (s.n == 0)
		return STR_NONE;
	if (end >= 0)
		s.n = (size_t)end;
	*block = str_skip(*block, s.n + 1);
	return s;
}

struct str text_base_name(struct str path)
{
	const char *slash = path.n ? memrchr(path.p, '/', path.n) : NULL;

	return slash ? str_skip(path, (size_t)(slash - path.p) + 1) : path;
}

/* Whether the name of an option speaks of a credential. */
static bool is_secret_name(struct str name)
{
	static const struct str words[] = {
		STR("password"),    STR("passwd"),  STR("secret"),     STR("token"),
		STR("apikey"),      STR("api-key"), STR("api_key"),    STR("access-key"),
		STR("access_key"),  STR("api.key"), STR("credential"), STR("private-key"),
		STR("private_key"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		for (size_t at = 0; at + words[i].n <= name.n; at++)
			if (strncasecmp(name.p + at, words[i].p, words[i].n) == 0)
				return true;
	return false;
}

static void append(char *to, size_t max, size_t *n, struct str s)
{
	size_t take = MIN(s.n, max - *n);

	if (take > 0)
		memcpy(to + *n, s.p, take);
	*n += take;
}

/* An argument with the "user:password@" of a URL in it taken out. */
static void append_url(char *to, size_t max, size_t *n, struct str argument)
{
	const char *scheme = argument.n ? memmem(argument.p, argument.n, "://", 3) : NULL;
	struct str rest, authority;
	ptrdiff_t slash;
	const char *at;

	rest = scheme ? str_skip(argument, (size_t)(scheme - argument.p) + 3) : STR_NONE;
	slash = str_find(rest, '/');
	authority = (struct str){.p = rest.p, .n = slash < 0 ? rest.n : (size_t)slash};
	at = authority.n ? memrchr(authority.p, '@', authority.n) : NULL;
	if (!at) {
		append(to, max, n, argument);
		return;
	}
	append(to, max, n, (struct str){.p = argument.p, .n = (size_t)(rest.p - argument.p)});
	append(to, max, n, STR(REDACTED));
	append(to, max, n, str_skip(argument, (size_t)(at - argument.p)));
}

/*
 * One argument, without a secret value of its own; '*is_secret' tells whether the next one is a
 * secret.
 */
static void append_redacted(char *to, size_t max, size_t *n, struct str argument, bool *is_secret)
{
	ptrdiff_t equals = str_find(argument, '=');
	struct str name = {.p = argument.p, .n = equals < 0 ? argument.n : (size_t)equals};
	bool is_option = argument.n > 0 && argument.p[0] == '-';

	if (*is_secret && !is_option) {
		append(to, max, n, STR(REDACTED));
		*is_secret = false;
		return;
	}
	/* Bare words stay whole ("token-service"); "token=x" and "-token x" do not. */
	if (!(is_option || equals > 0) || !is_secret_name(name)) {
		append_url(to, max, n, argument);
		*is_secret = false;
		return;
	}
	append(to, max, n, name);
	if (equals >= 0) {
		append(to, max, n, STR("=" REDACTED));
		*is_secret = false;
	} else {
		*is_secret = true;
	}
}

char *text_command_line(struct str arguments, size_t max, bool redact)
{
	/* A redacted argument may be longer than what it replaces. */
	size_t size = redact ? max : MIN(max, arguments.n), n = 0;
	_cleanup_(freep) char *line = malloc(size + 1);
	bool is_secret = false, is_first = true;
	struct str argument;

	if (!line)
		return NULL;
	while ((argument = text_next(&arguments)).p && n < size) {
		if (!is_first)
			append(line, size, &n, STR(" "));
		is_first = false;
		if (redact)
			append_redacted(line, size, &n, argument, &is_secret);
		else
			append(line, size, &n, argument);
	}
	/* Process titles (setproctitle) end in a row of NULs. */
	while (n > 0 && line[n - 1] == ' ')
		n--;
	line[n] = '\0';
	text_clean(line, n);

	/* Shrunk in place it would stay for long in the middle of what is free again. */
	return strdup(line);
}
