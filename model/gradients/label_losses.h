/* SPDX-License-Identifier: Apache-2.0 */
/* Losses over the logits of a target with few labels, and their gradients, for any backend. One thread, in the order of
   rows: there are few logits. */
#pragma once
#include "model/gradients/gradients.h"

struct label_logits {
    const struct train_batch *batch;
    const struct train_target *target;
    double weight;   /* of the target */
    uint32_t labels; /* of a row */
    double *logits;  /* [target->count, labels] */
};
/* Adds the losses to *loss; the logits become their gradient. */
void label_losses(const struct label_logits *l, struct target_loss *loss);
