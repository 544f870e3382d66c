/* SPDX-License-Identifier: Apache-2.0 */
/* AdamW and LAMB over the flat buffers of a state. All sums are taken in a fixed order, over blocks of a fixed size:
   the same bits for any number of threads.

   AdamW (Loshchilov and Hutter 2019): g is clipped to a global norm first; m = b1 m + (1 - b1) g,
   v = b2 v + (1 - b2) g^2, value -= rate * (m' / (sqrt(v') + eps) + decay * value), with m', v' corrected for bias or,
   as Google's BERT has it, m and v themselves.
   LAMB as NVIDIA's (You et al. 2020): g is divided by max(1, |g| / clip) first; the update u of AdamW with bias
   correction and decay is scaled by |value| / |u| for each piece (1 where either is 0).
   It corrects for bias whatever bias_correction says. */
#pragma once
#include "model/gradients/state.h"

enum optimizer_kind { OPTIMIZER_ADAMW, OPTIMIZER_LAMB };

struct optimizer {
    enum optimizer_kind kind;
    double beta1, beta2, eps, weight_decay;
    double clip; /* global norm; 0: none */
    bool bias_correction;
};

/* One step with the gradients that are there; `step` counts from 1. Writes values and moments, and returns the global
   norm of the gradients before clipping. Does nothing but that where the norm is not finite. */
double optimizer_step(const struct optimizer *o, struct train_state *s, uint64_t step,
                      double rate, uint32_t threads);
