/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNorm of rows and its gradient. Statistics and gradients are f32; bf16 arrays are rounded once, where
   they are written. */
#include "model/backend/cpu/ops/train_ops_level.h"
#include <math.h>

static float total(uint32_t size, const float *x)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (uint32_t k = 0; k < size; k++)
        sum += x[k];
    return sum;
}

static float total_f32(uint32_t size, const float *residual, float *x)
{
    float sum = 0;
    if (!residual)
        return total(size, x);
#pragma omp simd reduction(+ : sum)
    for (uint32_t k = 0; k < size; k++)
        sum += x[k] += residual[k];
    return sum;
}

static float total_bf16(uint32_t size, const uint16_t *residual, float *x)
{
    float sum = 0;
    if (!residual)
        return total(size, x);
#pragma omp simd reduction(+ : sum)
    for (uint32_t k = 0; k < size; k++)
        sum += x[k] += from_bf16(residual[k]);
    return sum;
}

/* 1 / the deviation; x -= mean. A sum of squares without the mean would lose digits. */
static float subtract_mean(const struct norm *n, float sum, float *x)
{
    float mean = sum / (float)n->size, squares = 0;
#pragma omp simd reduction(+ : squares)
    for (uint32_t k = 0; k < n->size; k++) {
        x[k] -= mean;
        squares += x[k] * x[k];
    }
    return 1 / sqrtf(squares / (float)n->size + n->eps);
}

void train_norm_f32(const struct norm *n, uint32_t rows, float *x, const float *residual,
                    float *normalised, float *inverse, float *y)
{
    for (uint32_t r = 0; r < rows; r++) {
        const uint64_t at = (uint64_t)r * n->size;
        float i = subtract_mean(n, total_f32(n->size, residual ? residual + at : NULL, x + at),
                                x + at);
#pragma omp simd
        for (uint32_t k = 0; k < n->size; k++) {
            float z = x[at + k] * i;
            normalised[at + k] = z;
            y[at + k] = z * n->gain[k] + n->shift[k];
        }
        inverse[r] = i;
    }
}

void train_norm_bf16(const struct norm *n, uint32_t rows, float *x, const uint16_t *residual,
                     uint16_t *normalised, float *inverse, uint16_t *y)
{
    for (uint32_t r = 0; r < rows; r++) {
        const uint64_t at = (uint64_t)r * n->size;
        float *row = x + at,
              i = subtract_mean(n, total_bf16(n->size, residual ? residual + at : NULL, row),
                                row);
#pragma omp simd
        for (uint32_t k = 0; k < n->size; k++)
            row[k] *= i;
        round_row(n->size, row, normalised + at);
#pragma omp simd
        for (uint32_t k = 0; k < n->size; k++)
            row[k] = row[k] * n->gain[k] + n->shift[k];
        round_row(n->size, row, y + at);
        inverse[r] = i;
    }
}

/* ---- gradient ---- */

/* Sums over all columns that a row's gradient needs: means of g = dy gain, and of g normalised. */
struct means {
    float g, g_normalised;
};

/* The loops are the same for both types: z is column k normalised. */
#define SUM_ROW(z)                                                                            \
    float g = 0, g_normalised = 0;                                                            \
    const float *gain = n->gain;                                                              \
    _Pragma("omp simd reduction(+ : g, g_normalised)") for (uint32_t k = 0; k < n->size; k++) \
    {                                                                                         \
        float d = dy[k] * gain[k];                                                            \
        g += d;                                                                               \
        g_normalised += d * (z);                                                              \
        gain_sum[k] += dy[k] * (z);                                                           \
        shift_sum[k] += dy[k];                                                                \
    }                                                                                         \
    return (struct means){g / (float)n->size, g_normalised / (float)n->size};

static struct means sum_f32(const struct norm *n, const float *normalised, const float *dy,
                            float *gain_sum, float *shift_sum)
{
    SUM_ROW(normalised[k])
}

static struct means sum_bf16(const struct norm *n, const uint16_t *normalised, const float *dy,
                             float *gain_sum, float *shift_sum)
{
    SUM_ROW(from_bf16(normalised[k]))
}

void train_norm_back_f32(const struct norm *n, uint32_t rows, const float *normalised,
                         const float *inverse, const float *dy, float *dx, float *gain_sum,
                         float *shift_sum)
{
    for (uint32_t r = 0; r < rows; r++, normalised += n->size, dy += n->size, dx += n->size) {
        const struct means m = sum_f32(n, normalised, dy, gain_sum, shift_sum);
        const float i = inverse[r], *gain = n->gain;
#pragma omp simd
        for (uint32_t k = 0; k < n->size; k++)
            dx[k] = i * (dy[k] * gain[k] - m.g - normalised[k] * m.g_normalised);
    }
}

void train_norm_back_bf16(const struct norm *n, uint32_t rows, const uint16_t *normalised,
                          const float *inverse, const float *dy, float *dx, float *gain_sum,
                          float *shift_sum)
{
    for (uint32_t r = 0; r < rows; r++, normalised += n->size, dy += n->size, dx += n->size) {
        const struct means m = sum_bf16(n, normalised, dy, gain_sum, shift_sum);
        const float i = inverse[r], *gain = n->gain;
#pragma omp simd
        for (uint32_t k = 0; k < n->size; k++)
            dx[k] = i * (dy[k] * gain[k] - m.g - from_bf16(normalised[k]) * m.g_normalised);
    }
}
