/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Where the state of a socket lives, for core.bpf.h alone: socket_conn() finds it, socket_conn_new()
 * makes it, socket_drop() drops it. Two backends, chosen when the object is compiled:
 *
 * - the socket's own storage, which the kernel frees with it, and the socket cookie;
 * - BASIC: a hash by the address of the socket, and an id of our own. An entry is dropped when its
 *   socket is destroyed and when a socket begins a connection, so that none is taken for that of
 *   another socket at the same address.
 *
 * For BASIC also what subprogram.h asks for: handles of things in maps.
 */
#pragma once

#include "context.bpf.h"

/* NULL: not a whole TCP socket. */
static __always_inline struct tcp_sock *tcp_of(struct sock *sk)
{
#ifdef BASIC
	return (struct tcp_sock *)sk; /* where a tap is, and behind on_state()'s test, it is one */
#else
	return bpf_skc_to_tcp_sock(sk);
#endif
}

static __always_inline void conn_init(struct conn *c, struct sock *sk, __u64 id)
{
	c->cookie = id;
	c->family = READ(sk, __sk_common.skc_family);
	c->local_port = READ(sk, __sk_common.skc_num);
	c->remote_port = __builtin_bswap16(READ(sk, __sk_common.skc_dport));
	if (c->family == AF_INET) {
		__u32 local = READ(sk, __sk_common.skc_rcv_saddr),
		      remote = READ(sk, __sk_common.skc_daddr);

		__builtin_memcpy(c->local_address, &local, 4);
		__builtin_memcpy(c->remote_address, &remote, 4);
	} else {
		BPF_CORE_READ_INTO(&c->local_address, sk,
				   __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr8);
		BPF_CORE_READ_INTO(&c->remote_address, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr8);
	}
}

#ifndef BASIC

static __always_inline struct conn *socket_conn(struct sock *sk)
{
	return bpf_sk_storage_get(&conns, sk, 0, 0);
}

/* 'has_cookie': the socket has been given one, and the program cannot ask for it. */
static __always_inline struct conn *socket_conn_new(struct sock *sk, __u32 slot, bool has_cookie)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (c && !c->cookie)
		conn_init(c, sk,
			  has_cookie ? READ(sk, __sk_common.skc_cookie.counter)
				     : bpf_get_socket_cookie(sk));
	return c;
}

#else /* BASIC */

/* Connections given an id so far. */
__u64 connections_begun;

#define ID_COUNT_BITS 42

/*
 * An id that is never given twice: who asks, and a count that only rises. The count is added to and
 * then read, since Linux 5.10 cannot do both in one; two that read the same count are different
 * threads, and one thread never reads the same count again.
 */
static __always_inline __u64 new_id(void)
{
	__u64 tid = (__u32)bpf_get_current_pid_tgid();

	__sync_fetch_and_add(&connections_begun, 1);
	return tid << ID_COUNT_BITS |
	       (*(volatile __u64 *)&connections_begun & ((1ULL << ID_COUNT_BITS) - 1));
}

/* The lowest bit of a stream's handle, which the address of a socket has not. */
#define HANDLE_IS_TX  1ULL

static __always_inline struct conn *conn_at(__u64 handle)
{
	return handle ? bpf_map_lookup_elem(&conns, &handle) : NULL;
}

static __always_inline const struct conn *const_conn_at(__u64 handle)
{
	return conn_at(handle);
}

static __always_inline __u64 conn_handle(const struct conn *c)
{
	return c ? c->rx.handle : 0;
}

static __always_inline struct stream *stream_at(__u64 handle)
{
	struct conn *c = conn_at(handle & ~HANDLE_IS_TX);

	if (!c)
		return NULL;
	return handle & HANDLE_IS_TX ? &c->tx : &c->rx;
}

static __always_inline __u64 stream_handle(const struct stream *s)
{
	return s->handle;
}

static __always_inline struct head_facts *facts_at(__u64 handle)
{
	struct stream *s = stream_at(handle);

	return s ? &s->facts : NULL;
}

static __always_inline __u64 facts_handle(const struct head_facts *f)
{
	return ((const struct stream *)((const char *)f - __builtin_offsetof(struct stream, facts)))
		->handle;
}

static __always_inline struct work *work_at(__u64 handle)
{
	__u32 slot = handle;

	return bpf_map_lookup_elem(&works, &slot);
}

static __always_inline __u64 work_handle(const struct work *w)
{
	return w->slot;
}

static __always_inline const struct scan *scan_at(__u64 handle)
{
	const struct work *w = work_at(handle);

	return w ? &w->scan : NULL;
}

static __always_inline __u64 scan_handle(const struct scan *scan)
{
	return ((const struct work *)scan)->slot;
}

_Static_assert(__builtin_offsetof(struct work, scan) == 0, "a scan is the head of its work");
_Static_assert(sizeof(struct conn) <= sizeof(struct scan), "a connection is drawn up in a scan");

static __always_inline struct conn *socket_conn(struct sock *sk)
{
	__u64 key = (__u64)sk;

	return bpf_map_lookup_elem(&conns, &key);
}

/* 'slot': of scratch memory that is the caller's own, where the entry is drawn up. */
static __always_inline struct conn *socket_conn_new(struct sock *sk, __u32 slot, bool has_cookie)
{
	struct work *w = bpf_map_lookup_elem(&works, &slot);
	struct conn *c;
	__u64 key;

	/* As a number: before Linux 6.1 the verifier lets nothing be added to a pointer. */
	bpf_probe_read_kernel(&key, sizeof(key), &sk);
	c = bpf_map_lookup_elem(&conns, &key);
	if (c || !w)
		return c;
	c = (struct conn *)w->scan.bytes;
	__builtin_memset(c, 0, sizeof(*c));
	conn_init(c, sk, new_id());
	c->rx.handle = key;
	c->tx.handle = key | HANDLE_IS_TX;
	/* Another thread may have been first with the same socket: then its entry is the one. */
	bpf_map_update_elem(&conns, &key, c, BPF_NOEXIST);
	return bpf_map_lookup_elem(&conns, &key);
}

static __always_inline void socket_drop(struct sock *sk)
{
	__u64 key = (__u64)sk;

	bpf_map_delete_elem(&conns, &key);
}

#endif
