/* SPDX-License-Identifier: Apache-2.0 */
/* One step of pre-training: a batch of samples, the gradients of its parts, the optimiser. Everything that a step does is a
   function of the options, the parameters and the step's number. */
#pragma once
#include "masks/base/text.h"
#include "model/data/samples.h"
#include "model/train/learn/learner.h"
#include "model/train/pretrain/run_options.h"

struct pretrainer {
    struct engine *engine;
    struct train_state *state;
    struct learner *learner; /* null: the mask is fixed */
    struct gradients_workspace *workspace;
    const struct samples *data;
    const struct run_options *options;
    struct schedule schedule;  /* over all steps of the run */
    bool pairs;                /* the loss has next sentences in it */
    struct sample_batch batch; /* of the last step */
    int32_t *offsets;          /* of a part */
    uint32_t *rows;
    uint64_t rows_capacity;
};

struct step_request {
    uint64_t step; /* from 1 */
    double rate;   /* of learning */
    /* of a mask that is learned: */
    double mask_rate, tau;
};

struct step_result {
    double loss, mlm, next, rate, norm; /* losses are means, in nats */
    uint64_t tokens, masked;
    bool finite;               /* false: the parameters are those of before */
    struct mask_measures mask; /* where one is learned: as the step drew it */
};

void pretrainer_begin(struct pretrainer *t); /* what is above its batch is set */
void pretrainer_finish(struct pretrainer *t);

/* Leaves the gradients, as they were computed, in the state and the learner. */
int pretrainer_step(struct pretrainer *t, const struct step_request *q, struct step_result *ret,
                    struct error *e);

/* The held-out part, without dropout, masks drawn as in epoch 0 of seed 0. */
struct evaluation {
    double loss, mlm, next, perplexity; /* of the masked tokens: exp(mlm) */
    double accuracy, next_accuracy;     /* shares of the masked tokens, of the sequences */
    uint64_t tokens;
    bool pairs;
};
/* "MLM loss 6.4836, perplexity 654.3, accuracy 12.34 % of the masked tokens", and the same of next sentences if they
   were judged. */
void evaluation_text(const struct evaluation *v, struct text *to);
/* probability: of masking. */
int pretrainer_evaluate(const struct pretrainer *t, const struct samples *held_out,
                        double probability, struct evaluation *ret, struct error *e);
