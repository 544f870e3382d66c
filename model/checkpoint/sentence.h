/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a sentence-transformers folder: how the vectors of tokens become the vector of a sentence. */
#pragma once
#include "masks/base/error.h"
#include "model/checkpoint/sentence_dense.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum pooling {
    POOLING_MEAN,
    POOLING_CLS,
    POOLING_POOLER,
    POOLING_NONE,
    POOLING_MAX,           /* the rest only in a folder's own settings */
    POOLING_MEAN_SQRT,     /* sum / sqrt(tokens) */
    POOLING_WEIGHTED_MEAN, /* token k of 1.. has the weight k */
    POOLING_LAST,          /* the last token */
    POOLING_COUNT
};
enum { POOLINGS_MOST = 6 };

struct sentence_settings {
    bool there; /* the folder has a modules.json; otherwise the rest are defaults */
    enum pooling pooling[POOLINGS_MOST]; /* their vectors are concatenated */
    uint32_t poolings;
    struct sentence_dense *
        *step; /* modules between pooling and `normalize`, in order; null: Normalize */
    uint32_t steps, steps_capacity;
    bool normalize;
    bool
        excludes_prompt; /* include_prompt false: pooling leaves out the tokens of the prompt */
    bool lowercase;      /* do_lower_case: text is lowered before the tokenizer */
    uint32_t dimension;  /* truncate_dim: the first numbers of a vector; 0: all */
    json_t *config;      /* config_sentence_transformers.json, which has the prompts; or null */
};

const char *pooling_name(enum pooling p); /* "mean", "cls", "lasttoken", .. */
/* The names of --pooling: "mean", "cls", "pooler", "none". */
int pooling_parse(const char *name, enum pooling *ret, struct error *e);

/* Reads modules.json, the files of its modules, sentence_bert_config.json and config_sentence_transformers.json as
   sentence-transformers 6.2 does. Modules, orders and settings that are not supported are refused by name. With
   `own_pooling` the caller chooses pooling and normalisation, and the modules are not read. */
int sentence_read(const char *folder, bool own_pooling, struct sentence_settings *ret,
                  struct error *e);
void sentence_finish(struct sentence_settings *s); /* a zeroed one is fine */

/* Name of the file with the encoder's settings: sentence_bert_config.json, or where it is missing that of another family which
   old folders have. */
const char *sentence_encoder_file(const char *folder);
/* max_seq_length in tokens, which replaces the tokenizer's model_max_length; 0: not given or no limit. Without
   modules.json sentence-transformers does not read it, either. */
int sentence_read_length(const char *folder, uint32_t *ret, struct error *e);

/* The text before each sentence: the prompt with this name, or if null the default one; "": none. Null with *e set
   if there is no such name. */
const char *sentence_prompt(const struct sentence_settings *s, const char *name,
                            struct error *e);
