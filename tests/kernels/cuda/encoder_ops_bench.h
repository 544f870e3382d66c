/* SPDX-License-Identifier: Apache-2.0 */
/* One shape of the row kernels (templates/encoder_ops) ready to be launched, as text in the emulation or as machine
   code, and matrices of numbers by chance that they read and write. */
#pragma once
#include "templates/abi.h"
/* after abi.h */
#include "templates/encoder_ops/args.h"
#include "templates/train_ops/args.h"
#include "tests/sass/image.h"
#include <stdbool.h>

/* The target whose machine code runs; null: the text. */
extern const char *bench_machine;

/* A matrix as a kernel sees it, and its values. */
struct matrix {
    void *bytes; /* ends where malloc does: what reads beyond is seen by sanitizers */
    double *value;
    uint64_t count;
    bool wide;
};

/* From -1 + offset to 1 + offset. */
struct matrix matrix_new(uint64_t count, bool wide, float offset);
void matrix_finish(struct matrix *m);
void matrix_write(const struct matrix *m, uint64_t k, float x);
double matrix_read(const struct matrix *m, uint64_t k);
float round_bf16(float x);

/* Fails the test where one is too far off, of the largest value; NaN fails. bf16 is rounded once, to 8 bits. */
void matrix_compare(const struct matrix *m, const double *truth, const char *what);

struct shape {
    uint32_t hidden;
    bool wide;   /* f32 */
    bool trains; /* the kernels of training */
};

struct bench {
    struct shape s;
    struct emulated_text *text;
    struct image code; /* of bench_machine */
    struct matrix gain, shift, bias;
};

struct source;
struct source *bench_source(const struct shape *s);

void bench_open(struct bench *b, struct shape s);
void bench_close(struct bench *b);
/* Launches the entry on a->rows rows, which are more than there are warps. */
void bench_launch(const struct bench *b, const char *entry, const struct rows_args *a);
/* Fails the test unless y keeps a NaN with the bits that operations of a GPU give it. */
void bench_keeps_nan(const struct bench *b);
/* The same of an entry of training, all of whose arrays are lent. */
void bench_train(const struct bench *b, const char *entry, const struct train_args *a);
/* Memory that kernels may read and write until it is taken back. */
void bench_lend(const void *p, uint64_t bytes);
void bench_unlend(const void *p);
