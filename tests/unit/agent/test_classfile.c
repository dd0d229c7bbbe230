/* agent/classfile.c: what comes out of small classes, byte by byte, and that nothing comes out of broken ones. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "classfile.h"

#define BYTES(...) ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})

/* A class with one method "m", as it is written. */
struct builder {
	uint8_t bytes[200000];
	size_t size;
};

static void put(struct builder *b, const void *bytes, size_t size)
{
	assert_true(b->size + size <= sizeof(b->bytes));
	memcpy(b->bytes + b->size, bytes, size);
	b->size += size;
}

static void put_u2(struct builder *b, unsigned int value)
{
	put(b, (uint8_t[]){(uint8_t)(value >> 8), (uint8_t)value}, 2);
}

static void put_u4(struct builder *b, size_t value)
{
	put_u2(b, (unsigned int)(value >> 16));
	put_u2(b, (unsigned int)(value & 0xffff));
}

static void put_text(struct builder *b, const char *text)
{
	put(b, "\1", 1);
	put_u2(b, (unsigned int)strlen(text));
	put(b, text, strlen(text));
}

enum {
	STATIC = 8,
	NAME = 1,
	DESCRIPTOR,
	CODE,
	FRAMES,
	OBJECT,
	OBJECT_CLASS,
	RUN,
	NOTHING,
	RUN_TYPE,
	RUN_CALL,
	N_CONSTANTS
};

/* 'rest' is what stands behind the instructions: exception table and attributes. */
struct method {
	const char *name;
	const char *descriptor;
	unsigned int flags, max_stack, max_locals;
	const uint8_t *code;
	size_t code_size;
	const uint8_t *rest;
	size_t rest_size;
};

static const uint8_t nothing[4];

static void build(struct builder *b, const struct method *m)
{
	const uint8_t *rest = m->rest ? m->rest : nothing;
	size_t rest_size = m->rest ? m->rest_size : sizeof(nothing);

	b->size = 0;
	put_u4(b, 0xcafebabe);
	put_u4(b, 52); /* Java 8 */
	put_u2(b, N_CONSTANTS);
	put_text(b, m->name ? m->name : "m");
	put_text(b, m->descriptor);
	put_text(b, "Code");
	put_text(b, "StackMapTable");
	put_text(b, "java/lang/Object");
	put(b, "\7", 1);
	put_u2(b, OBJECT);
	put_text(b, "run");
	put_text(b, "()V");
	put(b, "\14", 1); /* name and type */
	put_u2(b, RUN);
	put_u2(b, NOTHING);
	put(b, "\13", 1); /* method of an interface */
	put_u2(b, OBJECT_CLASS);
	put_u2(b, RUN_TYPE);
	put_u2(b, 0x21);
	put_u2(b, OBJECT_CLASS);
	put_u2(b, OBJECT_CLASS);
	put_u4(b, 0); /* interfaces, fields */
	put_u2(b, 1);
	put_u2(b, m->flags);
	put_u2(b, NAME);
	put_u2(b, DESCRIPTOR);
	put_u2(b, 1);
	put_u2(b, CODE);
	put_u4(b, 8 + m->code_size + rest_size);
	put_u2(b, m->max_stack);
	put_u2(b, m->max_locals);
	put_u4(b, m->code_size);
	put(b, m->code, m->code_size);
	put(b, rest, rest_size);
	put_u2(b, 0);
}

/* The content of the Code attribute that came out. */
struct result {
	int r;
	uint8_t *bytes;
	const uint8_t *code;
	size_t code_size;
	unsigned int max_stack;
	const uint8_t *rest; /* behind the instructions, to the end of the attribute */
	size_t rest_size;
};

static unsigned int u2(const uint8_t *p)
{
	return (unsigned int)(p[0] << 8 | p[1]);
}

static struct result rewrite_sites(const struct method *m, const struct class_hook *hook,
				   const struct class_site *site)
{
	struct builder b;
	struct class_rewrite w = {.bytes = b.bytes,
				  .hooks = hook,
				  .n_hooks = hook ? 1 : 0,
				  .site = site,
				  .owner = "a/B"};
	struct result result = {0};
	size_t size = 0, attribute;
	uint32_t found = 0;
	const uint8_t *p;

	build(&b, m);
	w.size = b.size;
	result.r = class_rewrite(&w, &result.bytes, &size, &found);
	if (result.r <= 0)
		return result;
	assert_int_equal(found, hook ? 1 : 0);
	/* The last thing in the class is the number of its attributes; the method's is before. */
	p = memmem(result.bytes + 10, size - 10, "\0\1\0\3", 4); /* one attribute: Code */
	assert_non_null(p);
	attribute = (size_t)u2(p + 4) << 16 | u2(p + 6);
	p += 8;
	assert_ptr_equal(p + attribute + 2, result.bytes + size);
	result.max_stack = u2(p);
	result.code_size = (size_t)u2(p + 4) << 16 | u2(p + 6);
	result.code = p + 8;
	result.rest = result.code + result.code_size;
	result.rest_size = attribute - 8 - result.code_size;
	return result;
}

static struct result rewrite(const struct method *m, const struct class_hook *hook)
{
	return rewrite_sites(m, hook, NULL);
}

/* Instructions as they should be; 0xff: any byte, for a constant's index. */
static void assert_code(const struct result *result, const uint8_t *code, size_t size)
{
	assert_int_equal(result->r, 1);
	assert_int_equal(result->code_size, size);
	for (size_t i = 0; i < size; i++)
		if (code[i] != 0xff)
			assert_int_equal(result->code[i], code[i]);
}

static const struct class_hook both = {
	.method = "m",
	.entry = {{.method = "enter", .descriptor = "()V"}},
	.exit = {.method = "leave", .descriptor = "()V"},
};

static void test_entry_and_exit(void **state)
{
	const uint8_t code[] = {0x03, 0xac}; /* iconst_0, ireturn */
	struct method m = {.descriptor = "()I",
			   .flags = STATIC,
			   .max_stack = 1,
			   .code = code,
			   .code_size = sizeof(code)};
	struct result result = rewrite(&m, &both);

	(void)state;
	assert_code(&result, BYTES(0xb8, 0xff, 0xff, 0x03, 0xb8, 0xff, 0xff, 0xac));
	assert_int_equal(result.max_stack, 1);
	free(result.bytes);
}

static void test_argument_replaced(void **state)
{
	static const struct class_hook hook = {
		.method = "m",
		.entry = {{.method = "wrap",
			   .descriptor = "(Ljava/lang/Object;J)Ljava/lang/Object;",
			   .loads = "a1l2",
			   .store = "a1"}},
	};
	const uint8_t code[] = {0xb1};
	struct method m = {.descriptor = "(Ljava/lang/Runnable;J)V",
			   .max_locals = 4,
			   .code = code,
			   .code_size = sizeof(code)};
	struct result result = rewrite(&m, &hook);

	(void)state;
	/* aload_1, lload_2, invokestatic, checkcast, astore_1, return */
	assert_code(&result, BYTES(0x2b, 0x20, 0xb8, 0xff, 0xff, 0xc0, 0xff, 0xff, 0x4c, 0xb1));
	assert_int_equal(result.max_stack, 3);
	free(result.bytes);
}

static void test_result(void **state)
{
	static const struct class_hook seen = {
		.method = "m",
		.exit = {.method = "see", .descriptor = "(J)V", .loads = "r"},
	};
	static const struct class_hook replaced = {
		.method = "m",
		.exit = {.method = "other", .descriptor = "(J)J", .loads = "r"},
	};
	const uint8_t code[] = {0x09, 0xad}; /* lconst_0, lreturn */
	struct method m = {.descriptor = "()J",
			   .flags = STATIC,
			   .max_stack = 2,
			   .code = code,
			   .code_size = sizeof(code)};
	struct result result = rewrite(&m, &seen);

	(void)state;
	assert_code(&result, BYTES(0x09, 0x5c, 0xb8, 0xff, 0xff, 0xad));
	assert_int_equal(result.max_stack, 4);
	free(result.bytes);
	result = rewrite(&m, &replaced);
	assert_code(&result, BYTES(0x09, 0xb8, 0xff, 0xff, 0xad));
	free(result.bytes);
}

/* Who jumped to a return jumps to the call before it; a switch is padded anew. */
static void test_jumps(void **state)
{
	const uint8_t code[] = {
		0x1a,                   /* 0: iload_0 */
		0x99, 0x00, 0x04,       /* 1: ifeq 5 */
		0xb1,                   /* 4: return */
		0x1a,                   /* 5: iload_0 */
		0xaa, 0x00,             /* 6: tableswitch, padded to 8 */
		0x00, 0x00, 0x00, 0x12, /* 8: default: 24 */
		0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0xff, 0xff, 0xff, 0xfa, /* 1: 0 */
		0xb1,                                                                   /* 24 */
	};
	struct method m = {.descriptor = "(I)V",
			   .flags = STATIC,
			   .max_stack = 1,
			   .max_locals = 1,
			   .code = code,
			   .code_size = sizeof(code)};
	struct result result = rewrite(&m, &both);

	(void)state;
	assert_code(&result, BYTES(0xb8, 0xff, 0xff,                               /* 0 */
				   0x1a,                                           /* 3 */
				   0x99, 0x00, 0x07,                               /* 4: to 11 */
				   0xb8, 0xff, 0xff, 0xb1,                         /* 7 */
				   0x1a,                                           /* 11 */
				   0xaa, 0x00, 0x00, 0x00,                         /* 12 */
				   0x00, 0x00, 0x00, 0x14,                         /* to 32 */
				   0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, /* */
				   0xff, 0xff, 0xff, 0xf7,                         /* to 3 */
				   0xb8, 0xff, 0xff, 0xb1));
	free(result.bytes);
}

static void test_finally(void **state)
{
	struct class_hook hook = both;
	const uint8_t code[] = {0xb1};
	struct method m = {.descriptor = "()V", .flags = STATIC, .code = code, .code_size = 1};
	struct result result;

	(void)state;
	hook.is_finally = true;
	result = rewrite(&m, &hook);
	/* enter, leave, return; leave, athrow */
	assert_code(&result,
		    BYTES(0xb8, 0xff, 0xff, 0xb8, 0xff, 0xff, 0xb1, 0xb8, 0xff, 0xff, 0xbf));
	assert_int_equal(result.max_stack, 1);
	/* One handler, of 3 to 7, at 7, for all; one attribute, with one full frame at 7. */
	assert_memory_equal(result.rest, "\0\1\0\3\0\7\0\7\0\0\0\1", 12);
	assert_memory_equal(result.rest + 14, "\0\0\0\14\0\1\377\0\7\0\0\0\1\7", 14);
	assert_int_equal(result.rest_size, 30);
	free(result.bytes);
}

/* The index of the constant that the instruction at 'at' calls. */
static unsigned int called(const struct result *result, size_t at)
{
	assert_int_equal(result->code[at], 0xb8);
	return u2(result->code + at + 1);
}

/* What is called with the result cannot be where there is none. */
static void test_thrown(void **state)
{
	static const struct class_hook hook = {
		.method = "m",
		.exit = {.method = "done", .descriptor = "(I)V", .loads = "r"},
		.is_finally = true,
		.thrown = {.method = "failed", .descriptor = "()V"},
	};
	const uint8_t code[] = {0x03, 0xac};
	struct method m = {.descriptor = "()I",
			   .flags = STATIC,
			   .max_stack = 1,
			   .code = code,
			   .code_size = sizeof(code)};
	struct result result = rewrite(&m, &hook);

	(void)state;
	assert_code(&result, BYTES(0x03, 0x59, 0xb8, 0xff, 0xff, 0xac, 0xb8, 0xff, 0xff, 0xbf));
	assert_int_not_equal(called(&result, 2), called(&result, 6));
	free(result.bytes);
}

/* same_frame 5, then one more with an item 62 further: it needs the long form when calls lie between. */
static void test_frames(void **state)
{
	static const uint8_t frames[] = {0, 0, 0, 1, 0, FRAMES, 0, 0, 0, 7, 0, 2, 5, 64 + 62, 7, 0};
	uint8_t code[70], rest[sizeof(frames) + 1];
	struct method m = {.descriptor = "()V",
			   .flags = STATIC,
			   .max_stack = 1,
			   .code = code,
			   .code_size = sizeof(code),
			   .rest = rest,
			   .rest_size = sizeof(rest)};
	struct result result;

	(void)state;
	memset(code, 0, sizeof(code)); /* nop */
	code[60] = code[69] = 0xb1;
	memcpy(rest, frames, sizeof(frames));
	rest[sizeof(frames)] = OBJECT_CLASS;
	result = rewrite(&m, &both);
	assert_int_equal(result.r, 1);
	/* At 8, and at 68 + 3 + 3 = 74: 65 further. */
	assert_memory_equal(result.rest, "\0\0\0\1\0\4\0\0\0\11\0\2\10\367\0\101\7\0\6", 19);
	assert_int_equal(result.rest_size, 19);
	free(result.bytes);
}

static const struct class_site site = {
	.method = "run",
	.descriptor = "()V",
	.before = {.method = "calling", .descriptor = "(Ljava/lang/Object;)V"},
	.before_in_loop = {.method = "running", .descriptor = "(Ljava/lang/Object;)V"},
	.after = {.method = "ran", .descriptor = "()V"},
};

static void test_call_site(void **state)
{
	/* aload_0, invokeinterface run, return */
	const uint8_t code[] = {0x2a, 0xb9, 0, RUN_CALL, 1, 0, 0xb1};
	struct method m = {.descriptor = "()V",
			   .max_stack = 1,
			   .max_locals = 1,
			   .code = code,
			   .code_size = sizeof(code)};
	struct class_site around = site;
	struct result result = rewrite_sites(&m, NULL, &site);

	(void)state;
	assert_code(&result, BYTES(0x2a, 0x59, 0xb8, 0xff, 0xff, 0xb9, 0, RUN_CALL, 1, 0, 0xb8,
				   0xff, 0xff, 0xb1));
	assert_int_equal(result.max_stack, 2);
	free(result.bytes);

	around.enter = both.entry[0];
	around.leave = both.exit;
	result = rewrite_sites(&m, NULL, &around);
	/* Also when it throws: leave, athrow. */
	assert_code(&result,
		    BYTES(0xb8, 0xff, 0xff, 0x2a, 0x59, 0xb8, 0xff, 0xff, 0xb9, 0, RUN_CALL, 1, 0,
			  0xb8, 0xff, 0xff, 0xb8, 0xff, 0xff, 0xb1, 0xb8, 0xff, 0xff, 0xbf));
	free(result.bytes);
	/* A hook's own exit stays, and so do a constructor's calls. */
	result = rewrite_sites(&m, &both, &around);
	assert_code(&result,
		    BYTES(0xb8, 0xff, 0xff, 0x2a, 0xb9, 0, RUN_CALL, 1, 0, 0xb8, 0xff, 0xff, 0xb1));
	free(result.bytes);
	m.name = "<init>";
	assert_int_equal(rewrite_sites(&m, NULL, &around).r, 0);
}

/* Whoever jumps to the call jumps to what comes before it, whoever jumps behind it behind all. */
static void test_call_site_in_loop(void **state)
{
	const uint8_t code[] = {
		0x2a,                       /* 0: aload_0 */
		0xb9, 0,    RUN_CALL, 1, 0, /* 1: invokeinterface run */
		0x03,                       /* 6: iconst_0 */
		0x99, 0xff, 0xf9,           /* 7: ifeq 0 */
		0x2a,                       /* 10: aload_0 */
		0xb9, 0,    RUN_CALL, 1, 0, /* 11: not in the loop */
		0x03,                       /* 16: iconst_0 */
		0x9a, 0,    3,              /* 17: ifne 20 */
		0xb1,                       /* 20: return */
	};
	struct method m = {.descriptor = "()V",
			   .max_stack = 1,
			   .max_locals = 1,
			   .code = code,
			   .code_size = sizeof(code)};
	struct result result = rewrite_sites(&m, NULL, &site);

	(void)state;
	assert_code(&result, BYTES(0x2a, 0x59, 0xb8, 0xff, 0xff, 0xb9, 0, RUN_CALL, 1, 0, 0xb8,
				   0xff, 0xff, 0x03, 0x99, 0xff, 0xf2, /* 14: to 0 */
				   0x2a, 0x59, 0xb8, 0xff, 0xff, 0xb9, 0, RUN_CALL, 1, 0, 0xb8,
				   0xff, 0xff, 0x03, 0x9a, 0, 3, 0xb1));
	assert_int_not_equal(called(&result, 2), called(&result, 19));
	assert_int_equal(called(&result, 10), called(&result, 27));
	free(result.bytes);
}

/*
 * The largest method there can be, which does nothing but jump back, with as many handlers: a class like
 * that may be made to hold up whoever looks at it.
 */
static void test_call_site_in_large_method(void **state)
{
	static uint8_t code[65535], rest[2 + 8 * 16000 + 2];
	struct method m = {.descriptor = "()V",
			   .max_stack = 1,
			   .max_locals = 1,
			   .code = code,
			   .code_size = sizeof(code),
			   .rest = rest,
			   .rest_size = sizeof(rest)};
	struct class_site around = site;
	clock_t begin = clock();

	(void)state;
	for (size_t at = 0; at + 9 < sizeof(code); at += 3) {
		size_t back = at < 32766 ? at : 32766;

		code[at] = 0xa7; /* goto */
		code[at + 1] = (uint8_t)(-back >> 8);
		code[at + 2] = (uint8_t)-back;
	}
	memcpy(code + sizeof(code) - 9, "\x2a\xb9\0\0\1\0\0\0\xb1", 9);
	code[sizeof(code) - 5] = RUN_CALL;
	rest[0] = 16000 >> 8;
	rest[1] = 16000 & 0xff;
	for (size_t at = 2; at + 2 < sizeof(rest); at += 8)
		memcpy(rest + at, "\0\0\377\360\0\0\0\0", 8); /* 0 to 65,520 */
	around.caught = (struct class_call){.method = "caught", .descriptor = "()V"};
	/* No room for the calls. */
	assert_int_equal(rewrite_sites(&m, NULL, &around).r, 0);
	assert_true(clock() - begin < CLOCKS_PER_SEC / 5);
}

/* Many methods of one hook: those that are not static. */
static void test_open_hook(void **state)
{
	static const struct class_hook hook = {
		.method = "m*",
		.descriptor = "(Ljava/lang/Object;*",
		.entry = {{.method = "see", .descriptor = "(Ljava/lang/Object;)V", .loads = "a1"}},
	};
	const uint8_t code[] = {0xb1};
	struct method m = {.name = "many",
			   .descriptor = "(Ljava/lang/Object;I)V",
			   .max_locals = 3,
			   .code = code,
			   .code_size = 1};
	struct class_rewrite w = {.hooks = &hook, .n_hooks = 1};
	struct class_constants constants;
	struct builder b;
	struct result result = rewrite(&m, &hook);

	(void)state;
	assert_code(&result, BYTES(0x2b, 0xb8, 0xff, 0xff, 0xb1));
	free(result.bytes);
	build(&b, &m);
	w.bytes = b.bytes;
	w.size = b.size;
	constants = class_constants(b.bytes, b.size);
	assert_true(class_declares(&w));
	assert_true(class_mentions(&constants, "(Ljava/lang/Object;"));
	assert_false(class_mentions(&constants, "(Ljava/lang/Runnable;"));

	m.descriptor = "(I)V";
	assert_int_equal(rewrite(&m, &hook).r, 0);
	m.descriptor = "(Ljava/lang/Object;Ljava/lang/Object;)V";
	m.flags = STATIC;
	assert_int_equal(rewrite(&m, &hook).r, 0);
	build(&b, &m);
	w.size = b.size;
	assert_false(class_declares(&w));
}

#define CALL_END 88 /* where the constant of the call ends */

/* What a class calls: an interface's method, by the constants alone. */
static void test_calls(void **state)
{
	const uint8_t code[] = {0xb1};
	struct method m = {.descriptor = "(I)V", .max_locals = 2, .code = code, .code_size = 1};
	struct class_reference wanted = {"java/lang/Object", "run", "()V"};
	struct class_constants constants;
	struct builder b;

	(void)state;
	build(&b, &m);
	constants = class_constants(b.bytes, b.size);
	assert_true(class_calls(&constants, &wanted));
	wanted.owner = "java/lang/Objec";
	assert_false(class_calls(&constants, &wanted));
	/* It is a string there, and no class. */
	wanted.owner = "StackMapTable";
	assert_false(class_calls(&constants, &wanted));
	wanted = (struct class_reference){"java/lang/Object", "m", "()V"};
	assert_false(class_calls(&constants, &wanted));
	wanted = (struct class_reference){"java/lang/Object", "run", "()I"};
	assert_false(class_calls(&constants, &wanted));
	/* Cut off before the call is told. */
	wanted = (struct class_reference){"java/lang/Object", "run", "()V"};
	constants = class_constants(b.bytes, CALL_END);
	assert_true(class_calls(&constants, &wanted));
	for (size_t size = 0; size < CALL_END; size++) {
		constants = class_constants(b.bytes, size);
		assert_false(class_calls(&constants, &wanted));
	}
}

static void test_left_alone(void **state)
{
	static const struct class_hook second = {
		.method = "m",
		.exit = {.method = "see", .descriptor = "(Ljava/lang/Object;)V", .loads = "a1"},
	};
	static const struct class_hook super = {
		.method = "<init>",
		.entry = {{.method = "see", .descriptor = "(Ljava/lang/Object;)V", .loads = "a0"}},
	};
	const uint8_t stores[] = {0x01, 0x4c, 0xb1}; /* aconst_null, astore_1, return */
	struct method m = {.descriptor = "(Ljava/lang/Object;)V",
			   .max_stack = 1,
			   .max_locals = 2,
			   .code = stores,
			   .code_size = sizeof(stores)};

	(void)state;
	/* The parameter is another one by then. */
	assert_int_equal(rewrite(&m, &second).r, 0);
	/* There is no such parameter. */
	m.descriptor = "(I)V";
	assert_int_equal(rewrite(&m, &second).r, 0);
	m.name = "<init>";
	assert_int_equal(rewrite(&m, &super).r, 0);
	/* Another method. */
	m.name = "n";
	assert_int_equal(rewrite(&m, &both).r, 0);
}

/* A jump reaches 32,767 bytes; with a call on its way it would have to reach further. */
static void test_far_jump(void **state)
{
	static uint8_t code[32768];
	struct method m = {
		.descriptor = "()V", .flags = STATIC, .code = code, .code_size = sizeof(code)};
	struct result result;

	(void)state;
	memcpy(code, "\247\177\377", 3); /* goto */
	code[32767] = 0xb1;
	result = rewrite(&m, &both);
	assert_int_equal(result.r, 1);
	assert_memory_equal(result.code + 3, "\247\177\377", 3);
	free(result.bytes);
	code[10] = 0xb1;
	assert_int_equal(rewrite(&m, &both).r, 0);
}

static void test_cut(void **state)
{
	const uint8_t code[] = {0x03, 0xac};
	struct method m = {.descriptor = "()I",
			   .flags = STATIC,
			   .max_stack = 1,
			   .code = code,
			   .code_size = sizeof(code)};
	struct class_rewrite w = {.hooks = &both, .n_hooks = 1, .owner = "a/B"};
	struct builder b;
	size_t size;
	uint32_t found;

	(void)state;
	build(&b, &m);
	for (size_t cut = 0; cut < b.size; cut++) {
		uint8_t *exact = malloc(cut + 1), *out = NULL;

		memcpy(exact, b.bytes, cut);
		w.bytes = exact;
		w.size = cut;
		assert_int_equal(class_rewrite(&w, &out, &size, &found), -EBADMSG);
		assert_null(out);
		free(exact);
	}
}

/* An instruction that there is not, one that is cut, a jump into the middle of another. */
static void test_broken_code(void **state)
{
	static const uint8_t codes[][4] = {
		{0xca, 0xb1, 0, 0}, {0xb1, 0, 0, 0xb8}, {0xa7, 0, 1, 0xb1}, {0xaa, 0, 0, 0}};
	struct method m = {.descriptor = "()V", .flags = STATIC, .code_size = 4};

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		m.code = codes[i];
		assert_int_equal(rewrite(&m, &both).r, -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entry_and_exit),
		cmocka_unit_test(test_argument_replaced),
		cmocka_unit_test(test_result),
		cmocka_unit_test(test_jumps),
		cmocka_unit_test(test_finally),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_call_site),
		cmocka_unit_test(test_call_site_in_loop),
		cmocka_unit_test(test_open_hook),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_left_alone),
		cmocka_unit_test(test_far_jump),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_broken_code),
		cmocka_unit_test(test_thrown),
		cmocka_unit_test(test_call_site_in_large_method),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
