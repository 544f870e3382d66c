/* SPDX-License-Identifier: Apache-2.0 */
/* The pooler of a target's rows and the way back through it. One thread, as there are few rows. */
#include "masks/base/memory.h"
#include "model/arch/arch.h"
#include "model/backend/cpu/train/labels.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

static void write_mean(const struct labels *n, uint32_t k, uint32_t rows, void *to)
{
    const struct cpu_batch *p = n->p;
    float *sum = n->b->labels.x; /* written anew later */
    if (p->g->dtype == ELEMENT_BF16)
        p->ops->sum_bf16(rows, n->hidden, labels_hidden_row(n, k), sum);
    else
        p->ops->sum_f32(rows, n->hidden, labels_hidden_row(n, k), sum);
    for (uint32_t i = 0; i < n->hidden; i++)
        sum[i] /= (float)rows;
    backward_round(p, n->hidden, sum, to);
}

static void gather(const struct labels *n)
{
    const struct label_arrays *a = &n->b->labels;
    for (uint32_t k = 0; k < n->target->count; k++) {
        void *to = cpu_batch_row(n->p, a->gathered, k, n->hidden);
        const uint32_t rows = labels_mean_rows(n, n->target->row[k]);
        if (rows > 1)
            write_mean(n, k, rows, to);
        else
            memcpy(to, labels_hidden_row(n, k), n->hidden * element_bytes(n->p->g->dtype));
    }
}

static bool drops(const struct labels *n)
{
    return arch_pooler(&n->p->g->config) == POOLER_DROPS && n->form->drops;
}

/* The rows that were gathered, by way of f32. */
static void drop_gathered(const struct labels *n)
{
    const struct label_arrays *a = &n->b->labels;
    const uint64_t count = (uint64_t)n->target->count * n->hidden;
    elements_to_f32(n->p->g->dtype, a->gathered, count, a->x);
    labels_drop(n, graph_dense_site(n->p->g->config.layers), a->x);
    backward_round(n->p, count, a->x, a->gathered);
}

/* y = x through a linear, on this thread. */
static int multiply(const struct labels *n, const struct linear *l, const void *x, float *y,
                    struct error *e)
{
    const struct product_use use = {n->target->count, 1, false};
    struct matmul *m = n->p->c->state->matmul;
    struct product_workspace *w = &n->p->memory->panel[0].product;
    const int before = omp_get_max_threads();
    omp_set_num_threads(1);
    const struct product *product = product_find(m, l, &use, e);
    int r = product ? product_workspace_grow(m, product, w, e) : -1;
    if (r == 0 && product_run(product, l, x, y, w) < 0)
        r = cpu_batch_failed(e);
    omp_set_num_threads(before);
    return r;
}

static bool shares(const struct labels *n)
{
    return arch_pooler(&n->p->g->config) == POOLER_SHARED;
}

static const struct linear *first_of(const struct labels *n)
{
    return shares(n) ? &n->p->c->words_dense : &n->p->c->pooler;
}

/* The linear's input is f32 here; the tape's is of the model's dtype. */
static void normalise(const struct labels *n)
{
    const struct label_arrays *a = &n->b->labels;
    const struct norm *norm = &n->p->c->words_norm;
    const struct cpu_train_ops *ops = n->p->training->ops;
    const uint32_t rows = n->target->count;
    if (n->p->g->dtype == ELEMENT_BF16) {
        ops->norm_bf16(norm, rows, a->x, NULL, a->norm.normalised, a->norm.inverse, a->d_pre);
        elements_to_f32(ELEMENT_BF16, a->d_pre, (uint64_t)rows * n->hidden, a->x);
    } else {
        ops->norm_f32(norm, rows, a->x, NULL, a->norm.normalised, a->norm.inverse, a->x);
    }
}

int labels_pool(const struct labels *n, struct error *e)
{
    const struct label_arrays *a = &n->b->labels;
    struct linear pooler = *first_of(n);
    const enum after after = pooler.shape.after;
    pooler.shape.y = ELEMENT_F32;
    pooler.shape.after = AFTER_NONE;
    gather(n);
    if (drops(n))
        drop_gathered(n);
    if (multiply(n, &pooler, a->gathered, a->pre, e) < 0)
        return -1;
    n->p->training->ops->activate_f32(after, (uint64_t)n->target->count * n->hidden, a->pre,
                                      a->x);
    if (shares(n))
        normalise(n);
    return 0;
}

static int pooler_gradient(const struct labels *n, struct error *e)
{
    const struct cpu_batch *p = n->p;
    const struct label_arrays *a = &n->b->labels;
    const struct weight_gradient weight = {
        n->hidden,
        n->hidden,
        n->target->count,
        p->g->dtype,
        a->d_pre,
        a->gathered,
        n->hidden,
        n->hidden,
        backward_gradient(p, shares(n) ? PARAMETER_MLM_DENSE_WEIGHT : PARAMETER_POOLER_WEIGHT,
                          0),
        n->hidden};
    return matmul_weight_gradients(p->c->state->matmul, &weight, 1, p->g->threads, e);
}

/* Back through the norm that heads share. */
static void normalise_back(const struct labels *n)
{
    const struct cpu_batch *p = n->p;
    const uint32_t h = n->hidden;
    float *sums = memory_new(2 * (size_t)h, sizeof *sums);
    const struct norm_back norm = {&p->c->words_norm, &n->b->labels.norm, sums, sums + h};
    backward_norm(p, &norm, 0, n->target->count, n->b->labels.dx);
    backward_add_panels(p, sums, 0, 1, h, backward_gradient(p, PARAMETER_MLM_GAIN, 0));
    backward_add_panels(p, sums + h, 0, 1, h, backward_gradient(p, PARAMETER_MLM_SHIFT, 0));
    free(sums);
}

int labels_pool_back(const struct labels *n, struct error *e)
{
    const struct cpu_batch *p = n->p;
    const struct label_arrays *a = &n->b->labels;
    const uint64_t count = (uint64_t)n->target->count * n->hidden;
    float *bias =
        backward_gradient(p, shares(n) ? PARAMETER_MLM_DENSE_BIAS : PARAMETER_POOLER_BIAS, 0);
    if (shares(n))
        normalise_back(n);
    p->training->ops->activate_back_f32(first_of(n)->shape.after, count, a->pre, a->dx, a->dx);
    backward_round(p, count, a->dx, a->d_pre);
    if (bias)
        backward_columns(p, n->target->count, n->hidden, a->d_pre, bias);
    if (multiply(n, shares(n) ? &p->c->words_dense_twin : &p->c->pooler_twin, a->d_pre, a->dx,
                 e) < 0)
        return -1;
    if (drops(n))
        labels_drop(n, graph_dense_site(p->g->config.layers), a->dx);
    return pooler_gradient(n, e);
}
