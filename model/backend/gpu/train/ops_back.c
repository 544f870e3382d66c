/* SPDX-License-Identifier: Apache-2.0 */
/* The way back through the operations of ops.c. */
#include "model/backend/gpu/train/ops.h"
#include "model/gradients/linear_gradients.h"
#include <stdlib.h>

/* ---- sums over rows ---- */

static int add_parts(const struct op_batch *p, const struct column_sums *s, const float *part,
                     float *to, struct error *e)
{
    return gpu_train_run(p, TRAIN_OP_ADD_PARTS,
                         &(struct train_args){.rows = (s->rows + TRAIN_CHUNK - 1) / TRAIN_CHUNK,
                                              .columns = s->columns,
                                              .part = (float *)(uintptr_t)part,
                                              .y = to},
                         e);
}

static int sum_columns(const struct op_batch *p, const struct column_sums *s, struct error *e)
{
    return gpu_train_run(p, TRAIN_OP_COLUMNS,
                         &(struct train_args){.rows = s->rows,
                                              .columns = s->columns,
                                              .wide = s->wide || p->g->dtype == ELEMENT_F32,
                                              .wide_z = s->wide_z || p->g->dtype == ELEMENT_F32,
                                              .x = s->x,
                                              .z = (void *)(uintptr_t)s->z,
                                              .part = p->partial},
                         e);
}

int gpu_train_columns(const struct op_batch *p, const struct column_sums *s, struct error *e)
{
    const uint64_t chunks = (s->rows + TRAIN_CHUNK - 1) / TRAIN_CHUNK;
    if (!s->to && !s->with_z)
        return 0;
    if (sum_columns(p, s, e) < 0 || (s->to && add_parts(p, s, p->partial, s->to, e) < 0))
        return -1;
    return s->with_z ? add_parts(p, s, p->partial + chunks * s->columns, s->with_z, e) : 0;
}

/* Heads are padded in the sums of query, key and value: of matrix m of the parameters. */
static int add_matrix_bias(const struct op_batch *p, const struct op_parameters *o,
                           uint32_t out, uint32_t m, struct error *e)
{
    const struct attention *a = &p->c->attention;
    const bool heads = o->heads == OP_HEADS_OUT;
    float *to =
        train_state_gradient(p->request->state, o->bias + (o->whole ? 0 : 2 * m), o->layer);
    if (!to)
        return 0;
    const struct train_args args = {.rows = (p->sizes.tokens + TRAIN_CHUNK - 1) / TRAIN_CHUNK,
                                    .columns = out / o->matrices,
                                    .stride = out,
                                    .head = heads ? a->head_dim : 0,
                                    .padded = heads ? a->padded_dim : 0,
                                    .part = p->partial + (uint64_t)m * (out / o->matrices),
                                    .y = to +
                                         (o->whole ? (uint64_t)m * a->heads * a->head_dim : 0)};
    return gpu_train_run(p, TRAIN_OP_ADD_PARTS, &args, e);
}

static int add_bias(const struct op_batch *p, const struct op_parameters *o, uint32_t out,
                    const void *dy, struct error *e)
{
    const struct column_sums s = {.rows = p->sizes.tokens, .columns = out, .x = dy};
    if (!train_state_gradient(p->request->state, o->bias, o->layer))
        return 0;
    int r = sum_columns(p, &s, e);
    for (uint32_t m = 0; m < o->matrices && r == 0; m++)
        r = add_matrix_bias(p, o, out, m, e);
    return r;
}

/* ---- norms ---- */

int gpu_train_norm_back(const struct op_batch *p, const struct norm_back *n, float *d,
                        struct error *e)
{
    const struct train_state *s = p->request->state;
    const bool wide = n->wide || p->g->dtype == ELEMENT_F32;
    const struct column_sums sums = {.rows = n->rows,
                                     .columns = n->norm->size,
                                     .x = d,
                                     .z = n->tape->normalised,
                                     .wide = true,
                                     .wide_z = wide,
                                     .to = train_state_gradient(s, n->shift, n->layer),
                                     .with_z = train_state_gradient(s, n->gain, n->layer)};
    const struct train_args args = {.rows = n->rows,
                                    .wide_z = wide,
                                    .gain = n->norm->gain,
                                    .z = n->tape->normalised,
                                    .inverse = n->tape->inverse,
                                    .d = d};
    return gpu_train_columns(p, &sums, e) < 0 ? -1
                                              : gpu_train_run(p, TRAIN_OP_NORM_BACK, &args, e);
}

int gpu_norm_back(struct op_batch *p, const struct op_norm *o, float *d, struct error *e)
{
    return gpu_train_norm_back(p,
                               &(struct norm_back){o->norm, &o->kept, p->sizes.tokens, o->layer,
                                                   o->gain, o->shift, false},
                               d, e);
}

int gpu_add(struct op_batch *p, const float *x, float *to, struct error *e)
{
    return gpu_train_run(
        p, TRAIN_OP_ADD,
        &(struct train_args){.count = (uint64_t)p->sizes.tokens * p->g->config.hidden,
                             .adds = 1,
                             .x = x,
                             .y = to},
        e);
}

/* ---- linears ---- */

static int weight_gradients(const struct op_batch *p, const struct op_parameters *o,
                            const struct linear_shape *s, const void *x, const void *dy,
                            struct error *e)
{
    const struct linear_gradients l = {
        p->request->state, &p->c->attention, o, s, p->sizes.tokens, x, dy};
    uint32_t n;
    int r = 0;
    struct weight_gradient *list = linear_gradients_list(&l, &n);
    for (uint32_t k = 0; k < n && r == 0; k++)
        r = p->state->driver->weight_gradient(p->state->gpu, &p->state->stream, &list[k], e);
    free(list);
    return r;
}

int gpu_close_back(struct op_batch *p, const struct op_close *o, float *d, void *d_sum,
                   void *dx, struct error *e)
{
    struct train_args drop = {
        .rows = p->sizes.tokens, .wide_y = p->g->dtype == ELEMENT_F32, .d = d, .y = d_sum};
    gpu_train_drop(p, o->site, &drop);
    if ((o->norm.norm && gpu_norm_back(p, &o->norm, d, e) < 0) ||
        gpu_train_run(p, TRAIN_OP_NORM_BACK, &drop, e) < 0 ||
        gpu_train_product(p, &(struct gpu_product){o->twin, drop.rows, d_sum, dx}, e) < 0 ||
        add_bias(p, &o->parameters, o->l->shape.out, d_sum, e) < 0)
        return -1;
    return weight_gradients(p, &o->parameters, &o->l->shape, o->x, d_sum, e);
}

/* Back through the activation where there is one. */
static int activate_back(const struct op_batch *p, const struct op_linear *o,
                         const struct op_linear_back *b, struct error *e)
{
    const bool gated = o->glu != AFTER_NONE;
    const struct train_args args = {
        .rows = p->sizes.tokens,
        .columns = gated ? o->l->shape.out / 2 : o->l->shape.out,
        .wide = p->g->dtype == ELEMENT_F32,
        .after = (uint32_t)(gated ? o->glu : linear_after(p->g->config.activation)),
        .x = o->pre,
        .d = (float *)(uintptr_t)b->dy,
        .y = b->d_pre};
    return gpu_train_run(p, gated ? TRAIN_OP_GLU_BACK : TRAIN_OP_ACTIVATE_BACK, &args, e);
}

int gpu_linear_back(struct op_batch *p, const struct op_linear *o,
                    const struct op_linear_back *b, struct error *e)
{
    const void *d = o->pre ? b->d_pre : b->dy;
    if ((o->pre && activate_back(p, o, b, e) < 0) ||
        gpu_train_product(
            p, &(struct gpu_product){o->twin, p->sizes.tokens, d, b->dx, .adds = b->adds}, e) <
            0 ||
        add_bias(p, &o->parameters, o->l->shape.out, d, e) < 0)
        return -1;
    return weight_gradients(p, &o->parameters, &o->l->shape, o->x, d, e);
}

int gpu_embed_back(struct op_batch *p, float *d, struct error *e)
{
    return gpu_train_embeddings(p, d, e);
}
