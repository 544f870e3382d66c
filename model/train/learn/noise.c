/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/learn/noise.h"
#include "model/base/order.h"
#include <math.h>

enum { BLOCK = 4096 }; /* units that are drawn one after another */

static float logistic(uint64_t draw)
{
    const double u = ((double)(draw >> 11) + 0.5) * 0x1p-53; /* neither 0 nor 1 */
    return (float)(log(u) - log1p(-u));
}

/* Unit k has draw k of the step. */
static void draw_block(uint64_t seed, uint64_t step, uint64_t first, uint64_t end, float *ret)
{
    struct draws d = data_draws(seed, STREAM_NOISE, (uint32_t)step, (uint32_t)(step >> 32));
    d.next = first;
    for (uint64_t k = first; k < end; k++)
        ret[k] = logistic(draws_next(&d));
}

static void mirror_head(uint64_t n, float *noise)
{
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t j = 0; j < i; j++)
            noise[i * n + j] = noise[j * n + i];
}

void noise_draw(const struct alpha_shape *s, uint64_t seed, uint64_t step, float *ret)
{
    const uint64_t units = alpha_units(s), each = alpha_head_units(s);
#pragma omp parallel for
    for (uint64_t at = 0; at < units; at += BLOCK)
        draw_block(seed, step, at, at + BLOCK < units ? at + BLOCK : units, ret);
    if (!s->symmetric)
        return;
#pragma omp parallel for
    for (uint64_t h = 0; h < units / each; h++)
        mirror_head(s->n, ret + h * each);
}
