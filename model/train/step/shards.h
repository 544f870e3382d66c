/* SPDX-License-Identifier: Apache-2.0 */
/* The optimiser's state, shared by ranks (ZeRO-1): each has the moments of a span of the flat buffer, moves its values
   there, and gets the others'. The bits are those of one state: sums over ranks are taken in the same tree, and spans
   begin where blocks of the norm do. */
#pragma once
#include "model/comm/comm.h"
#include "model/gradients/state.h"

/* A rank's span of the flat buffer. Spans are about equal and begin at a block of NORM_BLOCK elements, whose sums of
   squares make the gradient's norm; whole_pieces: at a piece, where the optimiser needs the norms of pieces. */
struct span shard_of(const struct train_state *s, bool whole_pieces, uint32_t rank,
                     uint32_t ranks);
/* Values of all spans to all ranks. */
int shards_gather(const struct comm *c, const struct train_state *s, bool whole_pieces,
                  struct error *e);
/* On rank 0 makes *ret the state with the moments of all ranks, in arrays of its own; on the others it sends. */
int shards_collect(const struct comm *c, const struct train_state *s, bool whole_pieces,
                   struct train_state *ret, struct error *e);
void shards_drop(struct train_state *collected); /* a zeroed one is fine */
