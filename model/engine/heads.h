/* SPDX-License-Identifier: Apache-2.0 */
/* Heads on the encoder. A head reads the hidden states that engine_encode left in a workspace, and writes f32 to the
   caller's memory. Its part must be among the engine's. */
#pragma once
#include "model/engine/engine.h"

/* The mean of each sequence's hidden states: [sequences, H]. No part is needed. */
int head_mean(const struct engine *g, struct engine_workspace *workspace, float *ret,
              struct error *e);

/* tanh(dense(first token of each sequence)): [sequences, H]. PART_POOLER. */
int head_pool(const struct engine *g, struct engine_workspace *workspace, float *ret,
              struct error *e);

/* Logits of the words for some rows of hidden: [n, vocabulary]. PART_MLM. */
int head_words(const struct engine *g, struct engine_workspace *workspace, const uint32_t *rows,
               uint32_t n, float *ret, struct error *e);

/* Logits for B follows A (column 0) or not (1), from the pooled output: [sequences, 2]. PART_NSP. */
int head_next(const struct engine *g, struct engine_workspace *workspace, float *ret,
              struct error *e);

/* The classifier over the pooled output: [sequences, labels]. For multiple choice each choice is a sequence
   and has one label. PART_CLASSIFIER. */
int head_sequences(const struct engine *g, struct engine_workspace *workspace, float *ret,
                   struct error *e);

/* The classifier over every token: [tokens, labels]. PART_CLASSIFIER. */
int head_tokens(const struct engine *g, struct engine_workspace *workspace, float *ret,
                struct error *e);

/* Logits of an answer's first and last token: [tokens, 2]. PART_SPAN. */
int head_span(const struct engine *g, struct engine_workspace *workspace, float *ret,
              struct error *e);
