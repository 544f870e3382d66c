/* SPDX-License-Identifier: Apache-2.0 */
/* Activations in f32, from 2^x alone: the same code on a GPU and in the emulation, which has no mathematical
   library. */
#ifndef MASKC_ENCODER_OPS_ACTIVATION_H
#define MASKC_ENCODER_OPS_ACTIVATION_H
#include "encoder_ops/loads.h"

DEVICE float exp_of(float x)
{
    return exp2_of(1.44269504f * x);
}

DEVICE float magnitude(float x)
{
    return float_of(bits_of(x) & 0x7fffffff);
}

DEVICE float with_sign(float x, float sign)
{
    return float_of((bits_of(x) & 0x7fffffff) | (bits_of(sign) & 0x80000000));
}

/* Below 475/512 a polynomial in x^2; above it 1 - exp of one in |x|. Error at most 2^-23. */
DEVICE float erf_of(float x)
{
    const float t = magnitude(x), s = x * x;
    if (t > 0.927734375f) {
        float r = -1.72853470e-5f * t + 3.83197126e-4f;
        const float u = -3.88396438e-3f * t + 2.42546219e-2f;
        r = r * s + u;
        r = r * t - 1.06777877e-1f;
        r = r * t - 6.34846687e-1f;
        r = r * t - 1.28717512e-1f;
        r = r * t - t;
        return with_sign(1 - exp_of(r), x);
    }
    float r = -5.96761703e-4f;
    r = r * s + 4.99119423e-3f;
    r = r * s - 2.67681349e-2f;
    r = r * s + 1.12819925e-1f;
    r = r * s - 3.76125336e-1f;
    r = r * s + 1.28379166e-1f;
    return r * x + x;
}

DEVICE float tanh_of(float x)
{
    const float e = exp_of(-2 * magnitude(x));
    return with_sign((1 - e) / (1 + e), x);
}

DEVICE float activation_of(u32 after, float x)
{
    switch (after) {
    case ROWS_AFTER_GELU:
        return 0.5f * x * (1 + erf_of(0.707106781f * x));
    case ROWS_AFTER_GELU_TANH:
        return 0.5f * x * (1 + tanh_of(0.797884561f * (x + 0.044715f * x * x * x)));
    case ROWS_AFTER_RELU:
        return x > 0 ? x : 0;
    case ROWS_AFTER_SILU:
        return x / (1 + exp_of(-x));
    case ROWS_AFTER_TANH:
        return tanh_of(x);
    default:
        return x;
    }
}

#endif
