/* SPDX-License-Identifier: Apache-2.0 */
/* Row operations of training on the CPU besides the matrix products: dropout, LayerNorm, the activation, and their
   gradients; the loss of the words. train_ops_*.c are compiled for each level of x86-64, as encoder_ops_level.c is. All are single-threaded; sums over rows go row by row, in order. Arrays are [rows, size], contiguous. bf16
   numbers are uint16_t, rounded to nearest even. */
#pragma once
#include "model/backend/cpu/ops/row_level.h"
#include "model/ops/linear.h"

/* Row that dropout is drawn for. */
struct row_place {
    uint32_t sample, position;
};

/* An entry is dropped iff its 16-bit draw < keep_below; kept ones are multiplied by keep_scale. One call of
   Philox4x32-10 with key `seed` and counter (column / 8, position, sample, site) draws 8 columns: column c takes
   the low (c % 8 < 4) or high half of word c % 4. */
struct row_dropout {
    uint64_t seed;
    uint32_t site;       /* which dropout of the encoder */
    uint32_t keep_below; /* round(65536 p); 0: none */
    float keep_scale;    /* 65536 / (65536 - keep_below) */
};

struct cpu_train_ops {
    /* y = dropout(x); x and y may be the same array. */
    void (*drop_f32)(const struct row_dropout *d, const struct row_place *row, uint32_t rows,
                     uint32_t size, const float *x, float *y);
    void (*drop_bf16)(const struct row_dropout *d, const struct row_place *row, uint32_t rows,
                      uint32_t size, const float *x, uint16_t *y);

    /* y = norm(x + residual); leaves normalised = (x + residual - mean) * inverse and inverse [rows] for the
       backward pass. x is overwritten; residual may be null, or y. */
    void (*norm_f32)(const struct norm *n, uint32_t rows, float *x, const float *residual,
                     float *normalised, float *inverse, float *y);
    void (*norm_bf16)(const struct norm *n, uint32_t rows, float *x, const uint16_t *residual,
                      uint16_t *normalised, float *inverse, uint16_t *y);
    /* dx from dy (may be the same array); adds to gain_sum and shift_sum [size]. */
    void (*norm_back_f32)(const struct norm *n, uint32_t rows, const float *normalised,
                          const float *inverse, const float *dy, float *dx, float *gain_sum,
                          float *shift_sum);
    void (*norm_back_bf16)(const struct norm *n, uint32_t rows, const uint16_t *normalised,
                           const float *inverse, const float *dy, float *dx, float *gain_sum,
                           float *shift_sum);

    /* y = activation(x); bf16: `kept` gets x rounded, for the backward pass. f32: error at most 2e-7 max(|x|, 1),
       of derivatives 4e-7. NaN gives NaN. */
    void (*activate_f32)(enum after a, uint64_t size, const float *x, float *y);
    void (*activate_bf16)(enum after a, uint64_t size, const float *x, uint16_t *kept,
                          uint16_t *y);
    /* dx = dy * activation'(x); dy and dx may be the same array. */
    void (*activate_back_f32)(enum after a, uint64_t size, const float *x, const float *dy,
                              float *dx);
    void (*activate_back_bf16)(enum after a, uint64_t size, const uint16_t *x, const float *dy,
                               uint16_t *dx);
    /* y = activation(x) again, from what was kept: recomputing. */
    void (*reactivate_bf16)(enum after a, uint64_t size, const uint16_t *x, uint16_t *y);

    /* sum[k] += column k of x */
    void (*columns_f32)(uint32_t rows, uint32_t size, const float *x, float *sum);
    void (*columns_bf16)(uint32_t rows, uint32_t size, const uint16_t *x, float *sum);
    /* sum[k] += x[k] */
    void (*add_f32)(uint64_t size, const float *x, float *sum);

    /* Cross-entropy of one row of logits, in nats: lse - logits[label]. *ret_right: label has the largest logit (the
       first of equals). d_logits = weight * (softmax - onehot); may be null (f32: may be `logits`). A logit of -infinity
       has probability 0, and as the label's an infinite loss. One NaN or +infinity, or -infinity alone, makes the loss
       and the whole gradient NaN. */
    double (*cross_entropy_f32)(uint32_t size, const float *logits, uint32_t label,
                                float weight, float *d_logits, int *ret_right);
    double (*cross_entropy_bf16)(uint32_t size, const float *logits, uint32_t label,
                                 float weight, uint16_t *d_logits, int *ret_right);
};

const struct cpu_train_ops *cpu_train_ops(void); /* this machine's level */
const struct cpu_train_ops *cpu_train_ops_at(enum row_level l);
