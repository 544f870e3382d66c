/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a step; the loops are the backend's. */
#include "model/train/optimizer.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdlib.h>

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

/* Of a piece what lies in the span, counted from its first element. */
static struct piece clip(const struct piece *p, struct span s)
{
    const uint64_t first = p->first > s.first ? p->first : s.first,
                   piece_end = p->first + p->count, span_end = s.first + s.count,
                   end = piece_end < span_end ? piece_end : span_end;
    struct piece ret = *p;
    ret.first = first - s.first;
    ret.count = end > first ? end - first : 0;
    return ret;
}

/* The elements that have moments, as a state of their own. */
static int update_shard(const struct train_state *s, const struct update *u, uint32_t threads,
                        struct error *e)
{
    struct train_state own = *s;
    own.piece = memory_new(s->pieces, sizeof *own.piece);
    own.pieces = 0;
    for (uint32_t k = 0; k < s->pieces; k++) {
        const struct piece p = clip(&s->piece[k], s->moments);
        if (p.count)
            own.piece[own.pieces++] = p;
    }
    own.count = s->moments.count;
    own.value += s->moments.first;
    own.gradient += s->moments.first;
    int r = own.pieces ? s->device.does->update(&own, u, threads, e) : 0;
    free(own.piece);
    return r;
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
    return s->moments.count == s->count ? does->update(s, &u, at->threads, e)
                                        : update_shard(s, &u, at->threads, e);
}
