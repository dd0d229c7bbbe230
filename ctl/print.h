/*
 * The daemon's answers as a person reads them. Called by tsunagictl.c; a member that is missing or
 * of another type shows as absent, so that programs of different versions get along.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

struct print_options {
	bool shows_all;  /* counters: also those that are zero */
	bool is_for_one; /* processes: one was asked for, show all of it */
};

typedef void (*print_fn)(const cJSON *answer, const struct print_options *options, FILE *out);

void print_status(const cJSON *answer, const struct print_options *options, FILE *out);
void print_processes(const cJSON *answer, const struct print_options *options, FILE *out);
void print_traces(const cJSON *answer, const struct print_options *options, FILE *out);
void print_trace(const cJSON *answer, const struct print_options *options, FILE *out);
void print_doctor(const cJSON *answer, const struct print_options *options, FILE *out);
void print_counters(const cJSON *answer, const struct print_options *options, FILE *out);

/* The answer's own text, indented: numbers stay digit for digit what the daemon wrote. */
void print_json(const char *text, FILE *out);
