/* SPDX-License-Identifier: Apache-2.0 */
/* Activations and their derivatives. f32 errors are at most 2e-7 max(|x|, 1); bf16 is that, rounded. */
#include "model/backend/cpu/ops/exp_lane.h"
#include "model/backend/cpu/ops/train_ops_level.h"

/* ---- one number ---- */

/* Phi(x), of the normal distribution, with `*density` e^(-x^2 / 2). Phi(-a) = e^(-a^2 / 2) P(a) for a >= 0; P minimises
   the maximum of the error of that product up to 5.5. Beyond, Phi(-a) < 2e-8, and P stays as it is. */
static inline float phi(float x, float *density)
{
    float a = x < 0 ? -x : x, s = 0.5f * a * a, c = a > 5.5f ? 5.5f : a, p = 5.85292099e-08f;
    *density = exp_lane(s > 87 ? -87 : -s);
    p = p * c - 1.60358093e-06f;
    p = p * c + 1.98923008e-05f;
    p = p * c - 1.49787549e-04f;
    p = p * c + 7.79662922e-04f;
    p = p * c - 3.05532687e-03f;
    p = p * c + 9.65976715e-03f;
    p = p * c - 2.60691456e-02f;
    p = p * c + 6.22623712e-02f;
    p = p * c - 1.32916898e-01f;
    p = p * c + 2.49991104e-01f;
    p = p * c - 3.98941785e-01f;
    p = p * c + 0.5f;
    float tail = p * *density;
    return x < 0 ? tail : 1 - tail;
}

static inline float gelu(float x)
{
    float density;
    return x * phi(x, &density);
}

static inline float gelu_derivative(float x)
{
    float density, p = phi(x, &density);
    return p + clamp_lane(x, 20) * density * 0.398942280f;
}

/* 1 / (1 + e^-x), and 1 minus that. */
struct sigmoid {
    float is, rest;
};

static inline struct sigmoid sigmoid(float x)
{
    float e = exp_lane(-clamp_lane(x, 87)), s = 1 / (1 + e);
    return (struct sigmoid){s, e * s};
}

/* x / 2 (1 + tanh(u)) = x sigmoid(2 u), where u = sqrt(2 / pi) (x + 0.044715 x^3) */
static inline float twice_u(float x)
{
    return 1.59576912f * x * (1 + 0.044715f * x * x);
}

static inline float gelu_tanh(float x)
{
    return x * sigmoid(twice_u(clamp_lane(x, 100))).is;
}

static inline float gelu_tanh_derivative(float x)
{
    float c = clamp_lane(x, 10);
    struct sigmoid s = sigmoid(twice_u(c));
    return s.is + c * s.is * s.rest * 1.59576912f * (1 + 0.134145f * c * c);
}

static inline float silu(float x)
{
    return x * sigmoid(x).is;
}

static inline float silu_derivative(float x)
{
    struct sigmoid s = sigmoid(x);
    return s.is + clamp_lane(x, 87) * s.is * s.rest;
}

/* e^(-2 |x|); 1 - e is exact where tanh is small. */
static inline float tanh_exp(float x)
{
    float a = x < 0 ? -x : x;
    return exp_lane(-2 * (a > 40 ? 40 : a));
}

static inline float tanh_lane(float x)
{
    float e = tanh_exp(x), t = (1 - e) / (1 + e);
    return x < 0 ? -t : t;
}

static inline float tanh_lane_derivative(float x)
{
    float e = tanh_exp(x), s = 1 / (1 + e);
    return 4 * e * s * s;
}

static inline float relu(float x)
{
    return x < 0 ? 0 : x;
}

static inline float relu_derivative(float x)
{
    return x <= 0 ? 0 : 1;
}

static inline float none(float x)
{
    return x;
}

static inline float none_derivative(float x)
{
    (void)x;
    return 1;
}

/* ---- loops ---- */

#define LOOPS(name)                                                                    \
    static void name##_all(uint64_t size, const float *x, float *y)                    \
    {                                                                                  \
        _Pragma("omp simd") for (uint64_t k = 0; k < size; k++) y[k] = name(x[k]);     \
    }                                                                                  \
    static void name##_back(uint64_t size, const float *x, const float *dy, float *dx) \
    {                                                                                  \
        _Pragma("omp simd") for (uint64_t k = 0; k < size; k++) dx[k] =                \
            dy[k] * name##_derivative(x[k]);                                           \
    }

LOOPS(none)
LOOPS(gelu)
LOOPS(gelu_tanh)
LOOPS(relu)
LOOPS(silu)
LOOPS(tanh_lane)

static const struct {
    void (*all)(uint64_t size, const float *x, float *y);
    void (*back)(uint64_t size, const float *x, const float *dy, float *dx);
} activations[] = {
    [AFTER_NONE] = {none_all, none_back},
    [AFTER_GELU] = {gelu_all, gelu_back},
    [AFTER_GELU_TANH] = {gelu_tanh_all, gelu_tanh_back},
    [AFTER_RELU] = {relu_all, relu_back},
    [AFTER_SILU] = {silu_all, silu_back},
    [AFTER_TANH] = {tanh_lane_all, tanh_lane_back},
};

void train_activate_f32(enum after a, uint64_t size, const float *x, float *y)
{
    activations[a].all(size, x, y);
}

void train_activate_back_f32(enum after a, uint64_t size, const float *x, const float *dy,
                             float *dx)
{
    activations[a].back(size, x, dy, dx);
}

void train_activate_bf16(enum after a, uint64_t size, const float *x, uint16_t *kept,
                         uint16_t *y)
{
    float part[PART];
    round_row(size, x, kept);
    for (uint64_t at = 0; at < size; at += PART) {
        const uint32_t count = part_of(size, at);
        activations[a].all(count, x + at, part);
        round_row(count, part, y + at);
    }
}

void train_reactivate_bf16(enum after a, uint64_t size, const uint16_t *x, uint16_t *y)
{
    float part[PART];
    for (uint64_t at = 0; at < size; at += PART) {
        const uint32_t count = part_of(size, at);
        widen_row(count, x + at, part);
        activations[a].all(count, part, part);
        round_row(count, part, y + at);
    }
}

void train_activate_back_bf16(enum after a, uint64_t size, const uint16_t *x, const float *dy,
                              uint16_t *dx)
{
    float part[PART];
    for (uint64_t at = 0; at < size; at += PART) {
        const uint32_t count = part_of(size, at);
        widen_row(count, x + at, part);
        activations[a].back(count, part, dy + at, part);
        round_row(count, part, dx + at);
    }
}
