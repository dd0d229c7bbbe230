/* The class around its methods' code: constants, fields, methods. See classfile.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "classfile_private.h"

#define MAGIC        0xcafebabeU
#define ACC_STATIC   0x0008
#define ACC_NATIVE   0x0100
#define ACC_ABSTRACT 0x0400

/* JVMS 4.4, table 4.4-B */
enum constant_tag {
	TAG_UTF8 = 1,
	TAG_INTEGER = 3,
	TAG_FLOAT,
	TAG_LONG,
	TAG_DOUBLE,
	TAG_CLASS,
	TAG_STRING,
	TAG_FIELD,
	TAG_METHOD,
	TAG_INTERFACE_METHOD,
	TAG_NAME_AND_TYPE,
	TAG_METHOD_HANDLE = 15,
	TAG_METHOD_TYPE,
	TAG_DYNAMIC,
	TAG_INVOKE_DYNAMIC,
	TAG_MODULE,
	TAG_PACKAGE,
};

/* --- bytes */

const uint8_t *class_read(struct class_input *in, size_t size)
{
	const uint8_t *bytes;

	if (in->is_bad || size > in->size - in->at) {
		in->is_bad = true;
		return NULL;
	}
	bytes = in->bytes + in->at;
	in->at += size;
	return bytes;
}

uint8_t class_read_u1(struct class_input *in)
{
	const uint8_t *p = class_read(in, 1);

	return p ? p[0] : 0;
}

uint16_t class_read_u2(struct class_input *in)
{
	const uint8_t *p = class_read(in, 2);

	return p ? (uint16_t)(p[0] << 8 | p[1]) : 0;
}

uint32_t class_read_u4(struct class_input *in)
{
	const uint8_t *p = class_read(in, 4);

	return p ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3] : 0;
}

void class_write(struct class_output *out, const void *bytes, size_t size)
{
	if (!out->is_bad && size > out->room - out->size) {
		size_t room = (out->size + size) * 2;
		uint8_t *larger = realloc(out->bytes, room);

		out->is_bad = !larger;
		if (larger) {
			out->bytes = larger;
			out->room = room;
		}
	}
	if (out->is_bad || !size)
		return;
	memcpy(out->bytes + out->size, bytes, size);
	out->size += size;
}

void class_write_u1(struct class_output *out, uint8_t value)
{
	class_write(out, &value, 1);
}

void class_write_u2(struct class_output *out, uint16_t value)
{
	uint8_t bytes[2] = {(uint8_t)(value >> 8), (uint8_t)value};

	class_write(out, bytes, sizeof(bytes));
}

void class_write_u4(struct class_output *out, uint32_t value)
{
	class_write_u2(out, (uint16_t)(value >> 16));
	class_write_u2(out, (uint16_t)value);
}

void class_put_u2(struct class_output *out, size_t at, uint16_t value)
{
	if (out->is_bad)
		return;
	out->bytes[at] = (uint8_t)(value >> 8);
	out->bytes[at + 1] = (uint8_t)value;
}

void class_put_u4(struct class_output *out, size_t at, uint32_t value)
{
	class_put_u2(out, at, (uint16_t)(value >> 16));
	class_put_u2(out, at + 2, (uint16_t)value);
}

/* --- constants */

/* What follows the tag; 0: no such tag. A string's length is not in it. */
static size_t constant_size(uint8_t tag)
{
	switch (tag) {
	case TAG_UTF8:
	case TAG_CLASS:
	case TAG_STRING:
	case TAG_METHOD_TYPE:
	case TAG_MODULE:
	case TAG_PACKAGE:
		return 2;
	case TAG_METHOD_HANDLE:
		return 3;
	case TAG_INTEGER:
	case TAG_FLOAT:
	case TAG_FIELD:
	case TAG_METHOD:
	case TAG_INTERFACE_METHOD:
	case TAG_NAME_AND_TYPE:
	case TAG_DYNAMIC:
	case TAG_INVOKE_DYNAMIC:
		return 4;
	case TAG_LONG:
	case TAG_DOUBLE:
		return 8;
	default:
		return 0;
	}
}

static int constants_read(struct class_file *c, struct class_input *in)
{
	c->n_constants = class_read_u2(in);
	c->n_all = c->n_constants;
	c->constants = calloc((size_t)c->n_constants + 1, sizeof(*c->constants));
	if (!c->constants)
		return -ENOMEM;

	for (uint32_t i = 1; i < c->n_constants; i++) {
		size_t at = in->at;
		uint8_t tag = class_read_u1(in);
		size_t size = constant_size(tag);

		if (!size)
			return -EBADMSG;
		if (tag == TAG_UTF8)
			size = class_read_u2(in);
		if (!class_read(in, size))
			return -EBADMSG;
		c->constants[i] = (uint32_t)at;
		/* They take two places (JVMS 4.4.5). */
		if (tag == TAG_LONG || tag == TAG_DOUBLE)
			i++;
	}
	return in->is_bad ? -EBADMSG : 0;
}

/* NULL: the constant is no string. */
static const uint8_t *text_of(const struct class_file *c, uint16_t index, size_t *ret_length)
{
	const uint8_t *p;

	if (index >= c->n_constants || !c->constants[index])
		return NULL;
	p = c->bytes + c->constants[index];
	if (p[0] != TAG_UTF8)
		return NULL;
	*ret_length = (size_t)(p[1] << 8 | p[2]);
	return p + 3;
}

bool class_is_text(const struct class_file *c, uint16_t index, const char *text)
{
	size_t length = 0;
	const uint8_t *p = text_of(c, index, &length);

	return p && length == strlen(text) && !memcmp(p, text, length);
}

bool class_text(const struct class_file *c, uint16_t index, char *ret, size_t size)
{
	size_t length = 0;
	const uint8_t *p = text_of(c, index, &length);

	if (!p || length >= size || memchr(p, 0, length))
		return false;
	memcpy(ret, p, length);
	ret[length] = '\0';
	return true;
}

/* The constant, if it has that tag and is all there. */
static const uint8_t *constant_of(const struct class_file *c, uint16_t index, uint8_t tag)
{
	const uint8_t *p;

	if (index >= c->n_constants || !c->constants[index])
		return NULL;
	p = c->bytes + c->constants[index];
	return p[0] == tag ? p : NULL;
}

bool class_is_site(const struct class_file *c, uint16_t index)
{
	const struct class_site *site = c->site;
	const uint8_t *p = constant_of(c, index, TAG_INTERFACE_METHOD);

	p = p ? constant_of(c, (uint16_t)(p[3] << 8 | p[4]), TAG_NAME_AND_TYPE) : NULL;
	return p &&
	       (!site->method || class_is_text(c, (uint16_t)(p[1] << 8 | p[2]), site->method)) &&
	       class_is_text(c, (uint16_t)(p[3] << 8 | p[4]), site->descriptor);
}

static uint16_t constant_added(struct class_file *c)
{
	return (uint16_t)c->n_all++;
}

uint16_t class_add_text(struct class_file *c, const char *text, size_t length)
{
	class_write_u1(&c->added, TAG_UTF8);
	class_write_u2(&c->added, (uint16_t)length);
	class_write(&c->added, text, length);
	return constant_added(c);
}

uint16_t class_add_class(struct class_file *c, const char *name, size_t length)
{
	uint16_t text = class_add_text(c, name, length);

	class_write_u1(&c->added, TAG_CLASS);
	class_write_u2(&c->added, text);
	return constant_added(c);
}

uint16_t class_add_method(struct class_file *c, const struct class_call *call)
{
	const char *owner_name = call->owner ? call->owner : c->owner;
	uint16_t owner = class_add_class(c, owner_name, strlen(owner_name));
	uint16_t name = class_add_text(c, call->method, strlen(call->method));
	uint16_t type = class_add_text(c, call->descriptor, strlen(call->descriptor));
	uint16_t both;

	class_write_u1(&c->added, TAG_NAME_AND_TYPE);
	class_write_u2(&c->added, name);
	class_write_u2(&c->added, type);
	both = constant_added(c);
	class_write_u1(&c->added, TAG_METHOD);
	class_write_u2(&c->added, owner);
	class_write_u2(&c->added, both);
	return constant_added(c);
}

/* --- members */

/* Skips attributes. */
static void attributes_skip(struct class_input *in)
{
	uint16_t n = class_read_u2(in);

	for (; n && !in->is_bad; n--) {
		class_read_u2(in);
		class_read(in, class_read_u4(in));
	}
}

static void fields_skip(struct class_input *in)
{
	uint16_t n = class_read_u2(in);

	for (; n && !in->is_bad; n--) {
		class_read(in, 6);
		attributes_skip(in);
	}
}

/* Whether the string is that, or begins so where that ends in '*'. */
static bool is_like(const struct class_file *c, uint16_t index, const char *wanted)
{
	size_t length = 0, known = strlen(wanted);
	const uint8_t *p = text_of(c, index, &length);

	if (!known || wanted[known - 1] != '*')
		return class_is_text(c, index, wanted);
	return p && length >= known - 1 && !memcmp(p, wanted, known - 1);
}

/* Whether the hook is for many methods. */
static bool is_open(const struct class_hook *hook)
{
	return hook->method && strchr(hook->method, '*');
}

/* The index of the method's hook, or n_hooks. */
static size_t hook_choose(const struct class_rewrite *w, const struct class_file *c, uint16_t name,
			  uint16_t descriptor)
{
	if (w->is_for_all)
		return class_is_text(c, name, "<init>") || class_is_text(c, name, "<clinit>")
			       ? w->n_hooks
			       : 0;
	for (size_t i = 0; i < w->n_hooks; i++)
		if (is_like(c, name, w->hooks[i].method) &&
		    (!w->hooks[i].descriptor || is_like(c, descriptor, w->hooks[i].descriptor)))
			return i;
	return w->n_hooks;
}

/* An attribute of a method. Returns as class_rewrite_code(). */
static int attribute_copy(struct class_file *c, const struct class_method *m,
			  struct class_input *in, struct class_output *out)
{
	uint16_t name = class_read_u2(in);
	uint32_t size = class_read_u4(in);
	struct class_input content = {.size = size};
	size_t begin = out->size;
	int r = 0;

	content.bytes = class_read(in, size);
	if (!content.bytes && size)
		return -EBADMSG;
	class_write_u2(out, name);
	class_write_u4(out, size);
	if ((m->hook || (c->site && m->descriptor[0])) && class_is_text(c, name, "Code"))
		r = class_rewrite_code(c, m, &content, out);
	if (r < 0)
		return r;
	if (r == 0) {
		if (!out->is_bad)
			out->size = begin + 6;
		class_write(out, content.bytes, size);
	} else {
		class_put_u4(out, begin + 2, (uint32_t)(out->size - begin - 6));
	}
	return r;
}

/* Returns how many methods were changed, or as class_rewrite(). */
static int methods_copy(const struct class_rewrite *w, struct class_file *c, struct class_input *in,
			struct class_output *out, uint32_t *found)
{
	uint16_t n = class_read_u2(in);
	int changed = 0;

	class_write_u2(out, n);
	for (; n && !in->is_bad; n--) {
		struct class_method method = {.hook = NULL};
		uint16_t access = class_read_u2(in), name = class_read_u2(in);
		uint16_t descriptor = class_read_u2(in), attributes = class_read_u2(in);
		size_t hook = hook_choose(w, c, name, descriptor);

		class_write_u2(out, access);
		class_write_u2(out, name);
		class_write_u2(out, descriptor);
		class_write_u2(out, attributes);
		method.is_static = access & ACC_STATIC;
		if (class_text(c, descriptor, method.descriptor, sizeof(method.descriptor)) &&
		    hook < w->n_hooks && !(method.is_static && is_open(&w->hooks[hook])))
			method.hook = &w->hooks[hook];
		method.is_constructor = class_is_text(c, name, "<init>");
		method.is_initialiser = class_is_text(c, name, "<clinit>");
		for (; attributes && !in->is_bad; attributes--) {
			int r = attribute_copy(c, &method, in, out);

			if (r < 0)
				return r;
			if (r > 0) {
				if (hook < w->n_hooks)
					*found |= 1U << hook;
				changed++;
			}
		}
	}
	return in->is_bad ? -EBADMSG : changed;
}

/* The whole class from its parts. */
static int class_join(const struct class_file *c, size_t constants_end,
		      const struct class_output *members, struct class_output *out)
{
	if (c->n_all > UINT16_MAX)
		return -E2BIG;
	class_write(out, c->bytes, 8);
	class_write_u2(out, (uint16_t)c->n_all);
	class_write(out, c->bytes + 10, constants_end - 10);
	class_write(out, c->added.bytes, c->added.size);
	class_write(out, members->bytes, members->size);
	return out->is_bad || c->added.is_bad || members->is_bad ? -ENOMEM : 0;
}

/* From the beginning to where the methods are. Returns 0, or as class_rewrite(). */
static int head_read(struct class_file *c, struct class_input *in, size_t *ret_constants_end)
{
	int r;

	if (class_read_u4(in) != MAGIC)
		return -EBADMSG;
	class_read_u2(in);
	c->major = class_read_u2(in);
	r = constants_read(c, in);
	if (r < 0)
		return r;
	*ret_constants_end = in->at;
	class_read(in, 6);
	class_read(in, 2 * (size_t)class_read_u2(in));
	fields_skip(in);
	return in->is_bad ? -EBADMSG : 0;
}

static int class_read_all(const struct class_rewrite *w, struct class_file *c,
			  struct class_output *ret, uint32_t *ret_found)
{
	struct class_input in = {.bytes = w->bytes, .size = w->size};
	struct class_output members = {};
	size_t constants_end, at;
	int r = head_read(c, &in, &constants_end), changed;

	if (r < 0)
		return r;
	at = constants_end;
	class_write(&members, w->bytes + at, in.at - at);
	changed = r = methods_copy(w, c, &in, &members, ret_found);
	at = in.at;
	if (r > 0) {
		attributes_skip(&in);
		if (in.is_bad || in.at != in.size)
			r = -EBADMSG;
	}
	if (r > 0) {
		class_write(&members, w->bytes + at, in.size - at);
		r = class_join(c, constants_end, &members, ret);
	}
	free(members.bytes);
	return r < 0 ? r : changed;
}

int class_rewrite(const struct class_rewrite *w, uint8_t **ret, size_t *ret_size,
		  uint32_t *ret_found)
{
	struct class_file c = {
		.bytes = w->bytes, .size = w->size, .owner = w->owner, .site = w->site};
	struct class_output out = {};
	uint32_t found = 0;
	int r;

	r = class_read_all(w, &c, &out, &found);
	free(c.constants);
	free(c.added.bytes);
	if (r <= 0) {
		free(out.bytes);
		return r;
	}
	*ret = out.bytes;
	*ret_size = out.size;
	*ret_found = found;
	return r;
}

/* --- questions */

bool class_mentions(const struct class_constants *constants, const char *prefix)
{
	struct class_input in = {.bytes = constants->bytes, .size = constants->size};
	size_t length = strlen(prefix);

	for (uint32_t i = 1; i < constants->n && !in.is_bad; i++) {
		uint8_t tag = class_read_u1(&in);
		size_t known = constant_size(tag);
		const uint8_t *p;

		if (!known)
			return false;
		if (tag == TAG_UTF8)
			known = class_read_u2(&in);
		p = class_read(&in, known);
		if (tag == TAG_UTF8 && p && known >= length && !memcmp(p, prefix, length))
			return true;
		if (tag == TAG_LONG || tag == TAG_DOUBLE)
			i++;
	}
	return false;
}

/* The first that is that constant, by what is behind its tag, a string's length apart; 0: none is. */
static uint16_t constant_find(const struct class_constants *constants, uint8_t wanted,
			      const void *content, size_t size)
{
	struct class_input in = {.bytes = constants->bytes, .size = constants->size};

	for (uint32_t i = 1; i < constants->n && !in.is_bad; i++) {
		uint8_t tag = class_read_u1(&in);
		size_t known = constant_size(tag);
		const uint8_t *p;

		if (!known)
			return 0;
		if (tag == TAG_UTF8)
			known = class_read_u2(&in);
		p = class_read(&in, known);
		if (tag == wanted && p && known == size && !memcmp(p, content, size))
			return (uint16_t)i;
		if (tag == TAG_LONG || tag == TAG_DOUBLE)
			i++;
	}
	return 0;
}

static uint16_t text_find(const struct class_constants *constants, const char *text)
{
	return constant_find(constants, TAG_UTF8, text, strlen(text));
}

/* One that is made of two others; 0 too if one of these is not there. */
static uint16_t pair_find(const struct class_constants *constants, uint8_t tag, uint16_t first,
			  uint16_t second)
{
	const uint8_t content[] = {(uint8_t)(first >> 8), (uint8_t)first, (uint8_t)(second >> 8),
				   (uint8_t)second};

	return first && second ? constant_find(constants, tag, content, sizeof(content)) : 0;
}

bool class_calls(const struct class_constants *constants, const struct class_reference *wanted)
{
	uint16_t name = text_find(constants, wanted->owner), owner, method;
	const uint8_t content[] = {(uint8_t)(name >> 8), (uint8_t)name};

	if (!name)
		return false;
	owner = constant_find(constants, TAG_CLASS, content, sizeof(content));
	method = pair_find(constants, TAG_NAME_AND_TYPE, text_find(constants, wanted->method),
			   text_find(constants, wanted->descriptor));
	return pair_find(constants, TAG_INTERFACE_METHOD, owner, method);
}

struct class_constants class_constants(const uint8_t *bytes, size_t size)
{
	struct class_constants none = {.n = 0};

	if (size < 10)
		return none;
	return (struct class_constants){bytes + 10, size - 10,
					(uint32_t)(bytes[8] << 8 | bytes[9])};
}

static bool methods_declare(const struct class_rewrite *w, const struct class_file *c,
			    struct class_input *in)
{
	uint16_t n = class_read_u2(in);

	for (; n && !in->is_bad; n--) {
		uint16_t access = class_read_u2(in), name = class_read_u2(in);
		uint16_t descriptor = class_read_u2(in);

		if (!(access & (ACC_STATIC | ACC_NATIVE | ACC_ABSTRACT)) &&
		    hook_choose(w, c, name, descriptor) < w->n_hooks)
			return true;
		attributes_skip(in);
	}
	return false;
}

bool class_declares(const struct class_rewrite *w)
{
	struct class_file c = {.bytes = w->bytes, .size = w->size};
	struct class_input in = {.bytes = w->bytes, .size = w->size};
	size_t constants_end;
	bool is_there = head_read(&c, &in, &constants_end) == 0 && methods_declare(w, &c, &in);

	free(c.constants);
	return is_there;
}
