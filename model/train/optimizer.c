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

/* Part of a piece within the span, counted from the span's first element. */
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

/* The elements that have moments, as a state of their own; the caller frees its pieces. */
static struct train_state shard(const struct train_state *s)
{
    struct train_state ret = *s;
    ret.piece = memory_new(s->pieces, sizeof *ret.piece);
    ret.pieces = 0;
    for (uint32_t k = 0; k < s->pieces; k++) {
        const struct piece p = clip(&s->piece[k], s->moments);
        if (p.count)
            ret.piece[ret.pieces++] = p;
    }
    ret.count = s->moments.count;
    ret.value += s->moments.first;
    ret.gradient += s->moments.first;
    return ret;
}

static int update_shard(const struct train_state *s, const struct update *u, uint32_t threads,
                        struct error *e)
{
    struct train_state own = shard(s);
    int r = own.pieces ? s->device.does->update(&own, u, threads, e) : 0;
    free(own.piece);
    return r;
}

uint64_t optimizer_blocks(const struct train_state *s, uint64_t end)
{
    uint64_t ret = 0;
    for (uint32_t k = 0; k < s->pieces; k++)
        ret += (clip(&s->piece[k], (struct span){0, end}).count + NORM_BLOCK - 1) / NORM_BLOCK;
    return ret;
}

int optimizer_squares(const struct train_state *s, uint32_t threads, double **ret,
                      struct error *e)
{
    struct train_state own = shard(s);
    const uint64_t before = optimizer_blocks(s, s->moments.first);
    *ret = memory_new(optimizer_blocks(s, s->count), sizeof **ret);
    int r = own.pieces ? s->device.does->gradient_squares(&own, threads, *ret + before, e) : 0;
    free(own.piece);
    return r;
}

int optimizer_move(const struct optimizer *o, const struct train_state *s,
                   const struct optimizer_step *at, double norm, struct error *e)
{
    const struct update u = numbers_of(o, at, norm);
    return s->moments.count == s->count ? s->device.does->update(s, &u, at->threads, e)
                                        : update_shard(s, &u, at->threads, e);
}

int optimizer_step(const struct optimizer *o, const struct train_state *s,
                   const struct optimizer_step *at, double *ret_norm, struct error *e)
{
    if (s->device.does->gradient_norm(s, at->threads, ret_norm, e) < 0)
        return -1;
    return isfinite(*ret_norm) ? optimizer_move(o, s, at, *ret_norm, e) : 0;
}
