/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/step/trainer.h"
#include "masks/base/memory.h"
#include "model/train/step/trainer_update.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

void trainer_begin(struct trainer *t)
{
    t->comm = t->comm ? t->comm : &comm_alone;
    t->workspace = gradients_workspace_new(t->engine);
    t->batch = t->objective->batch_new();
    part_sums_begin(&t->sums, t->state, t->engine->threads,
                    t->learner ? t->learner->d_bias.array : NULL,
                    t->learner ? t->learner->d_bias.count : 0);
}

bool trainer_needs_pieces(const struct run_options *o)
{
    return o->optimizer.kind == OPTIMIZER_LAMB;
}

void trainer_finish(struct trainer *t)
{
    gradients_workspace_destroy(t->workspace);
    if (t->objective)
        t->objective->batch_destroy(t->batch);
    free(t->offsets);
    free(t->rows);
    part_sums_finish(&t->sums);
}

/* Memory for a part of the batch. */
static void reserve(struct trainer *t)
{
    const struct train_batch *b = &t->batch->batch;
    const uint64_t rows = train_batch_rows(b);
    t->offsets = memory_resize(t->offsets, b->sequences + (size_t)1, sizeof *t->offsets);
    if (rows <= t->rows_capacity)
        return;
    t->rows_capacity = rows;
    t->rows = memory_resize(t->rows, rows, sizeof *t->rows);
}

/* ---- a step ---- */

/* Dropout's seed of an epoch: splitmix64. */
static uint64_t epoch_seed(uint64_t seed, uint64_t epoch)
{
    uint64_t x = seed + (epoch + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Where in the run's samples the step's batch begins. */
static uint64_t place_of(const struct trainer *t, uint64_t step)
{
    return t->options->overfit ? 0 : (step - 1) * t->options->batch;
}

static struct gradients_request make_request(struct trainer *t)
{
    const struct run_options *o = t->options;
    return (struct gradients_request){
        .engine = t->engine,
        .state = t->state,
        .hidden_dropout = o->hidden_dropout,
        .attention_dropout = o->attention_dropout,
        .head_dropout = o->head_dropout,
        .recompute = o->recompute,
        .bias = t->learner ? &t->learner->trained : NULL,
    };
}

/* Samples first .. end - 1 of the batch, all of one epoch. */
static int run_part(struct trainer *t, struct gradients_request *r, uint32_t first,
                    uint32_t end, struct batch_loss *loss, struct error *e)
{
    const uint32_t group = train_batch_group(&t->batch->batch);
    struct train_batch part;
    train_batch_slice(&t->batch->batch, first * group, (end - first) * group, &part, t->offsets,
                      t->rows);
    r->batch = &part;
    return gradients_compute(r, t->workspace, loss, e);
}

/* Samples of the batch, and where in the run's samples the batch begins. */
struct range {
    uint64_t place;
    uint32_t first, end;
};

/* A part that spans two epochs is two batches: a sample's dropout is another in each. */
static int run_samples(struct trainer *t, struct gradients_request *r, struct range of,
                       struct batch_loss *loss, struct error *e)
{
    for (uint32_t at = of.first; at < of.end;) {
        const uint64_t epoch = (of.place + at) / t->data->count,
                       left = (epoch + 1) * t->data->count - (of.place + at);
        const uint32_t to = left < of.end - at ? at + (uint32_t)left : of.end;
        r->seed = epoch_seed(t->options->seed, epoch);
        if (run_part(t, r, at, to, loss, e) < 0)
            return -1;
        at = to;
    }
    return 0;
}

/* Shared by the parts of a range. */
struct parts {
    struct gradients_request request;
    struct range of;
    uint32_t all, of_group; /* parts of the range; of a group */
};

static struct range range_of_part(const struct parts *p, uint32_t k)
{
    const uint64_t samples = p->of.end - p->of.first;
    return (struct range){.place = p->of.place,
                          .first = p->of.first + (uint32_t)(samples * k / p->all),
                          .end =
                              p->of.first + (uint32_t)(samples * (k + UINT64_C(1)) / p->all)};
}

/* The parts of a group, added one after another to what a level has. */
static int run_group(struct trainer *t, const struct parts *p, uint32_t group, uint32_t level,
                     struct batch_loss *loss, struct error *e)
{
    struct gradients_request r = p->request;
    struct train_state state = *t->state;
    struct trained_bias bias;
    if (part_sums_reserve(&t->sums, level, e) < 0)
        return -1;
    state.gradient = t->sums.gradient[level];
    r.state = &state;
    if (r.bias && r.bias->gradient) {
        bias = *r.bias;
        bias.gradient = t->sums.bias[level];
        r.bias = &bias;
    }
    for (uint32_t k = group * p->of_group; k < (group + 1) * p->of_group; k++)
        if (run_samples(t, &r, range_of_part(p, k), loss, e) < 0)
            return -1;
    return 0;
}

/* Groups that follow each other. */
struct groups {
    uint32_t first, count;
};

/* Adds the gradients of groups g, by a binary tree, into the sums of `level`. */
static int run_tree(struct trainer *t, const struct parts *p, struct groups g, uint32_t level,
                    struct batch_loss *loss, struct error *e)
{
    struct batch_loss upper = {0};
    const uint32_t half = g.count / 2;
    if (g.count == 1)
        return run_group(t, p, g.first, level, loss, e);
    if (run_tree(t, p, (struct groups){g.first, half}, level, loss, e) < 0 ||
        run_tree(t, p, (struct groups){g.first + half, half}, level + 1, &upper, e) < 0)
        return -1;
    batch_loss_add(loss, &upper);
    return part_sums_add(&t->sums, level, p->request.bias && p->request.bias->gradient, e);
}

/* This rank's groups. */
static int run_parts(struct trainer *t, struct gradients_request *r, struct range of,
                     struct batch_loss *loss, struct error *e)
{
    const uint32_t ranks = t->comm->size, groups = parts_groups(t->options->accumulate, ranks),
                   all = parts_of_batch(t->options->accumulate, ranks);
    const struct parts p = {*r, of, all, all / (groups * ranks)};
    return run_tree(t, &p, (struct groups){t->comm->rank * groups, groups}, 0, loss, e);
}

/* Each target's loss is a mean over its losses in the range. */
static void set_weights(const struct trainer *t, struct range of, struct gradients_request *r)
{
    const struct train_batch *b = &t->batch->batch;
    const uint32_t group = train_batch_group(b);
    for (uint32_t k = 0; k < b->targets; k++) {
        const uint32_t count =
            train_target_count(b, &b->target[k], of.first * group, of.end * group);
        r->weight[k] = count ? t->objective->weight[k] / count : 0;
    }
}

static uint32_t samples_of(const struct trainer *t)
{
    return t->batch->batch.sequences / train_batch_group(&t->batch->batch);
}

static int run_all(struct trainer *t, uint64_t place, struct batch_loss *loss, struct error *e)
{
    struct gradients_request r = make_request(t);
    const struct range all = {place, 0, samples_of(t)};
    set_weights(t, all, &r);
    return run_parts(t, &r, all, loss, e);
}

static int clear_gradient(const struct trainer *t, struct error *e)
{
    return train_state_clear(t->state, t->engine->threads, e);
}

/* Alpha learns from the second half of the batch, weights from the first; both gradients are taken at the parameters at
   the start of the step (first order). The losses are means over each half, loss[0] over the second. */
static int run_two_levels(struct trainer *t, uint64_t place, struct batch_loss *loss,
                          struct error *e)
{
    const uint32_t all = samples_of(t), half = all - all / 2;
    const struct range range[] = {{place, half, all}, {place, 0, half}};
    struct trained_bias fixed = t->learner->trained;
    fixed.gradient = NULL;
    for (int k = 0; k < 2; k++) {
        struct gradients_request r = make_request(t);
        set_weights(t, range[k], &r);
        r.bias = k ? &fixed : r.bias;
        if (clear_gradient(t, e) < 0 || run_parts(t, &r, range[k], &loss[k], e) < 0)
            return -1;
    }
    return 0;
}

static void make_batch(struct trainer *t, uint64_t place)
{
    const struct batch_request r = {.options = &t->options->data_options,
                                    .seed = t->options->seed,
                                    .epoch = (uint32_t)(place / t->data->count),
                                    .first = place % t->data->count,
                                    .count = t->options->batch};
    t->objective->batch(t->data, &r, t->batch);
    reserve(t);
}

/* Draws the step's mask and measures it. */
static int begin_mask(struct learner *l, const struct step_request *q,
                      struct mask_measures *ret, struct error *e)
{
    if (learner_begin(l, q->step, q->tau, e) < 0)
        return -1;
    *ret = measures_of(&l->shape, l->before, l->value);
    return 0;
}

/* This rank's gradients and losses; loss[1] is used only if the batch is halved (first half). */
static int compute(struct trainer *t, const struct step_request *q, struct mask_measures *mask,
                   struct batch_loss loss[2], struct error *e)
{
    const uint64_t place = place_of(t, q->step);
    const bool two = t->learner && t->learner->options.two_levels;
    make_batch(t, place);
    int r = clear_gradient(t, e);
    if (r == 0 && t->learner)
        r = begin_mask(t->learner, q, mask, e);
    if (r == 0)
        r = (two ? run_two_levels : run_all)(t, place, loss, e);
    return comm_agree(t->comm, r, e);
}

/* Finds the first rank with a non-finite gradient or loss, else comm->size. The sum has overwritten the per-rank gradients,
   so they are recomputed. */
static int find_faulty(struct trainer *t, const struct step_request *q, uint32_t *ret,
                       struct error *e)
{
    const struct training_device *d = &t->state->device;
    const uint32_t size = t->comm->size;
    struct batch_loss loss[2] = {0};
    struct mask_measures mask;
    bool finite = true, of_bias = true;
    double mean[TARGETS_MOST];
    uint64_t *faulty;
    *ret = size;
    if (size == 1)
        return 0;
    if (compute(t, q, &mask, loss, e) < 0)
        return -1;
    int r = d->does->array_is_finite(d->state, t->state->gradient, t->state->count, &finite, e);
    if (r == 0 && t->learner)
        r = d->does->array_is_finite(d->state, t->learner->d_bias.array,
                                     t->learner->d_bias.count, &of_bias, e);
    if (comm_agree(t->comm, r, e) < 0)
        return -1;
    faulty = memory_new(size, sizeof *faulty);
    faulty[t->comm->rank] = !finite || !of_bias ||
                            !isfinite(objective_loss(t->objective, &loss[0], mean)) ||
                            !isfinite(objective_loss(t->objective, &loss[1], mean));
    r = t->comm->sum_u64(t->comm, faulty, size, e);
    for (uint32_t k = size; k-- > 0;)
        *ret = faulty[k] ? k : *ret;
    free(faulty);
    return r;
}

int trainer_step(struct trainer *t, const struct step_request *q, struct step_result *ret,
                 struct error *e)
{
    const uint64_t before = train_state_use(t->state).launches;
    struct batch_loss loss[2] = {0};
    struct mask_measures mask = {0};
    if (compute(t, q, &mask, loss, e) < 0 || trainer_share(t, loss, e) < 0)
        return -1;
    *ret =
        (struct step_result){.rate = q->rate, .tokens = t->batch->batch.tokens, .mask = mask};
    ret->loss = objective_loss(t->objective, loss, ret->mean);
    if (trainer_update(t, q, ret, e) < 0)
        return -1;
    ret->launches = train_state_use(t->state).launches - before;
    return ret->finite ? 0 : find_faulty(t, q, &ret->faulty, e);
}
