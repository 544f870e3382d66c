/* SPDX-License-Identifier: Apache-2.0 */
/* One step of training: a batch of the objective's, the gradients of its parts, the optimiser. Everything that a step does is a
   function of the options, the parameters and the step's number.

   A batch is counted in samples, and so is whatever divides it; a sample has train_batch.group sequences.

   --accumulate cuts the batch into parts of nearly equal numbers of tokens, which ranks share: the same parts for any
   number of ranks that divides them.
   Sums over parts have the same bits on 1, 2 and 4 ranks (model/train/part_sums.h).

   Where sums over ranks go on beside other work (begin_sum of model/comm/comm.h: NCCL, not MPI), those of a bucket begin when
   the way back of the last part has completed it. Otherwise all of them follow the last part. */
#pragma once
#include "model/comm/comm.h"
#include "model/objective/objective.h"
#include "model/train/learn/learner.h"
#include "model/train/part_sums.h"
#include "model/train/step/buckets.h"
#include "model/train/step/run_options.h"

struct trainer {
    struct engine *engine;
    struct train_state *state;
    struct learner *learner; /* null: the mask is fixed */
    const struct comm *comm; /* the ranks; null: there is one */
    struct gradients_workspace *workspace;
    const struct objective *objective;
    const struct objective_data *data;
    const struct run_options *options;
    struct schedule schedule;      /* over all steps of the run */
    struct objective_batch *batch; /* of the last step */
    int32_t *offsets;              /* of a part */
    uint32_t *rows;
    uint64_t rows_capacity;
    struct part_sums sums;
    uint64_t bucket; /* least elements of a bucket; 0: the usual number */
    struct buckets buckets;
};

struct step_request {
    uint64_t step; /* from 1 */
    double rate;   /* of learning */
    /* of a mask that is learned: */
    double mask_rate, tau;
};

struct step_result {
    double loss, rate, norm;
    double mean[TARGETS_MOST]; /* of the targets' losses, in nats */
    uint64_t tokens;
    bool finite;     /* false: the parameters are those of before */
    uint32_t faulty; /* not finite: the first rank whose part was not; no rank: their number */
    struct mask_measures mask; /* where one is learned: as the step drew it */
    uint64_t launches;         /* that a GPU was given for the step; else 0 */
};

void trainer_begin(struct trainer *t); /* what is above its batch is set */
void trainer_finish(struct trainer *t);

/* True if the optimiser needs norms of whole parameters. */
bool trainer_needs_pieces(const struct run_options *o);

/* Leaves the gradients, as they were computed, in the state and the learner. */
int trainer_step(struct trainer *t, const struct step_request *q, struct step_result *ret,
                 struct error *e);

/* Loss on held-out data, without dropout, batches as in epoch 0 of seed 0. */
struct evaluation {
    const struct objective *objective;
    double loss;
    struct batch_loss losses;
    uint64_t tokens;
};
int trainer_evaluate(const struct trainer *t, const struct objective_data *held_out,
                     const struct objective_options *o, struct evaluation *ret,
                     struct error *e);
