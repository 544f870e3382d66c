/* SPDX-License-Identifier: Apache-2.0 */
/* A mask while it is learned: alpha with its moments, the draws of a step, the bias for attention and its gradient. */
#pragma once
#include "model/backend/mirror.h"
#include "model/gradients/gradients.h"
#include "model/train/learn/measures.h"
#include "model/train/optimizer.h"

struct learner {
    struct learn_options options;
    struct alpha_shape shape;
    uint64_t seed;            /* of first values and noise */
    struct train_state alpha; /* one piece, which does not decay */
    struct piece piece;
    struct mirror alpha_value, alpha_gradient; /* of alpha's */
    float *noise, *value, *derivative;         /* [units]: of the step; the host's */
    float *before;                             /* alpha when the step began; the host's */
    struct mirror bias, d_bias;                /* X and its gradient */
    float *part;                               /* gradient of one layer: the device's */
    struct trained_bias trained;               /* of these */
    struct mask *fixed;  /* the mask that the run settled on; null: not yet */
    struct mask *priced; /* the last mask of settle_price(); null: none */
    double price;        /* predicted seconds of `priced` */
};

int learner_new(const struct learn_options *o, const struct engine *g, uint64_t seed,
                struct learner **ret, struct error *e);
void learner_destroy(struct learner *l); /* before the engine; accepts null */

/* Alpha as it is now, on the host, until the next call; null with *e set. */
const float *learner_alpha(const struct learner *l, struct error *e);
/* Sets alpha to the values of l->alpha_value.host. */
int learner_set_alpha(const struct learner *l, struct error *e);

/* The temperature when `share` of the learning is done, 0 to 1: from tau to tau_end, by equal factors. */
double learner_tau(const struct learner *l, double share);
/* Draws the step's noise and mask and clears the gradient. `step` counts from 1. */
int learner_begin(struct learner *l, uint64_t step, double tau, struct error *e);
/* Computes alpha's gradient from that of the bias. */
int learner_gather(struct learner *l, bool *ret_finite, struct error *e);
/* A step of the optimiser without a clip; its piece does not decay. */
int learner_step(struct learner *l, const struct optimizer *o, const struct optimizer_step *at,
                 struct error *e);
/* Sets the bias of the mask without noise, with off keys at -inf; for kind `p` the bias of P. */
int learner_evaluate(struct learner *l, struct error *e);

/* Writes to a run's folder: alpha.safetensors, the mask (fixed, or of alpha above 0), and its name in config.json; each file whole
   or not at all. */
int learner_save(const struct learner *l, const char *folder, struct error *e);
/* Reads l->fixed from such a folder, whose mask is the one that the run settled on. */
int learner_read_fixed(struct learner *l, const char *folder, struct error *e);
