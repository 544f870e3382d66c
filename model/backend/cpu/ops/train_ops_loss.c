/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-entropy of a row of logits. Exponentials are taken twice rather than kept: a row is longer than the
   nearest cache. */
#include "model/backend/cpu/ops/exp_lane.h"
#include "model/backend/cpu/ops/train_ops_level.h"
#include <math.h>

enum { LANES = 64 };

/* e^x for x <= 0; what is below e^-87 is 0. */
static inline float exp_below(float x)
{
    float e = exp_lane(x < -87 ? -87 : x);
    return x < -87 ? 0 : e;
}

/* NaN is passed over: the sum finds it. */
static float largest(uint32_t size, const float *x)
{
    float lane[LANES], ret = -INFINITY;
    uint32_t at = 0;
    for (uint32_t k = 0; k < LANES; k++)
        lane[k] = -INFINITY;
    for (; at + LANES <= size; at += LANES)
#pragma omp simd
        for (uint32_t k = 0; k < LANES; k++)
            lane[k] = x[at + k] > lane[k] ? x[at + k] : lane[k];
    for (uint32_t k = 0; k < LANES; k++)
        ret = lane[k] > ret ? lane[k] : ret;
    for (; at < size; at++)
        ret = x[at] > ret ? x[at] : ret;
    return ret;
}

/* f32 within a part, double across: vocabularies are long. */
static double sum_of_exps(uint32_t size, const float *x, float most)
{
    double ret = 0;
    for (uint32_t at = 0; at < size; at += PART) {
        const uint32_t count = part_of(size, at);
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (uint32_t k = 0; k < count; k++)
            sum += exp_below(x[at + k] - most);
        ret += (double)sum;
    }
    return ret;
}

static int is_first_of_largest(const float *x, uint32_t label, float most)
{
    int before = 0;
    if (!(x[label] >= most))
        return 0;
    for (uint32_t k = 0; k < label; k++)
        before |= x[k] >= most;
    return !before;
}

struct row_loss {
    float most, factor; /* the gradient is factor * e^(logit - most), but for the label */
    double loss;
};

static struct row_loss row_loss(uint32_t size, const float *logits, uint32_t label,
                                float weight, int *ret_right)
{
    const float most = largest(size, logits);
    const double sum = sum_of_exps(size, logits, most),
                 loss = log(sum) + ((double)most - (double)logits[label]);
    *ret_right = loss == loss && is_first_of_largest(logits, label, most);
    return (struct row_loss){most, (float)((double)weight / sum), loss};
}

/* weight (p - 1), where p - 1 would lose digits near p = 1: weight times the share of the others. */
static float label_gradient(const struct row_loss *l, float weight)
{
    return (float)((double)weight * expm1(-l->loss));
}

double train_cross_entropy_f32(uint32_t size, const float *logits, uint32_t label, float weight,
                               float *d_logits, int *ret_right)
{
    const struct row_loss l = row_loss(size, logits, label, weight, ret_right);
    if (!d_logits)
        return l.loss;
#pragma omp simd
    for (uint32_t k = 0; k < size; k++)
        d_logits[k] = l.factor * exp_below(logits[k] - l.most);
    d_logits[label] = label_gradient(&l, weight);
    return l.loss;
}

double train_cross_entropy_bf16(uint32_t size, const float *logits, uint32_t label,
                                float weight, uint16_t *d_logits, int *ret_right)
{
    const struct row_loss l = row_loss(size, logits, label, weight, ret_right);
    float part[PART];
    for (uint32_t at = 0; at < size && d_logits; at += PART) {
        const uint32_t count = part_of(size, at);
#pragma omp simd
        for (uint32_t k = 0; k < count; k++)
            part[k] = l.factor * exp_below(logits[at + k] - l.most);
        round_row(count, part, d_logits + at);
    }
    if (d_logits)
        d_logits[label] = to_bf16(label_gradient(&l, weight));
    return l.loss;
}
