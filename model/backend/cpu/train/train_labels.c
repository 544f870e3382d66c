/* SPDX-License-Identifier: Apache-2.0 */
/* Loss of a target with few labels and its gradient: the pooler's products where the target is pooled, then the linear to
   the labels by hand, in the order of rows. One thread, as there is little to do. */
#include "model/backend/cpu/train/backward.h"
#include <math.h>
#include <omp.h>
#include <string.h>

/* What the functions below share. */
struct labels {
    const struct cpu_batch *p;
    const struct backward *b;
    const struct train_target *target;
    const struct target_form *form;
    double target_weight;
    const float *weight, *bias; /* [count, H], [count] */
    uint32_t hidden, count;     /* count: labels */
    struct target_loss *loss;
};

static const void *hidden_row(const struct labels *n, uint32_t k)
{
    return cpu_batch_row(n->p, n->p->tape->last, n->target->row[k], n->hidden);
}

static void gather(const struct labels *n)
{
    const struct label_arrays *a = &n->b->labels;
    for (uint32_t k = 0; k < n->target->count; k++)
        memcpy(cpu_batch_row(n->p, a->gathered, k, n->hidden), hidden_row(n, k),
               n->hidden * element_bytes(n->p->g->dtype));
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

static int pool(const struct labels *n, struct error *e)
{
    const struct label_arrays *a = &n->b->labels;
    struct linear pooler = n->p->c->pooler;
    pooler.shape.y = ELEMENT_F32;
    pooler.shape.after = AFTER_NONE;
    gather(n);
    if (multiply(n, &pooler, a->gathered, a->pre, e) < 0)
        return -1;
    n->p->training->ops->activate_f32(AFTER_TANH, (uint64_t)n->target->count * n->hidden,
                                      a->pre, a->x);
    return 0;
}

/* What the linear reads: [rows, H] in f32. */
static int read_rows(const struct labels *n, struct error *e)
{
    if (n->form->pooled)
        return pool(n, e);
    for (uint32_t k = 0; k < n->target->count; k++)
        elements_to_f32(n->p->g->dtype, hidden_row(n, k), n->hidden,
                        n->b->labels.x + (uint64_t)k * n->hidden);
    return 0;
}

/* The label has the first of the largest logits; NaN has none. */
static bool is_right(const double *z, uint32_t count, uint32_t label)
{
    bool ret = true;
    for (uint32_t c = 0; c < count; c++)
        ret &= c < label ? z[label] > z[c] : z[label] >= z[c];
    return ret;
}

/* z: the logits, then their gradient. */
static void find_loss(const struct labels *n, uint32_t row, double *z)
{
    const float *x = n->b->labels.x + (uint64_t)row * n->hidden;
    const uint32_t label = n->target->label[row];
    double most = -HUGE_VAL, sum = 0;
    for (uint32_t c = 0; c < n->count; c++) {
        z[c] = (double)n->bias[c];
        for (uint32_t k = 0; k < n->hidden; k++)
            z[c] += (double)x[k] * (double)n->weight[(uint64_t)c * n->hidden + k];
        most = fmax(most, z[c]);
    }
    for (uint32_t c = 0; c < n->count; c++)
        sum += exp(z[c] - most);
    n->loss->sum += most + log(sum) - z[label];
    n->loss->right += is_right(z, n->count, label);
    n->loss->count++;
    for (uint32_t c = 0; c < n->count; c++)
        z[c] = n->target_weight * (exp(z[c] - most) / sum - (c == label ? 1 : 0));
}

/* Gradients of the linear, and of what it reads. */
static void linear_back(const struct labels *n, uint32_t row, const double *d)
{
    const float *x = n->b->labels.x + (uint64_t)row * n->hidden;
    float *dx = n->b->labels.dx + (uint64_t)row * n->hidden,
          *weight = backward_gradient(n->p, n->form->weight, 0),
          *bias = backward_gradient(n->p, n->form->bias, 0);
    for (uint32_t c = 0; c < n->count; c++) {
        const float dc = (float)d[c], *w = n->weight + (uint64_t)c * n->hidden;
        bias[c] += dc;
        for (uint32_t k = 0; k < n->hidden; k++) {
            weight[(uint64_t)c * n->hidden + k] += dc * x[k];
            dx[k] = (c ? dx[k] : 0) + dc * w[k];
        }
    }
}

static int pool_back(const struct labels *n, struct error *e)
{
    const struct cpu_batch *p = n->p;
    const struct label_arrays *a = &n->b->labels;
    const uint64_t count = (uint64_t)n->target->count * n->hidden;
    p->training->ops->activate_back_f32(AFTER_TANH, count, a->pre, a->dx, a->dx);
    backward_round(p, count, a->dx, a->d_pre);
    backward_columns(p, n->target->count, n->hidden, a->d_pre,
                     backward_gradient(p, PARAMETER_POOLER_BIAS, 0));
    return multiply(n, &p->c->pooler_twin, a->d_pre, a->dx, e);
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

static int back(const struct labels *n, struct error *e)
{
    if (n->form->pooled && pool_back(n, e) < 0)
        return -1;
    for (uint32_t k = 0; k < n->target->count; k++)
        n->p->training->ops->add_f32(n->hidden, n->b->labels.dx + (uint64_t)k * n->hidden,
                                     n->b->stream + (uint64_t)n->target->row[k] * n->hidden);
    return n->form->pooled ? pooler_gradient(n, e) : 0;
}

static const float *values_of(const struct gradients_request *r, enum parameter_id id)
{
    return r->state->value + train_state_piece(r->state, id, 0)->first;
}

int train_labels(const struct cpu_batch *p, const struct backward *b, uint32_t target,
                 struct batch_loss *loss, struct error *e)
{
    const struct gradients_request *r = b->request;
    const struct train_target *t = &r->batch->target[target];
    const struct target_form *form = target_form(t->head);
    const struct labels n = {.p = p,
                             .b = b,
                             .target = t,
                             .form = form,
                             .target_weight = r->weight[target],
                             .weight = values_of(r, form->weight),
                             .bias = values_of(r, form->bias),
                             .hidden = p->g->config.hidden,
                             .count = target_labels(&p->g->config, t->head),
                             .loss = &loss->target[target]};
    if (read_rows(&n, e) < 0)
        return -1;
    for (uint32_t k = 0; k < t->count; k++) {
        find_loss(&n, k, b->labels.logits);
        if (!r->loss_only)
            linear_back(&n, k, b->labels.logits);
    }
    return r->loss_only ? 0 : back(&n, e);
}
