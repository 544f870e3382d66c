/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizers, pre-tokenizers and model of tokenizer.json, one after the other: BPE and unigram. */
#pragma once
#include "model/tokenizer/base/symbols.h"
#include "model/tokenizer/bpe/bpe.h"
#include "model/tokenizer/encoding.h"
#include "model/tokenizer/normalize/normalizer.h"
#include "model/tokenizer/split/splitter.h"
#include "model/tokenizer/unigram/unigram.h"

struct pipeline_memory {
    struct normalizing normalizing;
    struct splitting splitting;
    struct symbols symbols; /* of the last piece */
    struct bpe_memory *bpe;
    struct unigram_memory *unigram;
};

void pipeline_destroy(struct pipeline_memory *m); /* null is allowed */
void pipeline_gap(struct encoding *in, uint32_t from, uint32_t to);
/* The normalised text, without closing 0; caller frees. */
char *pipeline_normalise(const struct normalizers *n, const char *text, uint32_t size,
                         uint32_t *ret_size);
