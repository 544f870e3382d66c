/* SPDX-License-Identifier: Apache-2.0 */
/* encoder_ops.h for one level of x86-64; CPU_ENCODER_OPS is the table's name. */
#include "model/backend/cpu/ops/bf16_rows.h"
#include "model/backend/cpu/ops/encoder_ops.h"
#include <math.h>
#include <string.h>

extern const struct cpu_encoder_ops CPU_ENCODER_OPS;

static void add_f32(uint64_t size, const float *x, float *sum)
{
#pragma omp simd
    for (uint64_t k = 0; k < size; k++)
        sum[k] += x[k];
}

static void add_bf16(uint32_t size, const uint16_t *x, float *sum)
{
#pragma omp simd
    for (uint32_t k = 0; k < size; k++)
        sum[k] += from_bf16(x[k]);
}

/* x += residual (null: none); the sum of the result. A test inside the loop would keep it from being
   vectorized: hence one loop for each case. */
static float total_f32(uint32_t size, const float *residual, float *x)
{
    float sum = 0;
    if (!residual) {
#pragma omp simd reduction(+ : sum)
        for (uint32_t k = 0; k < size; k++)
            sum += x[k];
        return sum;
    }
#pragma omp simd reduction(+ : sum)
    for (uint32_t k = 0; k < size; k++)
        sum += x[k] += residual[k];
    return sum;
}

static float total_bf16(uint32_t size, const uint16_t *residual, float *x)
{
    float sum = 0;
    if (!residual)
        return total_f32(size, NULL, x);
#pragma omp simd reduction(+ : sum)
    for (uint32_t k = 0; k < size; k++)
        sum += x[k] += from_bf16(residual[k]);
    return sum;
}

/* y = norm(x), of which `total` is the sum. The deviation takes a second pass, as a sum of squares loses
   digits. y may be x. */
static void norm_row(const struct norm *n, float total, const float *x, float *y)
{
    float mean = total / (float)n->size, squares = 0;
#pragma omp simd reduction(+ : squares)
    for (uint32_t k = 0; k < n->size; k++)
        squares += (x[k] - mean) * (x[k] - mean);
    float inverse = 1 / sqrtf(squares / (float)n->size + n->eps);
#pragma omp simd
    for (uint32_t k = 0; k < n->size; k++)
        y[k] = (x[k] - mean) * inverse * n->gain[k] + n->shift[k];
}

static void norm_f32(const struct norm *n, uint32_t rows, float *x, const float *residual,
                     float *y)
{
    for (uint32_t r = 0; r < rows; r++) {
        uint64_t at = (uint64_t)r * n->size;
        float total = total_f32(n->size, residual ? residual + at : NULL, x + at);
        norm_row(n, total, x + at, y + at);
    }
}

static void norm_bf16(const struct norm *n, uint32_t rows, float *x, const uint16_t *residual,
                      uint16_t *y)
{
    for (uint32_t r = 0; r < rows; r++) {
        uint64_t at = (uint64_t)r * n->size;
        float total = total_bf16(n->size, residual ? residual + at : NULL, x + at);
        norm_row(n, total, x + at, x + at);
        round_row(n->size, x + at, y + at);
    }
}

static void sum_f32(uint32_t rows, uint32_t size, const float *x, float *sum)
{
    memset(sum, 0, size * sizeof *sum);
    for (uint32_t r = 0; r < rows; r++, x += size)
        add_f32(size, x, sum);
}

static void sum_bf16(uint32_t rows, uint32_t size, const uint16_t *x, float *sum)
{
    memset(sum, 0, size * sizeof *sum);
    for (uint32_t r = 0; r < rows; r++, x += size)
        add_bf16(size, x, sum);
}

/* Phi(x) = 1/2 + x P(x^2) up to |x| = 4.4; beyond it Phi is 0 or 1 in bf16. P minimises the maximum of
   |x| times the error (Lawson's iteration). */
static float gelu(float x)
{
    static const float p[] = {0.398932397f,     -0.0664586052f,   0.00993787963f,
                              -0.00116714055f,  0.000108685228f,  -7.98777091e-06f,
                              4.51188384e-07f,  -1.86988220e-08f, 5.29786937e-10f,
                              -9.08908018e-12f, 7.07761351e-14f};
    const float reach = 4.4f;
    float below = x > reach ? reach : x, c = below < -reach ? -reach : below, s = c * c;
    float sum = p[10] * s + p[9];
    sum = sum * s + p[8];
    sum = sum * s + p[7];
    sum = sum * s + p[6];
    sum = sum * s + p[5];
    sum = sum * s + p[4];
    sum = sum * s + p[3];
    sum = sum * s + p[2];
    sum = sum * s + p[1];
    sum = sum * s + p[0];
    return x * (0.5f + c * sum);
}

static void gelu_bf16(uint64_t size, const float *x, uint16_t *y)
{
    enum { PART = 32 };
    float part[PART];
    uint64_t at = 0;
    for (; at + PART <= size; at += PART) {
#pragma omp simd
        for (uint32_t k = 0; k < PART; k++)
            part[k] = gelu(x[at + k]);
        round_row(PART, part, y + at);
    }
    for (; at < size; at++)
        y[at] = to_bf16(gelu(x[at]));
}

static void add3(uint32_t size, const float *a, const float *b, const float *c, float *sum)
{
#pragma omp simd
    for (uint32_t k = 0; k < size; k++)
        sum[k] = a[k] + b[k] + c[k];
}

static void round_bf16(uint64_t size, const float *x, uint16_t *y)
{
    round_row(size, x, y);
}

static void widen_bf16(uint64_t size, const uint16_t *x, float *y)
{
    widen_row(size, x, y);
}

static void round_in_place(uint64_t size, float *x)
{
#pragma omp simd
    for (uint64_t k = 0; k < size; k++)
        x[k] = from_bf16(to_bf16(x[k]));
}

static void rotate_f32(uint32_t half, const float *cosine, const float *sine, float sign,
                       float *x)
{
#pragma omp simd
    for (uint32_t k = 0; k < half; k++) {
        const float a = x[k], b = x[half + k], s = sign * sine[k];
        x[k] = a * cosine[k] - b * s;
        x[half + k] = b * cosine[k] + a * s;
    }
}

static void rotate_bf16(uint32_t half, const float *cosine, const float *sine, float sign,
                        uint16_t *x)
{
#pragma omp simd
    for (uint32_t k = 0; k < half; k++) {
        const float a = from_bf16(x[k]), b = from_bf16(x[half + k]), s = sign * sine[k];
        x[k] = to_bf16(a * cosine[k] - b * s);
        x[half + k] = to_bf16(b * cosine[k] + a * s);
    }
}

const struct cpu_encoder_ops CPU_ENCODER_OPS = {
    norm_f32, norm_bf16,  sum_f32,    sum_bf16,       add_f32,    gelu_bf16,
    add3,     round_bf16, widen_bf16, round_in_place, rotate_f32, rotate_bf16};
