/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * How the kernel side is cut into pieces that the verifier looks at one by one: SUBPROGRAMn() begins
 * a global function of n arguments, STEP() the body of a loop, which LOOP_STEPS() runs. A global
 * function is verified once, by itself, and not again in every state of every caller; without them
 * a tap took 630,000 verified instructions, of a million allowed. They must allow for NULL and
 * return an int.
 *
 * BASIC is defined where a program must do with what Linux 5.10 has, or with what kprobes may use
 * (docs/decisions/basic.md). Global functions take numbers only there, so what is behind a pointer
 * is looked up again by its handle; there is no bpf_loop(), so a loop is a loop of calls; and
 * kernel memory is read by a helper. The text of the functions is the same. On the host (unit
 * tests) it is plain C.
 */
#pragma once

#ifndef __BPF__
#define SUBPROGRAM static inline __attribute__((unused))
#elif !defined(BASIC)
#define SUBPROGRAM __attribute__((noinline))
#endif

#ifndef BASIC
#define SUBPROGRAM1(name, A, a)                         SUBPROGRAM int name(A a)
#define SUBPROGRAM2(name, A, a, B, b)                   SUBPROGRAM int name(A a, B b)
#define SUBPROGRAM3(name, A, a, B, b, C, c)             SUBPROGRAM int name(A a, B b, C c)
#define SUBPROGRAM4(name, A, a, B, b, C, c, D, d)       SUBPROGRAM int name(A a, B b, C c, D d)
#define SUBPROGRAM5(name, A, a, B, b, C, c, D, d, E, e) SUBPROGRAM int name(A a, B b, C c, D d, E e)

struct step {
	struct work *w;
	struct conn *c;
};

/* The body of a loop: is given 'w' and 'c', returns non-zero to end it. */
#define STEP(name)                                                               \
	static __always_inline long name##_body(struct work *w, struct conn *c); \
	static long name(__u32 i, struct step *s)                                \
	{                                                                        \
		return name##_body(s->w, s->c);                                  \
	}                                                                        \
	static __always_inline long name##_body(struct work *w, struct conn *c)

#define LOOP_STEPS(max, name, work, conn)                    \
	do {                                                 \
		struct step s_ = {.w = (work), .c = (conn)}; \
		bpf_loop(max, name, &s_, 0);                 \
	} while (0)

/* A body of a few lines, which is given 'i' and a context of its own. */
#define SMALL_STEP                 static long
#define LOOP_SMALL(max, name, ctx) bpf_loop(max, name, ctx, 0)

#else /* BASIC */

#define SUBPROGRAM __attribute__((noinline))

struct work;
struct conn;
struct stream;
struct scan;
struct head_facts;

/* By map lookups, NULL if there is no such thing (any more); in socket.bpf.h. */
static __always_inline struct work *work_at(__u64 handle);
static __always_inline const struct scan *scan_at(__u64 handle);
static __always_inline struct conn *conn_at(__u64 handle);
static __always_inline const struct conn *const_conn_at(__u64 handle);
static __always_inline struct stream *stream_at(__u64 handle);
static __always_inline struct head_facts *facts_at(__u64 handle);
static __always_inline __u64 work_handle(const struct work *w);
static __always_inline __u64 scan_handle(const struct scan *scan);
static __always_inline __u64 conn_handle(const struct conn *c);
static __always_inline __u64 stream_handle(const struct stream *s);
static __always_inline __u64 facts_handle(const struct head_facts *f);

static __always_inline __u64 same_number(__u64 number)
{
	return number;
}

/* clang-format off */
#define TO_HANDLE(x)                               \
	_Generic((x), struct work *: work_handle,  \
		const struct scan *: scan_handle,  \
		struct scan *: scan_handle,        \
		struct conn *: conn_handle,        \
		const struct conn *: conn_handle,  \
		struct stream *: stream_handle,    \
		struct head_facts *: facts_handle, \
		default: same_number)(x)

#define FROM_HANDLE(T, x)                          \
	_Generic((T)0, struct work *: work_at,     \
		const struct scan *: scan_at,      \
		struct conn *: conn_at,            \
		const struct conn *: const_conn_at, \
		struct stream *: stream_at,        \
		struct head_facts *: facts_at,     \
		default: same_number)(x)
/* clang-format on */

#define SUBPROGRAM_(name, arguments, numbers, from, to)   \
	static __always_inline int name##_body arguments; \
	__attribute__((noinline)) int name##_sub numbers  \
	{                                                 \
		return name##_body from;                  \
	}                                                 \
	static __always_inline int name arguments         \
	{                                                 \
		return name##_sub to;                     \
	}                                                 \
	static __always_inline int name##_body arguments

#define SUBPROGRAM1(name, A, a) \
	SUBPROGRAM_(name, (A a), (__u64 a), (FROM_HANDLE(A, a)), (TO_HANDLE(a)))
#define SUBPROGRAM2(name, A, a, B, b)                                                             \
	SUBPROGRAM_(name, (A a, B b), (__u64 a, __u64 b), (FROM_HANDLE(A, a), FROM_HANDLE(B, b)), \
		    (TO_HANDLE(a), TO_HANDLE(b)))
#define SUBPROGRAM3(name, A, a, B, b, C, c)                                    \
	SUBPROGRAM_(name, (A a, B b, C c), (__u64 a, __u64 b, __u64 c),        \
		    (FROM_HANDLE(A, a), FROM_HANDLE(B, b), FROM_HANDLE(C, c)), \
		    (TO_HANDLE(a), TO_HANDLE(b), TO_HANDLE(c)))
#define SUBPROGRAM4(name, A, a, B, b, C, c, D, d)                                                 \
	SUBPROGRAM_(name, (A a, B b, C c, D d), (__u64 a, __u64 b, __u64 c, __u64 d),             \
		    (FROM_HANDLE(A, a), FROM_HANDLE(B, b), FROM_HANDLE(C, c), FROM_HANDLE(D, d)), \
		    (TO_HANDLE(a), TO_HANDLE(b), TO_HANDLE(c), TO_HANDLE(d)))
#define SUBPROGRAM5(name, A, a, B, b, C, c, D, d, E, e)                                          \
	SUBPROGRAM_(name, (A a, B b, C c, D d, E e),                                             \
		    (__u64 a, __u64 b, __u64 c, __u64 d, __u64 e),                               \
		    (FROM_HANDLE(A, a), FROM_HANDLE(B, b), FROM_HANDLE(C, c), FROM_HANDLE(D, d), \
		     FROM_HANDLE(E, e)),                                                         \
		    (TO_HANDLE(a), TO_HANDLE(b), TO_HANDLE(c), TO_HANDLE(d), TO_HANDLE(e)))

#define STEP(name) SUBPROGRAM2(name, struct work *, w, struct conn *, c)
#define LOOP_STEPS(max, name, work, conn)    \
	for (__u32 i_ = 0; i_ < (max); i_++) \
		if (name(work, conn))        \
	break

#define SMALL_STEP static __always_inline long
#define LOOP_SMALL(max, name, ctx)           \
	for (__u32 i_ = 0; i_ < (max); i_++) \
		if (name(i_, ctx))           \
	break
#endif
