/* SPDX-License-Identifier: Apache-2.0 */
/* A target with few labels: the linear from its rows to the labels, by hand in double, and the way back. A target has up
   to a row for each token of the batch. Threads share rows, and elements of the weight's gradient, each of which is a
   sum over rows in order: the same bits for any number of threads. */
#include "model/arch/arch.h"
#include "model/backend/cpu/train/labels.h"
#include "model/gradients/label_losses.h"

/* Rows from which on threads share the work; elements of the weight that a thread takes at a time. */
enum { SHARED_ROWS = 256, WEIGHT_BLOCK = 64 };

static bool shared(const struct labels *n)
{
    return n->target->count >= SHARED_ROWS;
}

uint32_t labels_row(const struct labels *n, uint32_t k)
{
    return n->row ? n->row[k] : k;
}

bool labels_are_pooled(const struct labels *n)
{
    return n->form->pooled || arch_pooler(&n->p->g->config) == POOLER_SHARED;
}

uint32_t labels_mean_rows(const struct labels *n, uint32_t row)
{
    const int32_t *offsets = n->p->offsets;
    uint32_t s = 0;
    if (!n->form->pooled || !n->p->g->config.mean_pooling)
        return 1;
    while ((uint32_t)offsets[s + 1] <= row)
        s++;
    return (uint32_t)offsets[s + 1] - row;
}

const void *labels_hidden_row(const struct labels *n, uint32_t k)
{
    return cpu_batch_row(n->p, n->p->tape->last, labels_row(n, k), n->hidden);
}

static float *row_of(const struct labels *n, float *base, uint32_t row)
{
    return base + (uint64_t)row * n->hidden;
}

/* ---- what the linear reads ---- */

void labels_drop(const struct labels *n, uint32_t site, float *x)
{
    const struct training *t = n->p->training;
    const struct row_dropout d = training_head_dropout(t, site);
    if (!n->form->drops || !d.keep_below)
        return;
#pragma omp parallel for if (shared(n))
    for (uint32_t k = 0; k < n->target->count; k++)
        t->ops->drop_f32(&d, t->place + labels_row(n, k), 1, n->hidden, row_of(n, x, k),
                         row_of(n, x, k));
}

static int read_rows(const struct labels *n, struct error *e)
{
    if (labels_are_pooled(n) && labels_pool(n, e) < 0)
        return -1;
    if (!labels_are_pooled(n)) {
#pragma omp parallel for if (shared(n))
        for (uint32_t k = 0; k < n->target->count; k++)
            elements_to_f32(n->p->g->dtype, labels_hidden_row(n, k), n->hidden,
                            row_of(n, n->b->labels.x, k));
    }
    labels_drop(n, graph_head_site(n->p->g->config.layers), n->b->labels.x);
    return 0;
}

/* ---- the linear ---- */

static void row_logits(const struct labels *n, uint32_t row)
{
    const float *x = row_of(n, n->b->labels.x, row);
    double *z = n->b->labels.logits + (uint64_t)row * n->count;
    for (uint32_t c = 0; c < n->count; c++) {
        z[c] = (double)n->bias[c];
        for (uint32_t k = 0; k < n->hidden; k++)
            z[c] += (double)x[k] * (double)n->weight[(uint64_t)c * n->hidden + k];
    }
}

static void find_logits(const struct labels *n)
{
#pragma omp parallel for if (shared(n))
    for (uint32_t row = 0; row < n->target->count; row++)
        row_logits(n, row);
}

/* The logits become their gradient. */
static void find_loss(const struct labels *n)
{
    const struct label_logits l = {n->b->request->batch, n->target, n->target_weight, n->count,
                                   n->b->labels.logits};
    label_losses(&l, n->loss);
}

/* dx of a row. */
static void row_back(const struct labels *n, uint32_t row)
{
    const double *d = n->b->labels.logits + (uint64_t)row * n->count;
    float *dx = row_of(n, n->b->labels.dx, row);
    for (uint32_t c = 0; c < n->count; c++) {
        const float dc = (float)d[c], *w = n->weight + (uint64_t)c * n->hidden;
        for (uint32_t k = 0; k < n->hidden; k++)
            dx[k] = (c ? dx[k] : 0) + dc * w[k];
    }
}

static double logit_gradient(const struct labels *n, uint32_t row, uint32_t label)
{
    return n->b->labels.logits[(uint64_t)row * n->count + label];
}

/* Elements first .. end - 1 of a label's weight. */
static void weight_back(const struct labels *n, uint32_t label, uint32_t first, uint32_t end,
                        float *gradient)
{
    for (uint32_t row = 0; row < n->target->count; row++) {
        const float dc = (float)logit_gradient(n, row, label),
                    *x = row_of(n, n->b->labels.x, row);
        for (uint32_t k = first; k < end; k++)
            gradient[k] += dc * x[k];
    }
}

/* A softmax over rows does not see the bias, whose gradient is 0: the sum in double keeps it so small that an optimiser
   makes no steps out of its rounding. */
static void bias_back(const struct labels *n, float *gradient)
{
    const bool over_rows = n->target->loss == LOSS_CHOICE || n->target->loss == LOSS_SPAN;
    for (uint32_t c = 0; c < n->count; c++) {
        double sum = 0;
        for (uint32_t row = 0; row < n->target->count; row++)
            if (over_rows)
                sum += logit_gradient(n, row, c);
            else
                gradient[c] += (float)logit_gradient(n, row, c);
        gradient[c] += (float)sum;
    }
}

/* Gradients of the linear, and of what it reads. */
static void linear_back(const struct labels *n)
{
    float *weight = backward_gradient(n->p, n->form->weight, 0);
    const uint32_t blocks = (n->hidden + WEIGHT_BLOCK - 1) / WEIGHT_BLOCK;
    bias_back(n, backward_gradient(n->p, n->form->bias, 0));
#pragma omp parallel for if (shared(n))
    for (uint64_t k = 0; k < (uint64_t)n->count * blocks; k++) {
        const uint32_t label = (uint32_t)(k / blocks),
                       first = (uint32_t)(k % blocks) * WEIGHT_BLOCK, left = n->hidden - first;
        weight_back(n, label, first, first + (left < WEIGHT_BLOCK ? left : WEIGHT_BLOCK),
                    weight + (uint64_t)label * n->hidden);
    }
#pragma omp parallel for if (shared(n))
    for (uint32_t row = 0; row < n->target->count; row++)
        row_back(n, row);
}

/* To the row, or its share to each row of the sequence whose mean it is. */
static void add_to_stream(const struct labels *n, uint32_t k)
{
    const struct cpu_batch *p = n->p;
    const uint32_t row = labels_row(n, k), count = labels_mean_rows(n, n->target->row[k]);
    float *dx = row_of(n, n->b->labels.dx, k);
    for (uint32_t i = 0; count > 1 && i < n->hidden; i++)
        dx[i] /= (float)count;
    for (uint32_t r = row; r < row + count; r++)
        p->training->ops->add_f32(n->hidden, dx, n->b->stream + (uint64_t)r * n->hidden);
}

static int back(const struct labels *n, struct error *e)
{
    linear_back(n);
    labels_drop(n, graph_head_site(n->p->g->config.layers), n->b->labels.dx);
    if (labels_are_pooled(n) && labels_pool_back(n, e) < 0)
        return -1;
#pragma omp parallel for if (shared(n))
    for (uint32_t k = 0; k < n->target->count; k++)
        add_to_stream(n, k);
    return 0;
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
                             .row = p->tail ? NULL : t->row,
                             .loss = &loss->target[target]};
    if (read_rows(&n, e) < 0)
        return -1;
    find_logits(&n);
    find_loss(&n);
    return r->loss_only ? 0 : back(&n, e);
}
