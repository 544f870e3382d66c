/* SPDX-License-Identifier: Apache-2.0 */
/* The optimiser's loops. The device sums blocks of at most TRAIN_PART elements in f32, the host adds these in double, in the
   order of the buffer. With norms of pieces there are two passes: the update is not stored, but made again once its norm
   is known. */
#include "masks/base/memory.h"
#include "model/backend/gpu/train/train.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A list of blocks on the device. */
struct blocks {
    const float *value; /* of the state that it is for; null: of none */
    struct train_block *device;
    struct train_block *sent; /* pinned: the list that the device has */
    uint32_t capacity, count; /* count: of this list */
    struct gpu_event copied;  /* the end of its copy */
};

/* Buffers of the optimiser, which grow with the largest state and are kept. A step changes nothing that the device may still
   read, so no step waits for the update of the step before. A learned mask and its model, which have steps in turn, have a list
   of blocks each. */
enum { LISTS = 2 };
struct gpu_optimizer {
    struct blocks list[LISTS];
    uint32_t next; /* the list that another state gets */
    uint32_t parts;
    float *part; /* [parts], of the device */
    float *read; /* [parts]: what was read of it */
};

/* What a step needs beside the train_state. */
struct step {
    struct backend_state *s;
    struct gpu_optimizer *memory;
    struct blocks *list;
    struct train_block *block;
    uint32_t *piece; /* of each block */
    uint32_t blocks;
};

static struct gpu_optimizer *memory_of(struct backend_state *s)
{
    if (!s->optimizer)
        s->optimizer = memory_new(1, sizeof *s->optimizer);
    return s->optimizer;
}

static void release_blocks(const struct backend_state *s, struct blocks *l)
{
    gpu_release(s, l->device);
    s->driver->release_pinned(s->gpu, l->sent);
    l->device = l->sent = NULL;
    l->capacity = l->count = 0;
}

static void release_parts(const struct backend_state *s, struct gpu_optimizer *m)
{
    gpu_release(s, m->part);
    free(m->read);
    m->part = m->read = NULL;
    m->parts = 0;
}

static int reserve_parts(struct backend_state *s, uint64_t parts, struct error *e)
{
    struct gpu_optimizer *m = memory_of(s);
    if (parts <= m->parts)
        return 0;
    if (s->driver->wait(s->gpu, &s->stream, e) < 0)
        return -1;
    release_parts(s, m);
    m->part = gpu_allocate(s, parts * sizeof *m->part, e);
    if (!m->part)
        return -1;
    m->read = memory_new(parts, sizeof *m->read);
    m->parts = (uint32_t)parts;
    return 0;
}

static int reserve_blocks(struct backend_state *s, struct blocks *l, uint32_t blocks,
                          struct error *e)
{
    if (blocks <= l->capacity)
        return 0;
    if (s->driver->wait(s->gpu, &s->stream, e) < 0)
        return -1;
    release_blocks(s, l);
    l->sent = s->driver->allocate_pinned(s->gpu, blocks * sizeof *l->sent, e);
    l->device = l->sent ? gpu_allocate(s, blocks * sizeof *l->device, e) : NULL;
    if (!l->device)
        return -1;
    l->capacity = blocks;
    return 0;
}

/* The list of the state with these values. */
static struct blocks *list_of(struct gpu_optimizer *m, const float *value)
{
    for (int k = 0; k < LISTS; k++)
        if (m->list[k].value == value)
            return &m->list[k];
    struct blocks *ret = &m->list[m->next];
    m->next = (m->next + 1) % LISTS;
    ret->value = value;
    return ret;
}

void gpu_optimizer_finish(struct backend_state *s)
{
    struct gpu_optimizer *m = s->optimizer;
    if (!m)
        return;
    for (int k = 0; k < LISTS; k++) {
        release_blocks(s, &m->list[k]);
        s->driver->event_close(s->gpu, &m->list[k].copied);
    }
    release_parts(s, m);
    free(m);
    s->optimizer = NULL;
}

/* Partial sums of the device, `count` of them. */
static int read_parts(struct backend_state *s, uint64_t count, struct error *e)
{
    const struct gpu_optimizer *m = s->optimizer;
    return s->driver->fetch(s->gpu, &s->stream, m->read, m->part, count * sizeof *m->read, e);
}

/* ---- sums over an array ---- */

static int reduce(struct backend_state *s, const float *from, uint64_t count, uint32_t mode,
                  double *ret, struct error *e)
{
    const uint64_t parts = (count + TRAIN_PART - 1) / TRAIN_PART;
    struct train_args args = {.count = count, .mode = mode, .x = from};
    *ret = 0;
    if (reserve_parts(s, parts, e) < 0)
        return -1;
    args.part = s->optimizer->part;
    if (s->driver->run_train(s->gpu, &s->stream, TRAIN_OP_REDUCE, &args, e) < 0 ||
        read_parts(s, parts, e) < 0)
        return -1;
    for (uint64_t k = 0; k < parts; k++)
        *ret += (double)s->optimizer->read[k];
    return 0;
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

static bool same_block(const struct train_block *a, const struct train_block *b, uint32_t mode)
{
    return a->first == b->first && a->count == b->count && !memcmp(&a->decay, &b->decay, 4) &&
           (!(mode & TRAIN_MOVE_VALUES) || !memcmp(&a->scale, &b->scale, 4));
}

static bool device_has(const struct step *t, uint32_t mode)
{
    const struct blocks *l = t->list;
    bool ret = l->count == t->blocks;
    for (uint32_t k = 0; k < t->blocks && ret; k++)
        ret = same_block(&l->sent[k], &t->block[k], mode);
    return ret;
}

/* Sends the list unless the device has it: that of AdamW is the same in all steps. Scales are read where values move. */
static int send_blocks(const struct step *t, uint32_t mode, struct error *e)
{
    const struct gpu_driver *d = t->s->driver;
    struct blocks *l = t->list;
    if (device_has(t, mode))
        return 0;
    if (d->reach(t->s->gpu, &l->copied, e) < 0)
        return -1;
    l->count = 0;
    memcpy(l->sent, t->block, t->blocks * sizeof *l->sent);
    if (d->send(t->s->gpu, &t->s->stream, l->device, l->sent, t->blocks * sizeof *l->sent, e) <
            0 ||
        d->mark(t->s->gpu, &l->copied, &t->s->stream, e) < 0)
        return -1;
    l->count = t->blocks;
    return 0;
}

uint64_t gpu_update_bytes(const struct engine *g)
{
    return train_state_blocks(g, TRAIN_PART) * (sizeof(struct train_block) + 2 * sizeof(float));
}

static int begin(const struct train_state *s, const struct update *u, struct step *t,
                 struct error *e)
{
    divide(s, u, t);
    t->memory = memory_of(t->s);
    t->list = list_of(t->memory, s->value);
    return reserve_blocks(t->s, t->list, t->blocks, e) < 0
               ? -1
               : reserve_parts(t->s, 2 * (uint64_t)t->blocks, e);
}

static int run(const struct train_state *s, const struct update *u, const struct step *t,
               uint32_t mode, struct error *e)
{
    const struct train_args args = {.rows = t->blocks,
                                    .mode = mode,
                                    .eps = u->eps,
                                    .part = t->memory->part,
                                    .block = t->list->device,
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
    return send_blocks(t, mode, e) < 0
               ? -1
               : t->s->driver->run_train(t->s->gpu, &t->s->stream, TRAIN_OP_UPDATE, &args, e);
}

/* |value| / |u| of each piece that decays, to all its blocks. */
static void set_scales(const struct train_state *s, const struct update *u, struct step *t)
{
    uint32_t end;
    for (uint32_t k = 0; k < t->blocks; k = end) {
        double value = 0, of_update = 0;
        for (end = k; end < t->blocks && t->piece[end] == t->piece[k]; end++) {
            value += (double)t->memory->read[2 * end];
            of_update += (double)t->memory->read[2 * end + 1];
        }
        if (!s->piece[t->piece[k]].decays || u->decay == 0 || value == 0 || of_update == 0)
            continue;
        for (uint32_t i = k; i < end; i++)
            t->block[i].scale *= (float)sqrt(value / of_update);
    }
}

static int step_by_norms(const struct train_state *s, const struct update *u, struct step *t,
                         struct error *e)
{
    if (run(s, u, t, TRAIN_MOVE_MOMENTS | TRAIN_MEASURE, e) < 0 ||
        read_parts(t->s, 2 * (uint64_t)t->blocks, e) < 0)
        return -1;
    set_scales(s, u, t);
    return run(s, u, t, TRAIN_MOVE_VALUES, e);
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
    free(t.block);
    free(t.piece);
    return r;
}
