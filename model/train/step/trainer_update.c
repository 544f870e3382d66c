/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/step/trainer_update.h"
#include "model/train/step/scatter.h"
#include "model/train/step/shards.h"
#include "model/train/step/shared.h"
#include <math.h>

/* --zero */
static bool shares_moments(const struct trainer *t)
{
    return t->options->zero && t->comm->size > 1;
}

/* True if a rank gets sums of its span only. Gradients that are saved must be whole. */
static bool scatters(const struct trainer *t)
{
    return shares_moments(t) && scatter_works(t->comm, t->state) && !t->options->save_gradients;
}

/* Sums that have begun; and the bias's. */
static int end_sums(const struct trainer *t, int result, struct error *e)
{
    if (t->learner && result == 0)
        t->comm->begin_sum(t->comm, t->learner->d_bias.array, t->learner->d_bias.count);
    return t->comm->end_sums(t->comm, result, e);
}

static int sum_now(const struct trainer *t, int result, struct error *e)
{
    const struct train_state *s = t->state;
    if (comm_agree(t->comm, result, e) < 0 ||
        (scatters(t) ? scatter_sum(t->comm, s, trainer_needs_pieces(t->options), e)
                     : shared_array(t->comm, &s->device, s->gradient, s->count, e)) < 0)
        return -1;
    return t->learner ? shared_array(t->comm, &s->device, t->learner->d_bias.array,
                                     t->learner->d_bias.count, e)
                      : 0;
}

/* The price of alpha is not a rank's, so the bias's gradient is summed, before
   learner_gather() adds the price to alpha's. */
int trainer_share(const struct trainer *t, int result, struct batch_loss loss[2],
                  struct error *e)
{
    uint64_t tokens = 0; /* the whole batch is known */
    if ((t->comm->begin_sum ? end_sums : sum_now)(t, result, e) < 0)
        return -1;
    for (int k = 0; k < 2; k++)
        if (shared_losses(t->comm, &loss[k], &tokens, e) < 0)
            return -1;
    batch_loss_add(&loss[0], &loss[1]);
    return 0;
}

static int move_own(const struct trainer *t, const struct optimizer_step *at, double *norm,
                    struct error *e)
{
    const struct optimizer *o = &t->options->optimizer;
    if (!scatters(t))
        return optimizer_step(o, t->state, at, norm, e);
    if (scatter_norm(t->comm, t->state, at->threads, norm, e) < 0)
        return -1;
    return isfinite(*norm) ? optimizer_move(o, t->state, at, *norm, e) : 0;
}

/* Those of this rank's span, which it sends to the others, and gets theirs. */
static int move_values(const struct trainer *t, const struct optimizer_step *at, double *norm,
                       struct error *e)
{
    const int r = move_own(t, at, norm, e);
    if (!shares_moments(t))
        return r;
    if (comm_agree(t->comm, r, e) < 0)
        return -1;
    return isfinite(*norm)
               ? shards_gather(t->comm, t->state, trainer_needs_pieces(t->options), e)
               : 0;
}

static int update(const struct trainer *t, const struct step_request *q,
                  struct step_result *ret, struct error *e)
{
    const struct optimizer *o = &t->options->optimizer;
    const uint32_t threads = t->engine->threads;
    const struct optimizer_step at = {q->step, q->rate, threads},
                                of_mask = {q->step, q->mask_rate, threads};
    bool finite = isfinite(ret->loss);
    /* Agreed at once: the others would go on to sums over ranks. */
    if (finite && t->learner &&
        comm_agree(t->comm, learner_gather(t->learner, &finite, e), e) < 0)
        return -1;
    if (!finite)
        return 0;
    if (move_values(t, &at, &ret->norm, e) < 0)
        return -1;
    ret->finite = isfinite(ret->norm);
    if (ret->finite && t->learner && learner_step(t->learner, o, &of_mask, e) < 0)
        return -1;
    return ret->finite ? engine_repack(t->engine, e) : 0;
}

int trainer_update(const struct trainer *t, const struct step_request *q,
                   struct step_result *ret, struct error *e)
{
    return comm_agree(t->comm, update(t, q, ret, e), e);
}
