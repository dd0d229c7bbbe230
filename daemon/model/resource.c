/* Resources; see resource.h. */
#include "model/resource.h"

#include <errno.h>

int resource_new(uint32_t pid, struct resource **ret)
{
	struct resource *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->refs = 1;
	r->pid = pid;
	r->service_name = "";
	*ret = r;
	return 0;
}

static struct resource_attribute *resource_slot(struct resource *r, const char *key)
{
	struct resource_attribute *a;

	for (size_t i = 0; i < r->n_attributes; i++)
		if (strcmp(r->attributes[i].key, key) == 0)
			return &r->attributes[i];
	if (r->n_attributes == RESOURCE_ATTRIBUTES_MAX)
		return NULL;

	a = &r->attributes[r->n_attributes];
	a->key = strdup(key);
	if (!a->key)
		return NULL;
	r->n_attributes++;
	return a;
}

int resource_set(struct resource *r, const char *key, struct str text)
{
	_cleanup_(freep) char *copy = strndup(text.p ? text.p : "", text.n);
	struct resource_attribute *a;

	if (!copy)
		return -ENOMEM;
	a = resource_slot(r, key);
	if (!a)
		return r->n_attributes == RESOURCE_ATTRIBUTES_MAX ? -E2BIG : -ENOMEM;

	free(a->text);
	a->text = TAKE_PTR(copy);
	a->number = 0;
	if (strcmp(key, "service.name") == 0)
		r->service_name = a->text;
	return 0;
}

int resource_set_number(struct resource *r, const char *key, int64_t number)
{
	struct resource_attribute *a = resource_slot(r, key);

	if (!a)
		return r->n_attributes == RESOURCE_ATTRIBUTES_MAX ? -E2BIG : -ENOMEM;
	free(a->text);
	a->text = NULL;
	a->number = number;
	return 0;
}

const struct resource_attribute *resource_get(const struct resource *r, const char *key)
{
	for (size_t i = 0; i < r->n_attributes; i++)
		if (strcmp(r->attributes[i].key, key) == 0)
			return &r->attributes[i];
	return NULL;
}

struct resource *resource_ref(struct resource *r)
{
	__atomic_add_fetch(&r->refs, 1, __ATOMIC_RELAXED);
	return r;
}

void resource_unref(struct resource *r)
{
	if (!r || __atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL))
		return;
	for (size_t i = 0; i < r->n_attributes; i++) {
		free(r->attributes[i].key);
		free(r->attributes[i].text);
	}
	free(r);
}
