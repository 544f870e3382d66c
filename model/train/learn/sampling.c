/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/learn/sampling.h"
#include <math.h>

bool sampling_diagonals(const struct alpha_shape *s)
{
    return s->distances && !s->border;
}

static uint64_t all_heads(const struct alpha_shape *s)
{
    return (uint64_t)s->layers * s->heads;
}

static double sigmoid(double x)
{
    return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

/* ---- forward ---- */

void sampling_draw(const struct alpha_shape *s, const struct learn_options *o, double tau,
                   const float *alpha, const float *noise, const struct samples_of_mask *ret)
{
    const uint64_t units = alpha_units(s);
    const bool hard = o->kind != LEARN_P && !o->relaxed;
#pragma omp parallel for
    for (uint64_t k = 0; k < units; k++) {
        const double x = (double)alpha_logit(s, alpha, k) + (noise ? (double)noise[k] : 0),
                     y = sigmoid(x / tau);
        ret->value[k] = hard ? (float)(x > 0) : (float)y;
        ret->derivative[k] = (float)(y * (1 - y) / tau);
    }
}

static float bias_of(const struct learn_options *o, float value)
{
    const float c = (float)o->scale;
    if (o->relaxed || o->leaks)
        return -c * (1 - value);
    return value > 0 ? 0 : -INFINITY;
}

static void fill_p(uint64_t units, double scale, const float *alpha, float *ret)
{
#pragma omp parallel for
    for (uint64_t k = 0; k < units; k++)
        ret[k] = (float)(scale / 2 * tanh((double)alpha[k] / 2));
}

static void fill_entries(uint64_t units, const struct learn_options *o, const float *value,
                         float *ret)
{
#pragma omp parallel for
    for (uint64_t k = 0; k < units; k++)
        ret[k] = bias_of(o, value[k]);
}

static void fill_row(const struct alpha_shape *s, const struct learn_options *o,
                     const float *value, uint32_t i, float *ret)
{
    for (uint32_t j = 0; j < s->n; j++) {
        const int64_t unit = alpha_unit_at(s, i, j);
        ret[j] = unit < 0 ? 0 : bias_of(o, value[unit]);
    }
}

static void fill_distances(const struct alpha_shape *s, const struct learn_options *o,
                           const float *value, float *ret)
{
    const uint64_t each = alpha_head_units(s), rows = all_heads(s) * s->n;
#pragma omp parallel for
    for (uint64_t k = 0; k < rows; k++)
        fill_row(s, o, value + k / s->n * each, (uint32_t)(k % s->n), ret + k * s->n);
}

void sampling_bias(const struct alpha_shape *s, const struct learn_options *o,
                   const float *alpha, const float *value, float *ret)
{
    if (o->kind == LEARN_P)
        fill_p(alpha_units(s), o->scale, alpha, ret);
    else if (s->distances)
        fill_distances(s, o, value, ret);
    else
        fill_entries(alpha_units(s), o, value, ret);
}

/* ---- backward ---- */

/* dL/dM of a unit: c times its sum of dX, plus lambda for each of its entries. */
static double unit_gradient(const struct learn_options *o, double sum, double entries)
{
    return o->scale * sum + o->lambda * entries;
}

static void entries_back(const struct alpha_shape *s, const struct learn_options *o,
                         const float *derivative, const float *d_bias, float *ret)
{
    const uint64_t n = s->n, rows = all_heads(s) * n;
#pragma omp parallel for
    for (uint64_t k = 0; k < rows; k++) {
        const uint64_t head = k / n * n * n, i = k % n;
        for (uint64_t j = 0; j < n; j++) {
            const uint64_t at = head + i * n + j, twin = head + j * n + i;
            const bool both = s->symmetric && i != j;
            const double sum = (double)d_bias[at] + (both ? (double)d_bias[twin] : 0);
            ret[at] = (float)(unit_gradient(o, sum, both ? 2 : 1) * (double)derivative[at]);
        }
    }
}

/* Sum of a head's interior at distance d, from top to bottom. */
static double interior_sum(const float *d_bias, uint32_t n, uint32_t d)
{
    double sum = 0;
    for (uint64_t i = 1; i + d + 1 < n; i++)
        sum += (double)d_bias[i * n + i + d] + (d ? (double)d_bias[(i + d) * n + i] : 0);
    return sum;
}

static double distance_sum(const struct alpha_shape *s, const float *d_bias, uint32_t d)
{
    const float *middle = d_bias + s->n - 1;
    if (s->border)
        return interior_sum(d_bias, s->n, d);
    return (double)middle[d] + (d ? (double)*(middle - d) : 0);
}

static void distances_back(const struct alpha_shape *s, const struct learn_options *o,
                           const float *derivative, const float *d_bias, float *ret)
{
    const uint64_t each = alpha_head_units(s), units = alpha_units(s), n = s->n,
                   size = s->border ? n * n : 2 * n - 1;
#pragma omp parallel for
    for (uint64_t k = 0; k < units; k++) {
        const uint32_t d = (uint32_t)(k % each);
        const double sum = distance_sum(s, d_bias + k / each * size, d),
                     entries = (d ? 2.0 : 1.0) * (double)(each - d),
                     g = unit_gradient(o, sum, entries) * (double)derivative[k];
        if (s->pairs) {
            ret[2 * k] = (float)g;
            ret[2 * k + 1] = (float)-g;
        } else {
            ret[k] = (float)g;
        }
    }
}

void sampling_back(const struct alpha_shape *s, const struct learn_options *o,
                   const float *derivative, const float *d_bias, float *ret)
{
    (s->distances ? distances_back : entries_back)(s, o, derivative, d_bias, ret);
}
