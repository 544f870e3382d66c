/* SPDX-License-Identifier: Apache-2.0 */
/* A target with few labels: the pooler, the linear to the labels, and the way back. Logits go to the host, which takes the
   loss and its gradient in double. */
#include "masks/base/memory.h"
#include "model/arch/arch.h"
#include "model/backend/gpu/train/ops.h"
#include "model/gradients/label_losses.h"
#include "model/gradients/linear_gradients.h"
#include <stdlib.h>

struct labels {
    struct op_batch *p;
    const struct train_target *target;
    const struct target_form *form;
    const struct staged_target *staged;
    double target_weight;
    uint32_t rows;  /* with those that are added */
    uint32_t count; /* labels */
};

static uint64_t logits_of(const struct labels *n)
{
    return (uint64_t)n->rows * n->count;
}

static float *gradient(const struct labels *n, enum parameter_id id)
{
    return train_state_gradient(n->p->request->state, id, 0);
}

static const float *value(const struct labels *n, enum parameter_id id)
{
    const struct train_state *s = n->p->request->state;
    return s->value + train_state_piece(s, id, 0)->first;
}

/* y = the head's dropout of x, over the target's rows. y == x: f32, in place; else y has the engine's dtype.
   drops false: only converts. */
static int drop(const struct labels *n, uint32_t site, bool drops, float *x, void *y,
                struct error *e)
{
    const struct op_batch *p = n->p;
    struct train_args args = {
        .rows = n->rows, .wide_y = x == y || p->g->dtype == ELEMENT_F32, .d = x, .y = y};
    gpu_train_drop_with(p, site, drops && !p->request->loss_only ? p->request->head_dropout : 0,
                        &args);
    args.place = p->staged + n->staged->place;
    return x == y && !args.keep_below ? 0 : gpu_train_run(p, TRAIN_OP_NORM_BACK, &args, e);
}

static int drop_before_labels(const struct labels *n, float *x, struct error *e)
{
    return drop(n, graph_head_site(n->p->g->config.layers), n->form->drops, x, x, e);
}

/* ---- the pooler ---- */

static bool drops_before_pooler(const struct labels *n)
{
    return arch_pooler(&n->p->g->config) == POOLER_DROPS && n->form->drops;
}

static int pool(const struct labels *n, struct error *e)
{
    const struct op_batch *p = n->p;
    const struct label_arrays *a = &p->labels;
    const uint32_t rows = n->rows;
    struct linear pooler = p->c->pooler;
    const struct rows_args after = {.rows = rows,
                                    .columns = pooler.shape.out,
                                    .after = pooler.shape.after,
                                    .wide = 1,
                                    .x = a->pre,
                                    .y = a->x};
    pooler.shape.after = AFTER_NONE;
    pooler.shape.y = ELEMENT_F32;
    pooler.fused_bias = pooler.bias;
    if (drop(n, graph_dense_site(p->g->config.layers), drops_before_pooler(n), a->x,
             a->gathered, e) < 0 ||
        gpu_run_product(&p->memory->ops, &pooler, rows, a->gathered, a->pre, e) < 0)
        return -1;
    return gpu_run_op(&p->memory->ops, ENCODER_OP_FINISH, &after, e);
}

static int pool_back(const struct labels *n, struct error *e)
{
    const struct op_batch *p = n->p;
    const struct label_arrays *a = &p->labels;
    const uint32_t rows = n->rows, h = p->g->config.hidden;
    const struct train_args back = {.rows = rows,
                                    .columns = h,
                                    .wide = 1,
                                    .after = p->c->pooler.shape.after,
                                    .x = a->pre,
                                    .d = a->dx,
                                    .y = a->d_pre};
    const struct column_sums bias = {
        .rows = rows, .columns = h, .x = a->d_pre, .to = gradient(n, PARAMETER_POOLER_BIAS)};
    const struct weight_gradient weight = {h,
                                           h,
                                           rows,
                                           p->g->dtype,
                                           a->d_pre,
                                           a->gathered,
                                           h,
                                           h,
                                           gradient(n, PARAMETER_POOLER_WEIGHT),
                                           h};
    if (gpu_train_run(p, TRAIN_OP_ACTIVATE_BACK, &back, e) < 0 ||
        gpu_train_columns(p, &bias, e) < 0 ||
        gpu_train_product(p, &(struct gpu_product){&p->c->pooler_twin, rows, a->d_pre, a->dx},
                          e) < 0 ||
        drop(n, graph_dense_site(p->g->config.layers), drops_before_pooler(n), a->dx, a->dx,
             e) < 0)
        return -1;
    return p->state->driver->weight_gradient(p->state->gpu, &p->state->stream, &weight, e);
}

/* ---- the linear to the labels ---- */

static int read_rows(const struct labels *n, struct error *e)
{
    const struct op_batch *p = n->p;
    const struct train_args args = {.rows = n->rows,
                                    .wide = p->g->dtype == ELEMENT_F32,
                                    .from = p->staged + n->staged->row,
                                    .x = p->tape.last,
                                    .y = p->labels.x};
    if (gpu_train_run(p, TRAIN_OP_SEGMENTS, &args, e) < 0 ||
        (n->form->pooled && pool(n, e) < 0))
        return -1;
    return drop_before_labels(n, p->labels.x, e);
}

static int find_logits(const struct labels *n, struct error *e)
{
    const struct label_arrays *a = &n->p->labels;
    const struct train_args args = {.rows = n->rows,
                                    .columns = n->count,
                                    .words = value(n, n->form->weight),
                                    .bias = value(n, n->form->bias),
                                    .x = a->x,
                                    .y = a->logits};
    return gpu_train_run(n->p, TRAIN_OP_LABELS, &args, e);
}

/* The logits become their gradient, 0 in the added rows, and *bias gets the sums of that: in double, as a softmax over rows does
   not see the bias, and an optimiser would make steps out of rounding. */
static void take_loss(const struct labels *n, struct target_loss *loss, float *logits,
                      float *bias)
{
    const uint64_t all = (uint64_t)n->target->count * n->count;
    double *own = memory_new(all, sizeof *own);
    const struct label_logits l = {n->p->request->batch, n->target, n->target_weight, n->count,
                                   own};
    for (uint64_t k = 0; k < all; k++)
        own[k] = (double)logits[k];
    label_losses(&l, loss);
    for (uint64_t k = 0; k < logits_of(n); k++)
        logits[k] = k < all ? (float)own[k] : 0;
    for (uint32_t c = 0; c < n->count; c++) {
        double sum = 0;
        for (uint64_t k = c; k < all; k += n->count)
            sum += own[k];
        bias[c] = (float)sum;
    }
    free(own);
}

static int linear_back(const struct labels *n, struct error *e)
{
    const struct op_batch *p = n->p;
    const struct label_arrays *a = &p->labels;
    const uint32_t rows = n->rows, h = p->g->config.hidden;
    const struct weight_gradient weight = {h,
                                           n->count,
                                           rows,
                                           ELEMENT_F32,
                                           a->logits,
                                           a->x,
                                           n->count,
                                           h,
                                           gradient(n, n->form->weight),
                                           h};
    const struct train_args bias = {.count = n->count,
                                    .adds = 1,
                                    .x = a->logits + logits_of(n),
                                    .y = gradient(n, n->form->bias)},
                            back = {.rows = rows,
                                    .columns = n->count,
                                    .words = value(n, n->form->weight),
                                    .d = a->logits,
                                    .y = a->dx};
    if (gpu_train_run(p, TRAIN_OP_ADD, &bias, e) < 0 ||
        gpu_train_run(p, TRAIN_OP_LABELS_BACK, &back, e) < 0)
        return -1;
    return p->state->driver->weight_gradient(p->state->gpu, &p->state->stream, &weight, e);
}

static int back(const struct labels *n, struct error *e)
{
    const struct op_batch *p = n->p;
    const struct train_args scatter = {.rows = n->rows,
                                       .wide = 1,
                                       .adds = 1,
                                       .target = p->staged + n->staged->to,
                                       .x = p->labels.dx,
                                       .y = p->back.stream};
    if (linear_back(n, e) < 0 || drop_before_labels(n, p->labels.dx, e) < 0 ||
        (n->form->pooled && pool_back(n, e) < 0))
        return -1;
    return gpu_train_run(p, TRAIN_OP_SEGMENTS, &scatter, e);
}

/* ---- the target ---- */

static struct labels labels_of(struct op_batch *p, uint32_t target)
{
    const struct train_target *t = &p->request->batch->target[target];
    return (struct labels){.p = p,
                           .target = t,
                           .form = target_form(t->head),
                           .staged = &p->inputs.target[target],
                           .target_weight = p->request->weight[target],
                           .rows = gpu_train_target_rows(t),
                           .count = target_labels(&p->g->config, t->head)};
}

static int run_forward(void *context, uint32_t index, struct error *e)
{
    const struct labels n = labels_of(context, index / HEAD_SEGMENTS);
    return read_rows(&n, e) < 0 ? -1 : find_logits(&n, e);
}

static int run_back(void *context, uint32_t index, struct error *e)
{
    const struct labels n = labels_of(context, index / HEAD_SEGMENTS);
    return back(&n, e) < 0 ? -1 : gpu_train_end_sums(context, e);
}

/* There is room for the sums of the gradient behind the logits. */
int gpu_train_labels(struct op_batch *p, uint32_t target, struct error *e)
{
    const struct labels n = labels_of(p, target);
    const struct train_segment forward = {true, target * HEAD_SEGMENTS, run_forward};
    return gpu_train_segment(p, &forward, e) < 0
               ? -1
               : gpu_train_read(p, &p->memory->logits, p->labels.logits,
                                (logits_of(&n) + n.count) * sizeof(float), e);
}

/* The next copy to the pinned memory comes after these from it. */
static int send_gradient(const struct labels *n, const float *host, struct error *e)
{
    const struct backend_state *s = n->p->state;
    struct gpu_stream *stream = &n->p->state->stream;
    return s->driver->send(s->gpu, stream, n->p->labels.logits, host,
                           (logits_of(n) + n->count) * sizeof *host, e);
}

int gpu_train_end_labels(struct op_batch *p, uint32_t target, struct batch_loss *loss,
                         struct error *e)
{
    const struct labels n = labels_of(p, target);
    const struct train_segment way_back = {true, target * HEAD_SEGMENTS + 1, run_back};
    if (gpu_train_reach(p, &p->memory->logits, e) < 0)
        return -1;
    float *host = p->memory->logits.host;
    take_loss(&n, &loss->target[target], host, host + logits_of(&n));
    if (p->request->loss_only)
        return 0;
    return send_gradient(&n, host, e) < 0 ? -1 : gpu_train_segment(p, &way_back, e);
}
