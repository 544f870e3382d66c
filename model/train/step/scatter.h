/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of gradients for ranks that share the moments: a reduce-scatter, in which each rank gets only the sums of its span
   and sends half as much as for sums of all gradients.

   Ranks on GPUs do not scatter:
   - ncclReduceScatter adds in an order of its own, which depends on NCCL's version and the machines. The bits would not be those
     of the tree, nor of a run without shared moments.
   - A tree over the spans has these bits. But spans follow each other in the flat buffer, and buckets are summed from its end,
     beside the backward pass. A bucket mostly lies in one span, so N - 1 ranks would send it to one rank, which takes up to N times as
     long as when all ranks receive. Each bucket would have to be divided among all ranks, as nccl_sum.c does.
   - The norm of the gradient is summed over the whole buffer on each GPU (gradient_squares() is null there). */
#pragma once
#include "model/comm/comm.h"
#include "model/gradients/state.h"

/* True if the ranks and the device can do this. */
bool scatter_works(const struct comm *c, const struct train_state *s);
/* Replaces the gradient in this rank's span (shard_of()) by the sum over ranks, in the tree of model/comm/comm.h. The other
   elements do not change. */
int scatter_sum(const struct comm *c, const struct train_state *s, bool whole_pieces,
                struct error *e);
/* Norm of the whole gradient, after scatter_sum() on all ranks. */
int scatter_norm(const struct comm *c, const struct train_state *s, uint32_t threads,
                 double *ret, struct error *e);
