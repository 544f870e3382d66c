/* SPDX-License-Identifier: Apache-2.0 */
/* A batch as tensors that torch takes, B sequences of at most N tokens (of multiple choice B counts each choice):
   batch.input_ids, token_type_ids I64 [B,N]; lengths, samples I64 [B] (dropout depends on them);
   words:   masked_positions, masked_labels I64 [masked], masked_offsets I64 [B+1]; pairs: nsp_labels I64 [B];
   a class: labels I64 [B]; a number: labels F32 [B]; a choice: labels I64 [samples];
   words with labels: labels I64 [B,N], -100 where there is none; a span: start_positions, end_positions I64 [B]. */
#pragma once
#include "masks/safetensors.h"
#include "model/gradients/batch.h"

struct saved_batch {
    uint32_t longest;
    int64_t *ids, *types;       /* [B, N] */
    int64_t *lengths, *samples; /* [B] */
    int64_t *offsets;           /* [B + 1]: where a sequence's masked words begin */
    int64_t *positions;         /* [rows of the target of words] */
    int64_t *words;
    int64_t *labels, *ends; /* of another target; ends: of spans */
    float *values;
};

struct saved_batch saved_batch_new(const struct train_batch *b, uint32_t pad);
/* Adds tensors that point into *s, which must outlive them. */
void saved_batch_add(const struct saved_batch *s, const struct train_batch *b,
                     struct safetensors *to);
void saved_batch_finish(struct saved_batch *s);
