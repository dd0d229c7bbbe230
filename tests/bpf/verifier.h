/*
 * How many instructions the verifier processed of each program, for test_tap.c: printed for the
 * tables that tests/vm/run writes, and held against a bound.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

/* BPF_LOG_STATS of the kernel's include/linux/bpf_verifier.h: nothing but the sums. */
#define VERIFIER_STATS 4
#define PROGRAMS_MAX   64
/* Of 1,000,000 (BPF_COMPLEXITY_LIMIT_INSNS): another clang and the next kernel need some room. */
#define INSTRUCTIONS_MAX 800000

static char verifier_logs[PROGRAMS_MAX][65536];

/*
 * For kernels before 5.16, whose bpf_prog_info does not tell it. Later ones are not asked so: 6.12
 * and 6.18 refuse some programs then, for want of room in the log (ENOSPC).
 */
static void ask_verifier(struct bpf_object *object)
{
	struct bpf_program *program;
	size_t i = 0;

	bpf_object__for_each_program(program, object)
	{
		assert_true(i < PROGRAMS_MAX);
		bpf_program__set_log_level(program, VERIFIER_STATS);
		bpf_program__set_log_buf(program, verifier_logs[i], sizeof(verifier_logs[i]));
		i++;
	}
}

/* 0: the log does not tell it. */
static unsigned int instructions_processed(const char *verifier_log)
{
	const char *at = strstr(verifier_log, "processed ");
	unsigned int n = 0;

	return at && sscanf(at, "processed %u insns", &n) == 1 ? n : 0;
}

/* 0: the kernel does not tell it. */
static unsigned int instructions_by_info(const struct bpf_program *program)
{
	struct bpf_prog_info info = {0};
	__u32 length = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length), 0);
	return info.verified_insns;
}

/* Prints it for the tables that tests/vm/run writes. */
static void expect_room(const struct bpf_program *program, const char *verifier_log)
{
	unsigned int n = instructions_by_info(program);

	if (!n)
		n = instructions_processed(verifier_log);
	printf("program: %s %u instructions verified\n", bpf_program__name(program), n);
	assert_in_range(n, 1, INSTRUCTIONS_MAX);
}
