/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The kernel's types, declared by us: only the fields that we read, found at load time by CO-RE
 * relocations. So the BPF objects build on a machine without BTF and this file names all that we
 * depend on.
 */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum; /* libbpf names it */
typedef _Bool bool;
enum { false = 0, true = 1 };

#define NULL ((void *)0)

#define AF_INET       2
#define AF_INET6      10
#define IPPROTO_TCP   6
#define IPPROTO_MPTCP 262

#define MSG_OOB      0x1
#define MSG_PEEK     0x2
#define MSG_TRUNC    0x20
#define MSG_DONTWAIT 0x40
#define MSG_ERRQUEUE 0x2000

/* include/net/tcp.h */
#define TCP_NAGLE_OFF 1

/* include/net/tcp_states.h */
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT    2
#define TCP_SYN_RECV    3
#define TCP_FIN_WAIT1   4
#define TCP_CLOSE       7
#define TCP_CLOSE_WAIT  8
#define TCP_LAST_ACK    9
#define TCP_LISTEN      10

/* include/uapi/asm-generic/fcntl.h; of both architectures */
#define O_NONBLOCK 04000

#define RCV_SHUTDOWN  1
#define SEND_SHUTDOWN 2

/* include/linux/sched.h, since 5.12: io_uring's own threads */
#define PF_IO_WORKER 0x10

/* include/uapi/linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_SOCKHASH = 18,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};
#define BPF_ANY                     0
#define BPF_NOEXIST                 1
#define BPF_F_NO_PREALLOC           1
#define BPF_SK_STORAGE_GET_F_CREATE 1
#define BPF_RB_NO_WAKEUP            1
#define BPF_RB_FORCE_WAKEUP         2
#define BPF_RB_AVAIL_DATA           0
#define BPF_RB_RING_SIZE            1

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__u8 u6_addr8[16];
	} in6_u;
};

typedef struct {
	struct net *net;
} possible_net_t;

typedef struct {
	__s64 counter;
} atomic64_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	__u16 skc_family;
	unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	struct proto *skc_prot;
	possible_net_t skc_net;
	atomic64_t skc_cookie;
	unsigned long skc_flags;
};

struct proto {
	unsigned long *memory_pressure;
};

struct netns_ipv4 {
	unsigned int sysctl_tcp_notsent_lowat;
};

struct net {
	struct netns_ipv4 ipv4;
};

enum sock_flags { SOCK_ZEROCOPY };

struct socket {
	struct file *file;
};

struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
	__u16 sk_protocol;
	__u8 sk_shutdown;
	int sk_err;
	int sk_wmem_queued;
	int sk_sndbuf;
	int sk_forward_alloc;
	void *sk_memcg;
	void *sk_user_data;
};

struct inet_connection_sock {
	const void *icsk_ulp_ops;
};

struct sk_buff {
	unsigned int len;
};

struct tcp_sock {
	__u32 write_seq;
	__u32 copied_seq;
	__u32 rcv_nxt;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 notsent_lowat;
	__u8 nonagle : 4;
	__u8 repair : 1;
	__u64 bytes_received;
	__u64 bytes_acked;
};

struct iovec {
	void *iov_base;
	unsigned long iov_len;
};

enum iter_type { ITER_UBUF, ITER_IOVEC };

struct iov_iter {
	__u8 iter_type;
	unsigned long iov_offset;
	unsigned long count;
	unsigned long nr_segs;
	const struct iovec *__iov;
	void *ubuf;
};

struct iov_iter___before_6_4 {
	const struct iovec *iov;
};

struct iov_iter___before_5_14 {
	unsigned int type; /* enum iter_type, and the direction in the lowest bit */
};

struct msghdr {
	struct iov_iter msg_iter;
	unsigned int msg_flags;
};

struct scatterlist {
	unsigned int length;
};

struct sk_msg_sg {
	__u32 start, end;
	struct scatterlist data[1];
};

struct list_head {
	struct list_head *next, *prev;
};

struct bpf_map {
	__u32 id;
};

/* A map of sockets that has a socket. */
struct sk_psock_link {
	struct list_head list;
	struct bpf_map *map;
};

struct sk_psock {
	struct list_head link;
};

struct sk_msg {
	struct sk_msg_sg sg;
};

struct nsproxy {
	struct net *net_ns;
};

struct signal_struct {
	struct {
		int counter;
	} live;
};

struct thread_info {
	__u32 status;
};

struct thread_struct {
#if defined(__TARGET_ARCH_x86)
	unsigned long fsbase;
#elif defined(__TARGET_ARCH_arm64)
	struct {
		unsigned long tp_value;
	} uw;
#endif
};

struct sigaction {
	void *sa_handler;
};

struct k_sigaction {
	struct sigaction sa;
};

struct sighand_struct {
	struct k_sigaction action[64]; /* by signal, from 1 */
};

struct task_struct {
	void *io_uring;
	struct thread_info thread_info;
	unsigned int flags;
	int pid;
	int tgid;
	__u64 start_boottime;
	__u64 self_exec_id;
	struct task_struct *group_leader;
	struct nsproxy *nsproxy;
	struct signal_struct *signal;
	struct sighand_struct *sighand;
	void *stack;
	struct thread_struct thread;
};

struct super_block {
	__u32 s_dev;
};

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
	__u32 i_generation;
};

struct file {
	struct inode *f_inode;
	unsigned int f_flags;
};

struct vm_area_struct {
	unsigned long vm_start;
	struct file *vm_file;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_vma {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct vm_area_struct *vma;
};

/* The enumerators are the helpers that a kernel has. */
enum bpf_func_id { BPF_FUNC_task_pt_regs = 175 };

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r14;
	unsigned long r10;
	unsigned long bx;
	unsigned long r9;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs;
	unsigned long sp;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
};
struct pt_regs {
	__u64 regs[31];
	__u64 pc;
	__s32 syscallno;
};
#endif

#pragma clang attribute pop

/*
 * What programs for sockets are given, of include/uapi/linux/bpf.h: no structures of the running
 * kernel, so nothing of them is found by CO-RE.
 */
struct bpf_sock;

struct sk_msg_md {
	__u64 data, data_end; /* pointers */
	__u32 family;
	__u32 remote_ip4, local_ip4;
	__u32 remote_ip6[4], local_ip6[4];
	__u32 remote_port, local_port;
	__u32 size;
	struct bpf_sock *sk;
};

#define BPF_SOCK_OPS_TCP_CONNECT_CB        3
#define BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB 4

struct bpf_sock_ops {
	__u32 op;
	__u32 args[4];
	__u32 family;
	__u32 remote_ip4, local_ip4;
	__u32 remote_ip6[4], local_ip6[4];
	__u32 remote_port, local_port;
	__u32 is_fullsock;
	__u32 others[23];
	__u64 bytes_received, bytes_acked;
	struct bpf_sock *sk;
};

enum sk_action { SK_DROP, SK_PASS };

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/*
 * A field of a kernel structure. Tracing programs may read it as it stands; kprobes, which are given
 * plain numbers for addresses, must ask a helper (BASIC, subprogram.h).
 */
#ifdef BASIC
#define READ(p, field) BPF_CORE_READ(p, field)
#else
#define READ(p, field) ((p)->field)
#endif

static __always_inline struct task_struct *current_task(void)
{
#ifdef BASIC
	return (struct task_struct *)bpf_get_current_task();
#else
	return bpf_get_current_task_btf();
#endif
}

/* A kernel may be built without. */
static __always_inline bool uses_io_uring(void)
{
	struct task_struct *task = current_task();

	return bpf_core_field_exists(task->io_uring) && READ(task, io_uring);
}

/*
 * Where user code has the memory of its current thread; 0: not known. As the C library has set it: a
 * system call stores it with the task on x86, on arm64 the first switch to another task does.
 */
static __always_inline __u64 thread_pointer(void)
{
	struct task_struct *task = current_task();

#if defined(__TARGET_ARCH_x86)
	return bpf_core_field_exists(task->thread.fsbase) ? READ(task, thread.fsbase) : 0;
#elif defined(__TARGET_ARCH_arm64)
	return bpf_core_field_exists(task->thread.uw.tp_value) ? READ(task, thread.uw.tp_value) : 0;
#endif
}

#define KERNEL_STACK_BYTES 16384 /* of both architectures, with pages of 4 KB */

/*
 * The registers of the user code that made the current system call. Before Linux 5.15 they are
 * found where the stack begins. NULL: not known.
 */
static __always_inline const struct pt_regs *user_registers(void)
{
#ifdef BASIC
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) {
		__u64 stack = (__u64)READ(current_task(), stack);

		return (const struct pt_regs *)(stack + KERNEL_STACK_BYTES -
						bpf_core_type_size(struct pt_regs));
	}
#endif
	return (const struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
}
