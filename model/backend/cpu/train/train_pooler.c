/* SPDX-License-Identifier: Apache-2.0 */
/* The pooler of a target's rows and the way back through it. One thread, as there are few rows. */
#include "model/arch/arch.h"
#include "model/backend/cpu/train/labels.h"
#include <omp.h>
#include <string.h>

static void gather(const struct labels *n)
{
    const struct label_arrays *a = &n->b->labels;
    for (uint32_t k = 0; k < n->target->count; k++)
        memcpy(cpu_batch_row(n->p, a->gathered, k, n->hidden), labels_hidden_row(n, k),
               n->hidden * element_bytes(n->p->g->dtype));
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

int labels_pool(const struct labels *n, struct error *e)
{
    const struct label_arrays *a = &n->b->labels;
    struct linear pooler = n->p->c->pooler;
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
    return 0;
}

static int pooler_gradient(const struct labels *n, struct error *e)
{
    const struct cpu_batch *p = n->p;
    const struct label_arrays *a = &n->b->labels;
    const struct weight_gradient weight = {
        n->hidden,   n->hidden, n->target->count,
        p->g->dtype, a->d_pre,  a->gathered,
        n->hidden,   n->hidden, backward_gradient(p, PARAMETER_POOLER_WEIGHT, 0),
        n->hidden};
    return matmul_weight_gradients(p->c->state->matmul, &weight, 1, p->g->threads, e);
}

int labels_pool_back(const struct labels *n, struct error *e)
{
    const struct cpu_batch *p = n->p;
    const struct label_arrays *a = &n->b->labels;
    const uint64_t count = (uint64_t)n->target->count * n->hidden;
    p->training->ops->activate_back_f32(p->c->pooler.shape.after, count, a->pre, a->dx, a->dx);
    backward_round(p, count, a->dx, a->d_pre);
    backward_columns(p, n->target->count, n->hidden, a->d_pre,
                     backward_gradient(p, PARAMETER_POOLER_BIAS, 0));
    if (multiply(n, &p->c->pooler_twin, a->d_pre, a->dx, e) < 0)
        return -1;
    if (drops(n))
        labels_drop(n, graph_dense_site(p->g->config.layers), a->dx);
    return pooler_gradient(n, e);
}
