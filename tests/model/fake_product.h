/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices for the cuBLASLt of fake_gpu.c: computed from the descriptions that they were given, column by
   column as cublasLt.h defines them. */
#pragma once
#include "model/backend/cuda/cublas_symbols.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct lt_layout {
    int type;
    uint64_t rows, columns;
    int64_t leading;
};

struct lt_desc {
    int compute, scale;
    int32_t transpose_a, transpose_b;
    uint32_t epilogue;
    void *bias;
};

struct product {
    struct lt_desc desc;
    struct lt_layout a, b, d;
    const void *a_data, *b_data;
    void *d_data;
    bool adds;
};

static double read_at(const void *data, int type, uint64_t at)
{
    uint32_t bits;
    float x;
    if (type == LT_F32)
        return (double)((const float *)data)[at];
    bits = (uint32_t)((const uint16_t *)data)[at] << 16;
    memcpy(&x, &bits, 4);
    return (double)x;
}

static void write_at(void *data, int type, uint64_t at, double value)
{
    uint32_t bits;
    float x = (float)value;
    memcpy(&bits, &x, 4);
    if (type == LT_F32)
        ((float *)data)[at] = x;
    else
        ((uint16_t *)data)[at] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double finish(const struct lt_desc *desc, int type, uint64_t row, double x)
{
    if (desc->epilogue & LT_EPILOGUE_BIAS)
        x += read_at(desc->bias, type, row);
    switch (desc->epilogue & ~(uint32_t)LT_EPILOGUE_BIAS) {
    case LT_EPILOGUE_RELU_BIAS - LT_EPILOGUE_BIAS:
        return fmax(x, 0);
    case LT_EPILOGUE_GELU_BIAS - LT_EPILOGUE_BIAS:
        return x / 2 * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    default:
        return x;
    }
}

/* D = finish(op(A) op(B)), or with that added, all by columns: element (row, column) lies at row + column * leading. */
static int run_product(const struct product *p)
{
    const bool transposed = p->desc.transpose_a == LT_TRANSPOSE,
               b_transposed = p->desc.transpose_b == LT_TRANSPOSE;
    const uint64_t inner = b_transposed ? p->b.columns : p->b.rows;
    for (uint64_t column = 0; column < p->d.columns; column++)
        for (uint64_t row = 0; row < p->d.rows; row++) {
            const uint64_t at = row + column * (uint64_t)p->d.leading;
            double sum = p->adds ? read_at(p->d_data, p->d.type, at) : 0;
            for (uint64_t k = 0; k < inner; k++) {
                uint64_t a = transposed ? k + row * (uint64_t)p->a.leading
                                        : row + k * (uint64_t)p->a.leading;
                uint64_t b = b_transposed ? column + k * (uint64_t)p->b.leading
                                          : k + column * (uint64_t)p->b.leading;
                sum += read_at(p->a_data, p->a.type, a) * read_at(p->b_data, p->b.type, b);
            }
            write_at(p->d_data, p->d.type, at, finish(&p->desc, p->d.type, row, sum));
        }
    return 0;
}
