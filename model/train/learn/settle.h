/* SPDX-License-Identifier: Apache-2.0 */
/* The mask that a run settles on: its last steps train the weights alone, on kernels compiled for it. */
#pragma once
#include "model/train/learn/learner.h"

struct settle_request {
    uint32_t batch; /* sequences of a part: what a launch gets */
    bool dropout;   /* of attention */
    const char *folder;
};

struct settled {
    double density;
    double share, retained, predicted; /* of a snap; else NaN */
};

/* Fixes l->fixed: what alpha has above 0 or, with options.snap, the mask that keeps the most of P within that share of
   dense's predicted time of a training step's attention, for the engine's dtype and head dimension. */
int settle(struct learner *l, const struct engine *g, const struct settle_request *q,
           struct settled *ret, struct error *e);
