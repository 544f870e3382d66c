/* SPDX-License-Identifier: Apache-2.0 */
/* The mask that a run settles on: the last steps train only the weights, on kernels compiled for this mask. */
#pragma once
#include "model/train/learn/learner.h"

struct settle_request {
    uint32_t batch; /* sequences of a part of the batch, which is one launch */
    bool dropout;   /* of attention */
    const char *folder;
};

struct settled {
    double density;
    double share, retained; /* of a snap; else NaN */
    double predicted;       /* seconds, as for settle_price() */
};

/* Sets l->fixed: the entries with alpha > 0 or, with options.snap, the mask that keeps the most of P within that share of
   dense's predicted time of the attention of a part of a batch (q->batch), for the engine's dtype and head dimension. */
int settle(struct learner *l, const struct engine *g, const struct settle_request *q,
           struct settled *ret, struct error *e);

/* ERROR_FALSE if options.snap is less than the share of the empty mask: no mask would be within that time. */
int settle_check(const struct learner *l, const struct engine *g,
                 const struct settle_request *q, struct error *e);

/* Predicted seconds of attention in a part of a batch (q->batch), forward and backward over all layers on the engine's threads, under the
   mask without noise at the beginning of the step. A plan is made only if the mask has changed since the last call. */
int settle_price(struct learner *l, const struct engine *g, const struct settle_request *q,
                 double *ret, struct error *e);
