/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizers, pre-tokenizers and model of tokenizer.json, one after the other: BPE and unigram. */
#pragma once
#include "model/tokenizer/encoding.h"

void pipeline_destroy(struct pipeline_memory *m); /* null is allowed */
void pipeline_gap(struct encoding *in, uint32_t from, uint32_t to);
/* The tokens of a piece, in *m. */
void pipeline_bpe(const struct tokenizer *t, const char *bytes, uint32_t size,
                  struct pipeline_memory *m);
void pipeline_unigram(const struct tokenizer *t, const char *bytes, uint32_t size,
                      struct pipeline_memory *m);
/* The normalised text, without closing 0; caller frees. */
char *pipeline_normalise(const struct normalizers *n, const char *text, uint32_t size,
                         uint32_t *ret_size);
