/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Which file the kernel has really mapped where a file was mapped: behind a file of an overlay there
 * is that of a layer, which all overlays with the layer share, and which probes sit in. No number
 * that user space is shown names it. probe/real_file.c maps a file and runs this over its own
 * process, and no other.
 */
#include "abi.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Written by user space: whose mapping, and where it begins. */
volatile __u32 wanted_pid;
volatile __u64 wanted_start;

/* Before Linux 6.1 there is no way to ask for one process: this then goes through all of them. */
volatile __u32 sees_others;

SEC("iter/task_vma")
int mapped_file(struct bpf_iter__task_vma *ctx)
{
	struct vm_area_struct *vma = ctx->vma;
	struct task_struct *task = ctx->task;
	struct mapped_file found = {};
	struct inode *inode;

	if (!task || !vma)
		return 0;
	if ((__u32)task->tgid != wanted_pid) {
		sees_others = 1;
		return 0;
	}
	if (vma->vm_start != wanted_start || !vma->vm_file)
		return 0;
	inode = vma->vm_file->f_inode;
	found.address = (__u64)inode;
	found.number = inode->i_ino;
	found.device = inode->i_sb->s_dev;
	found.generation = inode->i_generation;
	bpf_seq_write(ctx->meta->seq, &found, sizeof(found));
	return 0;
}
