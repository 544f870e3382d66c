/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of a step by its equations, whatever the program does: forward once, backward twice as much. Attention
   counts the active entries of the mask, as their share of all n n applied to each length. */
#pragma once
#include "model/gradients/batch.h"

double batch_flops(const struct engine *g, const struct train_batch *b);
/* FLOP/s that `maskc calibrate` found for this machine and the engine's threads and dtype; 0: none is stored. */
double machine_peak(const struct engine *g);
