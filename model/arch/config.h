/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes and settings of an encoder, whatever its architecture: what config.json says in the architecture's own words
   (arch.h). model/checkpoint/config.h reads and writes it. */
#pragma once
#include "masks/base/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum activation {
    ACTIVATION_GELU,      /* the erf form: "gelu" */
    ACTIVATION_GELU_TANH, /* "gelu_new", "gelu_pytorch_tanh" */
    ACTIVATION_RELU,
    ACTIVATION_SILU,
    ACTIVATION_COUNT
};

const char *activation_name(enum activation a);
/* "gelu", "relu", .. to the enum; -1 with *e set, which names the key, where it is another. */
int activation_parse(const char *key, const char *name, enum activation *ret, struct error *e);

/* Parts of a model: the encoder and the layers on top of it; a set of bits. */
enum model_part {
    PART_ENCODER = 1,
    PART_POOLER = 2,
    PART_MLM = 4,         /* words for masked tokens */
    PART_NSP = 8,         /* whether the second sentence follows the first */
    PART_CLASSIFIER = 16, /* sequence, token and multiple choice */
    PART_SPAN = 32,       /* first and last token of an answer */
};

enum { NO_PADDING = UINT32_MAX };

struct arch;

struct model_config {
    const struct arch *arch;
    uint32_t vocabulary, hidden, layers, heads, intermediate, positions, types, labels;
    uint32_t pad; /* the token whose row learns nothing where it stands, or NO_PADDING */
    uint32_t
        first_position; /* row of the table for a text's first token; `positions` counts rows from there on */
    uint32_t
        relative; /* rows of the table of biases by distance (arch_relative()); 0: scores have none */
    /* Layers of two kinds: global ones, whose mask is dense, and local ones, |i - j| <= local / 2; queries and keys are rotated
       by their positions (config_layer_is_global(), model/checkpoint/config.h). */
    uint32_t local, global_every; /* local 0: all layers are global, and nothing is rotated */
    const json_t *layer_types;    /* in the place of global_every, of texts; or null */
    double global_theta, local_theta;
    bool attention_bias, feed_bias, norm_bias, decoder_bias,
        dense_bias;    /* rows WITH_.. of the tables */
    bool mean_pooling; /* a classifier of sequences reads the mean of the rows, not the first */
    double feed_dropout; /* of what the feed forward's second linear reads */
    bool one_type;       /* the tokenizer gives no types: all tokens have the first */
    bool labels_given;   /* else the file's shape says how many */
    enum activation activation,
        head_activation; /* of the feed forward, of the masked language model's head */
    double layer_norm_eps, initializer_range, hidden_dropout, attention_dropout;
    /* Before a classifier of sequences, or of choices where the class is of those; of choices; of tokens; before a span head.
       Below 0: hidden_dropout. */
    double classifier_dropout, choice_dropout, token_dropout, span_dropout;
    bool tied;                         /* the MLM decoder is the word embeddings */
    const char *architecture;          /* a class of transformers, "" where none is named */
    const char *dtype;                 /* torch_dtype, "" where it is not said */
    const char *problem;               /* "single_label_classification", .., or "" */
    const char *mask, *mask_transform; /* of the key "maskc"; null: none */
    json_t *json;                      /* the whole object; the texts above live in it */
};
