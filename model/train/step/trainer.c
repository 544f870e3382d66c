/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/step/trainer.h"
#include "masks/base/memory.h"
#include "model/train/step/trainer_parts.h"
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
    buckets_begin(&t->buckets, t->state, t->bucket);
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
    buckets_finish(&t->buckets);
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
        .seed = gradients_attention_seed(o->seed, 0), /* another key than the data's draws */
        .hidden_dropout = o->hidden_dropout,
        .attention_dropout = o->attention_dropout,
        .head_dropout = o->head_dropout,
        .recompute = o->recompute,
        .no_graphs = o->no_graphs,
        .bias = t->learner ? &t->learner->trained : NULL,
    };
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

static int run_all(struct trainer *t, bool sums, struct batch_loss *loss, struct error *e)
{
    struct gradients_request r = make_request(t);
    const struct range all = {0, samples_of(t)};
    set_weights(t, all, &r);
    return trainer_run_parts(t, &r, all, sums, loss, e);
}

static int clear_gradient(const struct trainer *t, struct error *e)
{
    return train_state_clear(t->state, t->engine->threads, e);
}

/* Alpha learns from the second half of the batch, weights from the first; both gradients are taken at the parameters at
   the start of the step (first order). The losses are means over each half, loss[0] over the second. */
static int run_two_levels(struct trainer *t, bool sums, struct batch_loss *loss,
                          struct error *e)
{
    const uint32_t all = samples_of(t), half = all - all / 2;
    const struct range range[] = {{half, all}, {0, half}};
    struct trained_bias fixed = t->learner->trained;
    fixed.gradient = NULL;
    for (int k = 0; k < 2; k++) {
        struct gradients_request r = make_request(t);
        set_weights(t, range[k], &r);
        r.bias = k ? &fixed : r.bias;
        if (clear_gradient(t, e) < 0 ||
            trainer_run_parts(t, &r, range[k], sums && k == 1, &loss[k], e) < 0)
            return -1;
    }
    return 0;
}

/* A sequence's dropout is a function of its sample's number, which is another in each epoch. */
static void number_samples(struct trainer *t, uint64_t place)
{
    const struct train_batch *b = &t->batch->batch;
    const uint32_t group = train_batch_group(b), each = t->data->count * group;
    for (uint32_t k = 0; k < b->sequences; k++)
        b->sample[k] += (uint32_t)((place + k / group) / t->data->count) * each;
}

static void make_batch(struct trainer *t, uint64_t place)
{
    const struct batch_request r = {.options = &t->options->data_options,
                                    .seed = t->options->seed,
                                    .epoch = (uint32_t)(place / t->data->count),
                                    .first = place % t->data->count,
                                    .count = t->options->batch};
    t->objective->batch(t->data, &r, t->batch);
    number_samples(t, place);
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

/* This rank's gradients and losses; loss[1] is used only if the batch is halved (first half). sums: begins the sums over
   ranks that can go on beside it. */
static int compute(struct trainer *t, const struct step_request *q, bool sums,
                   struct mask_measures *mask, struct batch_loss loss[2], struct error *e)
{
    const uint64_t place = place_of(t, q->step);
    const bool two = t->learner && t->learner->options.two_levels;
    make_batch(t, place);
    int r = clear_gradient(t, e);
    if (r == 0 && t->learner)
        r = begin_mask(t->learner, q, mask, e);
    if (r == 0)
        r = (two ? run_two_levels : run_all)(t, sums, loss, e);
    return r;
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
    if (comm_agree(t->comm, compute(t, q, false, &mask, loss, e), e) < 0)
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
    if (trainer_share(t, compute(t, q, true, &mask, loss, e), loss, e) < 0)
        return -1;
    *ret =
        (struct step_result){.rate = q->rate, .tokens = t->batch->batch.tokens, .mask = mask};
    ret->loss = objective_loss(t->objective, loss, ret->mean);
    if (trainer_update(t, q, ret, e) < 0)
        return -1;
    ret->launches = train_state_use(t->state).launches - before;
    return ret->finite ? 0 : find_faulty(t, q, &ret->faulty, e);
}
