/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that are taken out of a mask, to ask what they are worth (SparseBERT 3.3). */
#pragma once
#include "masks/mask.h"
#include "model/checkpoint/config.h"

/* "diagonal": all i = j. "random:K": K active entries of each layer and head, a function of (seed, repeat, layer, head) and
   the length that texts have at most: those beyond it, which no text uses, are not drawn. Takes the mask, and returns a new
   one; null with *e set. */
struct drop_draws {
    uint64_t seed;
    uint32_t repeat;
    uint32_t length; /* 0: that of the mask */
};
struct mask *mask_drop(struct mask *m, const char *what, const struct model_config *c,
                       struct drop_draws draws, struct error *e);
