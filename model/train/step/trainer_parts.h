/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a batch that a rank computes, and sums over ranks that begin during the last one. */
#pragma once
#include "model/train/step/trainer.h"

/* Samples first .. end - 1 of the batch. */
struct range {
    uint32_t first, end;
};

/* Adds this rank's gradients and losses of a range. sums: begins the sums of the gradient over ranks where these go on beside
   other work (comm->begin_sum): all buckets, unless it fails. */
int trainer_run_parts(struct trainer *t, const struct gradients_request *r, struct range of,
                      bool sums, struct batch_loss *loss, struct error *e);
