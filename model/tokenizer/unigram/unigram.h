/* SPDX-License-Identifier: Apache-2.0 */
/* Unigram language model: finds the tokens of a piece with the largest sum of scores. */
#pragma once
#include "masks/base/error.h"
#include "model/tokenizer/base/symbols.h"
#include "model/tokenizer/base/vocabulary.h"
#include <jansson.h>

struct unigram {
    const struct vocabulary *vocabulary;
    double *score; /* of each token of the model */
    uint32_t count, unknown;
    double unknown_score;
    int64_t spare[256]; /* "<0x41>", with byte_fallback; -1: none */
};

/* Fills an empty vocabulary from [TOKEN, SCORE], which is indexed and outlives the model. */
int unigram_read(struct unigram *ret, struct vocabulary *v, const json_t *model,
                 struct error *e);
void unigram_finish(struct unigram *u);

struct unigram_memory;
void unigram_memory_destroy(struct unigram_memory *m);

/* Replaces *ret by the tokens of a piece. *memory is null before the first call and is reused by later calls. */
void unigram_encode(const struct unigram *u, const char *bytes, uint32_t size,
                    struct unigram_memory **memory, struct symbols *ret);
