/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder ops of the CPU, between the matrix products: norms, column sums, GELU, conversions. encoder_ops_level.c
   is compiled for each level of x86-64 (row_level.h). */
#pragma once
#include "model/backend/cpu/ops/row_level.h"
#include "model/ops/linear.h"

struct cpu_encoder_ops {
    /* y = norm(x + residual); x is overwritten. residual (null: none) and y may be the same array, as
       may x and y. */
    void (*norm_f32)(const struct norm *n, uint32_t rows, float *x, const float *residual,
                     float *y);
    void (*norm_bf16)(const struct norm *n, uint32_t rows, float *x, const uint16_t *residual,
                      uint16_t *y);
    /* sum[k] = sum of column k of x: [rows, size] */
    void (*sum_f32)(uint32_t rows, uint32_t size, const float *x, float *sum);
    void (*sum_bf16)(uint32_t rows, uint32_t size, const uint16_t *x, float *sum);
    /* sum[k] += x[k] */
    void (*add_f32)(uint64_t size, const float *x, float *sum);
    /* y = x Phi(x), with an error of at most 1e-5 |x|, too little for bf16 to show */
    void (*gelu_bf16)(uint64_t size, const float *x, uint16_t *y);
    /* sum[k] = a[k] + b[k] + c[k] */
    void (*add3)(uint32_t size, const float *a, const float *b, const float *c, float *sum);
    /* y = x in bf16, to nearest even */
    void (*round_bf16)(uint64_t size, const float *x, uint16_t *y);
    /* y = x in f32 */
    void (*widen_bf16)(uint64_t size, const uint16_t *x, float *y);
    /* x = x in bf16, held as f32 */
    void (*round_in_place)(uint64_t size, float *x);
    /* Rotary positions of one head, x: [2 half]. With x1 and x2 its halves, x1 + i x2 is multiplied by cosine + i sign sine;
       bf16: in f32, rounded once. */
    void (*rotate_f32)(uint32_t half, const float *cosine, const float *sine, float sign,
                       float *x);
    void (*rotate_bf16)(uint32_t half, const float *cosine, const float *sine, float sign,
                        uint16_t *x);
};

const struct cpu_encoder_ops *cpu_encoder_ops(void); /* this machine's level */
const struct cpu_encoder_ops *cpu_encoder_ops_at(enum row_level l);
