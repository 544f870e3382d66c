/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of a trainer's device arrays and losses over ranks. With one rank and no NCCL, no array is copied from or to the
   device. */
#pragma once
#include "model/comm/comm.h"
#include "model/gradients/gradients.h"

/* A device's array, by way of the host and by buckets. */
int shared_array(const struct comm *c, const struct training_device *d, float *array,
                 uint64_t count, struct error *e);
/* Losses, counts and tokens. */
int shared_losses(const struct comm *c, struct batch_loss *l, uint64_t *tokens,
                  struct error *e);
