/* SPDX-License-Identifier: Apache-2.0 */
/* One n x n mask, held as runs of active keys per query row: the canonical form that every reader
   writes and every pass reads. A band costs one run a row at any width, so a mask written in the
   language never becomes n x n bits. Runs of a row are sorted, disjoint and never touch. */
#pragma once
#include "masks/base/error.h"
#include <stdbool.h>
#include <stdint.h>

enum { PATTERN_MAX_N = 1 << 20 };
#define PATTERN_MAX_RUNS (UINT64_C(1) << 31)

struct run {
    uint32_t begin, end; /* keys begin .. end - 1, begin < end */
};

struct pattern {
    uint32_t n;
    uint64_t active;   /* number of (query, key) pairs that are on */
    uint64_t n_runs;   /* row[n] */
    uint64_t *row;     /* [n + 1]: runs of query i are run[row[i]] .. run[row[i + 1] - 1] */
    struct run *run;   /* [n_runs] */
    uint64_t hash;     /* XXH3 of n, row, run; equal patterns hash alike on every machine */
    uint64_t capacity; /* of run, while it is being built */
};

/* Building: rows in order 0 .. n - 1, runs of a row in ascending order; a run that touches the one
   before it is merged. pattern_row ends the current row. pattern_add returns false once
   PATTERN_MAX_RUNS would be passed. */
struct pattern *pattern_new(uint32_t n);
bool pattern_add(struct pattern *p, uint32_t row, uint32_t begin, uint32_t end);
void pattern_row(struct pattern *p, uint32_t row);
/* A whole row from bits: key j in bit j % 64 of words[j / 64]; bits from n on are ignored. */
bool pattern_add_bits(struct pattern *p, uint32_t row, const uint64_t *words);
struct pattern *pattern_finish(struct pattern *p); /* counts, hashes, trims; returns p */
void pattern_destroy(struct pattern *p);           /* null is fine */

/* The number of runs in a row of bits, whose bits from n on are 0. */
uint32_t pattern_count_runs(const uint64_t *words, uint32_t n);

/* Rows that are about to become a pattern. `what` begins the message where they cannot ("the mask has"), `remedy` ends it. */
struct pattern_rows {
    uint32_t n;
    uint64_t (*count)(void *context, uint32_t i); /* runs of row i */
    void *context;
    double held; /* bytes in use beside the pattern */
    const char *what, *remedy;
};

/* Estimates the runs from 61 rows, before memory is filled: a pattern has at most PATTERN_MAX_RUNS, and the machine's memory
   holds three copies (the mask, its transpose, and space to grow). */
int pattern_check_rows(const struct pattern_rows *s, struct error *e);
/* The error of rows with more than PATTERN_MAX_RUNS runs. */
int pattern_refuse_rows(const struct pattern_rows *s, double runs, struct error *e);

bool pattern_test(const struct pattern *p, uint32_t i, uint32_t j);
uint32_t pattern_row_active(const struct pattern *p, uint32_t i); /* active keys of query i */
bool pattern_equal(const struct pattern *a, const struct pattern *b);
double pattern_bytes(const struct pattern *p); /* of its memory */
struct pattern *pattern_copy(const struct pattern *p);
struct pattern *pattern_crop(const struct pattern *p, uint32_t n); /* top-left corner */

/* M[j][i]; null with *e set where the result would pass PATTERN_MAX_RUNS. */
struct pattern *pattern_transpose(const struct pattern *p, struct error *e);

/* From one byte per entry (active where != 0), rows of `stride` bytes. */
struct pattern *pattern_from_bytes(const uint8_t *bytes, uint32_t n, uint64_t stride);
/* From one bit per entry, row i in words[i * words_per_row ..], key j in bit j % 64. */
struct pattern *pattern_from_bits(const uint64_t *words, uint32_t n, uint64_t words_per_row);
