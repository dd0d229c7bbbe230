/*
 * The commented configuration file with every key, its default and a line on it, made from the
 * table of keys. config/tsunagi.yaml is this function's output; a test compares them.
 */
#include <errno.h>

#include "config/config.h"
#include "config/keys.h"

#define COLUMNS 100

static const char head[] =
	"# tsunagi: every key with its default. A key that is left out has the default shown "
	"here.\n"
	"# Durations: 500ms, 1s, 10m, 1h. Sizes: bytes, or 64KB, 8MB, 1GB (1 KB is 1024 bytes).\n"
	"# Patterns: * is any text, ? one character, [ab] one of these.\n"
	"# `tsunagid --check-config --config FILE` says whether a file is right.\n";

/* Comment lines of at most COLUMNS, broken at blanks. */
static void write_comment(FILE *out, const char *indent, const char *text)
{
	size_t room = COLUMNS - strlen(indent) - strlen("# ");

	while (*text) {
		size_t n = strlen(text);

		if (n > room) {
			n = room;
			while (n && text[n] != ' ')
				n--;
			if (n == 0)
				n = strcspn(text, " ");
		}
		fprintf(out, "%s# %.*s\n", indent, (int)n, text);
		text += n;
		text += strspn(text, " ");
	}
}

/*
 * A key of the file itself: its help, what is allowed if that can be said in a line, an example,
 * the default.
 */
static void write_key(FILE *out, const struct key *key)
{
	const char *leaf = keys_leaf(key);
	const char *indent = leaf == key->path ? "" : "  ";
	bool has_range = key->max || key->n_choices;
	char text[512];

	if (leaf == key->path)
		fputc('\n', out);
	snprintf(text, sizeof(text), "%s%s%s%s", key->help, has_range ? " Expected: " : "",
		 has_range ? keys_kind(key).text : "", has_range ? "." : "");
	write_comment(out, indent, text);
	if (key->example) {
		snprintf(text, sizeof(text), "%s: %s", leaf, key->example);
		write_comment(out, indent, text);
	}
	if (key->type == KEY_SECTION)
		fprintf(out, "%s:\n", leaf);
	else
		fprintf(out, "%s%s: %s\n", indent, leaf, key->value);
}

/* A key of an item in a list: one line of comment, in columns. */
static void write_item_key(FILE *out, const struct key *key)
{
	const char *indent = key->scope == KEY_SCOPE_SELECTOR ? "  " : "";
	char text[256];

	snprintf(text, sizeof(text), "%s: %s", keys_leaf(key), key->example);
	fprintf(out, "%s#   %-26s %s\n", indent, text, key->help);
}

int config_write_reference(FILE *out)
{
	size_t n;
	const struct key *keys = keys_table(&n);

	fputs(head, out);
	for (size_t i = 0; i < n; i++) {
		if (keys[i].scope == KEY_SCOPE_FILE)
			write_key(out, &keys[i]);
		else if (keys[i].example) /* others stand in their section's */
			write_item_key(out, &keys[i]);
	}
	return fflush(out) == 0 && !ferror(out) ? 0 : -EIO;
}
