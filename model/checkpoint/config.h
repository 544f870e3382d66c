/* SPDX-License-Identifier: Apache-2.0 */
/* config.json: the sizes and settings of a BERT encoder. Settings that this encoder cannot honour are refused
   by name. Keys that it does not know are kept, and written again as they were. */
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

/* What stands on the encoder; a set of bits. */
enum model_part {
    PART_ENCODER = 1,
    PART_POOLER = 2,
    PART_MLM = 4,         /* cls.predictions */
    PART_NSP = 8,         /* cls.seq_relationship */
    PART_CLASSIFIER = 16, /* sequence, token and multiple choice */
    PART_SPAN = 32,       /* qa_outputs */
};

struct model_config {
    uint32_t vocabulary, hidden, layers, heads, intermediate, positions, types, labels, pad;
    bool labels_given; /* else the file's shape says how many */
    enum activation activation;
    double layer_norm_eps, initializer_range, hidden_dropout, attention_dropout;
    double classifier_dropout;         /* -1: as hidden_dropout */
    bool tied;                         /* the MLM decoder is the word embeddings */
    const char *architecture;          /* "BertForMaskedLM", "" where none is named */
    const char *dtype;                 /* torch_dtype, "" where it is not said */
    const char *problem;               /* "single_label_classification", .., or "" */
    const char *mask, *mask_transform; /* of the key "maskc"; null: none */
    json_t *json;                      /* the whole object; the texts above live in it */
};

const char *activation_name(enum activation a);
/* "gelu", "relu", .. to the enum; -1 with *e set where it is another. */
int activation_parse(const char *name, enum activation *ret, struct error *e);

int config_read(const char *folder, struct model_config *ret, struct error *e);
/* From a JSON object, of which a reference is kept. */
int config_parse(json_t *json, struct model_config *ret, struct error *e);
void config_finish(struct model_config *c); /* a zeroed one is fine */

/* The parts that the architecture names (PART_ENCODER alone where it names none), and the label of a
   class: id2label's, else "LABEL_3". */
uint32_t config_parts(const struct model_config *c);
const char *config_label(const struct model_config *c, uint32_t label, char buffer[24]);

/* The text of a config.json for *c; caller frees. Keys of c->json that *c does not hold stay. */
char *config_write(const struct model_config *c, const char *dtype);
