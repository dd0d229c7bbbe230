/* The body of a method with calls put in: instructions, jumps, handlers, frames. See classfile.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "classfile_private.h"

/* Of each instruction, with its operands; 0: by its operands. From JVMS 6.5. */
static uint32_t fixed_size(uint8_t op)
{
	if (op == 16 || op == 18 || (op >= 21 && op <= 25) || (op >= 54 && op <= 58) ||
	    op == OP_RET || op == 188)
		return 2;
	if (op == 17 || op == 19 || op == 20 || op == OP_IINC || (op >= OP_IFEQ && op <= OP_JSR) ||
	    (op >= 178 && op <= 184) || op == 187 || op == 189 || op == OP_CHECKCAST || op == 193 ||
	    op == OP_IFNULL || op == OP_IFNONNULL)
		return 3;
	if (op == 197)
		return 4;
	if (op == 185 || op == 186 || op == OP_GOTO_W || op == OP_JSR_W)
		return 5;
	if (op == OP_TABLESWITCH || op == OP_LOOKUPSWITCH || op == OP_WIDE)
		return 0;
	return 1;
}

static uint32_t u4_at(const struct class_body *b, uint32_t at)
{
	return (uint32_t)b->code[at] << 24 | (uint32_t)b->code[at + 1] << 16 |
	       (uint32_t)b->code[at + 2] << 8 | b->code[at + 3];
}

/* Of the instruction at 'pc'; 0: there is none, or not all of it. */
static uint32_t instruction_size(const struct class_body *b, uint32_t pc)
{
	uint8_t op = b->code[pc];
	uint64_t size = fixed_size(op), operands = ((pc + 4) & ~3U) - pc;

	if (op > OP_MAX)
		return 0;
	if (op == OP_WIDE && pc + 1 < b->size) {
		uint8_t widened = b->code[pc + 1];

		size = widened == OP_IINC ? 6 : 4;
		if (widened != OP_IINC && fixed_size(widened) != 2)
			return 0;
	} else if (op == OP_TABLESWITCH && pc + operands + 12 <= b->size) {
		int32_t low = (int32_t)u4_at(b, pc + (uint32_t)operands + 4);
		int32_t high = (int32_t)u4_at(b, pc + (uint32_t)operands + 8);

		if (low > high)
			return 0;
		size = operands + 12 + 4 * ((uint64_t)((int64_t)high - low) + 1);
	} else if (op == OP_LOOKUPSWITCH && pc + operands + 8 <= b->size) {
		size = operands + 8 + 8 * (uint64_t)u4_at(b, pc + (uint32_t)operands + 4);
	}
	return size && size <= b->size - pc ? (uint32_t)size : 0;
}

static bool is_return(uint8_t op)
{
	return op >= OP_IRETURN && op <= OP_RETURN;
}

static bool is_switch(uint8_t op)
{
	return op == OP_TABLESWITCH || op == OP_LOOKUPSWITCH;
}

static bool is_jump(uint8_t op)
{
	return (op >= OP_IFEQ && op <= OP_JSR) || op == OP_IFNULL || op == OP_IFNONNULL;
}

/* Which variable the instruction stores to, and of what kind; CLASS_NOWHERE: to none. */
static uint32_t stored(const struct class_body *b, uint32_t pc, char *ret_kind)
{
	const uint8_t *code = b->code + pc;
	bool is_wide = code[0] == OP_WIDE;
	uint8_t op = code[is_wide];

	if (op >= OP_ISTORE && op < OP_ISTORE + 5) {
		*ret_kind = class_kinds[op - OP_ISTORE];
		return is_wide ? (uint32_t)code[2] << 8 | code[3] : code[1];
	}
	if (op < OP_ISTORE_0 || op > OP_ASTORE_3)
		return CLASS_NOWHERE;
	*ret_kind = class_kinds[(op - OP_ISTORE_0) / 4];
	return (uint32_t)(op - OP_ISTORE_0) & 3;
}

static void find_stores(struct class_body *b)
{
	uint32_t pc, size, local;
	char kind;

	for (pc = 0; pc < b->size && (size = instruction_size(b, pc)); pc += size) {
		local = stored(b, pc, &kind);
		if (local < CLASS_LOCALS_MAX)
			b->stores[local] = true;
		if (local < CLASS_LOCALS_MAX - 1 && class_kind_slots(kind) == 2)
			b->stores[local + 1] = true;
	}
}

/* --- calls in the method */

static uint32_t u2_at(const struct class_body *b, uint32_t at)
{
	return (uint32_t)b->code[at] << 8 | b->code[at + 1];
}

/* How many. */
static uint32_t sites_find(struct class_body *b)
{
	uint32_t pc, size, n = 0;

	for (pc = 0; pc < b->size && (size = instruction_size(b, pc)); pc += size) {
		if (b->code[pc] != OP_INVOKEINTERFACE ||
		    !class_is_site(b->class, (uint16_t)u2_at(b, pc + 1)))
			continue;
		b->sites[pc] = SITE_PLAIN;
		n++;
	}
	return n;
}

/*
 * Jumps of switches are not looked at: compilers make none that lead back. 'place' is free until all is
 * placed: here, how far from each position the jumps reach that lead back there.
 */
static bool sites_find_loops(struct class_body *b)
{
	uint32_t pc, size, reach = 0;
	bool has_loop = false;

	memset(b->place, 0, b->size * sizeof(*b->place));
	for (pc = 0; pc < b->size && (size = instruction_size(b, pc)); pc += size) {
		uint8_t op = b->code[pc];
		int64_t to = pc;

		if (is_jump(op))
			to += (int16_t)u2_at(b, pc + 1);
		else if (op == OP_GOTO_W)
			to += (int32_t)u4_at(b, pc + 1);
		if (to < pc)
			b->place[to < 0 ? 0 : to] = pc;
	}
	for (pc = 0; pc < b->size; pc++) {
		reach = class_max(reach, b->place[pc]);
		if (!b->sites[pc] || pc >= reach)
			continue;
		b->sites[pc] = SITE_IN_LOOP;
		has_loop = true;
	}
	return has_loop;
}

/* How many sites there are before each position, in 'place' likewise. */
static void sites_count(struct class_body *b)
{
	uint32_t n = 0;

	for (uint32_t pc = 0; pc <= b->size; pc++) {
		b->place[pc] = n;
		n += b->sites[pc] != SITE_NONE;
	}
}

/* 'in': where the method's handlers are told. */
static void sites_find_handlers(struct class_body *b, struct class_input in)
{
	uint16_t n = class_read_u2(&in);

	if (!b->class->site->caught.method)
		return;
	sites_count(b);
	for (; n && !in.is_bad; n--) {
		uint32_t from = class_read_u2(&in), to = class_read_u2(&in);
		uint32_t handler = class_read_u2(&in);

		class_read_u2(&in);
		if (handler < b->size && to <= b->size && from < to &&
		    b->place[to] > b->place[from])
			b->catches[handler] = true;
	}
}

/* The method's own entry and exit make room for the site's. */
static bool sites_add_hook(struct class_body *b, bool has_loop)
{
	const struct class_site *site = b->class->site;
	struct class_hook *hook = &b->hook;

	if (!site->enter.method)
		return true;
	if (b->method->is_constructor || b->method->is_initialiser || hook->exit.method ||
	    hook->entry[CLASS_ENTRY_CALLS - 1].method)
		return false;
	for (int i = CLASS_ENTRY_CALLS - 1; i > 0; i--)
		hook->entry[i] = hook->entry[i - 1];
	hook->entry[0] = has_loop && site->enter_loop.method ? site->enter_loop : site->enter;
	hook->exit = site->leave;
	hook->is_finally = true;
	return true;
}

/* False: there is nothing to do in the method. */
static bool body_prepare(struct class_body *b, const struct class_input *in)
{
	uint32_t n = 0;

	if (b->method->hook)
		b->hook = *b->method->hook;
	if (b->class->site)
		n = sites_find(b);
	if (n && !sites_add_hook(b, sites_find_loops(b))) {
		memset(b->sites, SITE_NONE, b->size);
		n = 0;
	}
	if (n)
		sites_find_handlers(b, *in);
	b->exit_stack = n > 0; /* at least */
	return n || b->method->hook;
}

/* Where each instruction is, now and then. Returns 1, 0 if there is no room, or -EBADMSG. */
static int place_all(struct class_body *b)
{
	uint64_t at = b->entry_size;
	uint32_t pc, size;

	for (pc = 0; pc < b->size; pc++)
		b->target[pc] = b->place[pc] = CLASS_NOWHERE;
	for (pc = 0; pc < b->size; pc += size) {
		uint8_t op = b->code[pc];

		size = instruction_size(b, pc);
		if (!size)
			return -EBADMSG;
		b->target[pc] = (uint32_t)at;
		if (b->catches[pc])
			at += CLASS_SITE_CAUGHT;
		if (is_return(op))
			at += b->exit_size;
		if (b->sites[pc])
			at += CLASS_SITE_BEFORE;
		b->place[pc] = (uint32_t)at;
		if (is_switch(op))
			at = ((at + 4) & ~3ULL) + size - (((pc + 4) & ~3U) - pc);
		else
			at += size;
		if (b->sites[pc])
			at += CLASS_SITE_AFTER;
		if (at > CLASS_CODE_MAX)
			return 0;
	}
	b->target[b->size] = b->place[b->size] = (uint32_t)at;
	return 1;
}

/* The new position of an old one to which something jumps; CLASS_NOWHERE: there is no instruction. */
static uint32_t target_of(const struct class_body *b, int64_t old)
{
	return old >= 0 && old < b->size ? b->target[old] : CLASS_NOWHERE;
}

/* --- instructions */

/* Returns 1, 0 if the jump is too far for its form, or -EBADMSG. */
static int write_jump(struct class_body *b, uint32_t pc, uint32_t here)
{
	uint8_t op = b->code[pc];
	bool is_wide = op == OP_GOTO_W || op == OP_JSR_W;
	int64_t distance = is_wide ? (int32_t)u4_at(b, pc + 1)
				   : (int16_t)(b->code[pc + 1] << 8 | b->code[pc + 2]);
	uint32_t target = target_of(b, (int64_t)pc + distance);

	if (target == CLASS_NOWHERE)
		return -EBADMSG;
	distance = (int64_t)target - here;
	class_write_u1(&b->new, op);
	if (is_wide) {
		class_write_u4(&b->new, (uint32_t)distance);
		return 1;
	}
	class_write_u2(&b->new, (uint16_t)distance);
	return distance >= INT16_MIN && distance <= INT16_MAX;
}

static bool write_far(struct class_body *b, uint32_t pc, uint32_t here, uint32_t at)
{
	uint32_t target = target_of(b, (int64_t)pc + (int32_t)u4_at(b, at));

	class_write_u4(&b->new, target - here);
	return target != CLASS_NOWHERE;
}

static int write_switch(struct class_body *b, uint32_t pc, uint32_t here)
{
	bool is_table = b->code[pc] == OP_TABLESWITCH;
	uint32_t at = (pc + 4) & ~3U, n = u4_at(b, at + 4), i;
	bool is_good;

	class_write_u1(&b->new, b->code[pc]);
	while (b->new.size & 3)
		class_write_u1(&b->new, 0);
	is_good = write_far(b, pc, here, at);
	class_write(&b->new, b->code + at + 4, is_table ? 8 : 4);
	if (is_table)
		n = u4_at(b, at + 8) - n + 1;
	at += is_table ? 12 : 8;
	for (i = 0; i < n && is_good; i++) {
		if (!is_table)
			class_write(&b->new, b->code + at + 8 * i, 4);
		is_good = write_far(b, pc, here, is_table ? at + 4 * i : at + 8 * i + 4);
	}
	return is_good ? 1 : -EBADMSG;
}

static void write_site(struct class_body *b, uint32_t pc, uint32_t size)
{
	class_write_site_before(b, b->sites[pc]);
	class_write(&b->new, b->code + pc, size);
	class_write_site_after(b);
}

/* Returns 1, 0 if the method has to stay as it is, or -EBADMSG. */
static int write_instructions(struct class_body *b)
{
	uint32_t pc, size;
	int r = 1;

	for (pc = 0; pc < b->size && r > 0; pc += size) {
		uint8_t op = b->code[pc];

		size = instruction_size(b, pc);
		if (b->catches[pc])
			class_write_site_caught(b);
		if (is_return(op))
			class_write(&b->new, b->exit, b->exit_size);
		if (b->new.is_bad)
			return -ENOMEM;
		if (is_jump(op) || op == OP_GOTO_W || op == OP_JSR_W)
			r = write_jump(b, pc, (uint32_t)b->new.size);
		else if (is_switch(op))
			r = write_switch(b, pc, (uint32_t)b->new.size);
		else if (b->sites[pc])
			write_site(b, pc, size);
		else
			class_write(&b->new, b->code + pc, size);
	}
	return r;
}

/* --- a method */

static int body_write(struct class_body *b, struct class_input *in, struct class_output *out)
{
	struct class_output exit = {};
	int r;

	if (!body_prepare(b, in))
		return 0;
	find_stores(b);
	r = class_write_calls(b, &exit);
	if (r > 0)
		r = place_all(b);
	if (r > 0)
		r = write_instructions(b);
	free(exit.bytes);
	if (r <= 0)
		return r;
	class_write_handler(b);
	if (b->new.is_bad || exit.is_bad)
		return -ENOMEM;
	b->max_stack = class_max(b->max_stack + b->exit_stack, b->entry_stack);
	if (b->new.size > CLASS_CODE_MAX || b->max_stack > UINT16_MAX)
		return 0;
	/* HotSpot compiles none that is longer (HugeMethodLimit). */
	if (!b->method->hook && b->size <= 8000 && b->new.size > 8000)
		return 0;

	class_write_u2(out, (uint16_t)b->max_stack);
	class_write_u2(out, (uint16_t)b->max_locals);
	class_write_u4(out, (uint32_t)b->new.size);
	class_write(out, b->new.bytes, b->new.size);
	return class_write_tables(b, in, out);
}

int class_rewrite_code(struct class_file *c, const struct class_method *m, struct class_input *code,
		       struct class_output *out)
{
	struct class_body b = {.class = c, .method = m, .handler = CLASS_NOWHERE};
	int r = -ENOMEM;

	b.max_stack = class_read_u2(code);
	b.max_locals = class_read_u2(code);
	b.size = class_read_u4(code);
	b.code = class_read(code, b.size);
	if (!b.code || !b.size || b.size > CLASS_CODE_MAX)
		return -EBADMSG;
	if (!class_signature_read(m->descriptor, m->is_static, &b.signature))
		return -EBADMSG;

	b.target = calloc((size_t)b.size + 1, sizeof(*b.target));
	b.place = calloc((size_t)b.size + 1, sizeof(*b.place));
	b.sites = calloc((size_t)b.size + 1, sizeof(*b.sites));
	b.catches = calloc((size_t)b.size + 1, sizeof(*b.catches));
	if (b.target && b.place && b.sites && b.catches)
		r = body_write(&b, code, out);
	free(b.target);
	free(b.place);
	free(b.sites);
	free(b.catches);
	free(b.new.bytes);
	return r;
}
