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
    double share, retained; /* of a snap; else NaN */
    double predicted;       /* seconds, as settle_price() has them */
};

/* Fixes l->fixed: what alpha has above 0 or, with options.snap, the mask that keeps the most of P within that share of
   dense's predicted time of a training step's attention, for the engine's dtype and head dimension. */
int settle(struct learner *l, const struct engine *g, const struct settle_request *q,
           struct settled *ret, struct error *e);

/* Seconds that attention of a training step, forward and backward of all the model's layers, is predicted to take on the
   engine's threads under the mask without noise that the step began with. It is planned where it is another than the
   one before. */
int settle_price(struct learner *l, const struct engine *g, const struct settle_request *q,
                 double *ret, struct error *e);
