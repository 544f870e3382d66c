/* SPDX-License-Identifier: Apache-2.0 */
/* The optimiser's loops. The device sums blocks of at most TRAIN_PART elements in f32, the host adds these in double, in the
   order of the buffer. With norms of pieces there are two passes: the update is not stored, but made again once its norm
   is known. */
#include "masks/base/memory.h"
#include "model/backend/gpu/train/train.h"
#include <math.h>
#include <stdlib.h>

/* What a step needs beside the state: freed by release_all(). */
struct step {
    struct backend_state *s;
    struct train_block *block;
    uint32_t *piece; /* of each block */
    uint32_t blocks;
    struct train_block *device; /* [blocks] */
    float *part;                /* [2 blocks] of the device, and what was read of it */
    float *read;
};

static void release_all(struct step *t)
{
    struct error ignored;
    t->s->driver->wait(t->s->gpu, &t->s->stream, &ignored);
    gpu_release(t->s, t->device);
    gpu_release(t->s, t->part);
    free(t->block);
    free(t->piece);
    free(t->read);
}

/* Partial sums of the device, `count` of them. */
static int read_parts(struct step *t, uint64_t count, struct error *e)
{
    t->read = memory_new(count, sizeof *t->read);
    return t->s->driver->fetch(t->s->gpu, &t->s->stream, t->read, t->part,
                               count * sizeof *t->read, e);
}

/* ---- sums over an array ---- */

static int reduce(struct backend_state *s, const float *from, uint64_t count, uint32_t mode,
                  double *ret, struct error *e)
{
    const uint64_t parts = (count + TRAIN_PART - 1) / TRAIN_PART;
    struct step t = {.s = s, .part = gpu_allocate(s, parts * sizeof(float), e)};
    const struct train_args args = {.count = count, .mode = mode, .x = from, .part = t.part};
    int r = t.part ? s->driver->run_train(s->gpu, &s->stream, TRAIN_OP_REDUCE, &args, e) : -1;
    if (r == 0)
        r = read_parts(&t, parts, e);
    *ret = 0;
    for (uint64_t k = 0; r == 0 && k < parts; k++)
        *ret += (double)t.read[k];
    release_all(&t);
    return r;
}

int gpu_array_is_finite(struct backend_state *s, const float *from, uint64_t count, bool *ret,
                        struct error *e)
{
    double sum;
    if (reduce(s, from, count, 1, &sum, e) < 0)
        return -1;
    *ret = isfinite(sum);
    return 0;
}

/* The norm over the whole buffer: padding between pieces is 0. */
int gpu_gradient_norm(const struct train_state *s, uint32_t threads, double *ret,
                      struct error *e)
{
    double squares;
    (void)threads;
    if (reduce(s->device.state, s->gradient, s->count, 0, &squares, e) < 0)
        return -1;
    *ret = sqrt(squares);
    return 0;
}

/* ---- a step ---- */

static void divide(const struct train_state *s, const struct update *u, struct step *t)
{
    uint32_t capacity = 0, pieces = 0, n = 0;
    for (uint32_t k = 0; k < s->pieces; k++)
        for (uint64_t at = 0; at < s->piece[k].count; at += TRAIN_PART) {
            const struct piece *p = &s->piece[k];
            const uint64_t left = p->count - at;
            *MEMORY_PUSH(t->block, t->blocks, capacity) =
                (struct train_block){.first = p->first + at,
                                     .count = left < TRAIN_PART ? (uint32_t)left : TRAIN_PART,
                                     .decay = p->decays ? u->decay : 0,
                                     .scale = p->rate_scale};
            *MEMORY_PUSH(t->piece, n, pieces) = k;
        }
}

static int send_blocks(const struct step *t, struct error *e)
{
    return t->s->driver->send(t->s->gpu, &t->s->stream, t->device, t->block,
                              t->blocks * sizeof *t->block, e);
}

uint64_t gpu_update_bytes(const struct engine *g)
{
    return train_state_blocks(g, TRAIN_PART) * (sizeof(struct train_block) + 2 * sizeof(float));
}

static int begin(const struct train_state *s, const struct update *u, struct step *t,
                 struct error *e)
{
    divide(s, u, t);
    t->device = gpu_allocate(t->s, t->blocks * sizeof *t->block, e);
    if (!t->device || send_blocks(t, e) < 0)
        return -1;
    t->part = gpu_allocate(t->s, 2 * (uint64_t)t->blocks * sizeof *t->part, e);
    return t->part ? 0 : -1;
}

static int run(const struct train_state *s, const struct update *u, const struct step *t,
               uint32_t mode, struct error *e)
{
    const struct train_args args = {.rows = t->blocks,
                                    .mode = mode,
                                    .eps = u->eps,
                                    .part = t->part,
                                    .block = t->device,
                                    .value = s->value,
                                    .gradient = s->gradient,
                                    .first_moment = s->first_moment,
                                    .second_moment = s->second_moment,
                                    .rate = u->rate,
                                    .gradient_scale = u->gradient_scale,
                                    .beta1 = u->beta1,
                                    .rest1 = u->rest1,
                                    .beta2 = u->beta2,
                                    .rest2 = u->rest2,
                                    .first_scale = u->first_scale,
                                    .second_scale = u->second_scale};
    return t->s->driver->run_train(t->s->gpu, &t->s->stream, TRAIN_OP_UPDATE, &args, e);
}

/* |value| / |u| of each piece, to all its blocks. */
static void set_scales(struct step *t)
{
    uint32_t end;
    for (uint32_t k = 0; k < t->blocks; k = end) {
        double value = 0, of_update = 0;
        for (end = k; end < t->blocks && t->piece[end] == t->piece[k]; end++) {
            value += (double)t->read[2 * end];
            of_update += (double)t->read[2 * end + 1];
        }
        for (uint32_t i = k; i < end && value != 0 && of_update != 0; i++)
            t->block[i].scale *= (float)sqrt(value / of_update);
    }
}

static int step_by_norms(const struct train_state *s, const struct update *u, struct step *t,
                         struct error *e)
{
    if (run(s, u, t, TRAIN_MOVE_MOMENTS | TRAIN_MEASURE, e) < 0 ||
        read_parts(t, 2 * (uint64_t)t->blocks, e) < 0)
        return -1;
    set_scales(t);
    return send_blocks(t, e) < 0 ? -1 : run(s, u, t, TRAIN_MOVE_VALUES, e);
}

int gpu_update(const struct train_state *s, const struct update *u, uint32_t threads,
               struct error *e)
{
    struct step t = {.s = s->device.state};
    (void)threads;
    int r = begin(s, u, &t, e);
    if (r == 0)
        r = u->by_norms ? step_by_norms(s, u, &t, e)
                        : run(s, u, &t, TRAIN_MOVE_MOMENTS | TRAIN_MOVE_VALUES, e);
    release_all(&t);
    return r;
}
