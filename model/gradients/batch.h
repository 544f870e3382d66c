/* SPDX-License-Identifier: Apache-2.0 */
/* What one step of training reads: sequences without padding, which of their tokens were masked, and what stood
   there. model/data/ makes it, model/train/ and the backends read it. */
#pragma once
#include "model/engine/engine.h"
#include <stdint.h>

struct train_batch {
    uint32_t sequences, tokens;
    struct sequence *list; /* [sequences]: token ids after masking */
    int32_t *offsets; /* [sequences + 1]: rows of sequence s are offsets[s] .. offsets[s+1] */
    uint32_t
        *sample; /* [sequences]: what a sequence's dropout is a function of, with the seed: the
                              same sample has the same bits wherever it stands in whatever batch */
    uint32_t masked;        /* how many tokens carry a label */
    uint32_t *masked_row;   /* [masked]: rows of the batch, ascending */
    uint32_t *masked_label; /* [masked]: token ids */
    uint8_t *next_label;    /* [sequences]: 0 B follows A, 1 B is random; null: no pairs */
};

/* Sequences first .. first + count of a batch, as a batch: `*ret` points into *b, only its offsets and rows are its
   own (ret_offsets [count + 1], ret_rows [masked of these]). For accumulation of gradients. */
void train_batch_slice(const struct train_batch *b, uint32_t first, uint32_t count,
                       struct train_batch *ret, int32_t *ret_offsets, uint32_t *ret_rows);
