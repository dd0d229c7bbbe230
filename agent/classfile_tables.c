/* What stands behind the instructions of a method: handlers, lines, variables, frames. See classfile.h. */
#include <errno.h>

#include "classfile_private.h"

#define STACK_MAPS 50 /* the first version with StackMapTable */

static int write_exceptions(struct class_body *b, struct class_input *in, struct class_output *out)
{
	uint16_t n = class_read_u2(in);

	if (n == UINT16_MAX)
		return 0;
	class_write_u2(out, (uint16_t)(n + (b->handler != CLASS_NOWHERE)));
	for (; n; n--) {
		uint32_t from = class_read_u2(in), to = class_read_u2(in);
		uint32_t handler = class_read_u2(in);
		uint16_t type = class_read_u2(in);

		if (in->is_bad || from >= to || to > b->size || handler >= b->size ||
		    b->target[from] == CLASS_NOWHERE || b->target[to] == CLASS_NOWHERE ||
		    b->target[handler] == CLASS_NOWHERE)
			return -EBADMSG;
		class_write_u2(out, (uint16_t)b->target[from]);
		class_write_u2(out, (uint16_t)b->target[to]);
		class_write_u2(out, (uint16_t)b->target[handler]);
		class_write_u2(out, type);
	}
	if (b->handler != CLASS_NOWHERE) {
		class_write_u2(out, (uint16_t)b->entry_size);
		class_write_u2(out, (uint16_t)b->handler);
		class_write_u2(out, (uint16_t)b->handler);
		class_write_u2(out, 0);
	}
	return 1;
}

static int write_lines(struct class_body *b, struct class_input *in, struct class_output *out)
{
	uint16_t n = class_read_u2(in);

	class_write_u2(out, n);
	for (; n; n--) {
		uint32_t at = class_read_u2(in);
		uint16_t line = class_read_u2(in);

		if (in->is_bad || at >= b->size || b->target[at] == CLASS_NOWHERE)
			return -EBADMSG;
		class_write_u2(out, (uint16_t)b->target[at]);
		class_write_u2(out, line);
	}
	return 1;
}

/* A parameter is there from the beginning, also for the calls at the entry. */
static int write_locals(struct class_body *b, struct class_input *in, struct class_output *out)
{
	uint16_t n = class_read_u2(in);

	class_write_u2(out, n);
	for (; n; n--) {
		uint32_t from = class_read_u2(in), to = from + class_read_u2(in);
		const uint8_t *rest = class_read(in, 6);

		if (!rest || to > b->size || b->target[from] == CLASS_NOWHERE ||
		    b->target[to] == CLASS_NOWHERE)
			return -EBADMSG;
		from = from ? b->target[from] : 0;
		class_write_u2(out, (uint16_t)from);
		class_write_u2(out, (uint16_t)(b->target[to] - from));
		class_write(out, rest, 6);
	}
	return 1;
}

/* Verification types (JVMS 4.7.4): one that is no object yet names the instruction that made it. */
static bool write_types(struct class_body *b, struct class_input *in, struct class_output *out,
			uint32_t n)
{
	for (; n; n--) {
		uint8_t type = class_read_u1(in);
		uint32_t operand;

		class_write_u1(out, type);
		if (type > 8 || in->is_bad)
			return false;
		if (type < 7)
			continue;
		operand = class_read_u2(in);
		if (type == 8 && (operand >= b->size || b->place[operand] == CLASS_NOWHERE))
			return false;
		class_write_u2(out, (uint16_t)(type == 8 ? b->place[operand] : operand));
	}
	return !in->is_bad;
}

/* A frame but for its place, which may need a longer form than it had. */
static bool write_frame(struct class_body *b, struct class_input *in, struct class_output *out,
			uint8_t type, uint32_t delta)
{
	bool has_item = (type >= 64 && type < 128) || type == 247;
	uint16_t n;

	if (type < 128 && delta < 64) {
		class_write_u1(out, (uint8_t)(delta + (has_item ? 64 : 0)));
	} else {
		class_write_u1(out, type >= 128 ? type : has_item ? 247 : 251);
		class_write_u2(out, (uint16_t)delta);
	}
	if (type < 252)
		return !has_item || write_types(b, in, out, 1);
	if (type < 255)
		return write_types(b, in, out, type - 251);
	for (int i = 0; i < 2; i++) {
		n = class_read_u2(in);
		class_write_u2(out, n);
		if (!write_types(b, in, out, n))
			return false;
	}
	return true;
}

static void write_handler_frame(struct class_body *b, struct class_output *out, uint32_t next)
{
	class_write_u1(out, 255);
	class_write_u2(out, (uint16_t)(b->handler - next));
	class_write_u2(out, 0);
	class_write_u2(out, 1);
	class_write_u1(out, 7);
	class_write_u2(out, b->throwable);
}

static int write_frames(struct class_body *b, struct class_input *in, struct class_output *out)
{
	uint32_t n = in ? class_read_u2(in) : 0, old = 0, next = 0;
	bool has_handler = b->handler != CLASS_NOWHERE;

	if (n + has_handler > UINT16_MAX)
		return 0;
	class_write_u2(out, (uint16_t)(n + has_handler));
	for (uint32_t i = 0; i < n; i++) {
		uint8_t type = class_read_u1(in);
		uint32_t delta = type < 128 ? type & 63 : class_read_u2(in);

		if (in->is_bad || (type >= 128 && type < 247))
			return -EBADMSG;
		old += delta;
		if (old >= b->size || b->target[old] == CLASS_NOWHERE || b->target[old] < next)
			return -EBADMSG;
		if (!write_frame(b, in, out, type, b->target[old] - next))
			return -EBADMSG;
		next = b->target[old] + 1;
		old++;
	}
	if (has_handler)
		write_handler_frame(b, out, next);
	return 1;
}

/* Returns 1 if it was written, 0 if the method has to stay, 2 if it is left out, or -EBADMSG. */
static int write_attribute(struct class_body *b, uint16_t name, struct class_input *in,
			   struct class_output *out, bool *has_frames)
{
	const struct class_file *c = b->class;
	size_t begin = out->size;
	int r = 2;

	class_write_u2(out, name);
	class_write_u4(out, 0);
	if (class_is_text(c, name, "LineNumberTable"))
		r = write_lines(b, in, out);
	else if (class_is_text(c, name, "LocalVariableTable") ||
		 class_is_text(c, name, "LocalVariableTypeTable"))
		r = write_locals(b, in, out);
	else if (class_is_text(c, name, "StackMapTable") && c->major >= STACK_MAPS && !*has_frames)
		r = write_frames(b, in, out);
	if (r == 1 && (in->is_bad || in->at != in->size))
		return -EBADMSG;
	if (class_is_text(c, name, "StackMapTable"))
		*has_frames = true;
	if (out->is_bad)
		return -ENOMEM;
	if (r == 1)
		class_put_u4(out, begin + 2, (uint32_t)(out->size - begin - 6));
	else
		out->size = begin;
	return r;
}

/* The others, annotations of types among them, are for nobody at run time, and are left out. */
static int write_attributes(struct class_body *b, struct class_input *in, struct class_output *out)
{
	uint16_t n = class_read_u2(in), written = 0;
	size_t count = out->size, begin;
	bool has_frames = false;

	class_write_u2(out, 0);
	for (; n; n--) {
		uint16_t name = class_read_u2(in);
		struct class_input one = {.size = class_read_u4(in)};
		int r;

		one.bytes = class_read(in, one.size);
		if (in->is_bad)
			return -EBADMSG;
		r = write_attribute(b, name, &one, out, &has_frames);
		if (r <= 0)
			return r;
		written += r == 1;
	}
	if (in->at != in->size)
		return -EBADMSG;
	if (b->handler != CLASS_NOWHERE && !has_frames && b->class->major >= STACK_MAPS) {
		class_write_u2(out, class_add_text(b->class, "StackMapTable", 13));
		begin = out->size;
		class_write_u4(out, 0);
		write_frames(b, NULL, out);
		class_put_u4(out, begin, (uint32_t)(out->size - begin - 4));
		written++;
	}
	class_put_u2(out, count, written);
	return 1;
}

int class_write_tables(struct class_body *b, struct class_input *in, struct class_output *out)
{
	int r = write_exceptions(b, in, out);

	return r > 0 ? write_attributes(b, in, out) : r;
}
