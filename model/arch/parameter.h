/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of an encoder and of its heads, by what they are for. An architecture gives each its name in files,
   shape, first value and treatment by the optimiser. Weights of linears are [out, in], row-major. */
#pragma once
#include "model/arch/config.h"

enum parameter_id {
    /* Once. Embedding tables: a row for each word, position, type. */
    PARAMETER_WORDS,
    PARAMETER_POSITIONS,
    PARAMETER_TYPES,
    PARAMETER_EMBEDDINGS_GAIN,
    PARAMETER_EMBEDDINGS_SHIFT,
    PARAMETER_RELATIVE,   /* a bias of the scores for each bucket of distances and head */
    PARAMETER_FINAL_GAIN, /* the norm after the last layer, where layers begin with theirs */
    PARAMETER_FINAL_SHIFT,
    /* In each layer. Weight and bias of query, key and value follow each other, in this order. */
    PARAMETER_QUERY_WEIGHT,
    PARAMETER_QUERY_BIAS,
    PARAMETER_KEY_WEIGHT,
    PARAMETER_KEY_BIAS,
    PARAMETER_VALUE_WEIGHT,
    PARAMETER_VALUE_BIAS,
    PARAMETER_QKV_WEIGHT, /* or all three, one below another */
    PARAMETER_QKV_BIAS,
    PARAMETER_OUTPUT_WEIGHT, /* of attention */
    PARAMETER_OUTPUT_BIAS,
    PARAMETER_OUTPUT_GAIN, /* the norm of the attention block */
    PARAMETER_OUTPUT_SHIFT,
    PARAMETER_INNER_WEIGHT, /* the feed forward's first linear */
    PARAMETER_INNER_BIAS,
    PARAMETER_OUTER_WEIGHT, /* and its second */
    PARAMETER_OUTER_BIAS,
    PARAMETER_OUTER_GAIN, /* the norm of the feed forward block */
    PARAMETER_OUTER_SHIFT,
    /* Heads. */
    PARAMETER_POOLER_WEIGHT,
    PARAMETER_POOLER_BIAS,
    PARAMETER_MLM_DENSE_WEIGHT,
    PARAMETER_MLM_DENSE_BIAS,
    PARAMETER_MLM_GAIN,
    PARAMETER_MLM_SHIFT,
    PARAMETER_MLM_BIAS,
    PARAMETER_MLM_DECODER, /* where it is not the word embeddings */
    PARAMETER_NSP_WEIGHT,
    PARAMETER_NSP_BIAS,
    PARAMETER_CLASSIFIER_WEIGHT,
    PARAMETER_CLASSIFIER_BIAS,
    PARAMETER_SPAN_WEIGHT,
    PARAMETER_SPAN_BIAS,
    PARAMETER_COUNT
};

enum first_value { VALUE_NORMAL, VALUE_NORMAL_PAD, VALUE_ZERO, VALUE_ONE };

/* Which models have it: all; those whose classifier begins with a linear of its own, the others; those with a span head, those
   without; by a switch of the config; layers behind the first, with a switch too. */
enum row_models {
    FOR_ALL,
    FOR_DENSE,
    FOR_OTHERS,
    FOR_SPANS,
    FOR_LABELS,
    WITH_ATTENTION_BIAS,
    WITH_FEED_BIAS,
    WITH_NORM_BIAS,
    WITH_DECODER_BIAS,
    WITH_DENSE_BIAS,
    BEHIND_FIRST,
    BEHIND_FIRST_WITH_NORM_BIAS,
};

enum { PARAMETER_NAME_BYTES = 96 };

/* A row of an architecture's table. */
struct parameter_row {
    enum parameter_id id;
    const char
        *name; /* in files, without the architecture's prefix; in a layer without the layer's */
    const char *
        shape; /* a letter for each dimension: Vocabulary, Positions, Types, Hidden, Intermediate, Labels,
                  Relative, Attention heads, 3 times Hidden, Gated intermediate (twice), 2 */
    uint32_t part;          /* one PART_ bit */
    enum first_value first; /* NORMAL_PAD: normal, but row pad_token_id is 0 */
    bool decays;            /* weight decay applies */
    enum row_models models;
};

/* One parameter of a model. */
struct parameter {
    enum parameter_id id;
    uint32_t layer; /* 0 where it is in no layer */
    char name[PARAMETER_NAME_BYTES];
    uint32_t rank;
    uint64_t shape[2], count; /* count: elements */
    uint32_t part;
    enum first_value first;
    bool decays;
    bool outside; /* of a head whatever its part: without the architecture's prefix */
    bool by_word; /* its first dimension is the vocabulary, and files may have more rows */
};

/* All parameters of the parts, in a fixed order; caller frees. The MLM decoder is one of them only if it is
   not tied. */
struct parameter *parameters_list(const struct model_config *c, uint32_t parts,
                                  uint32_t *ret_count);

/* The parameter's name for a name in a file, as the architecture writes it: without prefixes, old spellings replaced.
   False for buffers that are no parameter. */
bool parameter_name(const struct arch *a, const char *file_name,
                    char ret[PARAMETER_NAME_BYTES]);

/* The parts that tensors of this name belong to, by its beginning. */
uint32_t parameter_parts(const struct arch *a, const char *name);

/* The parameter's name in a file that transformers loads: with the architecture's prefix where the model has a head. */
void parameter_file_name(const struct parameter *p, const struct model_config *c,
                         char ret[PARAMETER_NAME_BYTES]);
