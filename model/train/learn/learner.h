/* SPDX-License-Identifier: Apache-2.0 */
/* A mask while it is learned: alpha with its moments, and what one step draws, hands to attention and gets back. */
#pragma once
#include "model/gradients/gradients.h"
#include "model/train/learn/measures.h"
#include "model/train/optimizer.h"

struct learner {
    struct learn_options options;
    struct alpha_shape shape;
    uint64_t seed;            /* of first values and noise */
    struct train_state alpha; /* one piece, which does not decay */
    struct piece piece;
    float *noise, *value, *derivative; /* [units]: of the step */
    float *before;                     /* alpha when the step began */
    float *bias, *d_bias, *part;       /* X, its gradient, that of one layer */
    struct trained_bias trained;       /* of these */
    struct mask *fixed;                /* that the run settled on; null: not yet */
    struct mask *priced;               /* that settle_price() priced last; null: none */
    double price;                      /* its seconds */
};

int learner_new(const struct learn_options *o, const struct model_config *c, uint64_t seed,
                struct learner **ret, struct error *e);
void learner_destroy(struct learner *l); /* null is fine */

/* The temperature when `share` of the learning is done, 0 to 1: from tau to tau_end, by equal factors. */
double learner_tau(const struct learner *l, double share);
/* Draws the step's noise and mask; the gradient is 0. step counts from 1. */
void learner_begin(struct learner *l, uint64_t step, double tau);
/* alpha's gradient out of that of the bias. False where it is not finite. */
bool learner_gather(struct learner *l);
/* A step of the optimiser without a clip; its piece does not decay. */
void learner_step(struct learner *l, const struct optimizer *o, uint64_t step, double rate,
                  uint32_t threads);
/* The bias of the mask without noise, off keys at -inf; P's own for P. */
void learner_evaluate(struct learner *l);

/* Into a run's folder: alpha.safetensors, the mask (fixed, or of what is above 0), and its place in config.json; each whole or not
   at all. */
int learner_save(const struct learner *l, const char *folder, struct error *e);
/* The mask in such a folder is the one that the run settled on. */
int learner_read_fixed(struct learner *l, const char *folder, struct error *e);
