/* SPDX-License-Identifier: Apache-2.0 */
/* The loss on held-out samples. */
#include "masks/base/memory.h"
#include "model/train/step/shared.h"
#include "model/train/step/trainer.h"
#include <stdlib.h>

enum { EVALUATION_BATCH = 32 };

static int evaluate_batch(const struct trainer *t, const struct train_batch *b,
                          struct batch_loss *loss, struct error *e)
{
    const struct gradients_request r = {.engine = t->engine,
                                        .state = t->state,
                                        .batch = b,
                                        .loss_only = true,
                                        .no_graphs = t->options->no_graphs,
                                        .bias = t->learner ? &t->learner->trained : NULL};
    return gradients_compute(&r, t->workspace, loss, e);
}

/* The ranks' batches in turn: batch k is rank k % size's. */
static int evaluate_own(const struct trainer *t, const struct objective_data *held_out,
                        const struct objective_options *o, struct batch_loss *loss,
                        uint64_t *tokens, struct error *e)
{
    const struct objective *objective = t->objective;
    struct objective_batch *b = objective->batch_new();
    const uint32_t size = t->comm->size;
    int r = 0;
    for (uint64_t k = t->comm->rank, at;
         r == 0 && (at = k * EVALUATION_BATCH) < held_out->count; k += size) {
        const uint32_t left = held_out->count - (uint32_t)at,
                       count = left < EVALUATION_BATCH ? left : EVALUATION_BATCH;
        objective->batch(held_out,
                         &(struct batch_request){.options = o, .first = at, .count = count}, b);
        *tokens += b->batch.tokens;
        r = evaluate_batch(t, &b->batch, &loss[k], e);
    }
    objective->batch_destroy(b);
    return r;
}

/* Each batch's losses to all ranks, which add them up in order: the same bits for any number of ranks. */
static int add_losses(const struct trainer *t, const struct batch_loss *loss, uint64_t batches,
                      struct evaluation *v, struct error *e)
{
    double *sum = memory_new(batches * TARGETS_MOST, sizeof *sum);
    for (uint64_t k = 0; k < batches; k++) {
        batch_loss_add(&v->losses, &loss[k]);
        for (uint32_t i = 0; i < TARGETS_MOST; i++)
            sum[k * TARGETS_MOST + i] = loss[k].target[i].sum;
    }
    int r = shared_losses(t->comm, &v->losses, &v->tokens, e);
    if (r == 0)
        r = t->comm->sum_f64(t->comm, sum, batches * TARGETS_MOST, e);
    for (uint32_t i = 0; i < TARGETS_MOST; i++) {
        v->losses.target[i].sum = 0;
        for (uint64_t k = 0; k < batches; k++)
            v->losses.target[i].sum += sum[k * TARGETS_MOST + i];
    }
    free(sum);
    return r;
}

int trainer_evaluate(const struct trainer *t, const struct objective_data *held_out,
                     const struct objective_options *o, struct evaluation *ret, struct error *e)
{
    const uint64_t batches =
        (held_out->count + (uint64_t)EVALUATION_BATCH - 1) / EVALUATION_BATCH;
    struct batch_loss *loss = memory_new(batches, sizeof *loss);
    struct evaluation v = {.objective = t->objective};
    double mean[TARGETS_MOST];
    int r = t->learner ? learner_evaluate(t->learner, e) : 0;
    if (r == 0)
        r = evaluate_own(t, held_out, o, loss, &v.tokens, e);
    r = comm_agree(t->comm, r, e);
    if (r == 0)
        r = add_losses(t, loss, batches, &v, e);
    free(loss);
    v.loss = objective_loss(t->objective, &v.losses, mean);
    if (r == 0)
        *ret = v;
    return r;
}
