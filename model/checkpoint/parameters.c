/* SPDX-License-Identifier: Apache-2.0 */
#include "model/checkpoint/parameters.h"
#include "masks/base/memory.h"
#include <stdio.h>
#include <string.h>

/* A shape by letters: Vocabulary, Positions, Types, Hidden, Intermediate, Labels, 2. */
/* clang-format off */
static const struct row {
    const char *name;
    const char *shape;
    uint32_t part;
    enum first_value first;
} before[] = {
    {"embeddings.word_embeddings.weight",       "VH", PART_ENCODER, VALUE_NORMAL_PAD},
    {"embeddings.position_embeddings.weight",   "PH", PART_ENCODER, VALUE_NORMAL},
    {"embeddings.token_type_embeddings.weight", "TH", PART_ENCODER, VALUE_NORMAL},
    {"embeddings.LayerNorm.weight",             "H",  PART_ENCODER, VALUE_ONE},
    {"embeddings.LayerNorm.bias",               "H",  PART_ENCODER, VALUE_ZERO},
}, layer[] = {
    {"attention.self.query.weight",       "HH", PART_ENCODER, VALUE_NORMAL},
    {"attention.self.query.bias",         "H",  PART_ENCODER, VALUE_ZERO},
    {"attention.self.key.weight",         "HH", PART_ENCODER, VALUE_NORMAL},
    {"attention.self.key.bias",           "H",  PART_ENCODER, VALUE_ZERO},
    {"attention.self.value.weight",       "HH", PART_ENCODER, VALUE_NORMAL},
    {"attention.self.value.bias",         "H",  PART_ENCODER, VALUE_ZERO},
    {"attention.output.dense.weight",     "HH", PART_ENCODER, VALUE_NORMAL},
    {"attention.output.dense.bias",       "H",  PART_ENCODER, VALUE_ZERO},
    {"attention.output.LayerNorm.weight", "H",  PART_ENCODER, VALUE_ONE},
    {"attention.output.LayerNorm.bias",   "H",  PART_ENCODER, VALUE_ZERO},
    {"intermediate.dense.weight",         "IH", PART_ENCODER, VALUE_NORMAL},
    {"intermediate.dense.bias",           "I",  PART_ENCODER, VALUE_ZERO},
    {"output.dense.weight",               "HI", PART_ENCODER, VALUE_NORMAL},
    {"output.dense.bias",                 "H",  PART_ENCODER, VALUE_ZERO},
    {"output.LayerNorm.weight",           "H",  PART_ENCODER, VALUE_ONE},
    {"output.LayerNorm.bias",             "H",  PART_ENCODER, VALUE_ZERO},
}, after[] = {
    {"pooler.dense.weight",                        "HH", PART_POOLER, VALUE_NORMAL},
    {"pooler.dense.bias",                          "H",  PART_POOLER, VALUE_ZERO},
    {"cls.predictions.transform.dense.weight",     "HH", PART_MLM, VALUE_NORMAL},
    {"cls.predictions.transform.dense.bias",       "H",  PART_MLM, VALUE_ZERO},
    {"cls.predictions.transform.LayerNorm.weight", "H",  PART_MLM, VALUE_ONE},
    {"cls.predictions.transform.LayerNorm.bias",   "H",  PART_MLM, VALUE_ZERO},
    {"cls.predictions.bias",                       "V",  PART_MLM, VALUE_ZERO},
    {"cls.predictions.decoder.weight",             "VH", PART_MLM, VALUE_NORMAL}, /* the last of MLM: left out if tied */
    {"cls.seq_relationship.weight",                "2H", PART_NSP, VALUE_NORMAL},
    {"cls.seq_relationship.bias",                  "2",  PART_NSP, VALUE_ZERO},
    {"classifier.weight",                          "LH", PART_CLASSIFIER, VALUE_NORMAL},
    {"classifier.bias",                            "L",  PART_CLASSIFIER, VALUE_ZERO},
    {"qa_outputs.weight",                          "2H", PART_SPAN, VALUE_NORMAL},
    {"qa_outputs.bias",                            "2",  PART_SPAN, VALUE_ZERO},
};
/* clang-format on */

#define COUNT(table) (sizeof(table) / sizeof *(table))

static uint64_t size_of(const struct model_config *c, char letter)
{
    switch (letter) {
    case 'V':
        return c->vocabulary;
    case 'P':
        return c->positions;
    case 'T':
        return c->types;
    case 'H':
        return c->hidden;
    case 'I':
        return c->intermediate;
    case 'L':
        return c->labels;
    default:
        return 2;
    }
}

static struct parameter make(const struct model_config *c, const struct row *r)
{
    struct parameter p = {
        .rank = (uint32_t)strlen(r->shape),
        .count = 1,
        .part = r->part,
        .first = r->first,
        .by_word = r->shape[0] == 'V',
    };
    snprintf(p.name, sizeof p.name, "%s", r->name);
    for (uint32_t k = 0; k < p.rank; k++)
        p.count *= p.shape[k] = size_of(c, r->shape[k]);
    return p;
}

struct parameter *parameters_list(const struct model_config *c, uint32_t parts,
                                  uint32_t *ret_count)
{
    size_t most = COUNT(before) + COUNT(after) + (size_t)c->layers * COUNT(layer);
    struct parameter *list = memory_new(most, sizeof *list);
    uint32_t n = 0;
    for (size_t k = 0; k < COUNT(before); k++)
        list[n++] = make(c, &before[k]);
    for (uint32_t l = 0; l < c->layers; l++)
        for (size_t k = 0; k < COUNT(layer); k++, n++) {
            list[n] = make(c, &layer[k]);
            snprintf(list[n].name, sizeof list[n].name, "encoder.layer.%u.%s", l,
                     layer[k].name);
        }
    for (size_t k = 0; k < COUNT(after); k++) {
        bool tied = c->tied && !strcmp(after[k].name, "cls.predictions.decoder.weight");
        if (parts & after[k].part && !tied)
            list[n++] = make(c, &after[k]);
    }
    *ret_count = n;
    return list;
}

/* Replaces the first `from` in the name, if there is one. The result always fits: names never grow beyond
   their array. */
static void rename_part(char name[PARAMETER_NAME_BYTES], const char *from, const char *to)
{
    char *at = strstr(name, from);
    char rest[PARAMETER_NAME_BYTES];
    if (!at)
        return;
    snprintf(rest, sizeof rest, "%s", at + strlen(from));
    snprintf(at, (size_t)(PARAMETER_NAME_BYTES - (at - name)), "%s%s", to, rest);
}

bool parameter_name(const char *file_name, char ret[PARAMETER_NAME_BYTES])
{
    static const char *const prefix[] = {"module.", "bert."};
    for (size_t k = 0; k < COUNT(prefix); k++)
        if (!strncmp(file_name, prefix[k], strlen(prefix[k])))
            file_name += strlen(prefix[k]);
    snprintf(ret, PARAMETER_NAME_BYTES, "%s", file_name);
    rename_part(ret, "LayerNorm.gamma", "LayerNorm.weight");
    rename_part(ret, "LayerNorm.beta", "LayerNorm.bias");
    rename_part(ret, ".dense_act.", ".dense.");
    if (!strcmp(ret, "cls.predictions.decoder.bias"))
        snprintf(ret, PARAMETER_NAME_BYTES, "cls.predictions.bias");
    return strcmp(ret, "embeddings.position_ids") && strcmp(ret, "embeddings.token_type_ids");
}

void parameter_file_name(const struct parameter *p, const struct model_config *c,
                         char ret[PARAMETER_NAME_BYTES])
{
    bool inner = p->part & (PART_ENCODER | PART_POOLER);
    bool plain = !*c->architecture || !strcmp(c->architecture, "BertModel");
    snprintf(ret, PARAMETER_NAME_BYTES, "%s%.88s", inner && !plain ? "bert." : "", p->name);
}
