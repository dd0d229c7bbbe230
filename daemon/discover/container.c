/* /proc/PID/cgroup; see container.h. */
#include "discover/container.h"

#include <stdbool.h>

#include "base/util.h"

/* The next element of a path, which is advanced behind it; p NULL at the end. */
static struct str next_element(struct str *path)
{
	struct str element;
	ptrdiff_t end;

	while (path->n > 0 && path->p[0] == '/')
		*path = str_skip(*path, 1);
	if (path->n == 0)
		return STR_NONE;
	end = str_find(*path, '/');
	element = (struct str){.p = path->p, .n = end < 0 ? path->n : (size_t)end};
	*path = str_skip(*path, element.n);
	return element;
}

static bool ends_with(struct str s, struct str end)
{
	return s.n > end.n && memcmp(s.p + s.n - end.n, end.p, end.n) == 0;
}

static bool is_container_id(struct str s)
{
	if (s.n != CONTAINER_ID_HEX)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
			return false;
	return true;
}

/*
 * The container id in an element: "<id>", "docker-<id>.scope",
 * "kubepods-pod1.slice:cri-containerd:<id>". The monitors (conmon) have a cgroup named after their
 * container without being in it.
 */
static struct str element_container(struct str element)
{
	static const struct str prefixes[] = {
		STR("docker-"), STR("cri-containerd-"), STR("crio-"),
		STR("libpod-"), STR("libpod-payload-"), STR("nerdctl-"),
	};
	const char *colon = memrchr(element.p, ':', element.n);

	if (colon)
		element = str_skip(element, (size_t)(colon - element.p) + 1);
	if (ends_with(element, STR(".scope")))
		element.n -= strlen(".scope");
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (str_starts_with(element, prefixes[i]) &&
		    is_container_id(str_skip(element, prefixes[i].n)))
			return str_skip(element, prefixes[i].n);
	return is_container_id(element) ? element : STR_NONE;
}

/* Units that hold a whole user's session tell nothing of the program. */
static bool is_unit(struct str element)
{
	if (str_starts_with(element, STR("user@")))
		return false;
	return ends_with(element, STR(".service")) || ends_with(element, STR(".scope"));
}

static void copy(struct str s, char *to, size_t size)
{
	size_t n = MIN(s.n, size - 1);

	if (n > 0)
		memcpy(to, s.p, n);
	to[n] = '\0';
}

/* 'is_contained': the unit is inside a container. */
static void parse_path(struct str path, bool has_units, struct cgroup_facts *facts,
		       bool *is_contained)
{
	struct str element, container = STR_NONE, unit = STR_NONE;

	while ((element = next_element(&path)).p) {
		struct str id = element_container(element);

		if (id.n > 0) {
			container = id;
			/*
			 * The unit above is the engine's (containerd.service), not the program's;
			 * but podman runs a container inside the unit that was written for it.
			 */
			if (!str_starts_with(element, STR("libpod-payload-")))
				unit = STR_NONE;
			continue;
		}
		/* A scope inside a service is a part of it. */
		if (is_unit(element) &&
		    !(ends_with(element, STR(".scope")) && ends_with(unit, STR(".service"))))
			unit = element;
	}

	if (container.n > 0 && !facts->container_id[0])
		copy(container, facts->container_id, sizeof(facts->container_id));
	if (has_units && unit.n > 0 && unit.n < sizeof(facts->unit) && !facts->unit[0]) {
		copy(unit, facts->unit, sizeof(facts->unit));
		*is_contained = container.n > 0;
	}
}

void cgroup_parse(struct str text, struct cgroup_facts *ret)
{
	struct cgroup_facts facts = {0};
	bool is_contained = false;

	while (text.n > 0) {
		ptrdiff_t end = str_find(text, '\n');
		struct str line = {.p = text.p, .n = end < 0 ? text.n : (size_t)end};
		ptrdiff_t first, second;

		text = str_skip(text, line.n + 1);
		/* "hierarchy:controllers:path", cgroups(7); the path may hold colons of its own. */
		first = str_find(line, ':');
		if (first < 0)
			continue;
		line = str_skip(line, (size_t)first + 1);
		second = str_find(line, ':');
		if (second < 0)
			continue;
		/* systemd keeps its units in v2, or in the v1 hierarchy of its own. */
		parse_path(str_skip(line, (size_t)second + 1),
			   second == 0 || str_equal((struct str){.p = line.p, .n = (size_t)second},
						    STR("name=systemd")),
			   &facts, &is_contained);
	}
	/*
	 * Engines that make cgroups of their own leave the container in their unit's (containerd.service)
	 * in the hierarchies that they do not use.
	 */
	if (facts.container_id[0] && !is_contained)
		facts.unit[0] = '\0';
	*ret = facts;
}
