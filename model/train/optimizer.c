/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a step; the loops are the backend's. */
#include "model/train/optimizer.h"
#include <math.h>

static struct update numbers_of(const struct optimizer *o, const struct optimizer_step *at,
                                double norm)
{
    const bool lamb = o->kind == OPTIMIZER_LAMB, corrects = o->bias_correction || lamb;
    const double step = (double)at->step;
    return (struct update){
        .by_norms = lamb,
        .rate = (float)at->rate,
        .gradient_scale = o->clip > 0 && norm > o->clip ? (float)(o->clip / norm) : 1,
        .beta1 = (float)o->beta1,
        .rest1 = (float)(1 - o->beta1),
        .beta2 = (float)o->beta2,
        .rest2 = (float)(1 - o->beta2),
        .first_scale = corrects ? (float)(1 / (1 - pow(o->beta1, step))) : 1,
        .second_scale = corrects ? (float)(1 / (1 - pow(o->beta2, step))) : 1,
        .eps = (float)o->eps,
        .decay = (float)o->weight_decay,
    };
}

int optimizer_step(const struct optimizer *o, const struct train_state *s,
                   const struct optimizer_step *at, double *ret_norm, struct error *e)
{
    const struct training_backend *does = s->device.does;
    if (does->gradient_norm(s, at->threads, ret_norm, e) < 0)
        return -1;
    if (!isfinite(*ret_norm))
        return 0;
    const struct update u = numbers_of(o, at, *ret_norm);
    return does->update(s, &u, at->threads, e);
}
