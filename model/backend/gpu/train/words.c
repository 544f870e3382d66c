/* SPDX-License-Identifier: Apache-2.0 */
/* The masked words' loss and its gradient, a chunk of rows at a time: gathered, through the head, over the vocabulary. */
#include "model/backend/gpu/train/train.h"
#include "model/gradients/linear_gradients.h"
#include <math.h>

/* Rows first .. first + rows of a target. */
struct chunk {
    struct op_batch *p;
    const uint32_t *row, *to, *label; /* on the device */
    const float *weight;              /* of the target, there */
    uint32_t first, rows;
};

static float *gradient(const struct chunk *c, enum parameter_id id)
{
    return train_state_gradient(c->p->request->state, id, 0);
}

static int gather(const struct chunk *c, struct error *e)
{
    const struct rows_args args = {.rows = c->rows,
                                   .number = c->row + c->first,
                                   .x = c->p->tape.last,
                                   .y = c->p->words.gathered};
    return gpu_run_op(&c->p->memory->ops, ENCODER_OP_GATHER, &args, e);
}

/* From hidden states to what the decoder takes. */
static int transform(const struct chunk *c, struct error *e)
{
    const struct op_batch *p = c->p;
    const struct words_arrays *w = &p->words;
    const struct norm *n = &p->c->words_norm;
    struct linear dense = p->c->words_dense;
    const struct rows_args after = {.rows = c->rows,
                                    .columns = dense.shape.out,
                                    .after = dense.shape.after,
                                    .wide = 1,
                                    .x = w->pre,
                                    .y = w->d};
    const struct train_args norm = {.rows = c->rows,
                                    .eps = n->eps,
                                    .gain = n->gain,
                                    .shift = n->shift,
                                    .x = w->d,
                                    .z = w->norm.normalised,
                                    .inverse = w->norm.inverse,
                                    .y = w->normed};
    dense.shape.after = AFTER_NONE;
    if (gpu_run_product(&p->memory->ops, &dense, c->rows, w->gathered, w->pre, e) < 0 ||
        gpu_run_op(&p->memory->ops, ENCODER_OP_FINISH, &after, e) < 0)
        return -1;
    return gpu_train_run(p, TRAIN_OP_NORM, &norm, e);
}

/* The loss of each row, and the gradient of its logits. */
static int find_loss(const struct chunk *c, struct error *e)
{
    const struct op_batch *p = c->p;
    const struct words_arrays *w = &p->words;
    const struct train_args args = {.rows = c->rows,
                                    .columns = p->g->config.vocabulary,
                                    .weight = c->weight,
                                    .label = c->label + c->first,
                                    .x = w->logits,
                                    .y = p->request->loss_only ? NULL : w->d_logits,
                                    .loss = w->loss + c->first};
    return gpu_run_product(&p->memory->ops, &p->c->words_out, c->rows, w->normed, w->logits,
                           e) < 0
               ? -1
               : gpu_train_run(p, TRAIN_OP_CROSS_ENTROPY, &args, e);
}

/* ---- backward ---- */

/* From the logits to before the head's activation. */
static int dense_back(const struct chunk *c, struct error *e)
{
    const struct op_batch *p = c->p;
    const struct words_arrays *w = &p->words;
    const struct column_sums bias = {.rows = c->rows,
                                     .columns = p->g->config.vocabulary,
                                     .x = w->d_logits,
                                     .to = gradient(c, PARAMETER_MLM_BIAS)},
                             dense_bias = {.rows = c->rows,
                                           .columns = p->g->config.hidden,
                                           .x = w->d_dense,
                                           .to = gradient(c, PARAMETER_MLM_DENSE_BIAS)};
    const struct norm_back norm = {
        &p->c->words_norm,   &w->norm, c->rows, 0, PARAMETER_MLM_GAIN,
        PARAMETER_MLM_SHIFT, false};
    const struct train_args back = {.rows = c->rows,
                                    .columns = p->g->config.hidden,
                                    .wide = 1,
                                    .after = p->c->words_dense.shape.after,
                                    .x = w->pre,
                                    .d = w->d,
                                    .y = w->d_dense};
    if (gpu_train_columns(p, &bias, e) < 0 ||
        gpu_train_product(
            p, &(struct gpu_product){&p->c->words_out_twin, c->rows, w->d_logits, w->d}, e) <
            0 ||
        gpu_train_norm_back(p, &norm, w->d, e) < 0 ||
        gpu_train_run(p, TRAIN_OP_ACTIVATE_BACK, &back, e) < 0)
        return -1;
    return gpu_train_columns(p, &dense_bias, e);
}

static int weight_gradients(const struct chunk *c, struct error *e)
{
    const struct op_batch *p = c->p;
    const struct words_arrays *w = &p->words;
    const struct model_config *m = &p->g->config;
    const uint64_t h = m->hidden;
    const struct gpu_driver *d = p->state->driver;
    const struct weight_gradient list[] = {
        {m->hidden, m->vocabulary, c->rows, p->g->dtype, w->d_logits, w->normed, m->vocabulary,
         h, gradient(c, m->tied ? PARAMETER_WORDS : PARAMETER_MLM_DECODER), h},
        {m->hidden, m->hidden, c->rows, p->g->dtype, w->d_dense, w->gathered, h, h,
         gradient(c, PARAMETER_MLM_DENSE_WEIGHT), h},
    };
    return d->weight_gradient(p->state->gpu, &p->state->stream, &list[0], e) < 0
               ? -1
               : d->weight_gradient(p->state->gpu, &p->state->stream, &list[1], e);
}

/* Rows of the hidden states differ. */
static int back(const struct chunk *c, struct error *e)
{
    const struct op_batch *p = c->p;
    const struct words_arrays *w = &p->words;
    const struct train_args scatter = {.rows = c->rows,
                                       .wide = 1,
                                       .adds = 1,
                                       .target = c->to + c->first,
                                       .x = w->d,
                                       .y = p->back.stream};
    if (dense_back(c, e) < 0 ||
        gpu_train_product(
            p, &(struct gpu_product){&p->c->words_dense_twin, c->rows, w->d_dense, w->d}, e) <
            0 ||
        gpu_train_run(p, TRAIN_OP_SEGMENTS, &scatter, e) < 0)
        return -1;
    return weight_gradients(c, e);
}

static int run_chunk(const struct chunk *c, struct error *e)
{
    if (gather(c, e) < 0 || transform(c, e) < 0 || find_loss(c, e) < 0)
        return -1;
    return c->p->request->loss_only ? 0 : back(c, e);
}

/* ---- the target ---- */

static int run(void *context, uint32_t index, struct error *e)
{
    struct op_batch *p = context;
    const uint32_t target = index / HEAD_SEGMENTS;
    const struct staged_target *s = &p->inputs.target[target];
    const uint32_t rows = gpu_train_target_rows(&p->request->batch->target[target]);
    struct chunk c = {.p = p,
                      .row = p->staged + s->row,
                      .to = p->staged + s->to,
                      .label = p->staged + s->label,
                      .weight = (const float *)(p->staged + s->weight)};
    for (; c.first < rows; c.first += WORDS_CHUNK) {
        c.rows = rows - c.first < WORDS_CHUNK ? rows - c.first : WORDS_CHUNK;
        if (run_chunk(&c, e) < 0)
            return -1;
    }
    return gpu_train_end_sums(p, e);
}

int gpu_train_words(struct op_batch *p, uint32_t target, struct batch_loss *loss,
                    struct error *e)
{
    const struct train_target *t = &p->request->batch->target[target];
    const struct train_segment all = {true, target * HEAD_SEGMENTS, run};
    if (gpu_train_end_words(p, e) < 0 || gpu_train_segment(p, &all, e) < 0 ||
        gpu_train_read(p, &p->memory->losses, p->words.loss, t->count * sizeof *p->words.loss,
                       e) < 0)
        return -1;
    p->words_target = t;
    p->words_loss = &loss->target[target];
    return 0;
}

static void add_losses(const struct train_row_loss *row, uint32_t count,
                       struct target_loss *loss)
{
    for (uint32_t k = 0; k < count; k++) {
        const double of_row =
            log((double)row[k].sum) + ((double)row[k].most - (double)row[k].logit);
        loss->sum += of_row;
        loss->right += !isnan(of_row) && row[k].right > 0;
    }
    loss->count += count;
}

int gpu_train_end_words(struct op_batch *p, struct error *e)
{
    if (!p->words_target)
        return 0;
    if (gpu_train_reach(p, &p->memory->losses, e) < 0)
        return -1;
    add_losses(p->memory->losses.host, p->words_target->count, p->words_loss);
    p->words_target = NULL;
    return 0;
}
