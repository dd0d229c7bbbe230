/* Finished spans; see span.h. */
#include "model/span.h"

#include <errno.h>

static struct str span_copy(char **cursor, struct str s)
{
	char *p = *cursor;

	if (!s.n)
		return STR_NONE;
	memcpy(p, s.p, s.n);
	*cursor += s.n;
	return (struct str){.p = p, .n = s.n};
}

int span_new(const struct span_options *o, struct span **ret)
{
	size_t size = sizeof(struct span) + o->n_attributes * sizeof(struct attribute);
	struct span *s;
	char *cursor;

	cursor = (char *)size; /* the offset of the first string */
	size += o->name.n + o->tracestate.n;
	for (size_t i = 0; i < o->n_attributes; i++)
		if (attribute_key_type(o->attributes[i].key) == ATTRIBUTE_STRING)
			size += o->attributes[i].s.n;

	s = malloc(size);
	if (!s)
		return -ENOMEM;
	cursor = (char *)s + (size_t)cursor;

	*s = (struct span){
		.refs = 1,
		.kind = o->kind,
		.status = o->status,
		.trace_flags = o->trace_flags,
		.trace_id = o->trace_id,
		.span_id = o->span_id,
		.parent_span_id = o->parent_span_id,
		.has_local_parent = o->has_local_parent,
		.start_unix_ns = o->start_unix_ns,
		.end_unix_ns = MAX(o->end_unix_ns, o->start_unix_ns),
		.resource = o->resource ? resource_ref(o->resource) : NULL,
		.name = span_copy(&cursor, o->name),
		.tracestate = span_copy(&cursor, o->tracestate),
		.size_bytes = size,
		.n_attributes = o->n_attributes,
	};
	for (size_t i = 0; i < o->n_attributes; i++) {
		s->attributes[i] = o->attributes[i];
		if (attribute_key_type(s->attributes[i].key) == ATTRIBUTE_STRING)
			s->attributes[i].s = span_copy(&cursor, o->attributes[i].s);
	}
	*ret = s;
	return 0;
}

int span_new_root(const struct span *s, const char *reason, struct span **ret)
{
	struct span_options o = {
		.kind = s->kind,
		.status = s->status,
		.trace_flags = s->trace_flags,
		.trace_id = s->trace_id,
		.span_id = s->span_id,
		.start_unix_ns = s->start_unix_ns,
		.end_unix_ns = s->end_unix_ns,
		.resource = s->resource,
		.name = s->name,
		.tracestate = s->tracestate,
		.n_attributes = s->n_attributes,
	};

	assert(s->n_attributes < SPAN_ATTRIBUTES_MAX);
	memcpy(o.attributes, s->attributes, s->n_attributes * sizeof(s->attributes[0]));
	span_add_text(&o, ATTR_TSUNAGI_PARENT_REASON, str_from(reason));
	return span_new(&o, ret);
}

struct span *span_ref(struct span *s)
{
	__atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
	return s;
}

void span_unref(struct span *s)
{
	if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL))
		return;
	resource_unref(s->resource);
	free(s);
}

const struct attribute *span_get(const struct span *s, enum attribute_key key)
{
	for (size_t i = 0; i < s->n_attributes; i++)
		if (s->attributes[i].key == key)
			return &s->attributes[i];
	return NULL;
}
