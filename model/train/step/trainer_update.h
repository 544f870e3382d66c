/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of a step: sums over ranks, and the optimiser. */
#pragma once
#include "model/train/step/trainer.h"

/* Sums gradients and losses over ranks. If ranks share the moments (scatter.h), only this rank's span of the gradients.
   result: of this rank's gradients, below 0 with *e set; then all ranks return -1. */
int trainer_share(const struct trainer *t, int result, struct batch_loss loss[2],
                  struct error *e);
/* Moves weights, then alpha. Skips the whole step if the loss or a gradient is not finite. */
int trainer_update(const struct trainer *t, const struct step_request *q,
                   struct step_result *ret, struct error *e);
