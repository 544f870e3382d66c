/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that a text or a window of a question's passage has at most: one rule for training, evaluation and inference. */
#pragma once
#include "model/tokenizer/tokenizer.h"
#include <jansson.h>

struct lengths {
    uint32_t
        text; /* limit in the model's folder: max_seq_length of sentence-transformers, else the tokenizer's; 0: none */
    uint32_t window, overlap; /* of questions, as fine-tuning kept them; 0: as usual */
};

/* config: of the folder's config.json. t: its tokenizer, or null. */
int lengths_read(const char *folder, const json_t *config, const struct tokenizer *t,
                 struct lengths *ret, struct error *e);
/* Stores windows in a config.json, "maskc_windows": {"max_length": .., "stride": ..}. What is 0 stays as it was. */
void lengths_keep(json_t *config, uint32_t window, uint32_t overlap);

/* `most`: tokens that the model accepts. `asked`: --max-length, --stride; 0: not given. */
uint32_t lengths_text(const struct lengths *l, uint32_t most, uint32_t asked);
uint32_t lengths_window(const struct lengths *l, uint32_t most, uint32_t asked);
/* One of the two: of windows or of whole texts. */
uint32_t lengths_sample(const struct lengths *l, bool windows, uint32_t most, uint32_t asked);
uint32_t lengths_overlap(const struct lengths *l, uint32_t asked); /* 0: as usual */
