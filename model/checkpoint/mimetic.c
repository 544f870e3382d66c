/* SPDX-License-Identifier: Apache-2.0 */
/* See mimetic.h. */
#include "model/checkpoint/mimetic.h"
#include <math.h>
#include <string.h>

/* Root mean square of a query for normalised input; the longest wave is 2 pi times BASE. */
static const double QUERY_SIZE = 0.8, BASE = 100;

/* Waves from 2 pi positions to 2 pi BASE by equal factors, a sine and a cosine of each; root mean square: `size`. */
static void draw_waves(const struct tensor *t, double size)
{
    float *table = t->own;
    uint64_t width = t->parameter.shape[1];
    for (uint64_t k = 0; k < t->parameter.count; k++) {
        double position = (double)(k / width), column = (double)(k % width / 2 * 2);
        double angle = position * pow(BASE, -column / (double)width);
        table[k] = (float)(size * sqrt(2) * (k % 2 ? cos(angle) : sin(angle)));
    }
}

static void scale(const struct tensor *t, double by)
{
    float *values = t->own;
    for (uint64_t k = 0; k < t->parameter.count; k++)
        values[k] *= (float)by;
}

void weights_make_mimetic(struct weights *w, double deviation)
{
    for (uint32_t k = 0; k < w->n_tensors; k++) {
        const struct tensor *t = &w->tensor[k];
        const struct parameter *p = &t->parameter;
        if (p->id == PARAMETER_POSITIONS)
            draw_waves(t, deviation);
        if (p->id != PARAMETER_QUERY_WEIGHT)
            continue;
        scale(t, QUERY_SIZE / sqrt((double)p->shape[1]) / deviation);
        memcpy(weights_get(w, PARAMETER_KEY_WEIGHT, p->layer)->own, t->own,
               p->count * sizeof(float));
    }
}
