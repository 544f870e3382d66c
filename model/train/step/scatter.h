/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of gradients for ranks that share the moments: a reduce-scatter, so that each rank gets the sums of its span alone
   and sends half of what sums of all gradients need. */
#pragma once
#include "model/comm/comm.h"
#include "model/gradients/state.h"

/* True if the ranks and the device can. */
bool scatter_works(const struct comm *c, const struct train_state *s);
/* The gradient in this rank's span (shard_of()) becomes the sum over ranks, in the tree of model/comm/comm.h. The other
   elements stay. */
int scatter_sum(const struct comm *c, const struct train_state *s, bool whole_pieces,
                struct error *e);
/* The norm of the whole gradient, of spans that are summed. */
int scatter_norm(const struct comm *c, const struct train_state *s, uint32_t threads,
                 double *ret, struct error *e);
