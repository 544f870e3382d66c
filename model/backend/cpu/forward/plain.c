/* SPDX-License-Identifier: Apache-2.0 */
/* See plain.h. */
#include "model/backend/cpu/forward/plain.h"
#include <omp.h>
#include <string.h>

/* ---- panels and products ---- */

int plain_run(const struct cpu_batch *p, plain_step *step, const void *op, struct error *e)
{
    int failed = 0;
#pragma omp parallel reduction(| : failed)
    {
        omp_set_num_threads(1);
#pragma omp for schedule(dynamic, 1)
        for (uint32_t k = 0; k < p->panels; k++) {
            struct part part = {.p = p,
                                .workspace = &p->memory->panel[omp_get_thread_num()],
                                .panel = k,
                                .first = k * p->panel,
                                .rows = p->panel};
            if (k + 1 == p->panels)
                part.rows = p->tokens - part.first;
            failed |= step(&part, op) < 0;
        }
    }
    return failed ? cpu_batch_failed(e) : 0;
}

static int find(const struct cpu_batch *p, const struct linear *l, uint32_t rows, bool adds,
                const struct product **ret, struct error *e)
{
    const struct product_use use = {rows, 1, adds};
    struct matmul *m = p->c->state->matmul;
    *ret = product_find(m, l, &use, e);
    if (!*ret)
        return -1;
    for (uint32_t t = 0; t < p->memory->panels; t++)
        if (product_workspace_grow(m, *ret, &p->memory->panel[t].product, e) < 0)
            return -1;
    return 0;
}

int plain_find(const struct cpu_batch *p, const struct linear *l, bool adds,
               struct plain_product *ret, struct error *e)
{
    ret->l = l;
    return find(p, l, p->panel, adds, &ret->whole, e) < 0
               ? -1
               : find(p, l, p->tokens - (p->panels - 1) * p->panel, adds, &ret->last, e);
}

int plain_multiply(const struct part *part, const struct plain_product *p, const void *x,
                   void *y)
{
    const bool last = part->panel + 1 == part->p->panels;
    return product_run(last ? p->last : p->whole, p->l, x, y, &part->workspace->product);
}

/* ---- rows ---- */

static void *row(const struct part *part, const void *base, uint32_t columns)
{
    return cpu_batch_row(part->p, (void *)(uintptr_t)base, part->first, columns);
}

void plain_widen(const struct part *part, const void *x, uint32_t size, float *y)
{
    const uint64_t count = (uint64_t)part->rows * size;
    if (part->p->g->dtype == ELEMENT_BF16)
        part->p->ops->widen_bf16(count, row(part, x, size), y);
    else
        memcpy(y, row(part, x, size), count * sizeof *y);
}

static void round_to(const struct part *part, uint64_t count, const float *x, void *y)
{
    if (part->p->g->dtype == ELEMENT_BF16)
        part->p->ops->round_bf16(count, x, y);
    else
        memcpy(y, x, count * sizeof *x);
}

/* y = norm(sum + residual); residual may be null. The part's sum is overwritten. */
static void normalise(const struct part *part, const struct op_norm *o, void *residual, void *y)
{
    const struct cpu_batch *p = part->p;
    const uint32_t size = o->norm->size;
    float *x = part->workspace->sum;
    const bool bf16 = p->g->dtype == ELEMENT_BF16;
    if (!p->training) {
        if (bf16)
            p->ops->norm_bf16(o->norm, part->rows, x, residual, y);
        else
            p->ops->norm_f32(o->norm, part->rows, x, residual, y);
        return;
    }
    const struct cpu_train_ops *ops = p->training->ops;
    void *normalised = row(part, o->kept.normalised, size);
    float *inverse = o->kept.inverse + part->first;
    if (bf16)
        ops->norm_bf16(o->norm, part->rows, x, residual, normalised, inverse, y);
    else
        ops->norm_f32(o->norm, part->rows, x, residual, normalised, inverse, y);
}

/* ---- embeddings, norms ---- */

static int embed_step(const struct part *part, const void *op)
{
    (void)op;
    return panel_begin(part, 0);
}

/* y is the hidden states of the tape's first layer. */
int plain_embed(struct op_batch *p, void *y, struct error *e)
{
    (void)y;
    return plain_run(p->batch, embed_step, NULL, e);
}

static int norm_step(const struct part *part, const void *op)
{
    const struct op_norm *o = op;
    plain_widen(part, o->x, o->norm->size, part->workspace->sum);
    normalise(part, o, NULL, row(part, o->y, o->norm->size));
    return 0;
}

int plain_norm(struct op_batch *p, const struct op_norm *o, struct error *e)
{
    return plain_run(p->batch, norm_step, o, e);
}

/* ---- linears ---- */

struct linear_work {
    const struct op_linear *o;
    struct plain_product product;
    enum after after; /* that is our own: training keeps what stands before it */
};

static void activate(const struct part *part, const struct linear_work *w, const float *x)
{
    const struct cpu_train_ops *ops = part->p->training->ops;
    const uint32_t size = w->o->l->shape.out;
    const uint64_t count = (uint64_t)part->rows * size;
    void *pre = row(part, w->o->pre, size), *y = row(part, w->o->y, size);
    if (part->p->g->dtype == ELEMENT_BF16)
        ops->activate_bf16(w->after, count, x, pre, y);
    else
        ops->activate_f32(w->after, count, x, y);
}

static int linear_step(const struct part *part, const void *op)
{
    const struct linear_work *w = op;
    const struct linear_shape *s = &w->o->l->shape;
    const bool f32 = part->p->g->dtype == ELEMENT_F32;
    void *y = w->after == AFTER_NONE ? row(part, w->o->y, s->out)
              : f32                  ? row(part, w->o->pre, s->out)
                                     : (void *)part->workspace->between;
    if (plain_multiply(part, &w->product, row(part, w->o->x, s->in), y) < 0)
        return -1;
    if (w->after != AFTER_NONE)
        activate(part, w, y);
    return 0;
}

/* activation(first half) * second half of what the product wrote; rows of f32 are worked on. */
static void glu_row(const struct part *part, const struct op_linear *o, uint32_t r)
{
    const struct cpu_batch *p = part->p;
    const uint32_t width = o->l->shape.out / 2;
    const bool bf16 = p->g->dtype == ELEMENT_BF16;
    const uint64_t at = part->first + (uint64_t)r;
    const void *pre = cpu_batch_row(p, o->pre, at, 2 * width);
    void *y = cpu_batch_row(p, o->y, at, width);
    float *first = bf16 ? part->workspace->between : y, *own = part->workspace->between + width;
    const float *second = bf16 ? own : (const float *)pre + width;
    if (bf16) {
        p->ops->widen_bf16(width, pre, first);
        p->ops->widen_bf16(width, (const uint16_t *)pre + width, own);
    }
    p->train_ops->activate_f32(o->glu, width, bf16 ? first : (const float *)pre, first);
#pragma omp simd
    for (uint32_t k = 0; k < width; k++)
        first[k] *= second[k];
    if (bf16)
        p->ops->round_bf16(width, first, y);
}

static int gated_step(const struct part *part, const void *op)
{
    const struct linear_work *w = op;
    const struct linear_shape *s = &w->o->l->shape;
    if (plain_multiply(part, &w->product, row(part, w->o->x, s->in),
                       row(part, w->o->pre, s->out)) < 0)
        return -1;
    for (uint32_t r = 0; r < part->rows; r++)
        glu_row(part, w->o, r);
    return 0;
}

int plain_linear(struct op_batch *p, const struct op_linear *o, struct error *e)
{
    if (o->glu != AFTER_NONE) {
        struct linear_work gated = {.o = o};
        return plain_find(p->batch, o->l, false, &gated.product, e) < 0
                   ? -1
                   : plain_run(p->batch, gated_step, &gated, e);
    }
    struct linear l = *o->l;
    struct linear_work w = {.o = o, .after = o->pre ? l.shape.after : AFTER_NONE};
    if (w.after != AFTER_NONE) {
        l.shape.y = ELEMENT_F32;
        l.shape.after = AFTER_NONE;
    }
    if (plain_find(p->batch, &l, false, &w.product, e) < 0)
        return -1;
    return plain_run(p->batch, linear_step, &w, e);
}

struct close_work {
    const struct op_close *o;
    struct plain_product product;
};

static void drop(const struct part *part, uint32_t site)
{
    const struct training *t = part->p->training;
    if (!t || site == SITE_NONE)
        return;
    const struct row_dropout d = training_dropout(t, site);
    if (!d.keep_below)
        return;
    float *sum = part->workspace->sum;
    t->ops->drop_f32(&d, t->place + part->first, part->rows, part->p->g->config.hidden, sum,
                     sum);
}

static int close_step(const struct part *part, const void *op)
{
    const struct close_work *w = op;
    const struct op_close *o = w->o;
    const uint32_t size = o->l->shape.out;
    const uint64_t count = (uint64_t)part->rows * size;
    float *sum = part->workspace->sum, *residual = part->workspace->normed;
    if (plain_multiply(part, &w->product, row(part, o->x, o->l->shape.in), sum) < 0)
        return -1;
    drop(part, o->site);
    if (o->norm.norm) {
        normalise(part, &o->norm, row(part, o->residual, size), row(part, o->y, size));
        return 0;
    }
    plain_widen(part, o->residual, size, residual);
    part->p->ops->add_f32(count, residual, sum);
    round_to(part, count, sum, row(part, o->y, size));
    return 0;
}

int plain_close(struct op_batch *p, const struct op_close *o, struct error *e)
{
    struct close_work w = {.o = o};
    if (plain_find(p->batch, o->l, false, &w.product, e) < 0 ||
        plain_run(p->batch, close_step, &w, e) < 0)
        return -1;
    return plain_lap(p, o->phase, e);
}

/* ---- rotation ---- */

struct rotate_work {
    void *x;
    const float *angle; /* cosines, then sines */
    float sign;
};

static void rotate_row(const struct part *part, const struct rotate_work *w, uint32_t r,
                       uint32_t position)
{
    const struct cpu_batch *p = part->p;
    const struct attention *a = &p->c->attention;
    const uint32_t half = a->head_dim / 2;
    const uint64_t at = (uint64_t)position * half, columns = (uint64_t)a->heads * a->padded_dim,
                   sines = (uint64_t)p->g->config.positions * half;
    uint8_t *x = cpu_batch_row(p, w->x, part->first + (uint64_t)r, 3 * columns);
    const float *cosine = w->angle + at, *sine = cosine + sines;
    for (uint32_t h = 0; h < 2 * a->heads; h++, x += a->padded_dim * element_bytes(a->dtype))
        if (a->dtype == ELEMENT_BF16)
            p->ops->rotate_bf16(half, cosine, sine, w->sign, (uint16_t *)x);
        else
            p->ops->rotate_f32(half, cosine, sine, w->sign, (float *)x);
}

static int rotate_step(const struct part *part, const void *op)
{
    const int32_t *offsets = part->p->offsets;
    for (uint32_t r = 0, s = 0; r < part->rows; r++) {
        while ((uint32_t)offsets[s + 1] <= part->first + r)
            s++;
        rotate_row(part, op, r, part->first + r - (uint32_t)offsets[s]);
    }
    return 0;
}

int plain_rotate(struct op_batch *p, uint32_t layer, void *x, bool back, struct error *e)
{
    const struct cpu_batch *b = p->batch;
    const bool global = config_layer_is_global(&b->g->config, layer);
    return plain_run(b, rotate_step,
                     &(struct rotate_work){x, b->c->rotation[global], back ? -1 : 1}, e);
}

/* ---- attention, time ---- */

int plain_attend(struct op_batch *p, uint32_t layer, struct error *e)
{
    return cpu_batch_attend(p->batch, layer, e);
}

int plain_lap(struct op_batch *p, enum engine_phase phase, struct error *e)
{
    (void)e;
    const double now = omp_get_wtime();
    if (p->batch->seconds && phase != PHASE_ATTENTION) /* which cpu_batch_attend counts */
        p->batch->seconds[phase] += now - p->since;
    p->since = now;
    return 0;
}
