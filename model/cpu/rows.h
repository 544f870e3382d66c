/* SPDX-License-Identifier: Apache-2.0 */
/* What is done row by row between the matrix products. One text (rows_level.c) is compiled for each
   level of x86-64; rows_functions picks the level of this machine. */
#pragma once
#include <stdint.h>

/* LayerNorm's weights over `size` columns; eps stands inside the root, the variance is biased. */
struct norm {
    uint32_t size;
    float eps;
    float *gain, *shift; /* [size] */
};

struct row_functions {
    /* y = norm(x + residual); x is overwritten. residual (null: none) and y may be the
       same array, and x and y. */
    void (*norm_f32)(const struct norm *n, uint32_t rows, float *x, const float *residual,
                     float *y);
    void (*norm_bf16)(const struct norm *n, uint32_t rows, float *x, const uint16_t *residual,
                      uint16_t *y);
    /* sum[k] = of column k of x: [rows, size] */
    void (*sum_f32)(uint32_t rows, uint32_t size, const float *x, float *sum);
    void (*sum_bf16)(uint32_t rows, uint32_t size, const uint16_t *x, float *sum);
    /* sum[k] += x[k] */
    void (*add_f32)(uint64_t size, const float *x, float *sum);
    /* y = x Phi(x), with an error of at most 1e-5 |x|, which bf16 does not show */
    void (*gelu_bf16)(uint64_t size, const float *x, uint16_t *y);
    /* sum[k] = a[k] + b[k] + c[k] */
    void (*add3)(uint32_t size, const float *a, const float *b, const float *c, float *sum);
};

const struct row_functions *rows_functions(void);
