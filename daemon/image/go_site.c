/*
 * Probe sites; see go_site.h. What the compiler makes of a function's start (cmd/internal/obj/x86
 * and arm64, obj6.go and obj7.go, "stacksplit"), with R14 (arm64 R28) the goroutine:
 *
 *	amd64	[LEAQ -frame(SP), R12]  CMPQ SP|R12, 16(R14)  JLS morestack  [PUSHQ BP]
 *	arm64	MOVD 16(g), R16  [R17 = RSP - frame]  CMP R16, RSP|R17  BLS morestack
 *
 * with 24 instead of 16 in functions that run on the system stack.
 *
 * The jump of the check, and a push that follows it, are emulated by the kernel (x86's
 * uprobes.c, arm64's simulate-insn.c); most other instructions are single-stepped at many times
 * the price. Everything else that may stand there (frames larger than StackBig, functions without
 * a check) leaves the body: the first instruction at which the stack is deeper than at the start,
 * which the function's own table tells.
 */
#include "image/go_site.h"

#include <elf.h>

#include "base/table.h"

#define START_BYTES     64
#define CODE_BYTES_MAX  (1 << 20) /* of a function; the largest seen has 30 KB */
#define CODE_PART_BYTES 4096      /* that are looked through at a time */
#define PADDING_BYTES   32        /* of NOPs before a RET */

#define A64_RET 0xd65f03c0U

static bool is_arm64(const struct go_file *file)
{
	return go_file_image(file)->machine == EM_AARCH64;
}

static struct go_site no_site(const char *reason)
{
	return (struct go_site){.reason = reason};
}

/* Offsets from the function's start; SIZE_MAX: not understood. */
struct prologue {
	size_t jump;     /* of the stack check */
	size_t after;    /* the instruction after it */
	uint64_t target; /* of the jump: an address */
};

/* --- amd64 */

/* The start of an amd64 function; false: another one. */
static bool read_prologue_amd64(const uint8_t *p, size_t n, struct prologue *ret)
{
	size_t at = 0;

	if (n < 32)
		return false;
	if (memcmp(p, "\x4c\x8d\x64\x24", 4) == 0) /* LEAQ disp8(SP), R12 */
		at = 5;
	else if (memcmp(p, "\x4c\x8d\xa4\x24", 4) == 0) /* LEAQ disp32(SP), R12 */
		at = 8;
	/* CMPQ SP, 16(R14), or CMPQ R12, 16(R14) */
	if (memcmp(p + at, at > 0 ? "\x4d\x3b\x66" : "\x49\x3b\x66", 3) != 0 ||
	    (p[at + 3] != 16 && p[at + 3] != 24))
		return false;
	at += 4;
	ret->jump = at;
	if (p[at] == 0x76) { /* JLS rel8 */
		ret->after = at + 2;
		ret->target = ret->after + (uint64_t)(int8_t)p[at + 1];
		return true;
	}
	if (p[at] == 0x0f && p[at + 1] == 0x86) { /* JLS rel32 */
		ret->after = at + 6;
		ret->target = ret->after + (uint64_t)(int32_t)get_le32(p + at + 2);
		return true;
	}
	return false;
}

/* The length of a NOP that fills up space, 0 when there is none; 'p' has 16 bytes. */
static size_t nop_length(const uint8_t *p)
{
	size_t at = 0;
	uint8_t modrm;

	while (at < 3 && (p[at] == 0x66 || p[at] == 0x2e))
		at++;
	if (p[at] == 0x90)
		return at + 1;
	if (p[at] != 0x0f || p[at + 1] != 0x1f)
		return 0;
	modrm = p[at + 2];
	if (modrm >> 6 == 3)
		return 0;
	return at + 3 + ((modrm & 7) == 4) + (modrm >> 6 == 1 ? 1 : modrm >> 6 == 2 ? 4 : 0);
}

/*
 * Does an instruction that makes the frame end at 'end'? PUSHQ BP, SUBQ $n, SP, or ADDQ $-128, SP.
 */
static bool is_frame_made_amd64(const uint8_t *p, size_t end)
{
	return (end >= 1 && p[end - 1] == 0x55) ||
	       (end >= 4 && memcmp(p + end - 4, "\x48\x83\xec", 3) == 0) ||
	       (end >= 4 && memcmp(p + end - 4, "\x48\x83\xc4\x80", 4) == 0) ||
	       (end >= 7 && memcmp(p + end - 7, "\x48\x81\xec", 3) == 0);
}

/* --- arm64 */

static bool is_between_arm64(uint32_t word)
{
	return word == 0x910003f1 ||                /* MOVD RSP, R17 */
	       (word & 0xff8003ff) == 0xd10003f1 || /* SUB $n, RSP, R17 */
	       (word & 0xff8003ff) == 0xd1000231 || /* SUB $n, R17, R17 */
	       (word & 0xff80001f) == 0xd280001b || /* MOVD $n, R27 */
	       (word & 0xff80001f) == 0xf280001b || /* MOVK $n, R27 */
	       word == 0xcb3b63f1;                  /* SUB R27, RSP, R17 */
}

static bool read_prologue_arm64(const uint8_t *p, size_t n, struct prologue *ret)
{
	/* MOVD 16(g), R16, or MOVD 24(g), R16 */
	if (n < 32 || (get_le32(p) != 0xf9400b90 && get_le32(p) != 0xf9400f90))
		return false;
	for (size_t at = 4; at + 8 <= n; at += 4) {
		uint32_t word = get_le32(p + at), jump = get_le32(p + at + 4);

		if (is_between_arm64(word))
			continue;
		/* CMP R16, RSP, or CMP R16, R17 */
		if (word != (at == 4 ? 0xeb3063ffU : 0xeb10023fU) ||
		    (jump & 0xff00001f) != 0x54000009)
			return false;
		ret->jump = at + 4;
		ret->after = at + 8;
		ret->target = ret->jump + (uint64_t)((int64_t)(int32_t)(jump << 8) >> 13) * 4;
		return true;
	}
	return false;
}

/* MOVD.W R30, -n(RSP), SUB $n, RSP, RSP, or MOVD R20, RSP ends at 'end'. */
static bool is_frame_made_arm64(const uint8_t *p, size_t end)
{
	uint32_t word = end >= 4 ? get_le32(p + end - 4) : 0;

	return (word & 0xffe00fff) == 0xf8000ffe || (word & 0xff8003ff) == 0xd10003ff ||
	       word == 0x9100029f;
}

/* --- the site at the start */

/* Where the stack first is deeper than at the start; ELF_SHORT: nowhere, or it is damaged. */
static int find_body(struct go_file *file, const struct go_table *table,
		     const struct go_function_entry *entry, uint64_t *ret_address)
{
	struct go_stack_range range;
	struct go_stack stack;
	int r;

	r = go_stack_open(file, table, entry, &stack);
	if (r)
		return r;
	while ((r = go_stack_next(&stack, &range)) == GO_STACK_RANGE) {
		if (range.depth < 0)
			return ELF_SHORT;
		if (range.depth > 0) {
			*ret_address = range.from;
			return 0;
		}
	}
	return r < 0 ? r : ELF_SHORT;
}

/* The site of a function without a stack check; 'body' is from its start. */
static struct go_site body_site(bool arm64, const uint8_t *start, uint64_t body)
{
	if (body == 0 || body >= START_BYTES ||
	    !(arm64 ? is_frame_made_arm64(start, body) : is_frame_made_amd64(start, body)))
		return no_site("the function begins like none of Go 1.17 to 1.27");
	if (!arm64 && body == 1)
		return (struct go_site){.class = GO_SITE_PUSH_BP};
	return (struct go_site){.class = GO_SITE_BODY, .offset = body};
}

/* The same with one; its table must agree that the frame is not made before. */
static struct go_site check_site(bool arm64, const uint8_t *start, const struct prologue *p,
				 uint64_t body)
{
	if (arm64)
		return body > p->jump
			       ? (struct go_site){.class = GO_SITE_STACK_B_LS, .offset = p->jump}
			       : no_site("the function's stack table is damaged");
	if (start[p->after] == 0x55 && body == p->after + 1)
		return (struct go_site){.class = GO_SITE_PUSH_BP, .offset = p->after};
	return body > p->after ? (struct go_site){.class = GO_SITE_STACK_JCC, .offset = p->jump}
			       : no_site("the function's stack table is damaged");
}

/*
 * The cheapest site; '*ret_slow' is where the jump of the stack check goes to, 0 without one.
 * 'ret->offset' is from the function's start.
 */
static int find_start_site(struct go_file *file, const struct go_table *table,
			   const struct go_function_entry *entry, struct go_site *ret,
			   uint64_t *ret_slow)
{
	uint64_t size = entry->end - entry->address, body;
	uint8_t start[START_BYTES] = {0};
	size_t n = MIN(size, START_BYTES);
	bool arm64 = is_arm64(file);
	struct prologue p;
	int r;

	*ret_slow = 0;
	r = go_file_read_address(file, entry->address, start, n);
	if (r == 0)
		r = find_body(file, table, entry, &body);
	if (r < 0)
		return r;
	if (r) {
		*ret = no_site("the function has no stack frame, or its stack table is damaged");
		return 0;
	}
	body -= entry->address;
	if (!(arm64 ? read_prologue_arm64(start, n, &p) : read_prologue_amd64(start, n, &p))) {
		*ret = body_site(arm64, start, body);
		return 0;
	}
	if (p.target <= p.after || p.target >= size) {
		*ret = no_site("the function's stack check jumps out of it");
		return 0;
	}
	*ret_slow = entry->address + p.target;
	*ret = check_site(arm64, start, &p, body);
	return 0;
}

/* --- returns */

/*
 * The RET at an address, after NOPs: '*ret_found' 0 when there is none. ELF_SHORT is no error
 * here.
 */
static int find_return_at(struct go_file *file, uint64_t address, uint64_t end, uint64_t *ret_found)
{
	uint8_t code[PADDING_BYTES + 16] = {0};
	size_t n = MIN(end - address, sizeof(code)), at = 0, step;
	int r;

	*ret_found = 0;
	r = go_file_read_address(file, address, code, n);
	if (r)
		return MIN(r, 0);
	if (is_arm64(file)) {
		if (n >= 4 && get_le32(code) == A64_RET)
			*ret_found = address;
		return 0;
	}
	while (at < PADDING_BYTES && (step = nop_length(code + at)) > 0)
		at += step;
	if (at < n && at <= PADDING_BYTES && code[at] == 0xc3)
		*ret_found = address + at;
	return 0;
}

/* The stack of a function is back where it began exactly at its RETs: 'slow' is no RET. */
static int find_returns(struct go_file *file, const struct go_table *table,
			const struct go_function_entry *entry, uint64_t slow,
			struct go_function_facts *facts)
{
	struct go_stack_range range;
	struct go_stack stack;
	int32_t depth = 0;
	unsigned int n = 0;
	int r, more;

	if (go_stack_open(file, table, entry, &stack)) {
		facts->no_returns_reason = "the function has no stack table";
		return 0;
	}
	while ((more = go_stack_next(&stack, &range)) == GO_STACK_RANGE) {
		bool is_back = depth > 0 && range.depth == 0;
		uint64_t address;

		depth = range.depth;
		if (!is_back)
			continue;
		r = find_return_at(file, range.from, entry->end, &address);
		if (r < 0)
			return r;
		if (address == 0 && slow >= range.from && slow < range.to)
			continue;
		if (address == 0 || n == GO_RETURNS_MAX) {
			facts->no_returns_reason =
				address == 0 ? "the function ends otherwise than by RET"
					     : "the function has too many RETs";
			return 0;
		}
		facts->returns[n++] = facts->offset + (address - entry->address);
	}
	if (more < 0)
		return more;
	if (more == GO_STACK_DAMAGED)
		facts->no_returns_reason = "the function's stack table is damaged";
	else if (n == 0)
		facts->no_returns_reason = "the function has no stack frame, or no RET";
	else
		facts->n_returns = n;
	return 0;
}

/* --- a function */

int go_site_hash_code(struct go_file *file, uint64_t offset, uint64_t size, uint64_t *ret_hash)
{
	uint8_t bytes[1024];
	uint64_t hash = size;

	for (uint64_t at = 0; at < size; at += sizeof(bytes)) {
		size_t n = MIN(sizeof(bytes), size - at);
		int r = go_file_read(file, offset + at, bytes, n);

		if (r)
			return r;
		hash = hash * 31 + table_hash(bytes, n);
	}
	*ret_hash = hash;
	return 0;
}

int go_site_find(struct go_file *file, const struct go_table *table,
		 const struct go_function_entry *entry, struct go_function_facts *facts)
{
	const struct elf_segment *segment =
		elf_image_segment_at(go_file_image(file), entry->address);
	uint64_t size = entry->end - entry->address, slow;
	const char *reason = NULL;
	int r;

	*facts = (struct go_function_facts){.is_found = entry->n > 0};
	if (entry->n == 0)
		reason = "not in the program";
	else if (entry->n > 1)
		reason = "several functions have this name";
	else if (size == 0 || size > CODE_BYTES_MAX || !segment || !segment->is_executable ||
		 size > segment->size - (entry->address - segment->address) ||
		 (is_arm64(file) && entry->address % 4 != 0))
		reason = "the function's code is not in an executable part of the file";
	if (reason) {
		facts->site = no_site(reason);
		facts->no_returns_reason = reason;
		return 0;
	}

	facts->address = entry->address;
	facts->size = size;
	facts->offset = segment->offset + (entry->address - segment->address);
	r = find_start_site(file, table, entry, &facts->site, &slow);
	if (r)
		return r;
	if (facts->site.class != GO_SITE_NONE)
		facts->site.offset += facts->offset;
	r = find_returns(file, table, entry, slow, facts);
	if (r)
		return r;
	r = go_site_hash_code(file, facts->offset, facts->size, &facts->code_hash);
	return MIN(r, 0);
}

/* --- calls */

struct calls {
	unsigned int n;
	uint64_t offset; /* of the last one, from the caller's start */
};

/* Those in a part of a function's code, which lies 'at' bytes into it. */
static void count_calls(bool arm64, const uint8_t *code, size_t n, uint64_t address, uint64_t at,
			uint64_t target, struct calls *calls)
{
	size_t step = arm64 ? 4 : 1, bytes = arm64 ? 4 : 5;

	for (size_t i = 0; i + bytes <= n; i += step) {
		uint64_t pc = address + at + i, to;
		uint32_t word = get_le32(code + i);

		if (arm64 ? word >> 26 != 0x25 : code[i] != 0xe8)
			continue;
		to = arm64 ? pc + (uint64_t)((int64_t)(int32_t)(word << 6) >> 6) * 4
			   : pc + 5 + (uint64_t)(int32_t)get_le32(code + i + 1);
		if (to != target)
			continue;
		calls->offset = at + i;
		calls->n++;
	}
}

/* All of them: 0, ELF_SHORT, or a negative errno. */
static int find_calls(struct go_file *file, const struct go_function_facts *caller,
		      const struct go_function_facts *callee, struct calls *ret)
{
	/* What one part ends with may be the start of a call. */
	const size_t overlap = is_arm64(file) ? 0 : 4;
	uint8_t code[CODE_PART_BYTES];

	*ret = (struct calls){0};
	for (uint64_t at = 0; at + overlap < caller->size; at += sizeof(code) - overlap) {
		size_t n = MIN(sizeof(code), caller->size - at);
		int r = go_file_read(file, caller->offset + at, code, n);

		if (r)
			return r;
		count_calls(is_arm64(file), code, n, caller->address, at, callee->address, ret);
	}
	return 0;
}

int go_site_count_calls(struct go_file *file, const struct go_function_facts *caller,
			const struct go_function_facts *callee, unsigned int *ret_n)
{
	struct calls calls;
	int r = find_calls(file, caller, callee, &calls);

	*ret_n = r ? 0 : calls.n;
	return MIN(r, 0);
}

int go_site_find_call(struct go_file *file, const struct go_function_facts *caller,
		      const struct go_function_facts *callee, enum go_site_class class,
		      struct go_site *ret_site)
{
	uint64_t length = class == GO_SITE_CALL ? 0 : is_arm64(file) ? 4 : 5;
	struct calls calls;
	int r;

	*ret_site = no_site("caller or callee is not in the program");
	if (caller->size == 0 || callee->size == 0)
		return 0;
	r = find_calls(file, caller, callee, &calls);
	if (r)
		return MIN(r, 0);
	if (calls.n == 0)
		*ret_site = no_site("the call is not in the caller (a build with a profile?)");
	else if (calls.n > 1)
		*ret_site = no_site("there are several such calls in the caller");
	else if (calls.offset + length >= caller->size)
		*ret_site = no_site("the caller ends with the call");
	else
		*ret_site = (struct go_site){.class = class,
					     .offset = caller->offset + calls.offset + length};
	return 0;
}
