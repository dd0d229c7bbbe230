/*
 * What the parts of the rewriter share. classfile.c has bytes, constants and the class;
 * classfile_code.c the instructions of one method, classfile_calls.c the calls that go into it,
 * classfile_tables.c what stands behind the instructions.
 */
#pragma once

#include "classfile.h"

/* Bytes to read. Whoever reads past the end gets zeroes, and 'is_bad' stays set. */
struct class_input {
	const uint8_t *bytes;
	size_t size;
	size_t at;
	bool is_bad;
};

/* Bytes written. When memory runs out 'is_bad' stays set, and what is written is lost. */
struct class_output {
	uint8_t *bytes;
	size_t size;
	size_t room;
	bool is_bad;
};

uint8_t class_read_u1(struct class_input *in);
uint16_t class_read_u2(struct class_input *in);
uint32_t class_read_u4(struct class_input *in);
/* NULL if there are not so many. */
const uint8_t *class_read(struct class_input *in, size_t size);

void class_write_u1(struct class_output *out, uint8_t value);
void class_write_u2(struct class_output *out, uint16_t value);
void class_write_u4(struct class_output *out, uint32_t value);
void class_write(struct class_output *out, const void *bytes, size_t size);
void class_put_u2(struct class_output *out, size_t at, uint16_t value);
void class_put_u4(struct class_output *out, size_t at, uint32_t value);

/* A class that is rewritten. */
struct class_file {
	const uint8_t *bytes;
	size_t size;
	uint16_t major;
	uint32_t *constants; /* where each begins, by its index; 0: there is none */
	uint16_t n_constants;
	/* Behind those of the class; counted on from its own. */
	struct class_output added;
	uint32_t n_all; /* more than UINT16_MAX: there is no room for one of them */
	const char *owner;
	const struct class_site *site;
	uint16_t site_before, site_before_in_loop, site_after; /* as constants; 0: not yet */
	uint16_t site_caught;
};

/* Whether the constant is that string of modified UTF-8. */
bool class_is_text(const struct class_file *c, uint16_t index, const char *text);
/* Copies the string to 'ret', NUL terminated; false: it is none, or longer than that. */
bool class_text(const struct class_file *c, uint16_t index, char *ret, size_t size);

/* Whether the constant is the site's method of an interface. */
bool class_is_site(const struct class_file *c, uint16_t index);

/* Adds constants; the index is of no use once 'n_all' is too large. */
uint16_t class_add_text(struct class_file *c, const char *text, size_t length);
uint16_t class_add_class(struct class_file *c, const char *name, size_t length);
uint16_t class_add_method(struct class_file *c, const struct class_call *call);

/* A method whose code is rewritten. */
struct class_method {
	const struct class_hook *hook; /* NULL: only for the calls in it */
	char descriptor[1024];
	bool is_static;
	bool is_constructor;
	bool is_initialiser;
};

/* JVMS 6.5: those that are made, or have operands that move. */
enum class_opcode {
	OP_ILOAD = 21, /* then l, f, d, a */
	OP_ILOAD_0 = 26,
	OP_ISTORE = 54,
	OP_ISTORE_0 = 59,
	OP_ASTORE_3 = 78,
	OP_POP = 87,
	OP_POP2,
	OP_DUP,
	OP_DUP2 = 92,
	OP_IINC = 132,
	OP_IFEQ = 153,
	OP_JSR = 168,
	OP_RET,
	OP_TABLESWITCH,
	OP_LOOKUPSWITCH,
	OP_IRETURN, /* then l, f, d, a */
	OP_RETURN = 177,
	OP_INVOKESTATIC = 184,
	OP_INVOKEINTERFACE,
	OP_ATHROW = 191,
	OP_CHECKCAST,
	OP_WIDE = 196,
	OP_IFNULL = 198,
	OP_IFNONNULL,
	OP_GOTO_W,
	OP_JSR_W,
	OP_MAX = OP_JSR_W,
};

/* A value's kind: the letter of its instructions, in the order of these. */
static const char class_kinds[] = "ilfda";

#define CLASS_CODE_MAX   65535
#define CLASS_LOCALS_MAX 256 /* parameters take at most 255 (JVMS 4.3.3) */
#define CLASS_NOWHERE    UINT32_MAX

/* A type of a descriptor, and how long it is there. */
struct class_type {
	const char *text;
	size_t length;
	char kind; /* 'v': void */
};

/* Parameters by local variable, kind 0 where none begins; and what is returned. */
struct class_signature {
	struct class_type locals[CLASS_LOCALS_MAX];
	uint32_t n_locals;
	struct class_type result;
};

/* The body of a method, before and behind. */
struct class_body {
	struct class_file *class;
	const struct class_method *method;
	struct class_hook hook; /* what of the method's hook and of its calls goes into it */
	const uint8_t *code;
	uint32_t size;
	uint32_t max_stack, max_locals;
	uint32_t *
		target; /* by old position: where who jumps there goes; CLASS_NOWHERE: no instruction */
	uint32_t *place;  /* likewise: where the instruction itself is */
	uint8_t *sites;   /* by old position, enum class_site_kind */
	uint8_t *catches; /* likewise: whether what such a call throws is caught there */
	bool stores[CLASS_LOCALS_MAX]; /* the variable gets another value somewhere */
	struct class_signature signature;
	uint8_t *exit; /* what goes before each return */
	uint32_t exit_size, exit_stack, entry_stack;
	uint32_t entry_size;
	uint32_t handler; /* new position of the one that catches everything; CLASS_NOWHERE: none */
	uint16_t throwable; /* the class, as a constant */
	struct class_type handler_result;
	struct class_output new;
};

enum class_site_kind {
	SITE_NONE,
	SITE_PLAIN,
	SITE_IN_LOOP,
};

/* The calls around one in the method: the object is loaded twice. */
#define CLASS_SITE_BEFORE 4
#define CLASS_SITE_AFTER  3
#define CLASS_SITE_CAUGHT 3

/* How many places a value of the kind takes. */
static inline uint32_t class_kind_slots(char kind)
{
	return kind == 'l' || kind == 'd' ? 2 : 1;
}

static inline uint32_t class_max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* False: it is none. */
bool class_signature_read(const char *descriptor, bool is_static, struct class_signature *ret);

/*
 * The calls at the entry go to 'b->new', those at the exits to 'exit'. False: the method does not have
 * what the hook wants.
 */
bool class_write_calls(struct class_body *b, struct class_output *exit);

void class_write_site_before(struct class_body *b, enum class_site_kind kind);
void class_write_site_after(struct class_body *b);
void class_write_site_caught(struct class_body *b);

/* Catches what the method throws, tells of the exit, and throws it on; if the hook wants it. */
void class_write_handler(struct class_body *b);

/*
 * Exception table and attributes, once all is placed. Returns 1, 0 if the method has to stay as it is,
 * or -EBADMSG, -ENOMEM.
 */
int class_write_tables(struct class_body *b, struct class_input *in, struct class_output *out);

/*
 * Writes the content of a Code attribute, with the hook's calls. Returns 1; 0 if it has to stay as it
 * is, with anything written; or -EBADMSG, -ENOMEM.
 */
int class_rewrite_code(struct class_file *c, const struct class_method *m, struct class_input *code,
		       struct class_output *out);
