/* SPDX-License-Identifier: Apache-2.0 */
/* The way back through the operations of forward/plain.h. Sums over rows are a panel's own, added in the order of panels. */
#include "model/backend/cpu/forward/plain.h"
#include "model/backend/cpu/train/backward.h"
#include "model/gradients/linear_gradients.h"
#include <stdlib.h>
#include <string.h>

/* ---- sums of a panel: gain, shift, bias ---- */

struct sums {
    float *gain, *shift, *bias;
};

static struct sums sums_of(const struct cpu_batch *p, uint32_t panel)
{
    const uint64_t h = p->g->config.hidden;
    float *at = p->training->backward->sums + panel * panel_sums_size(p->g);
    return (struct sums){at, at + h, at + 2 * h};
}

static struct sums clear_sums(const struct part *part)
{
    const struct sums s = sums_of(part->p, part->panel);
    memset(s.gain, 0, panel_sums_size(part->p->g) * sizeof(float));
    return s;
}

static void add_sums(const struct cpu_batch *p, const float *sums, uint64_t count, float *to)
{
    backward_add_panels(p, sums, panel_sums_size(p->g), p->panels, count, to);
}

static void add_norm_sums(const struct cpu_batch *p, const struct op_norm *o)
{
    const struct sums s = sums_of(p, 0);
    add_sums(p, s.gain, o->norm->size, backward_gradient(p, o->gain, o->layer));
    add_sums(p, s.shift, o->norm->size, backward_gradient(p, o->shift, o->layer));
}

/* Heads are padded in the sums of query, key and value. */
static void add_bias_sums(const struct cpu_batch *p, const struct op_parameters *o,
                          uint32_t out)
{
    const struct attention *a = &p->c->attention;
    const float *sums = sums_of(p, 0).bias;
    if (o->heads != OP_HEADS_OUT) {
        add_sums(p, sums, out, backward_gradient(p, o->bias, o->layer));
        return;
    }
    for (uint32_t m = 0; m < o->matrices; m++) {
        float *to = backward_gradient(p, o->bias + (o->whole ? 0 : 2 * m), o->layer);
        if (to && o->whole)
            to += (uint64_t)m * a->heads * a->head_dim;
        for (uint64_t h = 0; to && h < a->heads; h++)
            add_sums(p, sums + (m * a->heads + h) * a->padded_dim, a->head_dim,
                     to + h * a->head_dim);
    }
}

/* ---- weights ---- */

static int weight_gradients(const struct cpu_batch *p, const struct op_parameters *o,
                            const struct linear_shape *s, const void *x, const void *dy,
                            struct error *e)
{
    const struct linear_gradients l = {
        p->training->backward->request->state, &p->c->attention, o, s, p->tokens, x, dy};
    uint32_t n;
    struct weight_gradient *list = linear_gradients_list(&l, &n);
    int r = matmul_weight_gradients(p->c->state->matmul, list, n, p->g->threads, e);
    free(list);
    return r;
}

/* ---- the end of a block ---- */

struct close_work {
    const struct op_close *o;
    struct plain_product product;
    float *d;
    void *d_sum, *dx;
};

/* Row of what a twin writes, f32 or of the dtype. */
static void *written(const struct part *part, const struct linear *twin, void *base)
{
    const uint64_t at = (uint64_t)part->first * twin->shape.out;
    return (uint8_t *)base + at * element_bytes(twin->shape.y);
}

static int close_back_step(const struct part *part, const void *op)
{
    const struct close_work *w = op;
    const struct op_close *o = w->o;
    const uint32_t size = o->l->shape.out;
    const struct sums s = clear_sums(part);
    float *d = w->d + (uint64_t)part->first * size;
    void *d_sum = cpu_batch_row(part->p, w->d_sum, part->first, size);
    const struct norm_back n = {o->norm.norm, &o->norm.kept, s.gain, s.shift};
    if (o->norm.norm)
        backward_norm(part->p, &n, part->first, part->rows, d);
    backward_drop(part, o->site, d, d_sum);
    backward_columns(part->p, part->rows, size, d_sum, s.bias);
    return plain_multiply(part, &w->product, d_sum, written(part, o->twin, w->dx));
}

static int close_back(struct op_batch *batch, const struct op_close *o, float *d, void *d_sum,
                      void *dx, struct error *e)
{
    const struct cpu_batch *p = batch->batch;
    struct close_work w = {.o = o, .d = d, .d_sum = d_sum, .dx = dx};
    if (plain_find(p, o->twin, false, &w.product, e) < 0 ||
        plain_run(p, close_back_step, &w, e) < 0)
        return -1;
    if (o->norm.norm)
        add_norm_sums(p, &o->norm);
    add_bias_sums(p, &o->parameters, o->l->shape.out);
    return weight_gradients(p, &o->parameters, &o->l->shape, o->x, d_sum, e);
}

/* ---- linears ---- */

struct linear_work {
    const struct op_linear *o;
    const struct op_linear_back *b;
    struct plain_product product;
};

/* One row, from dy [width] in f32 to d [2 width]: through the product with the other half, and the activation. */
static void glu_back(const struct part *part, const struct linear_work *w, uint32_t r)
{
    const struct cpu_batch *p = part->p;
    const struct cpu_train_ops *ops = p->training->ops;
    const uint32_t width = w->o->l->shape.out / 2;
    const uint64_t at = part->first + (uint64_t)r;
    const float *dy = (const float *)w->b->dy + at * width;
    const void *pre = cpu_batch_row(p, w->o->pre, at, 2 * width);
    float *own = part->workspace->glu, *first = own, *d = own + 2 * (uint64_t)width;
    if (p->g->dtype == ELEMENT_BF16)
        p->ops->widen_bf16(2 * (uint64_t)width, pre, own);
    else
        memcpy(own, pre, 2 * (uint64_t)width * sizeof *own);
    ops->activate_f32(w->o->glu, width, first, d + width);
#pragma omp simd
    for (uint32_t k = 0; k < width; k++) {
        d[k] = dy[k] * own[width + k];
        d[width + k] *= dy[k];
    }
    ops->activate_back_f32(w->o->glu, width, first, d, d);
    backward_round(p, 2 * (uint64_t)width, d, cpu_batch_row(p, w->b->d_pre, at, 2 * width));
}

/* Back through the activation where there is one. */
static const void *before_activation(const struct part *part, const struct linear_work *w)
{
    const struct cpu_batch *p = part->p;
    const struct cpu_train_ops *ops = p->training->ops;
    const struct linear_shape *s = &w->o->l->shape;
    const uint64_t count = (uint64_t)part->rows * s->out;
    const enum after after = linear_after(p->g->config.activation);
    for (uint32_t r = 0; w->o->glu != AFTER_NONE && r < part->rows; r++)
        glu_back(part, w, r);
    if (w->o->glu != AFTER_NONE)
        return cpu_batch_row(p, w->b->d_pre, part->first, s->out);
    if (!w->o->pre)
        return cpu_batch_row(p, (void *)(uintptr_t)w->b->dy, part->first, s->out);
    const float *dy = (const float *)w->b->dy + (uint64_t)part->first * s->out;
    const void *pre = cpu_batch_row(p, w->o->pre, part->first, s->out);
    void *d = cpu_batch_row(p, w->b->d_pre, part->first, s->out);
    if (p->g->dtype == ELEMENT_BF16)
        ops->activate_back_bf16(after, count, pre, dy, d);
    else
        ops->activate_back_f32(after, count, pre, dy, d);
    return d;
}

static int linear_back_step(const struct part *part, const void *op)
{
    const struct linear_work *w = op;
    const struct sums s = clear_sums(part);
    const void *d = before_activation(part, w);
    backward_columns(part->p, part->rows, w->o->l->shape.out, d, s.bias);
    return plain_multiply(part, &w->product, d,
                          w->b->dx + (uint64_t)part->first * w->o->twin->shape.out);
}

static int linear_back(struct op_batch *batch, const struct op_linear *o,
                       const struct op_linear_back *b, struct error *e)
{
    const struct cpu_batch *p = batch->batch;
    struct linear_work w = {.o = o, .b = b};
    if (plain_find(p, o->twin, b->adds, &w.product, e) < 0 ||
        plain_run(p, linear_back_step, &w, e) < 0)
        return -1;
    add_bias_sums(p, &o->parameters, o->l->shape.out);
    return weight_gradients(p, &o->parameters, &o->l->shape, o->x, o->pre ? b->d_pre : b->dy,
                            e);
}

/* ---- norms, sums ---- */

struct norm_work {
    const struct op_norm *o;
    float *d;
};

static int norm_back_step(const struct part *part, const void *op)
{
    const struct norm_work *w = op;
    const struct sums s = clear_sums(part);
    const struct norm_back n = {w->o->norm, &w->o->kept, s.gain, s.shift};
    backward_norm(part->p, &n, part->first, part->rows,
                  w->d + (uint64_t)part->first * w->o->norm->size);
    return 0;
}

static int norm_back(struct op_batch *batch, const struct op_norm *o, float *d, struct error *e)
{
    const struct norm_work w = {o, d};
    if (plain_run(batch->batch, norm_back_step, &w, e) < 0)
        return -1;
    add_norm_sums(batch->batch, o);
    return 0;
}

struct add_work {
    const float *x;
    float *to;
};

static int add_step(const struct part *part, const void *op)
{
    const struct add_work *w = op;
    const uint64_t size = part->p->g->config.hidden, first = part->first * size;
    part->p->training->ops->add_f32(part->rows * size, w->x + first, w->to + first);
    return 0;
}

static int add(struct op_batch *batch, const float *x, float *to, struct error *e)
{
    return plain_run(batch->batch, add_step, &(struct add_work){x, to}, e);
}

/* ---- attention, embeddings ---- */

static int attend_back(struct op_batch *batch, uint32_t layer, struct error *e)
{
    return backward_attention(batch->batch, layer, e);
}

/* d is the stream of the pass. */
static int embed_back(struct op_batch *batch, float *d, struct error *e)
{
    (void)d;
    return backward_embeddings(batch->batch, e);
}

const struct ops cpu_ops = {
    .embed = plain_embed,
    .linear = plain_linear,
    .norm = plain_norm,
    .close = plain_close,
    .rotate = plain_rotate,
    .attend = plain_attend,
    .lap = plain_lap,
    .close_back = close_back,
    .linear_back = linear_back,
    .norm_back = norm_back,
    .add = add,
    .attend_back = attend_back,
    .embed_back = embed_back,
};
