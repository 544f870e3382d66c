/* SPDX-License-Identifier: Apache-2.0 */
/* The way back through the operations of ops.c. */
#include "model/backend/gpu/train/ops.h"
#include "model/gradients/linear_gradients.h"
#include <stdlib.h>

/* ---- norms ---- */

int gpu_train_norm_back_then(const struct op_batch *p, const struct norm_back *n,
                             struct train_args *args, struct error *e)
{
    const struct train_state *s = p->request->state;
    const bool wide = n->wide || p->g->dtype == ELEMENT_F32;
    const struct column_sums sums = {.rows = n->rows,
                                     .columns = n->norm->size,
                                     .x = args->d,
                                     .z = n->tape->normalised,
                                     .wide = true,
                                     .wide_z = wide,
                                     .to = train_state_gradient(s, n->shift, n->layer),
                                     .with_z = train_state_gradient(s, n->gain, n->layer)};
    args->rows = n->rows;
    args->wide_z = wide;
    args->gain = n->norm->gain;
    args->z = n->tape->normalised;
    args->inverse = n->tape->inverse;
    return gpu_train_columns(p, &sums, e) < 0 ? -1
                                              : gpu_train_run(p, TRAIN_OP_NORM_BACK, args, e);
}

int gpu_train_norm_back(const struct op_batch *p, const struct norm_back *n, float *d,
                        struct error *e)
{
    return gpu_train_norm_back_then(p, n, &(struct train_args){.d = d}, e);
}

static struct norm_back norm_back_of(const struct op_batch *p, const struct op_norm *o)
{
    return (struct norm_back){o->norm,  &o->kept, p->sizes.tokens, o->layer, o->gain,
                              o->shift, false};
}

int gpu_norm_back(struct op_batch *p, const struct op_norm *o, float *d, struct error *e)
{
    const struct norm_back n = norm_back_of(p, o);
    return gpu_train_norm_back(p, &n, d, e);
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

/* Matrices that follow each other in all arrays become one: query, key and value whose heads are not padded. */
static uint32_t join(struct weight_gradient *list, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t k = 1; k < count; k++) {
        struct weight_gradient *a = &list[kept], *b = &list[k];
        const uint64_t bytes = a->out * element_bytes(a->type);
        if (a->dw_row == a->in && b->x == a->x && b->in == a->in && b->dw_row == a->dw_row &&
            (const uint8_t *)b->dy == (const uint8_t *)a->dy + bytes &&
            b->dw == a->dw + a->out * a->dw_row)
            a->out += b->out;
        else
            list[++kept] = *b;
    }
    return count ? kept + 1 : 0;
}

static int weight_gradients(const struct op_batch *p, const struct op_parameters *o,
                            const struct linear_shape *s, const void *x, const void *dy,
                            struct error *e)
{
    const struct linear_gradients l = {
        p->request->state, &p->c->attention, o, s, p->sizes.tokens, x, dy};
    uint32_t n;
    int r = 0;
    struct weight_gradient *list = linear_gradients_list(&l, &n);
    n = join(list, n);
    for (uint32_t k = 0; k < n && r == 0; k++)
        r = p->state->driver->weight_gradient(p->state->gpu, &p->state->stream, &list[k], e);
    free(list);
    return r;
}

/* Through the norm and the dropout in one go. */
static int rows_back(const struct op_batch *p, const struct op_close *o, float *d, void *d_sum,
                     struct error *e)
{
    struct train_args args = {
        .rows = p->sizes.tokens, .wide_y = p->g->dtype == ELEMENT_F32, .d = d, .y = d_sum};
    const struct norm_back n = norm_back_of(p, &o->norm);
    gpu_train_drop(p, o->site, &args);
    return o->norm.norm ? gpu_train_norm_back_then(p, &n, &args, e)
                        : gpu_train_run(p, TRAIN_OP_NORM_BACK, &args, e);
}

int gpu_close_back(struct op_batch *p, const struct op_close *o, float *d, void *d_sum,
                   void *dx, struct error *e)
{
    const struct gpu_product product = {o->twin, p->sizes.tokens, d_sum, dx};
    if (rows_back(p, o, d, d_sum, e) < 0 || gpu_train_product(p, &product, e) < 0 ||
        gpu_train_bias(p, &o->parameters, o->l->shape.out, d_sum, e) < 0)
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
        gpu_train_bias(p, &o->parameters, o->l->shape.out, d, e) < 0)
        return -1;
    return weight_gradients(p, &o->parameters, &o->l->shape, o->x, d, e);
}

int gpu_embed_back(struct op_batch *p, float *d, struct error *e)
{
    return gpu_train_embeddings(p, d, e);
}
