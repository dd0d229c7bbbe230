/*
 * Users that a configuration names and this host does not have; see config.h. Not a mistake of the
 * file, which may be that of many hosts.
 */
#include <pwd.h>

#include "config/problem.h"
#include "config/value.h"

#define PASSWD             "/etc/passwd" /* where the names of processes' users are from, too */
#define PASSWD_ENTRIES_MAX 65536

static bool is_known(const char *name)
{
	struct passwd entry, *found;
	char buffer[4096];
	FILE *file = fopen(PASSWD, "re");
	bool is_there = false;

	if (!file)
		return false;
	for (unsigned int i = 0; i < PASSWD_ENTRIES_MAX && !is_there; i++) {
		if (fgetpwent_r(file, &entry, buffer, sizeof(buffer), &found))
			break;
		is_there = strcmp(found->pw_name, name) == 0;
	}
	fclose(file);
	return is_there;
}

static void check_user(const struct selector *s, const char *name, config_warn_fn warn)
{
	struct config_error text;
	struct problem problem = {.file = name, .error = &text};
	struct position at = {.line = s->user_line, .column = s->user_column};
	struct excerpt got;
	uint64_t number;

	if (!s->user || value_parse_count(str_from(s->user), &number) == 0 || is_known(s->user))
		return;
	got = problem_excerpt(str_from(s->user));
	problem_report(&problem, at,
		       "user: expected a name in " PASSWD " of this host, or a number, got '%s'; "
		       "no process matches",
		       got.text);
	warn(text.text);
}

void config_check_users(const struct config *config, const char *name, config_warn_fn warn)
{
	for (size_t i = 0; i < config->include.n; i++)
		check_user(&config->include.items[i], name, warn);
	for (size_t i = 0; i < config->exclude.n; i++)
		check_user(&config->exclude.items[i], name, warn);
	for (size_t i = 0; i < config->n_services; i++)
		check_user(&config->services[i].match, name, warn);
}
