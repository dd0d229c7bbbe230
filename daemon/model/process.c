/* Names of process enums; see process.h. */
#include "model/process.h"

static const char *const language_names[] = {
	[LANGUAGE_OTHER] = "other",
	[LANGUAGE_JVM] = "jvm",
	[LANGUAGE_GO] = "go",
};
static_assert(ARRAY_SIZE(language_names) == _LANGUAGE_MAX, "each language has a name");

static const char *const state_names[] = {
	[PROCESS_NEW] = "new",
	[PROCESS_SELECTED] = "traced",
	[PROCESS_LEFT] = "left alone",
};
static_assert(ARRAY_SIZE(state_names) == _PROCESS_STATE_MAX, "each state has a name");

const char *language_name(enum language language)
{
	return language_names[language];
}

const char *process_state_name(enum process_state state)
{
	return state_names[state];
}
