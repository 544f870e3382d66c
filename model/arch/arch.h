/* SPDX-License-Identifier: Apache-2.0 */
/* An architecture is one const table: the keys of its config.json with defaults and limits, what is refused, its
   parameters and the blocks of a layer. A new one is a file like bert.c and a line in arch.c.

   Nothing outside this folder spells the name of a tensor. */
#pragma once
#include "masks/base/error.h"
#include "masks/base/text.h"
#include "model/arch/parameter.h"
#include <stddef.h>

/* A key that is a count. Limits keep every product of sizes within 64 bits. */
struct arch_size {
    const char *key;
    size_t at; /* offset of a uint32_t in struct model_config */
    uint32_t least, most;
    bool required;
};

struct arch_real {
    const char *key;
    size_t at; /* of a double */
    double least, most;
};

/* A text that, where it is given, must be this one. */
struct arch_only {
    const char *key, *value;
};

/* A model class of transformers. */
struct arch_class {
    const char *name;
    uint32_t parts;
    uint32_t labels; /* that its classifier has; 0: as config.json says */
    bool dense;      /* its classifier begins with a linear of its own: rows FOR_DENSE */
};

/* A switch of the config. */
struct arch_flag {
    const char *key;
    size_t at; /* of a bool */
};

/* The part of the model that tensors with this prefix belong to. */
struct arch_prefix {
    const char *prefix;
    uint32_t part;
};

/* An old or foreign spelling, replaced where it first stands in a name; `whole`: the name must be it. */
struct arch_rename {
    const char *from, *to;
    bool whole;
};

/* A layer is a list of blocks, each with a residual: x + f(x) with a norm before f or after the sum. */
enum block_kind { BLOCK_ATTENTION, BLOCK_FEED };
enum norm_place {
    NORM_AFTER,  /* norm(x + f(x)) */
    NORM_BEFORE, /* x + f(norm(x)); the last layer's sum goes through the final norm */
};
struct block {
    enum block_kind kind;
    enum norm_place norm;
    bool keeps;                  /* f(x) does not drop out in training */
    bool drops_as_probabilities; /* f(x) drops out with attention's own probability */
};
enum { BLOCKS_MOST = 2 }; /* attention, then feed forward */

/* Kind of pooler: the encoder's (tanh follows); or the first linear of a classifier, which no other head and no
   sentence vector reads: ReLU follows, or dropout precedes it and tanh follows. SHARED: no pooler; PART_POOLER has the
   first half of each head: dense, activation and norm, the masked language model's. */
enum pooler_kind { POOLER_OF_ENCODER, POOLER_OF_CLASSIFIER, POOLER_DROPS, POOLER_SHARED };

struct arch {
    const char *model_type;  /* of config.json */
    const char *title;       /* for messages */
    const char *tokenizer;   /* class of transformers */
    const char *activation;  /* key of the feed forward's */
    enum pooler_kind pooler; /* of classes that are not `dense` */
    bool
        positions_skip_pad; /* position rows up to pad_token_id are reserved; text starts at the next */
    bool gated; /* the feed forward: activation(first half) * second half of its first linear */
    const char *
        head_activation; /* key of the masked language model's head; null: the feed forward's */
    bool
        head_gelu; /* the masked language model's head has GELU whatever the feed forward has */
    uint32_t prefixed;  /* parts whose tensors have the prefix where the model has a head */
    const char *prefix; /* of the encoder's tensors where the model has a head: "bert." */
    const char *layer;  /* printf format of a layer's prefix, with its number */

    /* Tables; those of texts and rows end with a null name or key. */
    const struct arch_class *classes; /* the first is the bare encoder */
    const struct arch_size *sizes;
    const struct arch_real *reals;
    const struct arch_only *onlys;
    const struct arch_flag *flags; /* or null */
    const char *const *off;        /* switches that must be false */
    const struct arch_prefix *prefixes;
    const struct arch_rename *renames;
    const char *
        decoder_bias; /* of the MLM decoder, in files: the bias of the head where weights are tied */
    const char *const *buffers; /* tensors that are no parameters */
    const struct parameter_row *before, *in_layer, *after;
    struct block block[BLOCKS_MOST];
    uint32_t blocks;
    struct model_config defaults;
};

/* The architectures; arch.c lists them. */
extern const struct arch arch_bert;
extern const struct arch arch_camembert;
extern const struct arch arch_distilbert;
extern const struct arch arch_modernbert;
extern const struct arch arch_mpnet;
extern const struct arch arch_roberta;
extern const struct arch arch_xlm_roberta;
/* A program may bring more, in a list that ends with null. */
extern const struct arch *const arch_own[] __attribute__((weak));

/* By config.json's model_type; null: there is none. */
const struct arch *arch_find(const char *model_type);
/* "bert or ..": what there is, for messages; a program's own are not said. */
void arch_names(struct text *to);

/* Null: there is no such class. */
const struct arch_class *arch_class_find(const struct arch *a, const char *name);
/* Appends the names of a's classes: "MPNetModel, .. or MPNetForQuestionAnswering". */
void arch_class_names(const struct arch *a, struct text *to);
/* The one with these parts, the pooler aside where it is shared; null: there is none. */
const struct arch_class *arch_class_of(const struct arch *a, uint32_t parts);
/* The one whose name ends so: "ForQuestionAnswering"; null: there is none. */
const struct arch_class *arch_class_ending(const struct arch *a, const char *end);
/* Kind of pooler of a model of this class. */
enum pooler_kind arch_pooler(const struct model_config *c);
/* Row of the table of positions for the next token of a text; *count: its tokens so far without padding, first 0. */
static inline uint32_t arch_position(const struct model_config *c, uint32_t token,
                                     uint32_t *count)
{
    return c->first_position && token == c->first_position - 1 ? token
                                                               : c->first_position + (*count)++;
}
/* The row of PARAMETER_RELATIVE for a key that stands `offset` behind its query: the first half for keys before it and itself. A
   distance below 8 has a row of its own, then there are two for each doubling; the last takes all from 91 on. */
enum { RELATIVE_ROWS = 32 };
uint32_t arch_relative(int32_t offset);
/* A parameter's row; null where the architecture has none. */
const struct parameter_row *arch_parameter(const struct arch *a, enum parameter_id id);
/* The layer's block of this kind, and where its norm is. */
const struct block *arch_block(const struct arch *a, enum block_kind kind);
enum norm_place arch_norm_of(const struct arch *a, enum block_kind kind);
/* True if the blocks of a layer are those of the list. */
bool arch_blocks_are(const struct arch *a, const struct block *list, uint32_t count);
