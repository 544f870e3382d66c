/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over ranks of what a trainer has: arrays of a device, losses. With one rank nothing is read or written. */
#pragma once
#include "model/comm/comm.h"
#include "model/gradients/gradients.h"

/* A device's array, by buckets. */
int shared_array(const struct comm *c, const struct training_device *d, float *array,
                 uint64_t count, struct error *e);
/* Losses, counts and tokens. */
int shared_losses(const struct comm *c, struct batch_loss *l, uint64_t *tokens,
                  struct error *e);
