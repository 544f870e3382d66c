/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of columns. Partial sums over chunks of rows wait until there are many: one launch then adds all of them to the
   gradients, each in the order of its rows. */
#include "model/backend/gpu/train/train.h"
#include "model/gradients/linear_gradients.h"

int gpu_train_end_sums(const struct op_batch *p, struct error *e)
{
    struct pending_sums *w = &p->memory->sums;
    struct train_args args = {.sums = w->count};
    if (!w->count)
        return 0;
    for (uint32_t k = 0; k < w->count; k++) {
        args.sum[k] = w->sum[k];
        args.columns += w->sum[k].columns;
    }
    *w = (struct pending_sums){0};
    return gpu_train_run(p, TRAIN_OP_ADD_PARTS, &args, e);
}

static bool is_pending(const struct pending_sums *w, const float *y)
{
    for (uint32_t k = 0; k < w->count; k++)
        if (w->sum[k].y == y)
            return true;
    return false;
}

/* Room for the partial sums of `columns`, and for `sums` sums. Null with *e set. */
static float *begin(const struct op_batch *p, uint64_t columns, uint32_t sums, struct error *e)
{
    struct pending_sums *w = &p->memory->sums;
    if ((w->used + columns > p->partials || w->count + sums > TRAIN_SUMS) &&
        gpu_train_end_sums(p, e) < 0)
        return NULL;
    float *ret = p->partial + w->used;
    w->used += columns;
    return ret;
}

static void add(const struct op_batch *p, const struct train_sum *s)
{
    struct pending_sums *w = &p->memory->sums;
    if (s->y)
        w->sum[w->count++] = *s;
}

static uint32_t chunks_of(uint32_t rows)
{
    return (rows + TRAIN_CHUNK - 1) / TRAIN_CHUNK;
}

static int sum_columns(const struct op_batch *p, const struct column_sums *s, float *part,
                       struct error *e)
{
    const bool f32 = p->g->dtype == ELEMENT_F32;
    return gpu_train_run(p, TRAIN_OP_COLUMNS,
                         &(struct train_args){.rows = s->rows,
                                              .columns = s->columns,
                                              .wide = s->wide || f32,
                                              .wide_z = s->wide_z || f32,
                                              .x = s->x,
                                              .z = (void *)(uintptr_t)s->z,
                                              .part = part},
                         e);
}

int gpu_train_columns(const struct op_batch *p, const struct column_sums *s, struct error *e)
{
    const uint32_t chunks = chunks_of(s->rows);
    const uint64_t count = (uint64_t)chunks * s->columns;
    if (!s->to && !s->with_z)
        return 0;
    if ((is_pending(&p->memory->sums, s->to) || is_pending(&p->memory->sums, s->with_z)) &&
        gpu_train_end_sums(p, e) < 0)
        return -1;
    float *part = begin(p, s->z ? 2 * count : count, 2, e);
    if (!part || sum_columns(p, s, part, e) < 0)
        return -1;
    struct train_sum sum = {part, s->to, chunks, s->columns, s->columns, 0, 0};
    add(p, &sum);
    sum.part += count;
    sum.y = s->with_z;
    add(p, &sum);
    return 0;
}

/* Where matrix m of the parameters has its bias's gradient; null: nowhere. */
static float *matrix_bias(const struct op_batch *p, const struct op_parameters *o, uint32_t m)
{
    const struct attention *a = &p->c->attention;
    float *to =
        train_state_gradient(p->request->state, o->bias + (o->whole ? 0 : 2 * m), o->layer);
    return to && o->whole ? to + (uint64_t)m * a->heads * a->head_dim : to;
}

/* Heads are padded in the sums of query, key and value. */
static void add_matrix_bias(const struct op_batch *p, const struct op_parameters *o,
                            uint32_t out, uint32_t m, const float *part)
{
    const struct attention *a = &p->c->attention;
    const bool heads = o->heads == OP_HEADS_OUT;
    const uint32_t columns = out / o->matrices;
    add(p, &(struct train_sum){part + (uint64_t)m * columns, matrix_bias(p, o, m),
                               chunks_of(p->sizes.tokens), columns, out,
                               heads ? a->head_dim : 0, heads ? a->padded_dim : 0});
}

int gpu_train_bias(const struct op_batch *p, const struct op_parameters *o, uint32_t out,
                   const void *dy, struct error *e)
{
    const struct column_sums s = {.rows = p->sizes.tokens, .columns = out, .x = dy};
    float *part;
    if (!train_state_gradient(p->request->state, o->bias, o->layer))
        return 0;
    for (uint32_t m = 0; m < o->matrices; m++)
        if (is_pending(&p->memory->sums, matrix_bias(p, o, m)) && gpu_train_end_sums(p, e) < 0)
            return -1;
    part = begin(p, (uint64_t)chunks_of(s.rows) * out, o->matrices, e);
    if (!part || sum_columns(p, &s, part, e) < 0)
        return -1;
    for (uint32_t m = 0; m < o->matrices; m++)
        add_matrix_bias(p, o, out, m, part);
    return 0;
}
