/* The calls that go into a method, and what they may load. See classfile.h. */
#include <stdlib.h>
#include <string.h>

#include "classfile_private.h"

static uint32_t kind_number(char kind)
{
	return (uint32_t)(strchr(class_kinds, kind) - class_kinds);
}

/* --- descriptors (JVMS 4.3) */

/* Returns what is behind the type, or NULL. */
static const char *type_read(const char *text, struct class_type *ret)
{
	const char *p = text;

	while (*p == '[')
		p++;
	if (*p == 'L')
		p = strchr(p, ';');
	else if (!*p || !strchr("ZBCSIJFDV", *p))
		return NULL;
	if (!p)
		return NULL;
	ret->text = text;
	ret->length = (size_t)(p + 1 - text);
	switch (*text) {
	case 'L':
	case '[':
		ret->kind = 'a';
		break;
	case 'J':
		ret->kind = 'l';
		break;
	case 'F':
		ret->kind = 'f';
		break;
	case 'D':
		ret->kind = 'd';
		break;
	case 'V':
		ret->kind = 'v';
		break;
	default:
		ret->kind = 'i';
	}
	return p + 1;
}

static bool type_is_same(const struct class_type *a, const struct class_type *b)
{
	return a->length == b->length && !memcmp(a->text, b->text, a->length);
}

bool class_signature_read(const char *descriptor, bool is_static, struct class_signature *ret)
{
	const char *p = descriptor;
	struct class_type type;

	memset(ret, 0, sizeof(*ret));
	if (!is_static)
		ret->locals[ret->n_locals++].kind = 'a';
	if (*p++ != '(')
		return false;
	while (*p && *p != ')') {
		p = type_read(p, &type);
		if (!p || type.kind == 'v' || ret->n_locals + 2 > CLASS_LOCALS_MAX)
			return false;
		ret->locals[ret->n_locals] = type;
		ret->n_locals += class_kind_slots(type.kind);
	}
	return *p == ')' && (p = type_read(p + 1, &ret->result)) && !*p;
}

/* --- calls */

static void write_variable(struct class_output *out, uint8_t general, uint8_t short_form,
			   uint32_t kind, uint32_t local)
{
	if (local < 4) {
		class_write_u1(out, (uint8_t)(short_form + 4 * kind + local));
		return;
	}
	class_write_u1(out, (uint8_t)(general + kind));
	class_write_u1(out, (uint8_t)local);
}

/* A load or store as hooks write it. Returns what is behind it, or NULL. */
static const char *variable_read(const char *text, char *ret_kind, uint32_t *ret_local)
{
	char *end;
	unsigned long local;

	if (!strchr(class_kinds, *text) || text[1] < '0' || text[1] > '9')
		return NULL;
	local = strtoul(text + 1, &end, 10);
	if (local >= CLASS_LOCALS_MAX)
		return NULL;
	*ret_kind = *text;
	*ret_local = (uint32_t)local;
	return end;
}

static bool is_parameter(const struct class_body *b, char kind, uint32_t local)
{
	return b->signature.locals[local].kind == kind &&
	       local + class_kind_slots(kind) <= b->max_locals;
}

/* Whether the parameter may have got another value, and so another type. */
static bool is_stored(const struct class_body *b, char kind, uint32_t local)
{
	return b->stores[local] || (class_kind_slots(kind) == 2 && b->stores[local + 1]);
}

/* Loads parameters as the method got them. False: it has them not, or no longer. */
static bool write_loads(struct class_body *b, const char *loads, bool is_exit,
			struct class_output *out, uint32_t *ret_slots)
{
	const char *p = loads ? loads : "";
	uint32_t local;
	char kind;

	*ret_slots = 0;
	while (*p) {
		p = variable_read(p, &kind, &local);
		if (!p || !is_parameter(b, kind, local) || (is_exit && is_stored(b, kind, local)))
			return false;
		/* Before the super constructor was called it is no object yet. */
		if (b->method->is_constructor && !is_exit && local == 0)
			return false;
		write_variable(out, OP_ILOAD, OP_ILOAD_0, kind_number(kind), local);
		*ret_slots += class_kind_slots(kind);
	}
	return true;
}

static void write_call(struct class_body *b, const struct class_call *call,
		       struct class_output *out)
{
	class_write_u1(out, OP_INVOKESTATIC);
	class_write_u2(out, class_add_method(b->class, call));
}

/* A reference of one type where another is due. */
static void write_cast(struct class_body *b, const struct class_type *from,
		       const struct class_type *to, struct class_output *out)
{
	bool is_array = *to->text == '[';

	if (from->kind != 'a' || type_is_same(from, to))
		return;
	class_write_u1(out, OP_CHECKCAST);
	class_write_u2(out, class_add_class(b->class, is_array ? to->text : to->text + 1,
					    is_array ? to->length : to->length - 2));
}

static void write_pop(const struct class_type *result, struct class_output *out)
{
	if (result->kind != 'v')
		class_write_u1(out, class_kind_slots(result->kind) == 2 ? OP_POP2 : OP_POP);
}

static uint32_t result_slots(const struct class_type *result)
{
	return result->kind == 'v' ? 0 : class_kind_slots(result->kind);
}

static bool write_entry(struct class_body *b, const struct class_call *call)
{
	struct class_signature called;
	uint32_t slots, local;
	char kind;

	if (!class_signature_read(call->descriptor, true, &called) ||
	    !write_loads(b, call->loads, false, &b->new, &slots) || slots != called.n_locals)
		return false;
	write_call(b, call, &b->new);
	b->entry_stack = class_max(b->entry_stack, class_max(slots, result_slots(&called.result)));
	if (!call->store) {
		write_pop(&called.result, &b->new);
		return true;
	}
	if (!variable_read(call->store, &kind, &local) || kind != called.result.kind ||
	    !is_parameter(b, kind, local) || (local == 0 && !b->method->is_static))
		return false;
	write_cast(b, &called.result, &b->signature.locals[local], &b->new);
	write_variable(&b->new, OP_ISTORE, OP_ISTORE_0, kind_number(kind), local);
	return true;
}

/* With the value that is about to be returned. */
static bool write_exit_result(struct class_body *b, const struct class_call *call,
			      const struct class_signature *called, struct class_output *out)
{
	const struct class_type *result = &b->signature.result;
	uint32_t own = result_slots(result), slots;

	if (!own || called->locals[0].kind != result->kind)
		return false;
	if (called->result.kind == 'v')
		class_write_u1(out, own == 2 ? OP_DUP2 : OP_DUP);
	else if (called->result.kind != result->kind)
		return false;
	if (!write_loads(b, call->loads + 1, true, out, &slots) || own + slots != called->n_locals)
		return false;
	write_call(b, call, out);
	write_cast(b, &called->result, result, out);
	b->exit_stack = class_max(b->exit_stack, own + slots);
	return true;
}

static bool write_exit(struct class_body *b, const struct class_call *call,
		       struct class_output *out)
{
	struct class_signature called;
	uint32_t slots;

	if (!class_signature_read(call->descriptor, true, &called))
		return false;
	b->handler_result = called.result;
	if (call->loads && call->loads[0] == 'r')
		return write_exit_result(b, call, &called, out);
	if (!write_loads(b, call->loads, true, out, &slots) || slots != called.n_locals)
		return false;
	write_call(b, call, out);
	write_pop(&called.result, out);
	b->exit_stack = class_max(b->exit_stack, class_max(slots, result_slots(&called.result)));
	return true;
}

/* False: the method does not have what the hook wants. */
bool class_write_calls(struct class_body *b, struct class_output *exit)
{
	const struct class_hook *hook = &b->hook;

	for (int i = 0; i < CLASS_ENTRY_CALLS; i++)
		if (hook->entry[i].method && !write_entry(b, &hook->entry[i]))
			return false;
	b->entry_size = (uint32_t)b->new.size;
	if (!hook->exit.method)
		return true;
	if (!write_exit(b, &hook->exit, exit))
		return false;
	b->exit = exit->bytes;
	b->exit_size = (uint32_t)exit->size;
	return true;
}

static void write_site_call(struct class_body *b, const struct class_call *call, uint16_t *constant)
{
	if (!*constant)
		*constant = class_add_method(b->class, call);
	class_write_u1(&b->new, OP_INVOKESTATIC);
	class_write_u2(&b->new, *constant);
}

void class_write_site_before(struct class_body *b, enum class_site_kind kind)
{
	struct class_file *c = b->class;

	class_write_u1(&b->new, OP_DUP);
	if (kind == SITE_IN_LOOP)
		write_site_call(b, &c->site->before_in_loop, &c->site_before_in_loop);
	else
		write_site_call(b, &c->site->before, &c->site_before);
}

void class_write_site_after(struct class_body *b)
{
	write_site_call(b, &b->class->site->after, &b->class->site_after);
}

void class_write_site_caught(struct class_body *b)
{
	write_site_call(b, &b->class->site->caught, &b->class->site_caught);
}

void class_write_handler(struct class_body *b)
{
	const struct class_hook *hook = &b->hook;
	const struct class_call *call = hook->thrown.method ? &hook->thrown : &hook->exit;

	b->handler = CLASS_NOWHERE;
	if (!hook->is_finally || !hook->exit.method || call->loads || b->method->is_constructor)
		return;
	if (hook->thrown.method)
		b->handler_result.kind = 'v';
	b->handler = (uint32_t)b->new.size;
	b->throwable = class_add_class(b->class, "java/lang/Throwable", 19);
	write_call(b, call, &b->new);
	write_pop(&b->handler_result, &b->new);
	class_write_u1(&b->new, OP_ATHROW);
	b->entry_stack = class_max(b->entry_stack, 1 + result_slots(&b->handler_result));
}
