/* SPDX-License-Identifier: Apache-2.0 */
/* What a sentence-transformers folder adds: how the vectors of tokens become the vector of a sentence. */
#pragma once
#include "masks/base/error.h"
#include <stdbool.h>
#include <stdint.h>

enum pooling { POOLING_MEAN, POOLING_CLS, POOLING_POOLER, POOLING_NONE, POOLING_COUNT };

struct sentence_settings {
    bool there; /* it is such a folder; else the rest are defaults */
    enum pooling pooling;
    bool normalize;
    uint32_t max_length; /* tokens, 0: not said */
};

const char *pooling_name(enum pooling p); /* "mean", "cls", "pooler", "none" */
int pooling_parse(const char *name, enum pooling *ret, struct error *e);

/* Reads modules.json, the pooling's config.json and sentence_bert_config.json. Modules and poolings that are
   not supported are refused by name. */
int sentence_read(const char *folder, struct sentence_settings *ret, struct error *e);
