/* SPDX-License-Identifier: Apache-2.0 */
/* The next sentence's loss and its gradient: the pooler's products, and two columns by hand. One thread, as there is
   little to do. */
#include "model/backend/cpu/train/backward.h"
#include <math.h>
#include <omp.h>
#include <string.h>

/* What the functions below share. */
struct next {
    const struct cpu_batch *p;
    const struct backward *b;
    const float *weight, *bias; /* [2, H], [2] */
    uint32_t hidden;
    struct batch_loss *loss;
};

static void gather(const struct next *n)
{
    const struct cpu_batch *p = n->p;
    for (uint32_t s = 0; s < p->sequences; s++)
        memcpy(cpu_batch_row(p, n->b->next.gathered, s, n->hidden),
               cpu_batch_row(p, p->tape->last, (uint32_t)p->offsets[s], n->hidden),
               n->hidden * element_bytes(p->g->dtype));
}

/* y = x through a linear, on this thread. */
static int multiply(const struct next *n, const struct linear *l, const void *x, float *y,
                    struct error *e)
{
    const struct product_use use = {n->p->sequences, 1, false};
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

static int pool(const struct next *n, struct error *e)
{
    const struct cpu_batch *p = n->p;
    const struct next_arrays *a = &n->b->next;
    struct linear pooler = p->c->pooler;
    pooler.shape.y = ELEMENT_F32;
    pooler.shape.after = AFTER_NONE;
    if (multiply(n, &pooler, a->gathered, a->pre, e) < 0)
        return -1;
    p->training->ops->activate_f32(AFTER_TANH, (uint64_t)p->sequences * n->hidden, a->pre,
                                   a->pooled);
    return 0;
}

/* ret: the gradient of the two logits. */
static void find_loss(const struct next *n, uint32_t s, double ret[2])
{
    const float *x = n->b->next.pooled + (uint64_t)s * n->hidden;
    const uint32_t label = n->b->request->batch->next_label[s];
    double z[2];
    for (int c = 0; c < 2; c++) {
        z[c] = (double)n->bias[c];
        for (uint32_t k = 0; k < n->hidden; k++)
            z[c] += (double)x[k] * (double)n->weight[(uint32_t)c * n->hidden + k];
    }
    const double most = fmax(z[0], z[1]), sum = exp(z[0] - most) + exp(z[1] - most);
    for (int c = 0; c < 2; c++)
        ret[c] = n->b->request->next_weight *
                 (exp(z[c] - most) / sum - ((uint32_t)c == label ? 1 : 0));
    n->loss->next += most + log(sum) - z[label];
    n->loss->next_right += z[label] > z[1 - label] || (z[0] == z[1] && label == 0);
    n->loss->sequences++;
}

/* Gradients of the two columns, and of what they read. */
static void columns_back(const struct next *n, uint32_t s, const double d[2])
{
    const float *x = n->b->next.pooled + (uint64_t)s * n->hidden;
    float *dx = n->b->next.dx + (uint64_t)s * n->hidden,
          *weight = backward_gradient(n->p, PARAMETER_NSP_WEIGHT, 0),
          *bias = backward_gradient(n->p, PARAMETER_NSP_BIAS, 0);
    for (uint32_t c = 0; c < 2; c++) {
        const float dc = (float)d[c], *w = n->weight + (uint64_t)c * n->hidden;
        bias[c] += dc;
        for (uint32_t k = 0; k < n->hidden; k++) {
            weight[(uint64_t)c * n->hidden + k] += dc * x[k];
            dx[k] = (c ? dx[k] : 0) + dc * w[k];
        }
    }
}

static int pool_back(const struct next *n, struct error *e)
{
    const struct cpu_batch *p = n->p;
    const struct next_arrays *a = &n->b->next;
    const uint64_t count = (uint64_t)p->sequences * n->hidden;
    const struct weight_gradient weight = {
        n->hidden,   n->hidden, p->sequences,
        p->g->dtype, a->d_pre,  a->gathered,
        n->hidden,   n->hidden, backward_gradient(p, PARAMETER_POOLER_WEIGHT, 0),
        n->hidden};
    p->training->ops->activate_back_f32(AFTER_TANH, count, a->pre, a->dx, a->dx);
    backward_round(p, count, a->dx, a->d_pre);
    backward_columns(p, p->sequences, n->hidden, a->d_pre,
                     backward_gradient(p, PARAMETER_POOLER_BIAS, 0));
    if (multiply(n, &p->c->pooler_twin, a->d_pre, a->dx, e) < 0)
        return -1;
    for (uint32_t s = 0; s < p->sequences; s++)
        p->training->ops->add_f32(n->hidden, a->dx + (uint64_t)s * n->hidden,
                                  n->b->stream + (uint64_t)p->offsets[s] * n->hidden);
    return matmul_weight_gradients(p->c->state->matmul, &weight, 1, p->g->threads, e);
}

int train_next(const struct cpu_batch *p, const struct backward *b, struct batch_loss *loss,
               struct error *e)
{
    const struct train_state *s = b->request->state;
    const struct next n = {p,
                           b,
                           s->value + train_state_piece(s, PARAMETER_NSP_WEIGHT, 0)->first,
                           s->value + train_state_piece(s, PARAMETER_NSP_BIAS, 0)->first,
                           p->g->config.hidden,
                           loss};
    gather(&n);
    if (pool(&n, e) < 0)
        return -1;
    for (uint32_t k = 0; k < p->sequences; k++) {
        double d[2];
        find_loss(&n, k, d);
        if (!b->request->loss_only)
            columns_back(&n, k, d);
    }
    return b->request->loss_only ? 0 : pool_back(&n, e);
}
