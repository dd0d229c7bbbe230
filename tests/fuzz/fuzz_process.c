/*
 * What processes say of themselves: cgroup lines, environments, argument vectors, executables'
 * names. The first byte picks the parser, the rest is its input.
 */
#include <stdint.h>

#include "base/util.h"
#include "discover/container.h"
#include "discover/environment.h"
#include "discover/name.h"
#include "discover/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_environment(struct str s)
{
	struct environment environment;

	if (environment_parse(s, &environment) == 0)
		assert(environment.n_attributes <= ENVIRONMENT_ATTRIBUTES_MAX);
	environment_done(&environment);
}

static void fuzz_name(struct str s, enum language language)
{
	struct str exe = text_next(&s), unit = text_next(&s), module = text_next(&s);
	char name[SERVICE_NAME_MAX];

	name_service(
		&(struct name_source){
			.language = language,
			.exe = exe,
			.arguments = s,
			.unit = unit,
			.go_module = module,
		},
		name);
	assert(name[0] && strcmp(name, "java") != 0);
}

static void fuzz_cgroup(struct str s)
{
	struct cgroup_facts facts;
	size_t n;

	cgroup_parse(s, &facts);
	n = strlen(facts.container_id);
	assert(n == 0 || n == CONTAINER_ID_HEX);
	assert(strlen(facts.unit) < UNIT_MAX);
}

static void fuzz_command_line(struct str s, bool redact)
{
	size_t max = s.n ? (unsigned char)s.p[0] : 0;
	char *line = text_command_line(s, max, redact);

	if (line)
		assert(strlen(line) <= max);
	free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str s = {.p = (const char *)data + 1, .n = size - 1};

	if (size == 0)
		return 0;
	switch (data[0] % 7) {
	case 0:
		fuzz_cgroup(s);
		break;
	case 1:
		fuzz_environment(s);
		break;
	case 2:
	case 3:
		fuzz_command_line(s, data[0] % 7 == 2);
		break;
	default:
		fuzz_name(s, data[0] % 7 - 4);
		break;
	}
	return 0;
}
