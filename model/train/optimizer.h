/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW and LAMB over the flat buffers of a state. All sums are taken in a fixed order, over blocks of a fixed size:
   the same bits for any number of threads.

   AdamW (Loshchilov and Hutter 2019): g is clipped to a global norm first; m = b1 m + (1 - b1) g,
   v = b2 v + (1 - b2) g^2, value -= rate * (m' / (sqrt(v') + eps) + decay * value), with m', v' corrected for bias or,
   as Google's BERT has it, m and v themselves.
   LAMB as NVIDIA's (You et al. 2020): g is divided by max(1, |g| / clip) first; the update u of AdamW with bias
   correction and decay is scaled by |value| / |u| for each piece that decays (1 where either is 0). As in NVIDIA's
   FusedLAMB (apex, use_nvlamb=False), pieces without decay, biases above all, which begin at 0, take the plain step.
   It corrects for bias whatever bias_correction says.
   A piece's rate_scale multiplies the rate of either, decay included. */
#pragma once
#include "model/gradients/state.h"

enum optimizer_kind { OPTIMIZER_ADAMW, OPTIMIZER_LAMB };

struct optimizer {
    enum optimizer_kind kind;
    double beta1, beta2, eps, weight_decay;
    double clip; /* global norm; 0: none */
    bool bias_correction;
};

struct optimizer_step {
    uint64_t step; /* from 1 */
    double rate;   /* of learning */
    uint32_t threads;
};

/* One step with the gradients that are there. Writes moments and the values of the same elements; *ret_norm is the global norm of the gradients
   before clipping. Where that is not finite, nothing else is written. -1 with *e set: the device failed. */
int optimizer_step(const struct optimizer *o, const struct train_state *s,
                   const struct optimizer_step *at, double *ret_norm, struct error *e);

/* The same in two parts, for ranks that each have the gradients and moments of one span. optimizer_squares(): sums of
   squares of the blocks in the span of the moments (gradient_squares() of model/backend/training.h), 0 for the others;
   *ret has optimizer_blocks() of the whole buffer, and the caller frees it. optimizer_move() expects a finite norm. */
uint64_t optimizer_blocks(const struct train_state *s, uint64_t end); /* before element end */
int optimizer_squares(const struct train_state *s, uint32_t threads, double **ret,
                      struct error *e);
int optimizer_move(const struct optimizer *o, const struct train_state *s,
                   const struct optimizer_step *at, double norm, struct error *e);
